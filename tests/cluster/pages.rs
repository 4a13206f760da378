//! The commands of docs/ that need a cluster. The block of a command names a folder of this folder: `cluster.yaml` has the objects
//! that the cluster has then. The command runs in a copy of the folder, with `policy.yaml` unless it has its own.

mod state;

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::pool::in_own_cluster;
use crate::page_texts::{pages, shown};

use state::State;

#[test]
fn the_pages_show_the_output_of_their_commands_on_a_cluster() {
    in_own_cluster(async |plane| {
        let (mut commands, mut wrong) = (0, Vec::new());
        for (page, text) in pages() {
            for same in shown(&text).chunk_by(|one, next| one.cluster == next.cluster) {
                let Some(cluster) = same[0].cluster else { continue };
                let state = State::create(plane, cluster).await;
                for shown in same {
                    let output = state.run(shown.command);
                    if normal(&output) != normal(shown.output) {
                        wrong.push(format!("{}\n$ {}\n{output}", page.display(), shown.command));
                    }
                    commands += 1;
                }
                state.delete().await;
            }
        }
        assert!(wrong.is_empty(), "other output:\n{}", wrong.join("\n"));
        assert!(commands >= 12, "only {commands} commands");
    });
}

/// The text without what differs from run to run: times, ages, uids, names of replicas,
/// addresses, and the version of the API server.
fn normal(text: &str) -> String {
    let mut sed = Command::new("sed")
        .args(["-E", "-z", "-e", r"s/[0-9]{4}(-[0-9]{2}){2}T[0-9:.]+Z/TIME/g"])
        .args(["-e", r"s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UID/g"])
        .args(["-e", r"s|https://127.0.0.1:[0-9]+/ *|API |g; s/v1\.[0-9]+\.[0-9]+/VERSION/g"])
        .args(["-e", r"s/127.0.0.1:[0-9]+/ADDRESS/g; s/ [0-9]+[smhd](\n|$)/ AGE\1/g"])
        // Its length decides whether it is on a line of its own.
        .args(["-e", r"s/\s+\S+-pid[0-9]+/ REPLICA/g"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    sed.stdin.take().unwrap().write_all(text.trim_end().as_bytes()).unwrap();
    String::from_utf8(sed.wait_with_output().unwrap().stdout).unwrap()
}
