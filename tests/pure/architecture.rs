//! The folders of `src/` that each folder may use, and the names that pure folders must not contain.
//!
//! The test reads the source text, because the compiler allows every use inside one crate. It ignores
//! comments, doc tests and string literals. It reads unit tests: a test that needs a higher layer belongs
//! to that layer.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that each folder may use. A folder may use itself. An entry with several names allows
/// only the modules below them.
const LAYERS: [(&str, &[&str]); 18] = [
    ("model", &[]),
    ("kstatus", &["model"]),
    ("source", &["model"]),
    ("language", &["model"]),
    ("documents", &["model", "source", "language"]),
    ("policy", &["model", "source", "language", "documents"]),
    ("engine", &["model", "language", "policy"]),
    ("explain", &["model", "source", "language", "documents", "policy", "engine"]),
    ("lint", &["model", "source", "language", "documents", "policy", "engine", "explain"]),
    // What the wire needs of the engine is what comes out of it, never how it comes about.
    ("wire", &["model", "engine::Action", "engine::Cause", "engine::Finding", "engine::Verdict"]),
    ("manifests", &["model", "language", "documents", "policy"]),
    ("server", &["model", "source", "policy", "engine", "wire", "tls", "telemetry"]),
    ("tls", &["model"]),
    ("cluster", &["model", "source", "kstatus", "policy", "engine", "tls", "manifests"]),
    ("telemetry", &["model"]),
    (
        "manager",
        &[
            "model",
            "source",
            "documents",
            "policy",
            "lint",
            "wire",
            "manifests",
            "server",
            "tls",
            "cluster",
            "telemetry",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "kstatus",
            "documents",
            "policy",
            "engine",
            "explain",
            "lint",
            "wire",
            "source",
            "server",
            "tls",
            "cluster",
            "telemetry",
            "manifests",
            "manager",
        ],
    ),
    // The program itself: one call.
    ("main", &["cli"]),
];

/// The folders without IO, clock, async and Kubernetes client.
const PURE: [&str; 10] = [
    "model",
    "kstatus",
    "language",
    "documents",
    "policy",
    "engine",
    "explain",
    "lint",
    "wire",
    "manifests",
];

/// The identifiers and paths that they must not contain.
const IMPURE: [&str; 19] = [
    "tokio",
    "tokio_rustls",
    "axum",
    "hyper",
    "hyper_util",
    "rustls",
    "kube",
    "k8s_openapi",
    "tracing",
    "tracing_subscriber",
    "std::fs",
    "std::net",
    "std::env",
    "std::time",
    "std::thread",
    "std::process",
    "SystemTime",
    "Instant",
    "Timestamp::now",
];

#[test]
fn no_folder_uses_a_later_folder() {
    let sources = sources();
    assert!(sources.len() > 40, "the sources were found: {}", sources.len());
    let broken: Vec<Breach> =
        sources.iter().flat_map(|(file, text)| breaches(file, text)).collect();
    let list: Vec<String> = broken.iter().map(Breach::to_string).collect();
    assert!(broken.is_empty(), "\n{}", list.join("\n"));
}

#[test]
fn every_folder_is_in_the_table() {
    for (file, _) in sources() {
        // The root only declares the modules; the conventions are data.
        if file.components().count() == 1 && file.file_stem().is_some_and(|stem| stem == "lib") {
            continue;
        }
        let layer = layer_of(&file);
        assert!(allowed(&layer).is_some(), "{} is in no layer of the table", file.display());
    }
}

#[test]
fn every_folder_of_the_table_exists() {
    let known: Vec<String> = sources().iter().map(|(file, _)| layer_of(file)).collect();
    for (layer, _) in LAYERS {
        assert!(known.iter().any(|name| name == layer), "there is no src/{layer}");
    }
}

// --- the checker ----------------------------------------------------------------------------------

/// One forbidden use, or one impure name.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "src/{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// A token of the program text.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

/// The faults of one file. `file` is relative to `src/`.
fn breaches(file: &Path, text: &str) -> Vec<Breach> {
    let layer = layer_of(file);
    let Some(allowed) = allowed(&layer) else { return Vec::new() };
    let tokens = tokens(&code_of(text));
    let breach = |line, what| Breach { file: file.to_path_buf(), line, what };
    let mut found = Vec::new();
    for (path, line) in own_paths(&tokens, &module_of(file)) {
        let Some(target) = path.first() else { continue };
        // Names of the crate root that are no layer: nothing there but modules, and `super::*`.
        if *target == layer || self::allowed(target).is_none() {
            continue;
        }
        let path = path.join("::");
        let fits = |entry: &&str| path == **entry || path.starts_with(&format!("{entry}::"));
        if !allowed.iter().any(fits) {
            found.push(breach(line, format!("{layer} may not use {path}")));
        }
    }
    if PURE.contains(&layer.as_str()) {
        for (path, line) in all_paths(&tokens) {
            let named = |name: &&&str| {
                let name: Vec<&str> = name.split("::").collect();
                path.windows(name.len()).any(|part| part == name)
            };
            if let Some(name) = IMPURE.iter().find(named) {
                found.push(breach(line, format!("{layer} may not name {name}")));
            }
        }
    }
    found
}

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, allowed)| *allowed)
}

