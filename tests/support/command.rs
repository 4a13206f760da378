//! Runs statusgate in its own process.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const STATUSGATE: &str = env!("CARGO_BIN_EXE_statusgate");

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| str::from_utf8(bytes).unwrap().to_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Both streams.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// The lines of `-o json`.
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs statusgate to its end, in the folder of the repository.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    run_in(env!("CARGO_MANIFEST_DIR"), arguments)
}

/// Runs statusgate to its end, in a folder.
pub(crate) fn run_in<A: AsRef<OsStr>>(
    folder: impl AsRef<Path>,
    arguments: impl IntoIterator<Item = A>,
) -> Ended {
    let mut command = Command::new(STATUSGATE);
    command.current_dir(folder).args(arguments);
    // The environment must not affect the test.
    command.env_remove("HTTPS_PROXY").env_remove("https_proxy");
    Ended::of(&command.output().unwrap())
}

/// Runs a command to its end with an input.
pub(crate) fn run_with(command: &mut Command, input: &str) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    // A program that does not read its input closes the pipe.
    let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ended::of(&output)
}

/// A new folder with these files.
pub(crate) fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write_in(&folder, name, text);
    }
    folder
}

/// Writes a file into a folder. Returns its path.
pub(crate) fn write_in(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
