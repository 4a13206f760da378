//! What all commands share on a terminal: colors, completions, manual pages, and the names of the program.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::command::{Ended, STATUSGATE, run};

const CHECK: [&str; 2] = ["check", "examples/manifests"];

/// Runs `check` with a variable and more arguments. At one time: patches contain it.
fn check(variables: &[(&str, &str)], more: &[&str]) -> Ended {
    let mut command = Command::new(STATUSGATE);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(CHECK).args(more);
    command.arg("--now=2026-11-25T00:00:00Z");
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("TERM");
    Ended::of(&command.envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn colors_appear_only_where_they_are_wanted() {
    let plain = check(&[], &[]);
    assert!(!plain.text().contains('\u{1b}'), "{}", plain.text());
    for (variables, more) in
        [(&[("CLICOLOR_FORCE", "1")][..], &[][..]), (&[("NO_COLOR", "1")], &["--color", "always"])]
    {
        let colored = check(variables, more);
        assert!(colored.out.contains("\u{1b}[1m\u{1b}[31mdeny\u{1b}[0m: "), "{}", colored.out);
        assert_eq!(anstream::adapter::strip_str(&colored.out).to_string(), plain.out);
    }
    for (variables, more) in
        [(&[("NO_COLOR", "1")][..], &[][..]), (&[("CLICOLOR_FORCE", "1")], &["--color", "never"])]
    {
        assert_eq!(check(variables, more).text(), plain.text());
    }
}

#[test]
fn formats_for_programs_have_no_colors() {
    for format in ["json", "sarif", "junit"] {
        let colored = check(&[], &["--color", "always", "-o", format]);
        assert_eq!(colored.out, check(&[], &["-o", format]).out);
        assert!(!colored.out.contains('\u{1b}'), "{format}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let Ended { code, out, err } = run(["completions", shell]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{shell}");
        assert!(out.contains("backfill") && out.contains("fail-on"), "{shell}:\n{out}");
        // The others complete no values of arguments without a flag.
        let names = ["kstatus-flux", "appcat/phase-ready", "lint/never-fires"];
        let has_values = ["bash", "zsh"].contains(&shell);
        assert!(!has_values || names.iter().all(|name| out.contains(name)), "{shell}:\n{out}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let main = run(["man"]);
    assert!(main.out.contains(".TH statusgate 1"), "{}", main.out);
    let page = run(["man", "manifests", "install"]);
    assert!(page.out.contains("\\fBstatusgate manifests install\\fR"), "{}", page.out);
    let unknown = run(["man", "manifests", "instal"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("\"manifests instal\""), "{}", unknown.err);
}

#[test]
fn a_plugin_of_kubectl_shows_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-statusgate");
    symlink(STATUSGATE, &plugin).unwrap();
    let help = Ended::of(&Command::new(plugin).args(["check", "--help"]).output().unwrap());
    assert!(help.out.contains("Usage: kubectl statusgate check "), "{}", help.out);
    assert!(run(["check", "--help"]).out.contains("Usage: statusgate check "));
}

#[test]
fn the_help_links_to_the_documentation() {
    let help = run(["--help"]);
    assert!(help.out.ends_with("Documentation: https://statusgate.dev/docs\n"), "{}", help.out);
    let version = run(["--version"]);
    assert!(version.out.starts_with("statusgate 0.1.0"), "{}", version.out);
}
