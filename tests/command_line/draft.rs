//! `statusgate draft`: the output, the files and the exit codes.

use std::fs;

use crate::command::{Ended, run};

/// The status writes of nine QdrantClusters, as `record` writes them.
const WRITES: &str = "examples/write-a-convention/writes.jsonl";

fn draft(arguments: &[&str]) -> Ended {
    run(["draft"].iter().chain(arguments))
}

#[test]
fn recorded_writes_become_a_convention_with_its_policy() {
    let ended = draft(&[WRITES]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}

#[test]
fn a_folder_of_drafts_judges_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (writes, drafts) = (folder.path().join("writes.jsonl"), folder.path().join("drafts"));
    let text = fs::read_to_string(WRITES).unwrap();
    let other = text.replace("qdrantclusters", "others").replace("QdrantCluster", "Other");
    fs::write(&writes, text + &other).unwrap();
    let (writes, drafts) = (writes.to_str().unwrap(), drafts.to_str().unwrap());

    let ended = draft(&[writes]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    let error = "2 resources were recorded; write a file for each with --out DIR: others.qdrant.io, qdrantclusters.qdrant.io\n";
    assert_eq!(ended.err, error);

    let ended = draft(&[writes, "--out", drafts]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
    assert!(ended.err.contains("drafts/others.qdrant.io.yaml: "), "{}", ended.err);
    let judged = run(["check", writes, "--policies", drafts, "--fail-on", "warn"]);
    assert_eq!(judged.code, Some(0), "{}", judged.text());
    assert!(judged.out.contains("76 objects in 1 file: 76 judged"), "{}", judged.out);
    assert_eq!(run(["lint", drafts]).code, Some(0));

    let text = fs::read_to_string(WRITES).unwrap();
    fs::write(writes, text.replace("\"qdrantclusters\"", "\"../../outside\"")).unwrap();
    let outside = draft(&[writes, "--out", drafts]);
    assert_eq!(outside.code, Some(2));
    assert_eq!(outside.err, "\"../../outside.qdrant.io\" is not the name of a resource\n");

    fs::copy(WRITES, writes).unwrap();
    let again = draft(&[writes, "--out", drafts]);
    assert_eq!(again.code, Some(2));
    assert!(
        again.err.starts_with("cannot write ") && again.err.contains("exists"),
        "{}",
        again.err
    );
}

#[test]
fn a_recording_is_compared_with_a_convention() {
    let ended = draft(&[WRITES, "--against", "metav1"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.contains("  extends: metav1\n"), "{}", ended.out);
    assert!(
        ended.out.contains("# - types and reasons that it does not know: Progressing"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("# - rules that never fired: metav1/"), "{}", ended.out);
    let ended = draft(&[WRITES, "--against", "metav2"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    assert!(ended.err.contains("did you mean \"metav1\"?"), "{}", ended.err);
    let ended = draft(&[WRITES, "--policies", "deploy/policies"]);
    assert!(ended.err.contains("--against <NAME>"), "{}", ended.err);
}

#[test]
fn without_a_status_write_there_is_nothing_to_draft_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let path = path.to_str().unwrap();
    for text in ["", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"] {
        fs::write(path, text).unwrap();
        let ended = draft(&[path]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{text}");
        assert_eq!(ended.err, "no write has a status: nothing to draft from\n");
    }
    let ended = draft(&[]);
    assert_eq!(ended.err, "name a file, a folder, or - for standard input\n");
    // The other documents are used, and the exit code shows that one was not.
    let text = fs::read_to_string(WRITES).unwrap();
    fs::write(
        path,
        format!("{text}{{\"type\": \"ERROR\", \"object\": {{\"message\": \"too old\"}}}}\n"),
    )
    .unwrap();
    let ended = draft(&[path]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.out.contains("kind: StatusConvention"), "{}", ended.out);
    assert!(ended.err.ends_with("1 document could not be used\n"), "{}", ended.err);
}

#[test]
fn the_plural_and_the_enums_are_those_of_the_definition() {
    let arguments = [
        "examples/write-a-convention/recorded.yaml",
        "--sequence",
        "--crds",
        "examples/write-a-convention/crd.yaml",
    ];
    let ended = draft(&arguments);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.contains("resources: [canaries]"), "{}", ended.out);
    assert!(
        ended.out.contains("3 objects were recorded, and a rule needs 5: record more"),
        "{}",
        ended.out
    );
}