/// `engine` for `engine/judge.rs`, `main` for `main.rs`.
fn layer_of(file: &Path) -> String {
    module_of(file).into_iter().next().unwrap_or_default()
}

/// `[engine, judge]` for `engine/judge.rs`, `[engine]` for `engine/mod.rs`, nothing for `lib.rs`.
fn module_of(file: &Path) -> Vec<String> {
    let names = file.with_extension("");
    let mut names: Vec<String> =
        names.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod" || last == "lib") {
        names.pop();
    }
    names
}

/// The text with comments and literals blanked out, line breaks kept.
fn code_of(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let next = |at: usize| letters.get(at).copied().unwrap_or_default();
    // Blanks out everything up to `end`, which stands behind the literal or comment.
    let blank = |from: usize, end: usize, code: &mut String| {
        let part = &letters[from..end.min(letters.len())];
        code.extend(part.iter().map(|letter| if *letter == '\n' { '\n' } else { ' ' }));
    };
    while at < letters.len() {
        let end = match (next(at), next(at + 1)) {
            ('/', '/') => {
                letters[at..].iter().position(|letter| *letter == '\n').map(|length| at + length)
            }
            ('/', '*') => {
                let (mut depth, mut end) = (1, at + 2);
                while depth > 0 && end < letters.len() {
                    match (next(end), next(end + 1)) {
                        ('/', '*') => (depth, end) = (depth + 1, end + 2),
                        ('*', '/') => (depth, end) = (depth - 1, end + 2),
                        _ => end += 1,
                    }
                }
                Some(end)
            }
            ('"', _) => Some(end_of_string(&letters, at + 1)),
            ('r', '"' | '#') if at == 0 || !is_word(next(at - 1)) || next(at - 1) == 'b' => {
                let hashes = letters[at + 1..].iter().take_while(|letter| **letter == '#').count();
                if next(at + 1 + hashes) == '"' {
                    let close: Vec<char> =
                        std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    let body = at + 2 + hashes;
                    let length = letters[body..].windows(close.len()).position(|w| w == close);
                    length.map(|length| body + length + close.len())
                } else {
                    code.push('r');
                    at += 1;
                    continue;
                }
            }
            // A character, not a lifetime: a lifetime is not closed.
            ('\'', '\\') => {
                letters[at + 3..].iter().position(|l| *l == '\'').map(|length| at + 4 + length)
            }
            ('\'', _) if next(at + 2) == '\'' => Some(at + 3),
            (letter, _) => {
                code.push(letter);
                at += 1;
                continue;
            }
        };
        let end = end.unwrap_or(letters.len());
        blank(at, end, &mut code);
        at = end;
    }
    code
}

fn end_of_string(letters: &[char], mut at: usize) -> usize {
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

const fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Words, `::`, and every other character.
fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token { text: rest[..length].to_owned(), line });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// All paths that start in this package, from its root on: `crate::a::b` and `statusgate::a::b` as
/// `[a, b]`, and `super::…` resolved, inline modules included.
fn own_paths(tokens: &[Token], module: &[String]) -> Vec<(Vec<String>, usize)> {
    let mut inline: Vec<(String, usize)> = Vec::new();
    let (mut braces, mut paths) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        match token.text.as_str() {
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                while inline.last().is_some_and(|(_, depth)| *depth > braces) {
                    inline.pop();
                }
            }
            "mod" if text(at + 2) == "{" => inline.push((text(at + 1).to_owned(), braces + 1)),
            "crate" | "super" | "statusgate"
                if text(at + 1) == "::" && at.checked_sub(1).is_none_or(|at| text(at) != "::") =>
            {
                let mut here: Vec<String> = module.to_vec();
                here.extend(inline.iter().map(|(name, _)| name.clone()));
                for path in trees(tokens, &mut at.clone()) {
                    paths.push((resolve(path, &here), token.line));
                }
            }
            _ => {}
        }
    }
    paths
}

