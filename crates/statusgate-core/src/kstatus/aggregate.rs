//! The common status of several objects.

use super::Status;

/// The common status of objects, for a tool that waits until all of them are `desired`.
///
/// It is Failed if one object is, otherwise Unknown if one is, otherwise InProgress if one is not
/// `desired`. Without objects it is `desired`.
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
    fn the_worst_status_decides_and_no_objects_are_as_desired() {
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
