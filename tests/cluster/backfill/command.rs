//! The command, in its own process.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{self, Ended, STATUSGATE};
use crate::harness::leash::Leashed;

/// Runs a command to its end.
pub(crate) fn run(command: &str, kubeconfig: &Path, arguments: &[&str]) -> Ended {
    command::run([&[command, "--kubeconfig", text(kubeconfig)], arguments].concat())
}

/// A backfill that runs in parallel with the test.
pub(crate) fn start(log: &Path, kubeconfig: &Path, arguments: &[&str]) -> Leashed {
    let mut all = vec!["backfill", "--kubeconfig", kubeconfig.to_str().expect("text")];
    all.extend(arguments);
    Leashed::start(log, STATUSGATE, all)
}

/// The lines that are JSON. A killed process may have written a part of its last line.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The uids of the objects that are patched according to a report in JSON.
pub(crate) fn patched(report: &str) -> Vec<String> {
    let lines = json_lines(report).into_iter().filter(|line| line["outcome"] == "patched");
    lines.filter_map(|line| line["uid"].as_str().map(str::to_owned)).collect()
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// A file in a folder, as an argument.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
