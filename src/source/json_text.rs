//! One YAML document as the JSON that the API server would see.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Options};

/// Writes a YAML document as JSON text, straight from the parser's events: no tree is built.
///
/// Plain scalars are what `kubectl` makes of them, which reads YAML 1.1: `True`, `yes` and `on` are
/// booleans, `0755` is octal, a time is a text, and merge keys are merged. A key that is there twice
/// is an error although `kubectl` takes the last: nobody means it.
///
/// # Errors
/// What is not YAML, cannot be JSON (`.inf`), or unfolds to much more than was written.
pub(super) fn from_yaml(text: &str) -> Result<String, Error> {
    let mut json = Vec::with_capacity(text.len());
    let limit = text.len().saturating_mul(MAX_GROWTH).saturating_add(MAX_ALIASED);
    serde_saphyr::with_deserializer_from_str_with_options(text, options(), |deserializer| {
        Writer { json: &mut json, limit }.deserialize(deserializer)
    })?;
    String::from_utf8(json).map_err(Error::custom)
}

/// What is wrong, without the place: the words of a library for those who call it are put into words for
/// those who write manifests. Policies are told their mistakes in the same ones.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => reason(error),
        // `{{ .Values.phase }}` is a mapping with a mapping as its key.
        Error::Unexpected { expected: "string scalar", .. } | Error::NullIntoString { .. } => {
            "a key must be a text (a template must be rendered first)".to_owned()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key \"{key}\" is here twice")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias of what it is a part of".to_owned()
        }
        Error::UnknownAnchor { .. } => "unknown anchor".to_owned(),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => "only mappings can be merged".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("JSON has no number {value}"),
        Error::InvalidScalar { .. } => "this is not what its tag says".to_owned(),
        Error::AliasReplayLimitExceeded { .. } => {
            format!("aliases repeat more than {MAX_REPEATED} values")
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Message { msg, .. } | Error::ExternalMessage { msg, .. } => match msg.as_str() {
            // Of the parser, which has a limit of its own for brackets.
            "recursion limit exceeded" => too_deep(),
            msg => msg.to_owned(),
        },
        other => {
            let full = other.to_string();
            let said = full.rsplit_once(" at line ").map_or(full.as_str(), |(said, _)| said);
            said.strip_prefix("error: ").unwrap_or(said).to_owned()
        }
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

/// The dialect of manifests. For a document whose size is known the defaults of the budget are too
/// small: a `List` of a few thousand objects has millions of nodes.
fn options() -> Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        // The picture is drawn by `Place`.
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            // Without aliases each of these costs bytes of the text. What aliases repeat has limits
            // of its own, below and in `MAX_ALIASED`.
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_aliases: usize::MAX,
            max_anchors: usize::MAX,
            max_merge_keys: usize::MAX,
            // One anchor with the labels of all objects is what anchors are for.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
        },
    }
}

/// Writes one value behind what is written already.
struct Writer<'j> {
    json: &'j mut Vec<u8>,
    limit: usize,
}

impl Writer<'_> {
    fn write<E: serde::de::Error>(self, value: &impl serde::Serialize) -> Result<(), E> {
        if self.json.len() > self.limit {
            return Err(E::custom("its aliases unfold to much more than was written"));
        }
        serde_json::to_writer(self.json, value).map_err(E::custom)
    }

    const fn again(&mut self) -> Writer<'_> {
        Writer { json: self.json, limit: self.limit }
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.json.push(b'[');
        let mut first = true;
        loop {
            let end = self.json.len();
            if !first {
                self.json.push(b',');
            }
            if items.next_element_seed(self.again())?.is_none() {
                self.json.truncate(end);
                break;
            }
            first = false;
        }
        self.json.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.json.push(b'{');
        let mut first = true;
        while let Some(key) = members.next_key::<String>()? {
            if !first {
                self.json.push(b',');
            }
            first = false;
            self.again().write(&key)?;
            self.json.push(b':');
            members.next_value_seed(self.again())?;
        }
        self.json.push(b'}');
        Ok(())
    }
}

/// Recursion is what is limited here; it is serde_json's limit, too.
const MAX_DEPTH: usize = 128;

/// JSON escapes make six bytes of one at most.
const MAX_GROWTH: usize = 6;

/// Values that aliases may repeat: a hundred thousand lines that nobody had to write.
const MAX_REPEATED: usize = 200_000;

/// Bytes that aliases may add to a document. Anchors in manifests save some lines of labels.
const MAX_ALIASED: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

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
            ("18446744073709551615", "18446744073709551615"),
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
        let yaml = "1: [a, {b: }, []]\ntrue: {}\nbase: &base\n  x: 1\n  y: 2\nmore:\n  <<: *base\n  y: 3\nalias: *base\n";
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&from_yaml(yaml).unwrap()).unwrap(),
            serde_json::json!({"1": ["a", {"b": null}, []], "true": {}, "base": {"x": 1, "y": 2},
                "more": {"x": 1, "y": 3}, "alias": {"x": 1, "y": 2}})
        );
    }

    #[test]
    fn what_cannot_be_json_or_is_meant_to_hurt_is_an_error() {
        let deep = format!("a: {}1{}", "[".repeat(5000), "]".repeat(5000));
        let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        // Few events, each a large one.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
        for bad in ["a: .inf", "a: .nan", "a: 1\na: 2", "a: [", "a: *nobody", &deep, &laughs, &long]
        {
            assert!(from_yaml(bad).is_err(), "{}", &bad[..bad.len().min(40)]);
        }
    }

    #[test]
    fn mistakes_are_told_in_words_for_those_who_write_manifests() {
        let nested = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
        let repeated = format!("a: &a [1, 2, 3]\nb: [{}]", vec!["*a"; 50_000].join(", "));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
        let template = "a key must be a text (a template must be rendered first)";
        for (text, said) in [
            ("a: {{ .Values.phase }}", template),
            ("{{ if x }}\na: 1", template),
            ("? [a]\n: b", template),
            ("~: 1", template),
            ("phase: 1\nphase: 2", "the key \"phase\" is here twice"),
            ("a: &x [*x]", "an alias of what it is a part of"),
            ("a: *nobody", "unknown anchor"),
            ("a: {<<: 1}", "only mappings can be merged"),
            ("a: -.inf", "JSON has no number -.inf"),
            ("a: !!int x", "this is not what its tag says"),
            ("a: [1", "unclosed bracket '['"),
            (&nested(5000), "nested deeper than 128 levels"),
            (&repeated, "aliases repeat more than 200000 values"),
            (&long, "its aliases unfold to much more than was written"),
        ] {
            assert_eq!(
                reason(&from_yaml(text).unwrap_err()),
                said,
                "{}",
                &text[..text.len().min(40)]
            );
        }
        // Unoptimised, 128 levels take more stack than the thread of a test has.
        let deep = std::thread::Builder::new().stack_size(32 << 20);
        let deep = deep.spawn(move || reason(&from_yaml(&nested(129)).unwrap_err())).unwrap();
        assert_eq!(deep.join().unwrap(), "nested deeper than 128 levels");
    }

    #[test]
    fn an_anchor_may_be_used_as_often_as_it_is_of_use() {
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
    fn many_nodes_are_no_attack() {
        let yaml = format!("items: [{}]\n", "1,".repeat(260_000));
        assert!(from_yaml(&yaml).is_ok());
    }
}
