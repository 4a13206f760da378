//! Child processes that end with this process, even if it is killed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::patience::PATIENCE;

/// A child process that `leash.sh` stops when its stdin closes.
pub(crate) struct Leashed {
    leash: Child,
    pid: String,
    /// The output of the leash. A static needs the lock.
    said: Mutex<Receiver<String>>,
    log: PathBuf,
}

impl Leashed {
    pub(crate) fn start<I: AsRef<OsStr>>(
        log: &Path,
        program: &str,
        arguments: impl IntoIterator<Item = I>,
    ) -> Self {
        let mut leash = Command::new("bash")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/harness/leash.sh"))
            .arg(log)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // bash reports killed jobs here.
            .stderr(Stdio::null())
            // Ctrl-C then stops only this process, and the pipes stop the others.
            .process_group(0)
            .spawn()
            .expect("bash starts");
        let said = Mutex::new(lines(&mut leash));
        let mut leashed = Self { leash, pid: String::new(), said, log: log.to_owned() };
        leashed.pid = leashed.next_line();
        leashed
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), "--", &self.pid]).status();
        assert!(sent.expect("kill starts").success(), "{} is there to get a signal", self.pid);
    }

    /// Waits for its end and returns the exit code.
    pub(crate) fn ended(&self) -> String {
        self.next_line()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> &str {
        &self.pid
    }

    /// Its output so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn next_line(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it goes on; {}", self.log()))
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        drop(self.leash.stdin.take());
        // Nothing can handle an error here.
        let _ = self.leash.wait();
    }
}

/// The lines of a child's stdout, so that one can wait for them with a deadline.
pub(crate) fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let stdout = child.stdout.take().expect("stdout is a pipe");
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
