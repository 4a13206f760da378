//! The command `statusgate check`: its input, output and exit codes.

mod input;
mod output;
mod recordings;
mod upgrade;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BAD: &str = "\
apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNRedis
metadata: {name: bad, namespace: shop}
status:
  phase: ready
";
const GOOD: &str = "\
apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNPostgreSQL
metadata: {name: good, namespace: shop}
status: {phase: Unknown}
";
const RULE: &str = "appcat/phase-value";

/// A folder with files, in which the command runs.
struct Desk(TempDir);

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        command.current_dir(self.0.path()).arg("check");
        command.args(["--now", "2024-06-01T12:00:00Z"]).args(args);
        command
    }

    fn check(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    fn check_stdin(&self, args: &[&str], input: &str) -> Answer {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Answer::of(child.wait_with_output().unwrap())
    }
}

#[derive(Debug)]
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The lines of `-o json`.
    fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// `FILE:LINE:COLUMN RULE` of each finding.
    fn found(&self) -> Vec<String> {
        self.objects()
            .iter()
            .flat_map(|object| {
                object["findings"].as_array().unwrap().iter().map(|finding| {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let (file, rule) = (text(&object["file"]), text(&finding["rule"]));
                    format!("{file}:{}:{} {rule}", finding["line"], finding["column"])
                })
            })
            .collect()
    }
}

/// The same YAML, two columns to the right.
fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    lines.concat()
}
