//! A fake API server for commands in their own process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::command::{Ended, STATUSGATE};

/// A running server, and a folder for files.
pub(crate) struct Api {
    folder: TempDir,
    served: JoinHandle<std::io::Result<()>>,
}

impl Api {
    /// Serves these routes, and the version of the server.
    pub(crate) async fn serve(routes: Router) -> Self {
        let version = get(async || answer(200, &json!({"gitVersion": "v0.0.0"})));
        let routes = routes.route("/version", version);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \
             \"http://{address}\"}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             users: [{{name: u, user: {{}}}}]}}"
        );
        fs::write(folder.path().join("kubeconfig"), config).unwrap();
        let served = tokio::spawn(axum::serve(listener, routes).into_future());
        Self { folder, served }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command for this server.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut process = Command::new(STATUSGATE);
        process.args([command, "--kubeconfig"]).arg(self.path("kubeconfig"));
        process
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, command: &str, arguments: &[&str]) -> Ended {
        let mut process = self.command(command);
        process.args(arguments);
        let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await;
        Ended::of(&output.unwrap())
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// The response of `/apis` for these groups, each with the version `v1`.
pub(crate) fn groups(names: &[&str]) -> Response {
    let group = |name: &&str| {
        let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let groups: Vec<Value> = names.iter().map(group).collect();
    answer(200, &json!({"kind": "APIGroupList", "groups": groups}))
}

/// The response of `/apis/GROUP/v1` for these resources and their kinds.
pub(crate) fn resources(group: &str, names: &[(&str, &str)]) -> Response {
    let resource = |(name, kind): &(&str, &str)| {
        json!({"name": name, "singularName": "", "kind": kind, "namespaced": true,
            "verbs": ["get", "list", "patch"]})
    };
    let resources: Vec<Value> = names.iter().map(resource).collect();
    let group_version = format!("{group}/v1");
    answer(
        200,
        &json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}),
    )
}

pub(crate) fn answer(code: u16, body: &Value) -> Response {
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

/// A failure with the name of its object, as the API server reports it.
pub(crate) fn status(code: u16, message: &str, name: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "details": {"name": name}, "code": code})
}

pub(crate) fn failure(code: u16, message: &str, name: &str) -> Response {
    answer(code, &status(code, message, name))
}
