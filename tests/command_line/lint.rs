//! The output and the exit code of the command.

use serde_json::Value;
use statusgate_analysis::lint::Kind;

use crate::command::{self, Ended, write_in};

const SOUND: &str = "\
apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: test}
spec:
  conditions: [{path: /status/conditions}]
  phase:
    path: /status/phase
    default: Unknown
    values:
      - {phase: Up, necessary: {condition: Ready, is: 'True'}, sufficient: {condition: Ready, is: 'True'}}
      - {phase: Down, necessary: {condition: Ready, isNot: 'True'}}
      - {phase: Unknown}
";

/// A convention with another spec, a YAML flow mapping.
fn with_spec(spec: &str) -> String {
    let (head, _) = SOUND.split_once("spec:").unwrap();
    format!("{head}spec:\n  {spec}\n")
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let Ended { code, out, err } = command::run([&["lint"], args].concat());
    (code, out, err)
}

#[test]
fn exit_codes_differ_for_sound_faulty_and_unreadable_documents() {
    let folder = tempfile::tempdir().unwrap();
    let good = write_in(&folder, "good.yaml", SOUND);
    let (code, out, _) = run(&[&good]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("test: no faults, 1 note ("), "{out}");

    let dead = "rules: [{id: dead, path: /status/x, action: Warn, message: m, when: {all: [{deleting: true}, {deleting: false}]}}]";
    let faulty = write_in(&folder, "faulty.yaml", &with_spec(dead));
    let (code, out, _) = run(&[&faulty, "-o", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(json["conventions"][0]["faults"][0]["kind"], "never-fires");
    assert_eq!(json["conventions"][0]["faults"][0]["rules"][0], "test/dead");
    let help = Kind::NeverFires.help();
    assert_eq!(json["conventions"][0]["faults"][0]["help"], help);
    // Once for each kind of remark.
    let dead = dead.replace("rules: [", "rules: [{id: d, path: /status/x, action: Warn, message: m, when: {all: [{deleting: true}, {deleting: false}]}}, ");
    let (_, out, _) = run(&[&write_in(&folder, "twice.yaml", &with_spec(&dead))]);
    assert_eq!(out.matches("fault never-fires: ").count(), 2, "{out}");
    assert_eq!(out.matches("help ").count(), 1, "{out}");
    assert!(out.ends_with(&format!("\nhelp lint/never-fires: {help}\n")), "{out}");

    let broken = write_in(&folder, "broken.yaml", &with_spec("phaze: {}"));
    let (code, out, _) = run(&[&broken]);
    assert_eq!(code, Some(1));
    assert!(out.contains("broken.yaml:5:3") && out.contains("did you mean \"phase\"?"), "{out}");
    let (code, out, _) = run(&[&broken, "-o", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["mistakes"][0]["line"]), (Some(1), &5.into()));

    let (code, _, said) = run(&["/nowhere.yaml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nowhere.yaml"), "{said}");
    let (code, _, said) = run(&["--convention", "apcat"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean \"appcat\"?"), "{said}");
}

#[test]
fn documents_without_a_convention_or_policy_are_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = "there is neither a convention nor a policy in these documents\n";
    let empty = write_in(&folder, "empty.yaml", "# none\n");
    assert_eq!(run(&[&empty]), (Some(2), String::new(), nothing.to_owned()));
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n";
    let path = write_in(&folder, "deployment.yaml", deployment);
    let note = "note: skipped: this is a Deployment of apps/v1, not a policy or convention";
    let said = format!("{path}:1:1: {note}\n{nothing}");
    assert_eq!(run(&[&path]), (Some(2), String::new(), said));
}

#[test]
fn what_a_policy_selects_must_exist_in_the_crds() {
    let folder = tempfile::tempdir().unwrap();
    let policy = |plural: &str| {
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  convention: metav1\n  resources:\n  - {{apiGroups: [example.com], apiVersions: [v1], resources: [{plural}]}}\n"
        )
    };
    let crd = write_in(
        &folder,
        "crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, names: {kind: Mouse, plural: mice}, versions: [{name: v1, served: true, subresources: {status: {}}}]}\n",
    );
    let (right, wrong) = (
        write_in(&folder, "right.yaml", &policy("mice")),
        write_in(&folder, "wrong.yaml", &policy("mise")),
    );
    let (code, out, err) = run(&[&right, "--crds", &crd]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let (code, out, _) = run(&[&wrong, "--crds", &crd]);
    assert_eq!(code, Some(1), "{out}");
    let said =
        "error: the CustomResourceDefinitions do not have the resource mise in example.com\n";
    assert!(out.starts_with(said) && out.contains("wrong.yaml:7:63"), "{out}");
    assert!(out.ends_with("help: did you mean \"mice\"?\n"), "{out}");
    let (code, _, err) = run(&[&wrong, "--crds", &wrong]);
    assert_eq!((code, err.as_str()), (Some(2), "--crds names no CustomResourceDefinition\n"));
}

#[test]
fn a_policy_is_compared_with_the_subresource_the_list_and_the_required_members_of_its_crd() {
    let folder = tempfile::tempdir().unwrap();
    let lint = |subresources: &str, list: &str, backfill: &str| {
        let crd = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.a.io}}\nspec: {{group: a.io, \
             names: {{plural: things, kind: Thing}}, scope: Namespaced, versions: [{{name: v1, served: true, storage: true, \
             subresources: {{{subresources}}}, schema: {{openAPIV3Schema: {{type: object, properties: {{status: {{type: object, properties: {{\
             billing: {{type: object, required: [plan, tier], properties: {{plan: {{type: string}}, tier: {{type: string}}}}}}, \
             conditions: {{type: array, {list}items: {{type: object, properties: {{type: {{type: string}}, status: {{type: string}}}}}}}}}}}}}}}}}}}}]}}\n"
        );
        let policy = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  convention: kstatus\n  \
             resources: [{{apiGroups: [a.io], apiVersions: [v1], resources: [things]}}]\n  backfill: [{backfill}]\n"
        );
        run(&[
            &write_in(&folder, "p.yaml", &policy),
            "--crds",
            &write_in(&folder, "crd.yaml", &crd),
        ])
    };
    let map = "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], ";
    let plan = "{path: /status/billing/plan, value: a}";
    let both = format!("{plan}, {{path: /status/billing/tier, value: b}}");
    assert_eq!(
        lint("status: {}", map, &both),
        (Some(0), lint("status: {}", map, &both).1, String::new())
    );

    let (code, out, _) = lint("", map, &both);
    assert_eq!(code, Some(1), "{out}");
    let said = "error: the CustomResourceDefinition of things.a.io has no status subresource: no write is judged\n";
    assert!(
        out.starts_with(said) && out.ends_with("help: set statusSubresource: false\n"),
        "{out}"
    );
    let (code, out, _) = lint("status: {}", map, plan);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("the API server rejects status.billing without status.billing.tier"),
        "{out}"
    );
    // The key is that of the convention.
    let (code, _, err) = lint("status: {}", &map.replace("[type]", "[type, status]"), &both);
    assert!(code == Some(0) && err.contains(" with the key type: "), "{err}");
    let (code, _, err) = lint("status: {}", "", &both);
    let note = "note: status.conditions of things.a.io v1 is no list of type map with the key type: an apply of one condition replaces all\n";
    assert_eq!((code, err.as_str()), (Some(0), note));
}

