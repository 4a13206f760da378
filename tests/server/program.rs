//! The program itself, its log and its exit code.

use tokio::net::TcpStream;

use crate::command::{Ended, run};
use crate::server::{self, Client, Desk};

#[test]
fn the_program_serves_until_sigterm_and_exits_with_0() {
    use std::io::{BufRead, BufReader};
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_statusgate"))
        .args(["serve", "--self-signed", "--listen", "127.0.0.1:0"])
        .args(["--probe-listen", "127.0.0.1:0", "--grace", "0s"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.find(|line| line.contains("listening")).unwrap();
    assert!(listening.contains(r#""address":"127.0.0.1:"#), "{listening}");
    let id = program.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let rest: Vec<_> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("Drained")), "flushed at exit: {rest:?}");
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_follows_its_file_and_ignores_an_invalid_filter() {
    use std::io::{BufRead, BufReader};
    let desk = Desk::new();
    desk.write("log", "info\n");
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_statusgate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0"])
        .args(["--grace", "0s", "--reload-every", "10ms"])
        .args(["--tls-cert".as_ref(), &*desk.path("tls.crt")])
        .args(["--tls-key".as_ref(), &*desk.path("tls.key")])
        .args(["--log-from".as_ref(), &*desk.path("log")])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.find(|line| line.contains("listening")).unwrap();
    let (_, address) = listening.split_once(r#""address":""#).unwrap();
    let (address, _) = address.split_once('"').unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    let mut client = Client::shake_hands(tcp, &desk.trust()).await.unwrap();
    let decision = |line: &String| line.contains(r#""decision":"allowed""#);

    assert_eq!(client.review().await.status, 200);
    desk.write("log", "statusgate=debug");
    let reloaded = |line: &String| line.contains("reloaded changed files");
    let until: Vec<_> = lines.by_ref().take_while(|line| !reloaded(line)).collect();
    assert!(!until.iter().any(decision), "{until:?}");
    assert_eq!(client.review().await.status, 200);
    assert!(lines.any(|line| decision(&line)));

    desk.write("log", "debgu");
    let broken = lines.find(|line| line.contains("changed files are broken")).unwrap();
    assert!(broken.contains(r#""what":"log""#) && broken.contains("use error"), "{broken}");
    assert_eq!(client.review().await.status, 200);
    assert!(lines.any(|line| decision(&line)));

    let id = program.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    drop(lines.collect::<Vec<_>>());
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

#[test]
fn the_program_reports_invalid_settings_and_exits_with_2() {
    let desk = Desk::new();
    desk.write("broken.yaml", server::BROKEN_POLICY);
    let broken = desk.path("broken.yaml").display().to_string();
    let idle = ["--self-signed", "--idle-timeout", "60s"];
    desk.write("log", "debgu\n");
    let log = desk.path("log").display().to_string();
    let cases: [(&[&str], &str); 6] = [
        (&["--self-signed", "--log-from", "/nowhere"], "the log filter in /nowhere"),
        (&["--self-signed", "--log-from", &log], "failed to parse the log filter \"debgu\""),
        (&[], "--self-signed"),
        (&idle, "API servers keep idle connections for 90 s"),
        (&["--self-signed", "--policies", &broken], "broken.yaml"),
        (&["--self-signed", "--policies", "/nowhere"], "/nowhere: this cannot be read"),
    ];
    for (arguments, said) in cases {
        let any = ["serve", "--listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0"];
        let Ended { code, err, .. } = run([&any, arguments].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(said), "{err}");
    }
}
