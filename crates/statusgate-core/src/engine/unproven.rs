//! Statuses that may be about an older spec, by the times at which both were written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::{Json, Object, parse_rfc3339};

/// A status that nothing proves to be about the present spec: it is not newer, and it names no generation.
///
/// The API server moves the time of an entry in `managedFields` when a value of its manager changes. A
/// controller that writes the same status again moves nothing, and a change of a label moves the time of the spec. So this
/// can only delay an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// The last write of the spec, in Unix seconds.
    pub spec: i64,
    /// The last write of the status.
    pub status: i64,
}

/// A manager of fields. Its name does not matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manager {
    time: Option<String>,
    #[serde(default)]
    fields_v1: BTreeMap<String, IgnoredAny>,
}

impl Unproven {
    /// `None` if the status is about the present spec, if nobody writes it, or if the times are unknown.
    pub fn of(object: &Object<'_>) -> Option<Self> {
        // A first generation has no older spec.
        if object.metadata.generation == Some(1) || names_generation(object) {
            return None;
        }
        let managers: Vec<Manager> = serde_json::from_str(object.metadata.managed_fields?).ok()?;
        let newest = |is_owned: fn(&str) -> bool| {
            let owners = managers
                .iter()
                .filter(|manager| manager.fields_v1.keys().any(|field| is_owned(field)));
            owners.filter_map(|manager| parse_rfc3339(manager.time.as_deref()?)).max()
        };
        // Some kinds have no `spec`, but `data` or `rules`.
        let spec = newest(|field| !matches!(field, "f:status" | "f:metadata"))?;
        let status = newest(|field| field == "f:status")?;
        // Times have a resolution of one second: in the same second, either may be the later one.
        (status <= spec).then_some(Self { spec, status })
    }
}

/// Whether the status or one of its conditions names the present generation.
fn names_generation(object: &Object<'_>) -> bool {
    let (Some(generation), Some(status)) = (object.metadata.generation, &object.status) else {
        return false;
    };
    let names = |part: &Json<'_>| match part.get("observedGeneration") {
        Some(Json::String(text)) => text.parse() == Ok(generation),
        Some(number) => number.as_i64() == Some(generation),
        None => false,
    };
    let conditions = status.get("conditions").and_then(Json::as_array);
    names(status) || conditions.into_iter().flatten().any(names)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SPEC: &str = "2026-01-01T00:00:10Z";

    /// An object of generation 2 whose spec was written at second 10, with a status.
    fn unproven(status: &Value, managers: &Value) -> Option<(i64, i64)> {
        let metadata = json!({"name": "a", "generation": 2, "managedFields": managers});
        let text = json!({"metadata": metadata, "status": status}).to_string();
        let found = Unproven::of(&Object::parse(&text).unwrap())?;
        let start = parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        Some((found.spec - start, found.status - start))
    }

    fn manager(time: &str, fields: &Value) -> Value {
        json!({"manager": "m", "operation": "Update", "time": time, "fieldsV1": fields})
    }

    fn written(status: &str) -> Value {
        json!([
            manager(SPEC, &json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:a": {}}})),
            manager("2026-01-01T00:00:03Z", &json!({"f:spec": {"f:b": {}}})),
            // The finalizer of the controller is no part of the spec.
            manager("2026-01-01T00:00:59Z", &json!({"f:metadata": {"f:finalizers": {}}})),
            manager(status, &json!({"f:status": {"f:phase": {}}})),
        ])
    }

    #[test]
    fn a_status_is_proven_by_a_later_second() {
        let phase = json!({"phase": "Ready"});
        let at =
            |second: u32| unproven(&phase, &written(&format!("2026-01-01T00:00:{second:02}Z")));
        assert_eq!(at(9), Some((10, 9)));
        assert_eq!(at(10), Some((10, 10)), "the order within a second is unknown");
        assert_eq!(at(11), None);
    }

    #[test]
    fn a_status_is_proven_by_the_generation_that_it_names() {
        let old = written("2026-01-01T00:00:01Z");
        for status in [
            json!({"observedGeneration": 2}),
            // Argo Rollouts writes a string.
            json!({"observedGeneration": "2"}),
            json!({"conditions": [{"type": "A"}, {"type": "B", "observedGeneration": 2}]}),
        ] {
            assert_eq!(unproven(&status, &old), None, "{status}");
        }
        for status in [json!({"observedGeneration": 1}), json!({"observedGeneration": null})] {
            assert_eq!(unproven(&status, &old), Some((10, 1)), "{status}");
        }
        let text = json!({"metadata": {"generation": 1, "managedFields": old}}).to_string();
        assert_eq!(Unproven::of(&Object::parse(&text).unwrap()), None, "there is no older spec");
    }

    #[test]
    fn without_both_times_nothing_is_unproven() {
        let status = json!({"phase": "Ready"});
        let spec = manager(SPEC, &json!({"f:spec": {}}));
        for managers in [
            json!(null),
            json!([]),
            // Nobody writes the status.
            json!([spec]),
            json!([spec, {"fieldsV1": {"f:status": {}}}]),
            json!([spec, {"time": "soon", "fieldsV1": {"f:status": {}}}]),
            json!([manager(SPEC, &json!({"f:status": {}}))]),
            json!("of another type"),
        ] {
            assert_eq!(unproven(&status, &managers), None, "{managers}");
        }
        // A kind without `spec`, and one manager of both.
        let both = json!([manager(SPEC, &json!({"f:data": {}, "f:status": {}}))]);
        assert_eq!(unproven(&status, &both), Some((10, 10)));
    }
}
