//! A cluster that commands of a page need.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::command::{self, STATUSGATE};
use crate::harness::leash::Leashed;
use crate::harness::patience::until;
use crate::harness::plane::{Plane, documents};
use crate::page_texts::root;

/// The objects of a folder in the cluster, and a folder with its other files.
pub(super) struct State {
    folder: PathBuf,
    kubeconfig: PathBuf,
    client: Client,
    objects: Vec<Value>,
    /// A running server, which the registrations call.
    server: Option<(Leashed, String)>,
}

impl State {
    pub(super) async fn create(plane: &Plane, name: &str) -> Self {
        let (source, folder) = (root().join("tests/cluster/pages"), plane.folder(name));
        std::fs::copy(source.join("policy.yaml"), folder.join("policy.yaml")).unwrap();
        let own = source.join(name);
        for file in own.read_dir().unwrap_or_else(|error| panic!("{name}: {error}")) {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        let mut text = std::fs::read_to_string(folder.join("cluster.yaml")).unwrap();
        text = text.replace("NOW", &jiff::Timestamp::now().strftime("%FT%TZ").to_string());
        let client = plane.client("admin").clone();
        let (kubeconfig, objects) = (plane.kubeconfig(), Vec::new());
        let mut state = Self { folder, kubeconfig, client, objects, server: None };
        if text.contains("_BUNDLE") || text.contains("kind: StatusPolicy") {
            let [served, other] = ["certs", "other"].map(|certs| state.certificate(certs));
            text = text.replace("OTHER_BUNDLE", &other).replace("CA_BUNDLE", &served);
            state.serve().await;
        }
        state.objects = documents(&text);
        if name == "audit" {
            state.objects.extend(documents(include_str!("../webhooks/policyreports.yaml")));
        }
        for object in &state.objects {
            state.store(object).await;
        }
        state
    }

    /// Creates a certificate in a folder and returns its CA.
    fn certificate(&self, folder: &str) -> String {
        let folder = self.folder.join(folder);
        let made = command::run(["certs".as_ref(), "--out".as_ref(), folder.as_os_str()]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        STANDARD.encode(std::fs::read(folder.join("ca.crt")).unwrap())
    }

    async fn serve(&mut self) {
        let path = |name: &str| self.folder.join("certs").join(name).display().to_string();
        let arguments = [
            "serve".to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
            "--probe-listen=127.0.0.1:0".to_owned(),
            format!("--tls-cert={}", path("tls.crt")),
            format!("--tls-key={}", path("tls.key")),
            "--log-format=json".to_owned(),
            "--watch-policies".to_owned(),
            "--grace=0s".to_owned(),
            format!("--kubeconfig={}", self.kubeconfig.display()),
        ];
        let server = Leashed::start(&self.folder.join("log"), STATUSGATE, arguments);
        let address = until("statusgate listens", async || {
            let log = server.log();
            let (_, rest) = log.split_once("\"address\":\"")?;
            Some(rest.split_once('"')?.0.to_owned())
        })
        .await;
        self.server = Some((server, address));
    }

    /// Creates an object with its status, when its kind is served.
    async fn store(&self, object: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let new: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        until(&format!("{name} is created"), async || {
            match api.create(&PostParams::default(), &new).await {
                Ok(_) => Some(()),
                // Namespaces stay.
                Err(kube::Error::Api(status)) if status.is_already_exists() => Some(()),
                Err(_) => None,
            }
        })
        .await;
        if object["kind"] == "StatusPolicy" {
            until(&format!("{name} is judged"), async || judged(&api.get(name).await.ok()?.data))
                .await;
        }
        if let Some(status) = object.get("status") {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let of = |name: &str| object[name].as_str().unwrap();
        let (group, version) =
            of("apiVersion").split_once('/').unwrap_or_else(|| ("", of("apiVersion")));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, of("kind")));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        }
    }

    /// The output of a command, as a terminal shows it.
    pub(super) fn run(&self, command: &str) -> String {
        let command = match &self.server {
            Some((_, address)) => command.replace("127.0.0.1:8443", address),
            None => command.to_owned(),
        };
        let programs = PathBuf::from(STATUSGATE);
        let path = r#"PATH=$1:$("$2" assets 2> /dev/null):$PATH"#;
        let output = Command::new("bash")
            .args(["-c", &format!("{path}; {{ {command}; }} 2>&1"), "page"])
            .args([programs.parent().unwrap(), &root().join("hack/control-plane.sh")])
            .env("KUBECONFIG", &self.kubeconfig)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Deletes the objects, the last first. No controller would complete the deletion of a namespace.
    pub(super) async fn delete(self) {
        if let Some((server, _)) = &self.server {
            // It gives its Lease back.
            server.signal("TERM");
            assert_eq!(server.ended(), "0", "{}", server.log());
        }
        for object in self.objects.iter().rev().filter(|object| object["kind"] != "Namespace") {
            let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
            until(&format!("{name} is deleted"), async || {
                match api.delete(name, &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => Some(()),
                    _ => None,
                }
            })
            .await;
        }
    }
}

/// Whether a policy is enforced or invalid.
fn judged(policy: &Value) -> Option<()> {
    let conditions = policy["status"]["conditions"].as_array()?;
    let ends = [("Enforced", "True"), ("Accepted", "False")];
    let ended = |condition: &Value| {
        ends.iter()
            .any(|(kind, status)| condition["type"] == *kind && condition["status"] == *status)
    };
    conditions.iter().any(ended).then_some(())
}
