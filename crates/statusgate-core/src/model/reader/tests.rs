use proptest::prelude::*;
use serde_json::{Value, from_str};

use super::*;
use crate::model::{Json, Object};

/// Whether a text is JSON. Checks that both readers agree on this, and on the values.
fn is_json(text: &str) -> bool {
    let valid = from_str::<IgnoredAny>(text).is_ok();
    let skipped = read(text, Reader::skip).ok();
    assert_eq!(skipped, valid.then(|| text.trim_matches([' ', '\n', '\r', '\t'])), "{text}");
    let value = from_str::<Value>(text).ok();
    let expected = value.as_ref().map(|value| format!("{:?}", Json::from(value)));
    match read(text, Reader::json) {
        // serde_json has a limit of depth for values.
        Ok(tree) if !tree.is_whole() => assert!(valid),
        tree => assert_eq!(tree.ok().map(|tree| format!("{tree:?}")), expected, "{text}"),
    }
    if let (Ok(object), Some(value)) = (read(text, Object::read), value) {
        let member = |name: &str| value.get(name).map(Json::from);
        assert_eq!(object.status, member("status"), "{text}");
        let spec = object.spec.text().map(|text| from_str::<Value>(text).unwrap());
        assert_eq!(spec.as_ref(), value.get("spec"), "{text}");
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        assert_eq!(object.kind, kind, "{text}");
    }
    valid
}

#[test]
fn valid_json_is_read() {
    for text in [
        r#"{"a":[1,-2,3.5e-7,true,false,null,"x"],"b":{},"c":[]}"#,
        " {\t\"a\" :\r\n[ 1 , {\"b\" : \"\" } ] } \n",
        r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é😀""#,
        r#"{"apiVersion":"v1","metadata":{"name":"a\nb","generation":3},"spec":{"a":"{"},"status":{"phase":"x"}}"#,
        "0",
        "-0",
        "18446744073709551615",
        "-9223372036854775808",
        "18446744073709551616",
        "1e3",
        "null",
    ] {
        assert!(is_json(text), "{text}");
    }
}

#[test]
fn invalid_json_is_rejected() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{,}",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "nul",
        "nulll",
        "truefalse",
        "True",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e1",
        "1e",
        "1e+",
        "--1",
        "0x1",
        "NaN",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12",
        "\"\\",
        "\"a\nb\"",
        "\"a\u{0}\"",
        "1 1",
        "1\0",
        "\0",
        "[] []",
        "{}x",
        "[\"a\tb\"]",
        "\u{feff}1",
        "\u{a0}1",
        "{\"a\":1 \"b\":2}",
        "[[1]",
        "{\"a\":[}",
    ] {
        assert!(!is_json(text), "{text}");
    }
}

#[test]
fn a_string_of_any_length_ends_at_its_quote() {
    let before = ["[\"\",", "[", "[\"0123456789\",\n", "[\"\\\\\","];
    for (length, before) in (0..200).flat_map(|length| before.map(|before| (length, before))) {
        let x = "x".repeat(length);
        for inside in [x.clone(), format!("{x}\\\"{x}"), format!("{x}\\\\"), format!("é{x}\\u00e9")]
        {
            let text = format!("{before}\"{inside}\",\"{x}\"]");
            assert!(is_json(&text), "{text}");
            assert!(!is_json(&text[..text.len() - 2]), "{text}");
        }
    }
}

#[test]
fn any_depth_of_the_api_server_is_read() {
    for levels in [1, 62, 63, 64, 65, 100, 127, 128, 129, 5_000, 10_000] {
        let lists = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let objects = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let mixed = format!("{}{{}}{}", "[{\"a\":".repeat(levels / 2), "}]".repeat(levels / 2));
        for text in [lists, objects, mixed] {
            assert!(is_json(&text));
            assert!(!is_json(&text[..text.len() - 1]));
            assert!(!is_json(&format!("{}x", &text[..text.len() - 1])));
        }
    }
    let deeper = format!("{}1{}", "[".repeat(10_100), "]".repeat(10_100));
    assert!(read(&deeper, Reader::skip).is_err());
}

#[test]
fn a_lone_surrogate_is_skipped_but_is_no_string() {
    let lone = r#""\ud800""#;
    assert!(read(lone, Reader::skip).is_ok() && read(lone, Reader::text).is_err());
}

