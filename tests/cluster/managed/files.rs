//! The certificate comes from files, as cert-manager's Secret in a volume.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use statusgate_tls::{Authority, Validity};

use super::replica::Installation;
use super::writes::writers;
use crate::harness::objects::{Kind, MUTATING, VALIDATING};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::Traffic;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The names and kinds of the registrations.
const REGISTRATIONS: [(Kind, &str); 3] =
    [(MUTATING, "statusgate"), (VALIDATING, "statusgate"), (VALIDATING, "statusgate-documents")];

#[expect(clippy::disallowed_methods, reason = "a test has no command line of its own")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Issues a certificate into a folder as kubelet mounts a Secret: both files change at the same instant,
/// because they are links through one link.
fn issue(authority: &Authority, folder: &Path, days: u32) {
    let names = ["127.0.0.1".to_owned()];
    let issued =
        authority.issue(&names, Validity::from_now(DAY * days, now())).expect("a certificate");
    let data = folder.join(format!("..{days}"));
    fs::create_dir(&data).expect("a folder");
    fs::write(data.join("tls.crt"), issued.certificate).expect("a file");
    fs::write(data.join("tls.key"), issued.key).expect("a file");
    symlink(&data, folder.join("..next")).expect("a link");
    fs::rename(folder.join("..next"), folder.join("..data")).expect("a link");
}

/// Sets every caBundle, as cert-manager's cainjector does.
async fn inject(plane: &Plane, authority: &Authority) {
    for (kind, name) in REGISTRATIONS {
        let registrations = plane.objects(kind);
        until("the caBundle is set", async || {
            let mut stored = registrations.get(name).await.ok()?;
            for webhook in stored["webhooks"].as_array_mut()? {
                webhook["clientConfig"]["caBundle"] =
                    STANDARD.encode(authority.certificate()).into();
            }
            registrations.put(&stored).await.ok()
        })
        .await;
    }
}

#[test]
fn no_write_fails_while_a_certificate_in_files_is_replaced() {
    in_own_cluster(async |plane| {
        let folder = plane.folder("files");
        let authority = Authority::make("test", Validity::from_now(DAY * 900, now())).unwrap();
        issue(&authority, &folder, 90);
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), folder.join(name)).unwrap();
        }
        let installation =
            Installation::with_files(plane, &folder, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let replicas = installation.two().await;
        inject(plane, &authority).await;
        let traffic = Traffic::start(writers(plane).await);
        traffic.go_on().await;

        const EXPIRY: &str = "statusgate_tls_certificate_not_after_seconds ";
        let old = [replicas[0].metric(EXPIRY).await, replicas[1].metric(EXPIRY).await];
        issue(&authority, &folder, 180);
        for (replica, old) in replicas.iter().zip(old) {
            until("it serves the new certificate", async || {
                let expiry = replica.metric(EXPIRY).await;
                (expiry.is_some() && expiry != old).then_some(())
            })
            .await;
        }
        traffic.go_on().await;
        // The API server keeps its connections with the old certificate until a server ends.
        let _next = installation.two().await;
        replicas.iter().for_each(|replica| installation.stop(replica));
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
        for (kind, name) in REGISTRATIONS {
            let stored = plane.objects(kind).get(name).await.unwrap();
            for webhook in stored["webhooks"].as_array().unwrap() {
                let bundle = STANDARD.encode(authority.certificate());
                assert_eq!(webhook["clientConfig"]["caBundle"], bundle, "{stored:#}");
            }
        }
    });
}
