use std::os::unix::net::UnixListener;

use super::*;

fn scope(documents: &[&str]) -> Scope {
    let cluster = "the kube-system one".to_owned();
    Scope::new("https://here/", cluster, documents.iter().copied(), "everything".into())
}

#[test]
fn the_next_run_knows_patched_and_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (foos, bars) = (Target::example("foos"), Target::example("bars"));
    let mut first = Journal::open(&path, &scope(&["p"])).unwrap();
    first.note_patched(&foos, "one").unwrap();
    first.note_patched(&foos, "two").unwrap();
    first.note_patched(&bars, "three").unwrap();
    first.note_finished(&bars).unwrap();
    drop(first);
    let next = Journal::open(&path, &scope(&["p"])).unwrap();
    assert!(next.has_patched(&foos, "one") && next.has_patched(&foos, "two"));
    assert!(!next.has_patched(&foos, "three"));
    assert_eq!((next.finished(&foos), next.finished(&bars)), (None, Some(1)));
}

#[test]
fn a_file_cut_anywhere_is_a_shorter_valid_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let foos = Target::example("foos");
    let uids = ["one", "two", "three"];
    let mut journal = Journal::open(&path, &scope(&["p"])).unwrap();
    for uid in uids {
        journal.note_patched(&foos, uid).unwrap();
    }
    drop(journal);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
        let mut journal = Journal::open(&path, &scope(&["p"])).unwrap();
        for (number, uid) in uids.iter().enumerate() {
            assert_eq!(journal.has_patched(&foos, uid), number + 1 < lines, "{length} {uid}");
        }
        journal.note_patched(&foos, "four").unwrap();
        drop(journal);
        assert!(Journal::open(&path, &scope(&["p"])).unwrap().has_patched(&foos, "four"));
    }
}

#[test]
fn the_journal_of_another_run_is_rejected_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    drop(Journal::open(&path, &scope(&["p", "q"])).unwrap());
    let refused = |scope: Scope| Journal::open(&path, &scope).unwrap_err().to_string();
    assert!(refused(scope(&["pq"])).contains("with other policies"));
    let elsewhere = "the kube-system two".to_owned();
    let elsewhere =
        Scope::new("https://here/", elsewhere, ["p", "q"].into_iter(), "everything".into());
    assert!(refused(elsewhere).contains("against a cluster with the kube-system one"));
    assert!(Journal::open(&path, &scope(&["p", "q"])).is_ok());
}

#[test]
fn a_journal_of_version_1_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let old = r#"{"journal":"statusgate backfill","version":1,"server":"https://here/","policies":"0","objects":"everything, shard 0/1"}"#;
    fs::write(&path, format!("{old}\nfinished foos.a.io/v1 1\n")).unwrap();
    let error = Journal::open(&path, &scope(&["p"])).unwrap_err().to_string();
    assert!(error.contains("another version of statusgate wrote"), "{error}");
}

#[test]
fn a_reinstalled_definition_has_new_objects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let foos = Target::example("foos");
    let finished = |definition: &str| {
        let mut journal = Journal::open(&path, &scope(&["p"])).unwrap();
        journal.define(&foos, definition);
        journal.finished(&foos)
    };
    let mut journal = Journal::open(&path, &scope(&["p"])).unwrap();
    journal.define(&foos, "first");
    journal.note_patched(&foos, "one").unwrap();
    journal.note_finished(&foos).unwrap();
    drop(journal);
    assert_eq!((finished("first"), finished("second"), finished("")), (Some(1), None, None));
    let mut journal = Journal::open(&path, &scope(&["p"])).unwrap();
    journal.define(&foos, "second");
    journal.note_finished(&foos).unwrap();
    drop(journal);
    assert_eq!((finished("first"), finished("second")), (None, Some(0)));
}

#[test]
fn another_file_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    for text in ["shopping list", "bread\nbutter\n", "{}\n"] {
        fs::write(&path, text).unwrap();
        let error = Journal::open(&path, &scope(&["p"])).unwrap_err().to_string();
        assert!(error.contains("is not a journal"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn an_invalid_line_is_reported_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    drop(Journal::open(&path, &scope(&["p"])).unwrap());
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("patched foos.a.io/v1 one\npatched\nfinished foos.a.io/v1 1 -\n");
    fs::write(&path, text).unwrap();
    let error = Journal::open(&path, &scope(&["p"])).unwrap_err().to_string();
    assert!(error.contains("line 3 is invalid"), "{error}");
}

#[test]
fn special_files_are_rejected_before_they_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let full = Path::new("/dev/full");
    let places = [
        (&*pipe, "is a pipe"),
        (&socket, "is a socket"),
        (folder.path(), "is a folder"),
        (full, "is a device"),
    ];
    for (path, expected) in places {
        let error = Journal::open(path, &scope(&["p"])).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn the_length_of_a_line_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros");
    // Eight gigabytes, of which the disk has nothing.
    File::create(&path).unwrap().set_len(1 << 33).unwrap();
    let error = Journal::open(&path, &scope(&["p"])).unwrap_err().to_string();
    assert!(error.contains("line 1 is invalid"), "{error}");
    fs::remove_file(&path).unwrap();
    drop(Journal::open(&path, &scope(&["p"])).unwrap());
    let header = fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(header + (1 << 33)).unwrap();
    let error = Journal::open(&path, &scope(&["p"])).unwrap_err().to_string();
    assert!(error.contains("line 2 is invalid"), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().len(), header + (1 << 33), "it is left alone");
    // A machine that loses power may leave an incomplete line.
    file.set_len(header + 4096).unwrap();
    assert!(Journal::open(&path, &scope(&["p"])).is_ok());
    assert_eq!(fs::metadata(&path).unwrap().len(), header);
}

#[test]
fn two_processes_cannot_use_one_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let _held = Journal::open(&path, &scope(&["p"])).unwrap();
    let error = Journal::open(&path, &scope(&["p"])).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    // A device that is always full. Only Linux has it.
    let path = Path::new("/dev/full");
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
    let mut full = Appended { path: path.to_owned(), file, end: 0 };
    let error = full.append("patched foos.a.io/v1 one").unwrap_err();
    assert!(error.to_string().starts_with("cannot write the journal /dev/full; "), "{error}");
}