#[test]
fn served_versions_that_a_policy_leaves_out_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, more: &str| {
        format!(
            "{{name: {name}, served: true{more}, schema: {{openAPIV3Schema: {{type: object}}}}}}"
        )
    };
    let status = ", subresources: {status: {}}";
    let versions = [version("v1", status), version("v2", status), version("v3", "")].join(", ");
    let crd = write_in(
        &folder,
        "crd.yaml",
        &format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {{group: a.io, names: {{kind: Thing, plural: things}}, versions: [{versions}]}}\n"
        ),
    );
    let lint = |versions: &str| {
        let policy = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  convention: metav1\n  resources: [{{apiGroups: [a.io], apiVersions: [{versions}], resources: [things]}}]\n"
        );
        run(&[&write_in(&folder, "p.yaml", &policy), "--crds", &crd])
    };
    let left_out = |version: &str| {
        format!("policy p does not select things.a.io {version}, which is served\n")
    };
    let wrong = "policy p has the wrong statusSubresource for things.a.io v3\n";
    let (code, out, err) = lint("v2");
    assert_eq!((code, err), (Some(0), left_out("v1") + &left_out("v3")), "{out}");
    assert_eq!(lint("'*'").2, wrong);
}

#[test]
fn a_field_that_no_selected_definition_has_is_reported_at_its_location() {
    let folder = tempfile::tempdir().unwrap();
    let crd = write_in(
        &folder,
        "crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.a.io}\nspec: {group: a.io, names: {plural: things, kind: Thing}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {phase: {type: string}, size: {type: string}, conditions: {type: array, items: {type: object, properties: {type: {type: string}}}}}}}}}}]}\n",
    );
    let policy = |preserved: &str| {
        let text = format!(
            "{SOUND}---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  convention: test\n  resources: [{{apiGroups: [a.io], apiVersions: [v1], resources: [things]}}]\n  preserve: [{preserved}]\n"
        );
        run(&[&write_in(&folder, "p.yaml", &text), "--crds", &crd])
    };
    let (code, out, _) = policy("/status/phaze");
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.starts_with("error: /status/phaze is not in the schema of things.a.io v1\n"),
        "{out}"
    );
    assert!(out.contains("p.yaml:20:14"), "{out}");
    let (code, out, _) = policy("/status/size");
    assert_eq!(code, Some(0), "{out}");
}
