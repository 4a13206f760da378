use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn read(text: &str) -> Result<Vec<Json>, String> {
    let (documents, mistakes) = parse(0, text);
    if let Some(mistake) = mistakes.first() {
        let at = mistake.span.bytes.start.min(text.len());
        return Err(format!("{} at {:?}", mistake.message, &text[at..]));
    }
    Ok(documents.iter().map(|document| serde_json::to_value(&document.root).unwrap()).collect())
}

/// What a library makes of the same text.
fn expected(text: &str) -> Vec<Json> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let all: Vec<Json> = serde_saphyr::from_multiple_with_options(text, options).unwrap();
    all.into_iter().filter(|value| !value.is_null()).collect()
}

#[test]
fn the_documents_of_the_product_are_read_as_a_library_reads_them() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src/conventions", "../../deploy/policies"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(read(&text).unwrap(), expected(&text), "{}", path.display());
            }
        }
    }
}

#[test]
fn scalars_are_of_the_core_schema() {
    let text = "[~, null, True, false, no, on, y, 1, -2, +3, 0o17, 0x1F, 0123, 1.5, -.5, 1e3, 1_000, 1.0.0, \
                v1, infinity, NaN, --, ., 0x, 0x-1, 2024-01-01, 99999999999999999999, '1', \"true\", !!str 7, ! 8]";
    let expected = json!([
        null,
        null,
        true,
        false,
        "no",
        "on",
        "y",
        1,
        -2,
        3,
        15,
        31,
        123,
        1.5,
        -0.5,
        1000.0,
        "1_000",
        "1.0.0",
        "v1",
        "infinity",
        "NaN",
        "--",
        ".",
        "0x",
        "0x-1",
        "2024-01-01",
        1e20,
        "1",
        "true",
        "7",
        "8"
    ]);
    assert_eq!(read(text).unwrap(), [expected]);
    let document = parse(0, "[.inf, -.INF, .nan]").0.remove(0);
    let Value::List(items) = document.root.value else { panic!("a list") };
    let float = |node: &Node| match node.value {
        Value::Float(value) => value,
        _ => panic!("{node:?}"),
    };
    assert_eq!(float(&items[0]), f64::INFINITY);
    assert_eq!(float(&items[1]), f64::NEG_INFINITY);
    assert!(float(&items[2]).is_nan());
}

#[test]
fn a_key_keeps_its_text() {
    assert_eq!(
        read("{on: 1, 1.0: 2, ~: 3, 'a b': 4}").unwrap(),
        [json!({"on": 1, "1.0": 2, "~": 3, "a b": 4})]
    );
}

#[test]
fn aliases_are_copies_and_merge_keys_fill_in() {
    let text = "base: &b {x: 1, y: [&n name]}\nsame: *b\nmore: {<<: *b, x: 2}\nboth: {<<: [*b, {z: 3, x: 9}]}\n*n : 4";
    let base = json!({"x": 1, "y": ["name"]});
    let expected = json!({
        "base": base, "same": base, "more": {"x": 2, "y": ["name"]},
        "both": {"x": 1, "y": ["name"], "z": 3}, "name": 4
    });
    assert_eq!(read(text).unwrap(), [expected]);
}

#[test]
fn errors_of_yaml_have_a_location() {
    for (text, said) in [
        ("a: 1\nb: 2\na: 3", "the key \"a\" is here twice at \"a: 3\""),
        ("a: &x [*x]", "an alias of what it is a part of at \"*x]\""),
        ("a: *nowhere", "unknown anchor at \"*nowhere\""),
        ("a: &x 1\n---\na: *x", "unknown anchor at \"*x\""),
        ("{[a]: 1}", "a key must be a text (a template must be rendered first) at \"[a]: 1}\""),
        ("a: !mine 1", "this tag means nothing here at \"1\""),
        ("a: {<<: 1}", "only mappings can be merged at \"1}\""),
        ("a: [1", "unclosed bracket '[' at \"[1\""),
        ("a: [1\nb: 2", "unclosed bracket '[' at \"[1\\nb"),
        ("- a: {b: [c\n  d: e", "unclosed bracket '[' at \"[c\\n"),
        ("- a: [\n  - b: c: d", "unclosed bracket '[' at \"[\\n"),
        ("a: [\n  b: c: d\n]", "did not find expected ',' or '}' at \": d"),
        ("a: 1\nb: \"c\nd: 2", "unclosed quote at \"\\\"c\\nd"),
        ("a: 'b\n", "unclosed quote at \"'b\\n"),
        ("a:\n\tb: 1", "tab"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("invalid YAML: ") && error.contains(said), "{text:?}: {error}");
    }
}

