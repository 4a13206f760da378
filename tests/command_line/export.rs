//! `statusgate export`: the output and the exit codes.

use std::fs;

use serde_json::Value;

use crate::command::{Ended, run, write_in};
use crate::page_texts::root;

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
    let policies = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: gated}\nspec:\n  \
        conditions: [{path: /status/conditions}]\n  health:\n    default: failed\n    rules:\n    \
        - {name: ok, is: current, when: {all: [{gates: /spec/gates}, {condition: Ready, is: 'True'}]}}\n---\n\
        apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: gated, resources: \
        [{apiGroups: [flagger.app], apiVersions: ['*'], resources: [canaries]}]}\n";
    let path = write_in(&folder, "a.yaml", policies);
    let gap = "the rule ok is left out: every condition that spec.gates asks for is good";
    for (tool, unknown) in [
        ("argocd", format!("return {{status = \"Unknown\", message = \"{gap}\"}}")),
        ("flux", "current: >-\n        !has(metadata.deletionTimestamp) && false".to_owned()),
        ("auto-ready", "has(object.status) && false".to_owned()),
    ] {
        let arguments = ["--for", tool, "--crds", CRD, "--policies", &path];
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
fn a_folder_of_definitions_may_have_subfolders() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    fs::copy(root().join(CRD), below.join("crd.yaml")).unwrap();
    let path = folder.path().to_str().unwrap();
    let of_file = export(&["--crds", CRD, "--policies", POLICIES]);
    for more in [&[][..], &["-R"]] {
        let of_folder = export(&[&["--crds", path, "--policies", POLICIES], more].concat());
        assert_eq!(
            (of_folder.code, of_folder.out),
            (of_file.code, of_file.out.clone()),
            "{}",
            of_folder.err
        );
    }
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
        // Objects do not say which other versions there are.
        let known = "        local known = {\n          [\"Canary flagger.app/v1beta1\"] = true,\n        }\n";
        let (before, rest) = of_objects.out.split_once(known).unwrap();
        let (unknown, rest) = rest.split_once(" end\n").unwrap();
        assert!(unknown.contains("status = \"Unknown\""), "{unknown}");
        assert_eq!(format!("{before}{rest}"), of_definition.out);
    }
}

#[test]
fn kinds_of_several_groups_share_a_script_that_knows_their_versions() {
    let folder = tempfile::tempdir().unwrap();
    let object = |group: &str, kind: &str| {
        format!(
            "{{apiVersion: {group}.services.k8s.aws/v1alpha1, kind: {kind}, metadata: {{name: a}}}}\n---\n"
        )
    };
    let objects = object("s3", "Bucket") + &object("ec2", "VPC");
    let ended = export(&[&write_in(&folder, "objects.yaml", &objects)]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_eq!(ended.out.matches("health.lua").count(), 1, "{}", ended.out);
    for known in ["Bucket s3.services.k8s.aws/v1alpha1", "VPC ec2.services.k8s.aws/v1alpha1"] {
        assert!(ended.out.contains(&format!("[\"{known}\"] = true,")), "{}", ended.out);
    }
}

#[test]
fn objects_give_the_versions_of_their_kinds_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
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
    let path = write_in(&folder, "objects.yaml", &objects.concat());
    let arguments = ["--for", "kro", &path];
    let ended = run(["export", "health"].iter().chain(&arguments));
    let left_out = "no policy with a health selects secrets, examples.example.com\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), left_out));
    insta::assert_snapshot!(ended.out);
}

/// An API server accepts a ConfigMap of one mebibyte.
#[test]
fn kinds_with_the_same_script_share_it_so_that_a_config_map_can_have_hundreds() {
    let folder = tempfile::tempdir().unwrap();
    let crd = |number: usize| {
        let (group, kind) = ("ec2.services.k8s.aws", format!("Thing{number}"));
        let plural = kind.to_lowercase() + "s";
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n\
             spec: {{group: {group}, names: {{kind: {kind}, plural: {plural}}}, versions: [{{name: v1alpha1, served: true, \
             subresources: {{status: {{}}}}}}]}}\n"
        )
    };
    let crds = |count| write_in(&folder, "crds.yaml", &(0..count).map(crd).collect::<String>());
    let ended = export(&["--crds", &crds(507)]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.len() < 40_000, "{}", ended.out.len());
    assert_eq!(ended.out.matches(": *script0\n").count(), 506);
    let map: Value = serde_saphyr::from_str(&export(&["--crds", &crds(3)]).out).unwrap();
    let kinds = map["data"]["resource.customizations"].as_str().unwrap();
    let kinds: Value = serde_saphyr::from_str(kinds).unwrap();
    let script = |number: usize| {
        kinds[format!("ec2.services.k8s.aws/Thing{number}")]["health.lua"].as_str().unwrap()
    };
    assert!(script(0).contains("ACK.Terminal"), "{}", script(0));
    assert_eq!(script(0), script(2));
}

#[test]
fn versions_with_different_conventions_are_distinguished_in_one_check_of_flux() {
    let folder = tempfile::tempdir().unwrap();
    let object = |version: &str| {
        format!(
            "{{apiVersion: cluster.x-k8s.io/{version}, kind: Cluster, metadata: {{name: a}}}}\n---\n"
        )
    };
    let path = write_in(&folder, "objects.yaml", &(object("v1beta1") + &object("v1beta2")));
    for (tool, head) in [
        ("flux", "spec:\n  healthCheckExprs:\n"),
        ("flux-helmrelease", "spec:\n  waitStrategy:\n    name: poller\n  healthCheckExprs:\n"),
    ] {
        let ended = run(["export", "health", "--for", tool, &path]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        assert!(ended.out.starts_with(head), "{}", ended.out);
        for version in ["v1beta1", "v1beta2"] {
            let guard = format!("(apiVersion in ['cluster.x-k8s.io/{version}'] &&");
            assert_eq!(ended.out.matches(&guard).count(), 2, "{}", ended.out);
        }
    }
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
    let policy = write_in(&folder, "policy.yaml", policy);
    let service = "{apiVersion: v1, kind: Service, metadata: {name: a}}";
    let service = write_in(&folder, "service.yaml", service);
    let arguments = [service.as_str(), "--policies", &policy];
    let config_map = export(&arguments);
    assert!(config_map.out.contains("\n    Service: &script0\n      health.lua: |\n"));
    let ended = export(&[&arguments[..], &["--out", &path("out")]].concat());
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), ""));
    let witness = fs::read_to_string(path("out/Service/testdata/stale.yaml")).unwrap();
    assert!(witness.contains("apiVersion: v1\n"), "{witness}");
}
