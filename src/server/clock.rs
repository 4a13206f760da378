//! The one place where the server reads the wall clock.

use jiff::Timestamp;

/// Now. Everything below the server takes this as an argument.
#[expect(clippy::disallowed_methods, reason = "the server is an edge: time enters here")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
