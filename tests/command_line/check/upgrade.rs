//! A CRD upgrade is rehearsed on stored objects and recorded writes.

use super::Desk;

const POLICIES: &str = "\
apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: things}
spec: {extends: metav1, phase: {path: /status/phase, values: [{phase: Ready}, {phase: Old}]}}
---
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: things}
spec:
  convention: things
  resources: [{apiGroups: [example.com], apiVersions: [v1], resources: [things]}]
  backfill: [{path: /status/tier, value: gold}]
";

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            status:
              type: object
              required: [tier]
              properties:
                phase: {type: string, enum: [Ready, Degraded]}
                tier: {type: string}
                code: {type: integer}
";

const OBJECT: &str = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {phase: Old, code: 1}}\n";

fn desk() -> Desk {
    Desk::new(&[("policies.yaml", POLICIES), ("crd.yaml", CRD), ("object.yaml", OBJECT)])
}

const FLAGS: [&str; 5] = ["--policies", "policies.yaml", "--crds", "crd.yaml", "object.yaml"];

#[test]
fn a_stored_object_has_what_the_next_change_breaks_and_what_backfill_repairs() {
    let answer = desk().check(&FLAGS);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for line in [
        "status.phase: with the schema of things.example.com v1, a write that changes it or its list is rejected: Unsupported \
         value: \"Old\": supported values: \"Ready\", \"Degraded\" [crd/next-change]",
        "status.tier: with the schema of things.example.com v1, a write that changes anything in status and does not set this is \
         rejected until backfill repairs it: Required value [crd/next-change]",
    ] {
        assert!(answer.out.contains(line), "{answer:?}");
    }
    let note =
        "note: things.example.com v1 has phases that convention things does not know: Degraded";
    assert!(answer.err.contains(note), "{answer:?}");
}

#[test]
fn an_older_server_forgives_less_and_only_these_rules_can_be_chosen() {
    let old = [&FLAGS[..], &["--kubernetes-version", "1.32", "--rule", "crd/*"]].concat();
    let answer = desk().check(&old);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        answer.out.contains("every write of the status is rejected")
            && answer.out.contains("[crd/every-write]"),
        "{answer:?}"
    );
    let odd = desk().check(&[&FLAGS[..], &["--kubernetes-version", "newest"]].concat());
    assert!(odd.code == Some(2) && odd.err.contains("is no version of Kubernetes"), "{odd:?}");
    let without = desk().check(&["--policies", "policies.yaml", "object.yaml", "--rule", "crd/*"]);
    assert_eq!(without.code, Some(2), "without CRDs, there is no such rule: {without:?}");
}

#[test]
fn a_recorded_write_is_judged_with_the_stored_object() {
    let write = |phase: &str| {
        format!(
            "{{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{{\"uid\":\"u\",\
             \"operation\":\"UPDATE\",\"subResource\":\"status\",\"userInfo\":{{}},\
             \"resource\":{{\"group\":\"example.com\",\"version\":\"v1\",\"resource\":\"things\"}},\
             \"object\":{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"a\"}},\"status\":{{\"phase\":\"{phase}\",\"tier\":\"x\"}}}},\
             \"oldObject\":{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"a\"}},\"status\":{{\"phase\":\"Old\"}}}}}}}}\n"
        )
    };
    let desk = desk();
    let flags = ["--policies", "policies.yaml", "--crds", "crd.yaml", "-"];
    let kept = desk.check_stdin(&flags, &write("Old"));
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let changed = desk.check_stdin(&flags, &write("Older"));
    assert!(
        changed.code == Some(1)
            && changed.out.contains("this write is rejected: Unsupported value: \"Older\""),
        "{changed:?}"
    );
}