/// A path as written, in a module: from the root of the package on.
fn resolve(path: Vec<String>, here: &[String]) -> Vec<String> {
    let mut base = here.to_vec();
    let mut rest = path.into_iter().peekable();
    while let Some(first) = rest.peek() {
        match first.as_str() {
            "crate" | "statusgate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest.next();
    }
    base.extend(rest);
    base
}

/// Every path of the text, whether it starts in this package or not.
fn all_paths(tokens: &[Token]) -> Vec<(Vec<String>, usize)> {
    let starts = |at: &usize| {
        is_word(tokens[*at].text.chars().next().unwrap_or_default())
            && at.checked_sub(1).is_none_or(|before| tokens[before].text != "::")
    };
    (0..tokens.len())
        .filter(starts)
        .flat_map(|at| {
            let paths = trees(tokens, &mut at.clone());
            paths.into_iter().map(move |path| (path, tokens[at].line))
        })
        .collect()
}

/// The paths of a tree as `use` writes them: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn trees(tokens: &[Token], at: &mut usize) -> Vec<Vec<String>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut path = Vec::new();
    loop {
        match text(*at) {
            "{" => {
                *at += 1;
                let mut paths = Vec::new();
                while !matches!(text(*at), "}" | "") {
                    let before = *at;
                    for tree in trees(tokens, at) {
                        paths.push(path.iter().cloned().chain(tree).collect());
                    }
                    // `as name`, a comma, or another token: skip it.
                    if *at == before || text(*at) == "," {
                        *at += 1;
                    }
                }
                *at += 1;
                return paths;
            }
            word if word.starts_with(is_word) => {
                path.push(word.to_owned());
                *at += 1;
            }
            _ => return vec![path],
        }
        if text(*at) != "::" {
            return vec![path];
        }
        *at += 1;
    }
}

/// All Rust files below `src/`, by their path in there.
fn sources() -> Vec<(PathBuf, String)> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_path_buf(), text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

// --- the checker finds faults ----------------------------------------------------------------------

fn complaints(file: &str, text: &str) -> Vec<String> {
    breaches(Path::new(file), text)
        .into_iter()
        .map(|breach| format!("{}: {}", breach.line, breach.what))
        .collect()
}

#[test]
fn every_spelling_of_a_forbidden_use_is_found() {
    let expected = |line: usize, path: &str| vec![format!("{line}: engine may not use {path}")];
    for (text, path) in [
        ("use crate::server::admit;", "server::admit"),
        ("use crate::{model::Json, wire::{Review, answer as reply}};", "wire::Review"),
        ("fn f() -> crate::cli::Outcome { todo!() }", "cli::Outcome"),
        ("use super::super::tls::Bundle;", "tls::Bundle"),
        ("use super::{super::telemetry::Metrics, draft};", "telemetry::Metrics"),
        ("mod tests { use super::super::super::tls::Bundle; }", "tls::Bundle"),
        ("use statusgate::server::Server;", "server::Server"),
        ("mod a { mod b {} } use super::super::cli;", "cli"),
    ] {
        let found = complaints("engine/judge.rs", text);
        assert!(found.starts_with(&expected(1, path)), "{text}: {found:?}");
    }
    assert_eq!(complaints("engine/mod.rs", "\nuse super::server;"), expected(2, "server"));
    assert_eq!(
        complaints("wire/review.rs", "use crate::engine::decide;"),
        ["1: wire may not use engine::decide"]
    );
    assert_eq!(complaints("main.rs", "fn main() { statusgate::server::run() }").len(), 1);
}

#[test]
fn every_spelling_of_an_impure_name_is_found() {
    for (text, name) in [
        ("use std::{fmt, fs::File};", "std::fs"),
        ("fn f() { std::env::var(\"X\"); }", "std::env"),
        ("let t = jiff::Timestamp::now();", "Timestamp::now"),
        ("let t: Instant = x;", "Instant"),
        ("#[tokio::test]", "tokio"),
        ("tracing::info!(\"x\");", "tracing"),
    ] {
        assert_eq!(
            complaints("engine/judge.rs", text),
            [format!("1: engine may not name {name}")],
            "{text}"
        );
    }
    assert_eq!(complaints("server/mod.rs", "use std::fs;"), [""; 0], "the edges may");
}

#[test]
fn allowed_uses_comments_and_strings_pass() {
    for text in [
        "use crate::model::{Json, Object}; use crate::policy::Action;",
        "// use crate::server::Server;\n/// tokio\n//! std::fs",
        "/* crate::server /* tokio */ crate::cli */",
        r##"let a = "crate::server \" tokio"; let b = r#"std::fs " kube"#; let c = '"'; let d = '\'';"##,
        "fn f<'a>(x: &'a str) -> &'a str { x }",
        "mod tests { use super::*; use super::super::draft::Draft; }",
        "pub(crate) fn now(now: Timestamp) { let same_instant = 1; }",
        "use super::draft; use self::evidence::Facts;",
    ] {
        assert_eq!(complaints("engine/judge.rs", text), [""; 0], "{text}");
    }
}