#[test]
fn depth_is_limited_also_where_aliases_make_it() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(&nested(MAX_DEPTH)).is_ok());
    assert!(read(&nested(MAX_DEPTH + 1)).unwrap_err().contains("nested deeper"));
    let aliased = format!("- &a {}\n- {}*a{}", nested(100), "[".repeat(28), "]".repeat(28));
    assert!(read(&aliased).unwrap_err().contains("nested deeper"));
    let aliased = format!("- &a {}\n- {}*a{}", nested(100), "[".repeat(27), "]".repeat(27));
    assert!(read(&aliased).is_ok());
}

#[test]
fn a_small_text_does_not_become_a_large_tree() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(read(&text).unwrap_err().contains("aliases repeat more than"));
}

/// A manifest as JSON text.
fn from_yaml(text: &str) -> Result<String, String> {
    match manifest(text, &(0..text.len())) {
        Ok((node, _)) => Ok(serde_json::to_string(&node).unwrap()),
        Err(error) => Err(error.message.replace("invalid YAML: ", "")),
    }
}

#[test]
fn plain_scalars_arrive_as_the_api_server_would_see_them() {
    for (yaml, json) in [
        ("True", "true"),
        ("yes", "true"),
        ("off", "false"),
        ("'True'", "\"True\""),
        ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\""),
        ("2024-01-01", "\"2024-01-01\""),
        ("~", "null"),
        ("\"\"", "\"\""),
        ("012", "10"),
        ("-7", "-7"),
        ("18446744073709551615", "1.8446744073709552e+19"),
        ("1.5", "1.5"),
        ("1.20.2", "\"1.20.2\""),
        ("12:30:45", "\"12:30:45\""),
        ("!!str 5", "\"5\""),
        ("|\n  two\n  lines\n", "\"two\\nlines\\n\""),
    ] {
        let read = from_yaml(&format!("a: {yaml}\n"));
        assert_eq!(read.unwrap(), format!("{{\"a\":{json}}}"), "{yaml}");
    }
}

#[test]
fn structures_anchors_and_merge_keys_are_unfolded() {
    let yaml = "1: [a, {b: }, []]\ntrue: {}\nbase: &base\n  x: 1\n  z: 2\nmore:\n  <<: *base\n  z: 3\nalias: *base\n";
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&from_yaml(yaml).unwrap()).unwrap(),
        serde_json::json!({"1": ["a", {"b": null}, []], "true": {}, "base": {"x": 1, "z": 2},
            "more": {"x": 1, "z": 3}, "alias": {"x": 1, "z": 2}})
    );
}

