//! `statusgate ui --kubeconfig`: the calls of the page about a cluster.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::command::{run, text};
use crate::command::STATUSGATE;
use crate::harness::leash::Leashed;
use crate::harness::objects::{WIDGET, condition};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

/// A running page.
struct Page {
    process: Leashed,
    address: String,
}

impl Page {
    async fn start(plane: &Plane, kubeconfig: &Path) -> Self {
        let (log, policies) = (plane.folder("ui").join("log"), plane.policies());
        let arguments = ["--policies", text(&policies), "--kind=Widget", "--listen=127.0.0.1:0"];
        let all = [&["ui", "--kubeconfig", text(kubeconfig)], &arguments[..]].concat();
        let process = Leashed::start(&log, STATUSGATE, all);
        let address = until("it listens", async || {
            let log = process.log();
            Some(log.split_once("http://")?.1.split_once("/\n")?.0.to_owned())
        })
        .await;
        Self { process, address }
    }

    async fn call(&self, name: &str, request: &Value) -> Value {
        let (address, body) = (&self.address, request.to_string());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST /calls/{name} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close"
        );
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// The end of a pass.
    async fn passed(&self, request: &Value) -> Value {
        self.call("audit", request).await;
        until("the pass ends", async || {
            let have = json!({"have": request["have"]});
            let answer = self.call("audit", &have).await;
            answer["running"].is_null().then_some(answer)
        })
        .await
    }
}

#[test]
fn ui_shows_the_audit_of_a_cluster_to_a_user_who_may_only_read() {
    in_own_cluster(async |plane| {
        let conditions = json!([condition("Ready", "False", 0)]);
        let status = json!({"phase": "Ready", "instanceNamespace": "i", "conditions": conditions});
        plane.create(WIDGET, "seen", 3, status).await;
        plane.create(WIDGET, "empty", 1, json!({})).await;
        plane.create_policy().await;
        let reader = plane.reader().await;
        until("the reader may list", async || {
            let policies = plane.policies();
            let arguments = ["--policies", text(&policies), "--kind=Widget"];
            (run("audit", &reader, &arguments).code == Some(1)).then_some(())
        })
        .await;
        let before = plane.list(WIDGET).await;
        let page = Page::start(plane, &reader).await;

        let first = page.passed(&json!({"have": 0})).await;
        let (number, result) = (&first["number"], &first["result"]);
        assert_eq!((&result["summary"]["objects"], &result["leftOut"]), (&json!(4), &json!(0)));
        let row = &result["summary"]["kinds"][0];
        assert_eq!(
            (&row["policy"], &row["resource"]),
            (&json!("widgets"), &json!("widgets.test.statusgate.dev"))
        );
        let objects = result["objects"].as_array().unwrap();
        let of = |name: &str| objects.iter().find(|object| object["name"] == name).unwrap();
        let seen = of("seen-0");
        assert_eq!((&seen["worst"], &seen["phase"]), (&json!("Deny"), &json!("Ready")));
        assert_eq!(seen["since"], "2024-06-01T12:00:00Z");
        assert_eq!(of("empty-0")["toBackfill"], true);
        let again = page.call("audit", &json!({"have": number})).await;
        assert_eq!((&again["number"], &again["result"]), (number, &Value::Null));

        let object = json!({"resource": "widgets.test.statusgate.dev", "name": "seen-0"});
        let shown = page.call("object", &object).await;
        assert_eq!(shown["line"]["findings"], seen["findings"]);
        assert_eq!(
            (&shown["plural"], &shown["object"]["metadata"]["name"]),
            (&json!("widgets"), &json!("seen-0"))
        );
        assert_eq!(shown["object"]["metadata"].get("managedFields"), None);
        let write = json!({"object": shown["yaml"], "documents": shown["documents"],
            "plural": shown["plural"], "now": "2026-01-01T00:00:00Z"});
        let judged = page.call("judge", &write).await["judged"].take();
        assert_eq!(judged["findings"][0]["finding"]["rule"], seen["findings"][0]["rule"]);
        let missing =
            page.call("object", &json!({"resource": object["resource"], "name": "x"})).await;
        assert_eq!(missing["error"], "widgets.test.statusgate.dev/x does not exist");
        // The namespace is no path.
        let path =
            json!({"resource": object["resource"], "namespace": "a/../..", "name": "../../x"});
        assert!(page.call("object", &path).await["error"].is_string());

        let checks = page.call("doctor", &json!({})).await["checks"].take();
        assert_eq!(checks[0]["check"], "api-server");
        let policies = page.call("policies", &json!({})).await;
        let stored = &policies["documents"][0];
        assert_eq!((&stored["name"], &stored["convention"]), (&json!("appcat"), &json!("appcat")));
        assert_eq!(policies["inUse"], json!(["appcat", "widgets", "gadgets"]));

        plane.objects(WIDGET).delete("empty-0").await.unwrap();
        let second = page.passed(&json!({"have": number, "refresh": true})).await;
        assert_eq!(second["result"]["summary"]["objects"], 3);
        plane.stop().await;
        let stopped = page.passed(&json!({"have": second["number"], "refresh": true})).await;
        let error = stopped["error"].as_str().unwrap();
        assert!(error.starts_with("cannot ask for the version at "), "{error}");
        assert_eq!(stopped["number"], second["number"]);
        let kept = page.call("audit", &json!({})).await;
        assert_eq!(kept["result"], second["result"]);
        plane.restart().await;
        // For some moments after its start, the API server does not know its custom resources.
        until("the page recovers", async || {
            let third = page.passed(&json!({"have": second["number"], "refresh": true})).await;
            let objects = &third["result"]["summary"]["objects"];
            (third["error"].is_null() && *objects == 3).then_some(())
        })
        .await;

        let unchanged = |objects: Vec<Value>| -> Vec<Value> {
            objects.into_iter().filter(|object| object["metadata"]["name"] != "empty-0").collect()
        };
        assert_eq!(unchanged(plane.list(WIDGET).await), unchanged(before));
        page.process.signal("TERM");
        assert_eq!(page.process.ended(), "0", "{}", page.process.log());
    });
}
