//! Sets `STATUSGATE_BUILD`, the commit and its date, for `statusgate --version`.
//!
//! Both come from git, so two builds of a commit have the same bytes. Where there is no git, such as in an image, the variable
//! can be set. An archive of the source has neither and builds, too. A debug build does not ask git: each commit would
//! compile the package again.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    set("cargo:rerun-if-env-changed=STATUSGATE_BUILD");
    set("cargo:rerun-if-changed=build.rs");
    if env::var_os("STATUSGATE_BUILD").is_some() || env::var_os("PROFILE") != Some("release".into())
    {
        return;
    }
    // Not a repository around this folder.
    if !Path::new(".git").exists() {
        return;
    }
    // Every commit and checkout changes it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| fs::exists(log).unwrap_or_default()) {
        set(&format!("cargo:rerun-if-changed={log}"));
    }
    if let Some(commit) = git(&["show", "--no-patch", "--format=%h %cs", "--abbrev=12"]) {
        set(&format!("cargo:rustc-env=STATUSGATE_BUILD={commit}"));
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn set(line: &str) {
    println!("{line}");
}
