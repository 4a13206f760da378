//! `statusgate export health`: the definitions of a cluster.

use std::path::Path;

use super::command::text;
use crate::command::run;
use crate::harness::pool::in_own_cluster;

#[test]
fn definitions_give_the_same_health_from_files_and_from_the_cluster() {
    in_own_cluster(async |plane| {
        let (policies, kubeconfig) = (plane.policies(), plane.kubeconfig());
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (example, crds) = (
            root.join("deploy/crds/appcat-example.yaml"),
            root.join("tests/cluster/harness/crds.yaml"),
        );
        for tool in ["argocd", "flux", "auto-ready", "kro"] {
            let export = |kinds: &[&str]| {
                let policies = ["--policies", text(&policies)];
                run([&["export", "health", "--for", tool][..], &policies, kinds].concat())
            };
            let from_files = export(&["--crds", text(&example), "--crds", text(&crds)]);
            let from_cluster = export(&["--from-cluster", "--kubeconfig", text(&kubeconfig)]);
            assert_eq!((from_files.code, from_cluster.code), (Some(0), Some(0)), "{tool}");
            assert!(from_files.out.contains("Gadget"), "{}", from_files.out);
            assert_eq!(from_cluster.out, from_files.out);
        }
    });
}
