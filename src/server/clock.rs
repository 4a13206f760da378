//! The one place where the program reads the wall clock.

use jiff::Timestamp;

/// The current time. Everything else takes it as an argument.
#[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
