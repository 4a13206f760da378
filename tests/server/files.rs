//! Policies that change or are invalid, probes and metrics.

use statusgate_server::StartError;

use crate::server::{BROKEN_POLICY, Desk, POLICY, REVIEW, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_edit_keeps_the_last_good_policies_and_a_good_one_replaces_them() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("policies")).unwrap();
    desk.write("policies/a.yaml", POLICY);
    let served = desk.start(|settings| settings.policies = vec![desk.path("policies")]).await;
    desk.write("policies/b.yaml", BROKEN_POLICY);
    served.metric_becomes(r#"statusgate_reload_failing{what="policies"}"#, 1.0).await;
    assert_eq!(served.metric("statusgate_policies").await, Some(1.0));
    assert_eq!(served.connect().await.review().await.status, 200);
    // Another resource: two policies with a phase must not name the same one.
    let second = POLICY.replace("first", "second").replace("widgets", "gadgets");
    desk.write("policies/b.yaml", &second);
    served.metric_becomes("statusgate_policies", 2.0).await;
    // The number of policies is set a moment earlier.
    served.metric_becomes(r#"statusgate_reload_failing{what="policies"}"#, 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_invalid_or_missing_files_names_them() {
    let desk = Desk::new();
    desk.write("broken.yaml", BROKEN_POLICY);
    let mut settings = desk.settings();
    settings.policies = vec![desk.path("broken.yaml")];
    let error = statusgate_server::start(&settings).unwrap_err();
    assert!(matches!(error, StartError::BrokenPolicies(_)), "{error}");
    assert!(error.to_string().contains("broken.yaml"));

    desk.write("tls.key", &desk.issue().key);
    let error = statusgate_server::start(&desk.settings()).unwrap_err().to_string();
    assert!(error.contains("does not belong to the certificate"), "{error}");

    std::fs::remove_file(desk.path("tls.crt")).unwrap();
    let error = statusgate_server::start(&desk.settings()).unwrap_err().to_string();
    assert_eq!(error, format!("failed to read {}", desk.path("tls.crt").display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_that_a_definition_rejects_is_not_set_until_the_file_changes() {
    let desk = Desk::new();
    desk.write("policy.yaml", POLICY);
    let definition = |values: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\n\
             spec: {{group: example.com, names: {{plural: widgets, kind: Widget}}, versions: [{{name: v1, served: true, \
             schema: {{openAPIV3Schema: {{type: object, properties: {{status: {{type: object, properties: {{\
             phase: {{type: string, enum: [{values}]}}}}}}}}}}}}}}]}}\n"
        )
    };
    desk.write("crd.yaml", &definition("Ready"));
    let served = desk
        .start(|settings| {
            settings.policies = vec![desk.path("policy.yaml")];
            settings.crds = vec![desk.path("crd.yaml")];
        })
        .await;
    let review = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"UPDATE",
        "subResource":"status","resource":{"group":"example.com","version":"v1","resource":"widgets"},"userInfo":{},
        "object":{"status":{"instanceNamespace":"n"}},"oldObject":{"status":{"instanceNamespace":"n"}}}}"#;
    let mut client = served.connect().await;
    client.send(&post("/mutate", review)).await;
    let answer = client.answer().await;
    assert!(answer.status == 200 && !answer.body.contains("patch"), "{answer:?}");
    let withheld = r#"statusgate_changes_total{policy="first",change="withheld"}"#;
    served.metric_becomes(withheld, 1.0).await;

    desk.write("crd.yaml", &definition("Ready, Unknown"));
    served
        .metric_becomes(r#"statusgate_reloads_total{what="definitions",outcome="success"}"#, 1.0)
        .await;
    client.send(&post("/mutate", review)).await;
    let answer = client.answer().await;
    assert!(answer.body.contains("patch"), "{answer:?}");

    desk.write("empty.yaml", "");
    let mut settings = desk.settings();
    settings.crds = vec![desk.path("empty.yaml")];
    let error = statusgate_server::start(&settings).unwrap_err();
    assert!(matches!(error, StartError::NoDefinition | StartError::BrokenPolicies(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_requests_and_connections() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    for body in [REVIEW, REVIEW, ""] {
        client.send(&post("/validate", body)).await;
        client.answer().await;
    }
    let expected = [
        (r#"statusgate_requests_total{webhook="validate",code="200"}"#, 2.0),
        (r#"statusgate_requests_total{webhook="validate",code="400"}"#, 1.0),
        (r#"statusgate_requests_total{webhook="mutate",code="200"}"#, 0.0),
        (r#"statusgate_request_duration_seconds_count{webhook="validate"}"#, 3.0),
        ("statusgate_connections", 1.0),
        ("statusgate_log_lines_dropped_total", 0.0),
        (r#"statusgate_reload_failing{what="policies"}"#, 0.0),
        (r#"statusgate_reload_failing{what="certificate"}"#, 0.0),
    ];
    for (line_start, value) in expected {
        served.metric_becomes(line_start, value).await;
    }
    assert!(served.metric("statusgate_tls_certificate_not_after_seconds").await > Some(1.7e9));
    let (_, text) = served.probe("/metrics").await;
    assert!(text.ends_with("# EOF\n"));
    let build = format!("statusgate_build_info{{version={:?}}} 1", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&build));
}
