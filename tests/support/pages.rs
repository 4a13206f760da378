//! The README and the pages of docs/, with the commands that they show.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and the pages of docs/, relative to the root, with their text.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    let files = walkdir::WalkDir::new(root().join("docs")).sort_by_file_name().into_iter();
    let found = files.map(|file| file.unwrap().into_path()).filter(|path| is_page(path));
    let all = std::iter::once(root().join("README.md")).chain(found);
    let relative = |path: &Path| path.strip_prefix(root()).unwrap().to_owned();
    all.map(|path| (relative(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

/// A command after `$ `, and its output.
pub(crate) struct Shown<'p> {
    /// The folder in `tests/cluster/pages` with the cluster that it needs.
    pub(crate) cluster: Option<&'p str>,
    pub(crate) command: &'p str,
    pub(crate) output: &'p str,
}

/// The commands in the blocks fenced as `console` or `console cluster=FOLDER`.
pub(crate) fn shown(page: &str) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for rest in page.split("```console").skip(1) {
        let (info, block) = rest.split_once('\n').unwrap();
        let block = block.split("```").next().unwrap_or_default();
        let cluster = info.strip_prefix(" cluster=");
        assert!(cluster.is_some() || info.is_empty(), "console{info}");
        let commands = block.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {block}"));
        for text in commands.split("\n$ ") {
            let (command, output) = text.split_once('\n').unwrap_or((text, ""));
            all.push(Shown { cluster, command, output });
        }
    }
    all
}
