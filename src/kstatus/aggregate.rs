//! Several objects as one.

use super::Status;

/// What a set of objects amounts to, for somebody who waits until all of them are `desired`.
///
/// One failure is a failure of the whole, then one that cannot be computed makes the whole Unknown,
/// and anything else that is not `desired` is on its way. Nothing at all is `desired`.
#[must_use]
pub fn aggregate(statuses: impl IntoIterator<Item = Status>, desired: Status) -> Status {
    let (mut unknown, mut other) = (false, false);
    for status in statuses {
        match status {
            Status::Failed => return Status::Failed,
            Status::Unknown => unknown = true,
            _ => {}
        }
        other |= status != desired;
    }
    match (unknown, other) {
        (true, _) => Status::Unknown,
        (false, false) => desired,
        (false, true) => Status::InProgress,
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{Current, Failed, InProgress, Terminating, Unknown};
    use super::*;

    #[test]
    fn the_worst_decides_and_nothing_is_as_desired() {
        for (statuses, desired, expected) in [
            (&[][..], Current, Current),
            (&[], Terminating, Terminating),
            (&[Current, Current], Current, Current),
            (&[Current, InProgress], Current, InProgress),
            (&[Current, Terminating], Current, InProgress),
            (&[Current, Current], Terminating, InProgress),
            (&[Unknown, InProgress], Current, Unknown),
            (&[Unknown, Failed], Current, Failed),
            (&[Failed, Unknown], Current, Failed),
            (&[Failed], Failed, Failed),
            (&[Unknown], Unknown, Unknown),
        ] {
            assert_eq!(aggregate(statuses.iter().copied(), desired), expected, "{statuses:?}");
        }
    }
}
