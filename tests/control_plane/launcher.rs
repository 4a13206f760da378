//! etcd and kube-apiserver (`hack/control-plane.sh`) for all tests of a test binary.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::leash::lines;
use crate::objects::{Objects, name_of};

/// A running control plane with a folder for files. It stops and removes the folder when its stdin closes,
/// which happens at every end of this process.
pub(crate) struct ControlPlane {
    folder: PathBuf,
    _script: Child,
}

impl ControlPlane {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let log = folder.join("control-plane.log");
        // The script gets stdin and the signals; the shell around it removes the folder.
        let run = r#""$1" run "$2/plane" <&0 & echo $! > "$2/pid"; wait; rm -rf "$2""#;
        let mut script = Command::new("bash")
            .args(["-c", run, "control-plane"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/hack/control-plane.sh"))
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not our stderr: the reader of our output would wait for the end of every process that has it.
            .stderr(File::create(&log).expect("a log"))
            .process_group(0)
            .spawn()
            .expect("bash starts");
        // The script has its own deadline, and may have to build the control plane first.
        let ready = lines(&mut script).recv().is_ok_and(|line| line.starts_with("ready "));
        assert!(ready, "no control plane: {}", fs::read_to_string(&log).unwrap_or_default());
        Self { folder, _script: script }
    }

    /// The folder for files. `pid` in it is the process of the script.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("plane/kubeconfig")
    }

    /// A kubeconfig for another user, whom the administrator impersonates.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let text = fs::read_to_string(self.kubeconfig()).expect("a kubeconfig");
        let path = self.folder.join(format!("kubeconfig-of-{user}"));
        let token = "    token: admin-token\n";
        assert!(text.contains(token));
        let text = text.replace(token, &format!("{token}    as: {user}\n"));
        fs::write(&path, text).expect("a kubeconfig");
        path
    }
}

/// A client with a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    // The client needs a default provider; only our own listeners name theirs.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.expect("a configuration");
    // Retries of the client would hide failed writes.
    config.default_retry = false;
    // The server is on loopback: ignore a proxy in the environment.
    config.proxy_url = None;
    Client::try_from(config).expect("a client")
}

/// Creates the kinds of the tests.
pub(crate) async fn create_kinds(crds: &Objects) {
    for text in [include_str!("../../deploy/crds/appcat-example.yaml"), include_str!("crds.yaml")] {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("CRDs are YAML");
        for document in documents {
            crds.create(&document).await.unwrap_or_else(|error| {
                panic!("{} is not created: {error}", name_of(&document));
            });
        }
    }
}
