//! Several large statuses at once.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::cluster::in_cluster;
use crate::harness::objects::{COMPOSITE, condition, refusal};

/// Writers that write at the same time.
const WRITERS: usize = 6;

/// Times that each tries.
const TRIES: usize = 3;

/// About 0.9 MB of conditions.
fn conditions() -> Value {
    let large = |number| {
        let mut condition = condition(&format!("Example{number}"), "True", 0);
        condition["message"] = "0123456789".repeat(85).into();
        condition
    };
    (0..900).map(large).collect()
}

#[test]
fn large_contradictions_that_are_written_at_once_are_not_stored() {
    in_cluster(async |cluster| {
        let names = join_all((0..WRITERS).map(|_| cluster.object(COMPOSITE))).await;
        let objects = cluster.operator(COMPOSITE);
        let large = json!({"conditions": conditions(), "instanceNamespace": "n"});
        let stored = objects.merge_status(&names[0], large.clone()).await.unwrap();
        assert!(stored["status"].to_string().len() > 800_000);
        let mut status = large;
        status["phase"] = "ready".into();
        for _ in 0..TRIES {
            let writes = names.iter().map(|name| objects.merge_status(name, status.clone()));
            for written in join_all(writes).await {
                written.expect_err("a contradiction is rejected, or the call fails");
            }
        }
        let alone = refusal(objects.merge_status(&names[0], status).await);
        assert!(alone.message.ends_with("[appcat/phase-value]"), "{}", alone.message);
        for name in &names {
            assert!(objects.get(name).await.unwrap()["status"]["phase"] != "ready");
        }
    });
}
