//! The Helm chart: its copies, and the schema of its values. `hack/chart-test.sh` renders it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::page_texts::root;

fn read(path: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

fn schema() -> Validator {
    let text = fs::read_to_string(root().join("deploy/chart/values.schema.json")).unwrap();
    jsonschema::draft7::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// The values that Helm validates: the defaults with other values. A null removes a default.
fn merged(mut base: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        let members = base.as_object_mut().unwrap();
        match (members.get_mut(name), value) {
            (_, Value::Null) => drop(members.remove(name)),
            (Some(old), Value::Object(_)) if old.is_object() => *old = merged(old.take(), value),
            _ => drop(members.insert(name.clone(), value.clone())),
        }
    }
    base
}

/// The folders of `deploy/` that the chart contains: Helm reads no files outside a chart.
fn copies() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut copies = BTreeMap::new();
    let mut add = |folder: &str, names: &dyn Fn(&str) -> bool| {
        for entry in fs::read_dir(root().join("deploy").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if names(name) {
                let copy = root().join("deploy/chart/files").join(folder).join(name);
                copies.insert(copy, fs::read(&path).unwrap());
            }
        }
    };
    add("crds", &|name| name.ends_with(".statusgate.dev.yaml"));
    add("policies", &|name| name != "kustomization.yaml");
    add("monitoring", &|name| ["dashboard.json", "rules.yaml"].contains(&name));
    copies
}

/// With `UPDATE_DOCS` set, the copies are written instead of compared.
#[test]
fn the_files_of_the_chart_are_those_of_deploy() {
    for (path, content) in copies() {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &content).unwrap();
        }
        let found = fs::read(&path).unwrap_or_default();
        assert!(found == content, "{} is out of date: run `make manifests`", path.display());
    }
    for folder in ["crds", "policies", "monitoring"] {
        for entry in fs::read_dir(root().join("deploy/chart/files").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(copies().contains_key(&path), "{} is no copy", path.display());
        }
    }
}

#[test]
fn the_versions_of_the_chart_are_those_of_the_program() {
    let chart = read("deploy/chart/Chart.yaml");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_schema_accepts_the_default_values_and_those_of_the_tests() {
    let (schema, defaults) = (schema(), read("deploy/chart/values.yaml"));
    assert!(schema.is_valid(&defaults));
    for entry in fs::read_dir(root().join("tests/fixtures/chart")).unwrap() {
        let path = entry.unwrap().path();
        let values = merged(defaults.clone(), &read(path.to_str().unwrap()));
        let errors: Vec<String> =
            schema.iter_errors(&values).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
}

#[test]
fn the_schema_rejects_wrong_values_at_their_place() {
    let (schema, defaults) = (schema(), read("deploy/chart/values.yaml"));
    let policy = |kind: &str| json!([{"apiVersion": "statusgate.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": {}}]);
    for (wrong, place) in [
        (json!({"replica": 3}), ""),
        (json!({"caBundle": "x"}), ""),
        (json!({"replicas": 0}), "/replicas"),
        (json!({"replicas": "2"}), "/replicas"),
        (json!({"image": {"name": "a"}}), "/image"),
        (json!({"certificates": "self-signed"}), "/certificates"),
        (json!({"policies": ["unknown"]}), "/policies/0"),
        (json!({"extraPolicies": policy("Secret")}), "/extraPolicies/0/kind"),
        (json!({"extraPolicies": [{"kind": "StatusPolicy"}]}), "/extraPolicies/0"),
        (json!({"extraArgs": ["max-in-flight=1"]}), "/extraArgs/0"),
        (json!({"podLabels": {"app.kubernetes.io/name": "other"}}), "/podLabels"),
        (json!({"podAnnotations": {"a": 1}}), "/podAnnotations/a"),
        (
            json!({"podDisruptionBudget": {"maxUnavailable": 0}}),
            "/podDisruptionBudget/maxUnavailable",
        ),
        (json!({"networkPolicy": {"apiServerPorts": []}}), "/networkPolicy/apiServerPorts"),
        (json!({"networkPolicy": {"extraEgress": [{"from": []}]}}), "/networkPolicy/extraEgress/0"),
        (json!({"serviceMonitor": {"interval": "often"}}), "/serviceMonitor/interval"),
        (json!({"prometheusRule": {"runbooks": "docs/runbooks.md"}}), "/prometheusRule/runbooks"),
        (json!({"prometheusRule": {"runbooks": "https://a/b#c"}}), "/prometheusRule/runbooks"),
    ] {
        let values = merged(defaults.clone(), &wrong);
        let places: Vec<String> =
            schema.iter_errors(&values).map(|error| error.instance_path().to_string()).collect();
        assert!(places.iter().any(|found| found.starts_with(place)), "{wrong}: {places:?}");
    }
    assert!(schema.is_valid(&merged(defaults, &json!({"extraPolicies": policy("StatusPolicy")}))));
}

#[test]
fn the_schema_and_the_readme_know_every_value_and_example_policy() {
    let text = fs::read_to_string(root().join("deploy/chart/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let readme = fs::read_to_string(root().join("deploy/chart/README.md")).unwrap();
    let defaults = read("deploy/chart/values.yaml");
    for name in schema["properties"].as_object().unwrap().keys().filter(|name| *name != "global") {
        assert!(defaults.get(name).is_some(), "values.yaml: no {name}");
        assert!(readme.contains(&format!("| `{name}")), "README.md: no {name}");
    }
    let mut policies: Vec<String> = copies()
        .into_keys()
        .filter(|path| path.parent().unwrap().ends_with("policies"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    policies.sort();
    let mut known = schema["properties"]["policies"]["items"]["enum"].as_array().unwrap().clone();
    known.sort_by_key(ToString::to_string);
    assert_eq!(known, policies);
}
