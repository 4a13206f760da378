//! The one place where the server reads the wall clock.

use jiff::Timestamp;

/// The current time. Everything below the server takes it as an argument.
#[expect(clippy::disallowed_methods, reason = "the server is an edge: time enters here")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
