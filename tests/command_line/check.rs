//! The command `statusgate check`: its input, output and exit codes.

mod input;
mod output;
mod recordings;
mod upgrade;

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ended, STATUSGATE, folder_of, run_with};

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
        Self(folder_of(files))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(STATUSGATE);
        command.current_dir(self.0.path()).arg("check");
        command.args(["--now", "2024-06-01T12:00:00Z"]).args(args);
        command
    }

    fn check(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(args).output().unwrap())
    }

    fn check_stdin(&self, args: &[&str], input: &str) -> Ended {
        run_with(&mut self.command(args), input)
    }
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
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
