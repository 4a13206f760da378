//! `subresources.scale`: the API server checks the fields that it names at each write.

use serde_json::Value;

use super::cause::{Cause, INVALID};

/// The paths of a scale subresource.
#[derive(Debug)]
pub(super) struct Scale {
    spec_replicas: Box<str>,
    status_replicas: Box<str>,
    selector: Option<Box<str>>,
}

impl Scale {
    pub(super) fn new(scale: &Value) -> Option<Self> {
        let path = |name: &str| scale.get(name).and_then(Value::as_str).map(Into::into);
        Some(Self {
            spec_replicas: path("specReplicasPath")?,
            status_replicas: path("statusReplicasPath")?,
            selector: path("labelSelectorPath"),
        })
    }

    /// `ValidateScaleSpec` and `ValidateScaleStatus`; a write of the status checks the latter only.
    pub(super) fn causes(&self, object: &Value, with_spec: bool) -> Vec<Cause> {
        let spec = Some(&self.spec_replicas).filter(|_| with_spec);
        let replicas = spec.into_iter().chain([&self.status_replicas]);
        let replicas = replicas.filter_map(|path| cause(object, path, replicas_error));
        replicas
            .chain(self.selector.as_ref().and_then(|path| cause(object, path, selector_error)))
            .collect()
    }
}

fn cause(object: &Value, path: &str, error: fn(&Value) -> Option<&'static str>) -> Option<Cause> {
    let mut value = object;
    let path = path.trim_start_matches('.');
    for name in path.split('.') {
        let Some(members) = value.as_object() else {
            let message = "Invalid value: accessor error: a parent is not an object";
            return Some(Cause::new(path.to_owned(), INVALID, message));
        };
        value = members.get(name)?;
    }
    error(value).map(|why| Cause::invalid(path.to_owned(), value, why))
}

fn replicas_error(value: &Value) -> Option<&'static str> {
    match value.as_i64() {
        None => Some("accessor error: it is not an int64"),
        Some(..0) => Some("should be a non-negative integer"),
        Some(count) if count > i64::from(i32::MAX) => {
            Some("should be less than or equal to 2147483647")
        }
        Some(_) => None,
    }
}

fn selector_error(value: &Value) -> Option<&'static str> {
    (!value.is_string()).then_some("accessor error: it is not a string")
}
