//! Copies of an object with one difference.

use serde_json::{Value, json};

/// The object with another value at a place. `None` if it is the same, or if another value blocks the path.
pub(in super::super) fn replaced(
    object: &Value,
    place: &str,
    value: Option<Value>,
) -> Option<Value> {
    if object.pointer(place) == value.as_ref() {
        return None;
    }
    let mut changed = object.clone();
    let mut at = &mut changed;
    let names: Vec<String> =
        place.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let (last, parents) = names.split_last()?;
    for (name, next) in parents.iter().zip(names.iter().skip(1)) {
        let empty = if matches!(next.as_str(), "0" | "-1") { json!([{}]) } else { json!({}) };
        at = match at {
            Value::Object(members) => members.entry(name.clone()).or_insert(empty),
            Value::Array(items) => match name.as_str() {
                "-1" => items.last_mut()?,
                index => items.get_mut(index.parse::<usize>().ok()?)?,
            },
            _ => return None,
        };
    }
    match (at, value) {
        (Value::Object(members), Some(value)) => drop(members.insert(last.clone(), value)),
        (Value::Object(members), None) => drop(members.remove(last)?),
        (Value::Array(items), Some(value)) => {
            *items.get_mut(last.parse::<usize>().ok()?)? = value;
        }
        (Value::Array(items), None) => {
            let index = last.parse::<usize>().ok()?;
            if index >= items.len() {
                return None;
            }
            items.remove(index);
        }
        _ => return None,
    }
    Some(changed)
}

/// The object without one member or element below `status` or `spec`, or without its deletion, the largest
/// parts first. `inside` also removes members of list elements.
pub(in super::super) fn without_one(object: &Value, inside: bool) -> Vec<Value> {
    fn walk(value: &Value, place: &str, inside: bool, places: &mut Vec<String>) {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(members) => {
                let escaped = members.keys().map(|name| name.replace('~', "~0").replace('/', "~1"));
                escaped.zip(members.values()).collect()
            }
            // A list that is too long for one of its rules has similar elements.
            Value::Array(items) => {
                let first = items.iter().take(64).enumerate();
                first.map(|(at, value)| (at.to_string(), value)).collect()
            }
            _ => return,
        };
        let below = |name: &String| format!("{place}/{name}");
        places.extend(inner.iter().map(|(name, _)| below(name)));
        for (name, value) in inner.iter().filter(|_| inside || value.is_object()) {
            walk(value, &below(name), inside, places);
        }
    }
    let mut places = vec!["/metadata/deletionTimestamp".to_owned(), "/spec".to_owned()];
    for part in ["status", "spec"] {
        if let Some(value) = object.get(part) {
            walk(value, &format!("/{part}"), inside, &mut places);
        }
    }
    places.iter().filter_map(|place| replaced(object, place, None)).collect()
}