#[test]
fn repeated_values_are_skipped_by_comparison() {
    let long = &format!(r#"{{"a":"{}"}}"#, "0123456789".repeat(7));
    let other = long.replace('9', "8");
    for text in [
        format!(r#"{{"a":{long},"b":{long},"c":{other},"d":{long}}}"#),
        format!("[{long},{long} , {other},[{long}]]"),
        format!("[{long},{long}{long}]"),
        format!("[{long},{long}x]"),
        format!("[{long},{}]", &long[..long.len() - 1]),
        format!("[[{long}],{long},[{long}],[{long},1]]"),
        format!(r#"{{"spec":{long},"x":{long},"metadata":{{"labels":{long}}},"status":{long}}}"#),
    ] {
        is_json(&text);
    }
}

#[test]
fn serde_json_explains_invalid_json() {
    for text in ["{\"a\":\n tru}", "[1,", ""] {
        let own: serde_json::Error = read(text, Object::read).map(|_| ()).unwrap_err().into();
        let theirs = from_str::<IgnoredAny>(text).map(|_| ()).unwrap_err();
        assert_eq!(own.to_string(), theirs.to_string());
    }
}

#[test]
fn an_unexpected_value_has_a_location() {
    let location = |text| match read(text, Object::read) {
        Err(ReadError::Unexpected { line, column }) => (line, column),
        other => panic!("{other:?}"),
    };
    assert_eq!(location("5"), (1, 1));
    assert_eq!(location("{\n\"a\": 1,\n  \"metadata\": [1]}"), (3, 15));
    assert_eq!(location(r#"{"kind":"\ud800"}"#), (1, 9));
    assert_eq!(location(r#"{"metadata":{"generation":1e999}}"#), (1, 27));
}

/// Two lists with these elements, which are so long that they stay text.
fn in_a_long_list(elements: &str) -> String {
    let long = "x".repeat(10_000);
    format!(r#"{{"list":["{long}",{elements}],"status":{{"list":["{long}",{elements}]}}}}"#)
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| serde_json::json!(value).to_string()),
        any::<String>().prop_map(|value| serde_json::json!(value).to_string()),
        r#""(\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]|[a-z])*""#,
    ];
    let name = prop_oneof![
        any::<String>().prop_map(|value| serde_json::json!(value).to_string()),
        prop::sample::select(vec![r#""metadata""#, r#""spec""#, r#""status""#, r#""kind""#])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let space = "[ \n\t]{0,1}";
        let member = (space, name.clone(), space, inner.clone(), space)
            .prop_map(|(a, name, b, value, c)| format!("{a}{name}{b}:{b}{value}{c}"));
        let join = |parts: Vec<String>| parts.join(",");
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(move |all| format!("[{}]", join(all))),
            prop::collection::vec(member, 0..6).prop_map(move |all| format!("{{{}}}", join(all))),
        ]
    })
}

proptest! {
    #[test]
    fn random_json_is_read_as_serde_json_reads_it(text in value()) {
        prop_assert!(is_json(&text), "{}", text);
    }

    #[test]
    fn repeated_json_is_read_as_serde_json_reads_it(
        one in value(), other in value(), order in prop::collection::vec(any::<bool>(), 0..8),
    ) {
        let parts: Vec<&str> =
            order.iter().map(|first| if *first { one.as_str() } else { &other }).collect();
        let list = format!("[{}]", parts.join(","));
        prop_assert!(is_json(&list), "{}", list);
        is_json(&parts.concat());
        is_json(&in_a_long_list(&parts.join(",")));
    }

    #[test]
    fn damaged_json_is_read_as_serde_json_reads_it(
        text in value(), at in any::<prop::sample::Index>(),
        with in prop_oneof![Just(None), prop::sample::select(b"{}[],:\"\\0-.eE+ntu \n\x01".to_vec()).prop_map(Some)],
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        match with {
            None => { chars.remove(at); }
            Some(byte) => chars[at] = char::from(byte),
        }
        let damaged = chars.into_iter().collect::<String>();
        is_json(&damaged);
        is_json(&in_a_long_list(&damaged));
    }
}
