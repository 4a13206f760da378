//! The generated files in `deploy/` are the output of `statusgate manifests`. With `UPDATE_DOCS` set they
//! are written instead of compared: `make manifests`.

use std::path::Path;

use crate::command::run;

/// The generated files, and the arguments of the command.
const FILES: [(&str, &str); 4] = [
    ("base", "--certificates=files"),
    ("cert-manager", "--certificates=cert-manager"),
    ("self-managed", "--certificates=managed"),
    (
        "high-availability",
        "--certificates=managed --replicas=3 --failure-policy=fail --priority-class=system-cluster-critical",
    ),
];

#[test]
fn the_folders_of_deploy_are_the_output_of_manifests_install() {
    for (folder, arguments) in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(folder);
        let ended = run(format!("manifests install --without=crds {arguments}").split(' '));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let file = path.join("statusgate.yaml");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &ended.out).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == ended.out, "{} is out of date: run `make manifests`", file.display());
        let kustomization = std::fs::read_to_string(path.join("kustomization.yaml")).unwrap();
        let command = format!("statusgate manifests install {arguments}");
        assert!(kustomization.contains(&command), "{folder}/kustomization.yaml names the command");
    }
}
