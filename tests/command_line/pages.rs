//! The README and the pages of docs/: commands that need no cluster, with their output, and links.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use statusgate_core::policy::{PolicySet, Source};

use crate::command::{Ended, STATUSGATE};
use crate::page_texts::{Shown, pages, root, shown};

#[test]
fn the_pages_show_the_output_of_their_commands() {
    let programs = Path::new(STATUSGATE).parent().unwrap().display();
    let mut commands = 0;
    for (page, text) in pages() {
        let is_guide = page.ends_with("write-a-convention.md");
        let folder = if is_guide { "examples/write-a-convention" } else { "" };
        let page = page.display();
        for Shown { command, output, .. } in shown(&text).iter().filter(|s| s.cluster.is_none()) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("PATH={programs}:$PATH; {command}")]);
            let ended = Ended::of(&shell.current_dir(root().join(folder)).output().unwrap());
            assert_eq!(ended.out, *output, "{page}: $ {command}\n{}", ended.err);
            commands += 1;
        }
    }
    assert!(commands >= 26, "only {commands} commands");
}

/// The text without fenced blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// The fenced block of a page with a text.
fn block<'p>(page: &'p str, start: &str, text: &str) -> &'p str {
    let mut blocks = page.split(start).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.find(|block| block.contains(text)).unwrap()
}

/// The targets of links and images.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    prose.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

/// The anchors of headings, as mdBook and GitHub make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let texts = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let slugs = texts.map(|text| text.chars().filter(kept).collect::<String>().replace(' ', "-"));
    slugs.collect()
}

#[test]
fn each_link_leads_to_a_file_and_a_heading() {
    let (mut checked, mut broken) = (0, Vec::new());
    for (page, text) in pages() {
        let is_summary = page.ends_with("SUMMARY.md");
        for link in links(&prose(&text)).filter(|link| !link.contains("://") && !link.is_empty()) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => root().join(&page),
                path => root().join(&page).parent().unwrap().join(path),
            };
            let at = format!("{}: {link}", page.display());
            checked += 1;
            if is_summary && GENERATED.contains(&path) {
                continue;
            }
            let Ok(target) = target.canonicalize() else {
                broken.push(format!("{at}: no such file"));
                continue;
            };
            if !target.starts_with(root().join("docs")) && !page.ends_with("README.md") {
                broken.push(format!("{at}: leaves the site"));
            } else if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                if !anchors(&text).contains(anchor) {
                    broken.push(format!("{at}: no such heading"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 200, "only {checked} links");
}

/// `make site` writes these.
const GENERATED: [&str; 2] = ["commands.md", "documents.md"];

#[test]
fn the_site_lists_each_page() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = links(&summary).filter(|link| !link.is_empty()).collect();
    for (page, _) in pages() {
        let Ok(page) = page.strip_prefix("docs") else { continue };
        let name = page.to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(name), "docs/SUMMARY.md lacks {name}");
    }
}

#[test]
fn the_policy_of_its_page_compiles() {
    let page = include_str!("../../docs/policies.md");
    let policy = block(page, "```yaml\n", "kind: StatusPolicy");
    if let Err(mistakes) = PolicySet::compile(&[Source::new("policies.md", policy)]) {
        panic!("{mistakes}");
    }
}

#[test]
fn the_first_page_shows_the_diagnostic_of_its_invalid_policy() {
    let page = include_str!("../../docs/README.md");
    let diagnostic = block(page, "```text\n", "my-policy.yaml");
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata:\n  name: mine\nspec:\n  \
        convention: appcat\n  resources:\n    - apiGroups: [a]\n      apiVersions: [v1]\n      resources: [b]\n  \
        enforcment: Warn\n";
    let mistakes = PolicySet::compile(&[Source::new("my-policy.yaml", text)]).unwrap_err();
    assert_eq!(mistakes.to_string().trim(), diagnostic.trim());
}
