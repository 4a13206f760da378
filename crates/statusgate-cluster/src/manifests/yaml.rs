//! Objects as YAML, in the order in which people write them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_saphyr::{FlowSeq, SerializeError, ser_options, to_string_with_options};

/// The members that begin an object, as kubectl's documentation writes them. The others are sorted.
const FIRST: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "namespace"];

/// Prints documents, separated by `---`.
///
/// # Errors
/// Those of the printer.
pub fn print(documents: &[Value]) -> Result<String, SerializeError> {
    let options = ser_options! { compact_list_indent: false, folded_wrap_chars: usize::MAX };
    let ordered = documents.iter().map(Ordered);
    let texts = ordered.map(|document| to_string_with_options(&document, options.clone()));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

/// A value with its members in order.
struct Ordered<'v>(&'v Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
                let rest = members.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in first.chain(rest) {
                    map.serialize_entry(name, &Ordered(value))?;
                }
                map.end()
            }
            Value::Array(elements) if is_short(elements) => FlowSeq(elements).serialize(serializer),
            Value::Array(elements) => serializer.collect_seq(elements.iter().map(Ordered)),
            other => other.serialize(serializer),
        }
    }
}

/// Whether a list fits into a line: of scalars, as in `verbs: [get, list]`.
fn is_short(elements: &[Value]) -> bool {
    let length: usize = elements.iter().map(|element| element.to_string().len()).sum();
    length < 90 && elements.iter().all(|element| !element.is_array() && !element.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_read_back_as_it_was() {
        let value = json!({
            "apiVersion": "v1", "a": {}, "b": [], "c": [[1, 2], [], {"x": 1, "name": "n"}], "d": null,
            "e": 1.5, "f": true, "strings": [
                "", " ", "yes", "No", "null", "~", "1", "1e3", "0x1", "1:30", "a: b", "a:", "#a", "a #b",
                "- a", "-", "--flag=x", "--listen=0.0.0.0:8443", "*", "&a", "!a", "a\nb", "é",
                "$(POD)", "@a", "%a", "a,b", "[a]", "{a}", "'", "\"", "=", "/a/b", "2026-11-22", "y", "..."
            ],
            "text": "one\n\n  two\n", "indented": " one\ntwo\n", "open": "one\ntwo", "short": ["a,b", "x", 1, null], "yes": 1, "a b": 2,
        });
        assert_eq!(read(&print(std::slice::from_ref(&value)).unwrap()), value);
    }

    #[test]
    fn the_members_that_name_an_object_are_first() {
        let value = json!({"kind": "A", "spec": {"b": 1, "verbs": ["get", "list"], "a": [{"m": 2, "name": "one"}]}});
        assert_eq!(
            print(&[value, json!({"a": 1})]).unwrap(),
            "kind: A\nspec:\n  a:\n    - name: one\n      m: 2\n  b: 1\n  verbs: [get, list]\n---\na: 1\n"
        );
    }
}
