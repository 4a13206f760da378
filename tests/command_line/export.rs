//! `statusgate export`: the output and the exit codes.

use std::fs;

use crate::command::{Ended, run};

const CRD: &str = "examples/write-a-convention/crd.yaml";
const POLICIES: &str = "examples/write-a-convention/policies";
const OBJECTS: &str = "examples/write-a-convention/recorded.yaml";

fn export(arguments: &[&str]) -> Ended {
    run(["export", "health", "--for", "argocd"].iter().chain(arguments))
}

#[test]
fn a_kind_has_a_script_for_argo_cd() {
    let ended = export(&["--crds", CRD, "--policies", POLICIES]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}

#[test]
fn where_a_rule_that_is_left_out_may_apply_the_health_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let policies = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: gated}\nspec:\n  \
        conditions: [{path: /status/conditions}]\n  health:\n    default: failed\n    rules:\n    \
        - {name: ok, is: current, when: {all: [{gates: /spec/gates}, {condition: Ready, is: 'True'}]}}\n---\n\
        apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: gated, resources: \
        [{apiGroups: [flagger.app], apiVersions: ['*'], resources: [canaries]}]}\n";
    fs::write(&path, policies).unwrap();
    let gap = "the rule ok is left out: every condition that spec.gates asks for is good";
    for (tool, unknown) in [
        ("argocd", format!("return {{status = \"Unknown\", message = \"{gap}\"}}")),
        ("flux", "current: >-\n        !has(metadata.deletionTimestamp) && false".to_owned()),
        ("auto-ready", "has(object.status) && false".to_owned()),
    ] {
        let arguments = ["--for", tool, "--crds", CRD, "--policies", path.to_str().unwrap()];
        let ended = run(["export", "health"].iter().chain(&arguments));
        assert_eq!((ended.code, ended.err), (Some(1), format!("Canary.flagger.app: {gap}\n")));
        assert!(ended.out.contains(gap) && ended.out.contains(&unknown), "{}", ended.out);
    }
}

#[test]
fn kinds_without_a_health_are_an_error() {
    let ended = export(&["--crds", CRD]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    assert_eq!(ended.err, "no policy with a health selects canaries.flagger.app\n");
    let ended = export(&["Cargo.toml"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("Cargo.toml:1"), "{}", ended.err);
}

#[test]
fn kinds_come_from_one_source() {
    let ended = export(&[]);
    assert_eq!(ended.code, Some(2));
    let sources = "<FILE|--file <FILE>|--crds <PATH>|--from-cluster>";
    assert!(ended.err.contains(sources), "{}", ended.err);
    for sources in [
        &["--crds", CRD, OBJECTS][..],
        &["--crds", CRD, "-f", OBJECTS],
        &["--crds", CRD, "--from-cluster"],
        &["--from-cluster", OBJECTS],
        &["--from-cluster", "--exclude", "a"],
    ] {
        let ended = export(sources);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
        assert!(ended.err.contains("cannot be used with"), "{}", ended.err);
    }
}

#[test]
fn the_kinds_of_objects_have_the_same_script_as_those_of_definitions() {
    let of_definition = export(&["--crds", CRD, "--policies", POLICIES]);
    for objects in [&[OBJECTS][..], &["-f", OBJECTS]] {
        let of_objects = export(&[objects, &["--policies", POLICIES]].concat());
        assert_eq!((of_objects.code, of_objects.err.as_str()), (Some(0), ""));
        assert_eq!(of_objects.out, of_definition.out);
    }
}

#[test]
fn objects_give_the_versions_of_their_kinds_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.yaml");
    let object = |api_version: &str, kind: &str| {
        format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a}}}}\n---\n")
    };
    let objects = [
        object("cert-manager.io/v1", "Certificate"),
        object("example.com/v1", "Example"),
        object("pkg.crossplane.io/v1beta1", "Function"),
        object("pkg.crossplane.io/v1", "Function"),
        object("v1", "Secret"),
        object("pkg.crossplane.io/v1", "Function"),
    ];
    fs::write(&path, objects.concat()).unwrap();
    let arguments = ["--for", "kro", path.to_str().unwrap()];
    let ended = run(["export", "health"].iter().chain(&arguments));
    let left_out = "no policy with a health selects secrets, examples.example.com\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), left_out));
    insta::assert_snapshot!(ended.out);
}

#[test]
fn the_folder_of_argo_cd_has_a_test_for_each_clause() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let ended = export(&["--crds", CRD, "--policies", POLICIES, "--out", root]);
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), ""));
    let root = folder.path().join("flagger.app/Canary");
    assert!(
        fs::read_to_string(root.join("health.lua")).unwrap().starts_with("-- convention flagger")
    );
    let tests = fs::read_to_string(root.join("health_test.yaml")).unwrap();
    for path in tests.lines().filter_map(|line| line.strip_prefix("  inputPath: ")) {
        assert!(fs::read_to_string(root.join(path)).unwrap().contains("kind: Canary"), "{path}");
    }
    insta::assert_snapshot!(tests);
}

#[test]
fn a_kind_of_the_core_group_has_no_group_in_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: \
        {convention: metav1, resources: [{apiGroups: [''], apiVersions: [v1], resources: [services]}]}\n";
    fs::write(path("policy.yaml"), policy).unwrap();
    fs::write(path("service.yaml"), "{apiVersion: v1, kind: Service, metadata: {name: a}}")
        .unwrap();
    let arguments = [path("service.yaml"), "--policies".into(), path("policy.yaml")];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let config_map = export(&arguments);
    assert!(config_map.out.contains("\n  resource.customizations.health.Service: |\n"));
    let ended = export(&[&arguments[..], &["--out", &path("out")]].concat());
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), ""));
    let witness = fs::read_to_string(path("out/Service/testdata/stale.yaml")).unwrap();
    assert!(witness.contains("apiVersion: v1\n"), "{witness}");
}
