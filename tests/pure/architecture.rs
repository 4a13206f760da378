//! The order of the modules, and the names that pure modules must not contain.
//!
//! Cargo.toml separates the core from the root package. Inside a package the compiler allows every use, so
//! this test reads the lines of the sources.

use std::fs;
use std::path::Path;

use walkdir::WalkDir;

/// A module may use itself and the modules before it.
const ORDER: [&str; 25] = [
    // crates/statusgate-core/src
    "model",
    "kstatus",
    "source",
    "language",
    "documents",
    "policy",
    "engine",
    "readers",
    "explain",
    "relevance",
    "lint",
    "request",
    "wire",
    "calls",
    // src
    "values",
    "manifests",
    "files",
    "tls",
    "telemetry",
    "server",
    "cluster",
    "manager",
    "ui",
    "cli",
    "main",
];

/// What the core and this module of the root package must not contain: IO, clock, async and Kubernetes client.
const PURE: [&str; 1] = ["manifests"];
const IMPURE: &str = "std::fs std::net std::env std::time std::process std::thread Timestamp::now tokio:: hyper:: rustls:: \
    axum:: kube:: k8s_openapi tracing::";

#[test]
fn modules_use_only_earlier_modules_and_pure_modules_do_no_io() {
    let mut broken = Vec::new();
    for package in ["src", "crates/statusgate-core/src"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(package);
        let files = WalkDir::new(&root).sort_by_file_name().into_iter().map(Result::unwrap);
        for path in files.map(|file| file.into_path()).filter(|path| path.is_file()) {
            let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let Some((module, _)) = file.split_once(['/', '.']).filter(|_| file.ends_with(".rs"))
            else {
                continue;
            };
            let position = |name: &str| ORDER.iter().position(|module| *module == name);
            assert!(position(module).is_some() || module == "lib", "{file} is not in the order");
            // Unit tests in files of their own read the documents of the project.
            let is_pure =
                (package != "src" || PURE.contains(&module)) && !file.ends_with("tests.rs");
            for (number, line) in (1..).zip(fs::read_to_string(&path).unwrap().lines()) {
                let line = line.split("//").next().unwrap().replace("statusgate_core::", "crate::");
                let names = line.split("crate::").skip(1);
                let names = names.map(|rest| rest.split([':', ';']).next().unwrap());
                let later = names.filter(|name| position(name) > position(module));
                let impure = IMPURE.split(' ').filter(|name| is_pure && line.contains(name));
                let faults = later.chain(impure);
                broken.extend(faults.map(|name| format!("{package}/{file}:{number} uses {name}")));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