#[test]
fn keys_without_quotes_are_named_by_their_values_as_kubectl_does() {
    let yaml = "y: 1\n010: 2\n1.50: 3\ntRue: 4\n\"n\": 5\n";
    assert_eq!(from_yaml(yaml).unwrap(), r#"{"true":1,"8":2,"1.5":3,"tRue":4,"n":5}"#);
}

#[test]
fn yaml_that_json_cannot_express_and_bombs_are_errors() {
    let deep = format!("a: {}1{}", "[".repeat(5000), "]".repeat(5000));
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    // Few events, each a large one.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
    for bad in ["a: .inf", "a: .nan", "a: [", "a: *nobody", &deep, &laughs, &long] {
        assert!(from_yaml(bad).is_err(), "{}", &bad[..bad.len().min(40)]);
    }
}

#[test]
fn errors_are_worded_for_authors_of_manifests() {
    let nested = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
    let repeated = format!("a: &a [1, 2, 3]\nb: [{}]", vec!["*a"; 60_000].join(", "));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
    let template = "a key must be a text (a template must be rendered first)";
    for (text, said) in [
        ("a: {{ .Values.phase }}", template),
        ("{{ if x }}\na: 1", template),
        ("? [a]\n: b", template),
        ("~: 1", template),
        ("a: &x [*x]", "an alias of what it is a part of"),
        ("a: *nobody", "unknown anchor"),
        ("a: {<<: 1}", "only mappings can be merged"),
        ("a: -.inf", "JSON has no number -.inf"),
        ("a: !!int x", "the value does not match its tag"),
        ("a: [1", "unclosed bracket '['"),
        (&nested(5000), "nested deeper than 128 levels"),
        (&repeated, "aliases repeat more than 200000 values"),
        (&long, "its aliases unfold to much more than was written"),
    ] {
        assert_eq!(from_yaml(text).unwrap_err(), said, "{}", &text[..text.len().min(40)]);
    }
    assert_eq!(from_yaml(&nested(128)).unwrap_err(), "nested deeper than 128 levels");
    assert!(from_yaml(&nested(127)).is_ok());
}

#[test]
fn the_last_of_duplicate_keys_counts_in_a_manifest() {
    let many: String = (0..40).map(|number| format!("k{number}: 0\n")).collect();
    for (text, key, value, warnings) in [
        ("a: 1\nb: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 3"]),
        ("a: 1\na: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 2", "a: 3"]),
        (format!("{many}k7: 1\nk39: 2\n"), "k39", 2, vec!["k7: 1", "k39: 2"]),
        ("b: &b {a: 1}\n<<: *b\na: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 3"]),
    ] {
        let (node, duplicates) = manifest(&text, &(0..text.len())).unwrap();
        assert_eq!(serde_json::to_value(&node).unwrap()[key], value, "{text}");
        let at = duplicates.iter().map(|found| &text[found.span.bytes.start..]);
        let at: Vec<&str> = at.filter_map(|rest| rest.lines().next()).collect();
        assert_eq!(at, warnings, "{text}");
        assert!(duplicates.iter().all(|found| found.message.ends_with(": the last value counts")));
    }
    let text = "a: 1\n".repeat(1000);
    assert_eq!(manifest(&text, &(0..text.len())).unwrap().1.len(), MAX_DUPLICATES);
}

#[test]
fn an_anchor_may_be_used_thousands_of_times() {
    for count in [100, 5_000, 40_000] {
        let yaml = format!("a: &a {{x: 1}}\nb: [{}]\n", vec!["*a"; count].join(", "));
        let merged = format!("a: &a {{}}\nb:\n{}", "- {<<: *a}\n".repeat(count));
        for yaml in [yaml, merged] {
            let read = from_yaml(&yaml);
            assert!(read.is_ok(), "{count}: {:?}", read.err());
        }
    }
}

#[test]
fn a_text_with_many_nodes_is_accepted() {
    let yaml = format!("items: [{}]\n", "1,".repeat(260_000));
    assert!(from_yaml(&yaml).is_ok());
}

fn any_json() -> impl Strategy<Value = Json> {
    let text = prop_oneof!["[ -~]{0,8}", "\\PC{0,6}", "true|no|null|~|1e3|0x1F|- a|#b|a: b"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9).prop_map(|number: f64| Json::from(number)),
        text.clone().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from);
        let map = prop::collection::btree_map(text.clone(), inner, 0..5);
        let map = map.prop_map(|map| Json::Object(map.into_iter().collect()));
        prop_oneof![list, map]
    })
}

proptest! {
    #[test]
    fn yaml_written_by_a_library_is_read_unchanged(value in any_json()) {
        prop_assume!(!value.is_null() && !value.to_string().contains("\"<<\""));
        let text = serde_saphyr::to_string(&value).unwrap();
        prop_assert_eq!(read(&text), Ok(vec![value]), "{}", text);
    }

    #[test]
    fn no_text_causes_a_panic(text in "([\\[\\]{}:,&*!|>#'\"%@`?~ \\n\\t-]|[a-c]|\\PC){0,40}") {
        let _ = read(&text);
    }
}
