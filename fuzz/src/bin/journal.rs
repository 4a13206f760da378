//! The journal of a backfill: any file is rejected, or is a journal that can be continued.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use statusgate::cluster::Target;
use statusgate::cluster::backfill::{Journal, Scope};
use tempfile::TempDir;

fuzz_target!(init: statusgate_fuzz::catch_panics(), |data: &[u8]| {
    statusgate_fuzz::run(data, || {
        read(data);
        // The same behind a valid first line, which no random change finds.
        let mut lines = HEADER.clone();
        lines.extend_from_slice(data);
        read(&lines);
    });
});

fn read(data: &[u8]) {
    let path = FOLDER.path().join("journal");
    fs::write(&path, data).expect("a writable folder");
    let target = target();
    let before = match Journal::open(&path, &scope()) {
        Ok(journal) => journal,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(fs::read(&path).expect("the file"), data, "a foreign file is not changed");
            return;
        }
    };
    let (known, finished) = (before.has_patched(&target, "one"), before.finished(&target));
    drop(before);
    let stored = fs::read(&path).expect("the file");
    assert!(stored.ends_with(b"\n"), "an incomplete line is dropped");
    assert!(stored == HEADER.as_slice() || data.starts_with(&stored), "other lines stay");
    let mut again = Journal::open(&path, &scope()).expect("a journal that was opened before");
    assert_eq!((again.has_patched(&target, "one"), again.finished(&target)), (known, finished));
    again.note_patched(&target, "new").expect("a writable file");
    drop(again);
    let next = Journal::open(&path, &scope()).expect("a journal that was continued");
    assert!(next.has_patched(&target, "new"));
    assert_eq!(next.finished(&target), finished);
}

fn scope() -> Scope {
    Scope::new(
        "https://here/",
        "the kube-system one".to_owned(),
        ["p"].into_iter(),
        "everything".to_owned(),
    )
}

fn target() -> Target {
    Target {
        group: "a.io".to_owned(),
        version: "v1".to_owned(),
        plural: "foos".to_owned(),
        ..Target::default()
    }
}

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// The first line of a journal of this scope.
static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = FOLDER.path().join("empty");
    drop(Journal::open(&path, &scope()).expect("a new journal"));
    fs::read(path).expect("the file")
});
