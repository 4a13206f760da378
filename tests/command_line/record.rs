//! `statusgate record` against a fake API server that does not let it delete its registration.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::Value;

use crate::api::{Api, answer, failure, status};

const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const NAME: &str = "statusgate-record";

/// What the server stores.
type Stored = Arc<Mutex<Option<Value>>>;

async fn create(State(stored): State<Stored>, body: String) -> Response {
    let object: Value = serde_json::from_str(&body).unwrap();
    *stored.lock().unwrap() = Some(object.clone());
    answer(201, &object)
}

async fn read(State(stored): State<Stored>) -> Response {
    let object = stored.lock().unwrap().clone();
    answer(200, &object.unwrap())
}

async fn delete(State(stored): State<Stored>) -> Response {
    match *stored.lock().unwrap() {
        None => failure(404, "not found", NAME),
        Some(_) => answer(403, &status(403, "the role is gone", NAME)),
    }
}

#[tokio::test]
async fn a_registration_that_cannot_be_deleted_is_named_with_the_command_that_deletes_it() {
    let routes = Router::new()
        .route(PATH, post(create))
        .route(&format!("{PATH}/{NAME}"), get(read).delete(delete))
        .with_state(Stored::default());
    let api = Api::serve(routes).await;
    let to = api.path("recording.jsonl");
    let ended = api
        .run(
            "record",
            &[
                "--crds",
                "deploy/crds/appcat-example.yaml",
                "--for",
                "100ms",
                "--to",
                to.to_str().unwrap(),
            ],
        )
        .await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("the role is gone"), "{}", ended.err);
    let fix = format!(
        "the registration stays; delete it: kubectl delete validatingwebhookconfigurations {NAME}: cannot delete the "
    );
    assert!(ended.err.contains(&fix), "{}", ended.err);
    assert!(!to.exists());
}
