//! Runs statusgate in its own process.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::ffi::OsStr;
use std::process::{Command, Output};

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
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Both streams.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// Runs statusgate to its end, in the folder of the repository.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    let mut command = Command::new(STATUSGATE);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    // The environment must not affect the test.
    command.env_remove("HTTPS_PROXY").env_remove("https_proxy");
    Ended::of(&command.output().unwrap())
}
