//! The request for which a manifest is judged.

use super::plurals::Plurals;
use statusgate_core::model::{Object, ObjectError, Operation, Resource, Subject, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{Identity, Members, RecordedRequest, kind_of, reason};

/// A write of a manifest.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The identity of the object.
    pub identity: &'a Identity,
    /// The object, as JSON text.
    pub object: &'a str,
    /// The previous object, as JSON text.
    pub old: Option<&'a str>,
    /// The writer.
    pub writer: Writer<'a>,
    /// The request, if the input records it; then it decides instead of the CRD, the policies and `writer`.
    pub recorded: Option<&'a RecordedRequest>,
}

/// Why a write cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unfit {
    /// Whether the previous object is invalid.
    pub is_old: bool,
    /// The invalid member.
    pub field: &'static str,
    /// The error, in one sentence without a full stop.
    pub message: String,
}

impl Unfit {
    /// The two members that can be invalid: `metadata` must be an object, and the size of `status` is
    /// limited.
    fn of(text: &str, is_old: bool, error: &ObjectError) -> Self {
        let metadata = Members::parse(text).and_then(|members| members.get("metadata"));
        if let Some(metadata) = metadata.filter(|text| !text.starts_with(['{', 'n'])) {
            let message = format!("metadata is {}, not an object", kind_of(metadata));
            return Self { is_old, field: "metadata", message };
        }
        let message = match error {
            ObjectError::NotAnObject(error) => reason(error),
            ObjectError::TooLarge(_) => error.to_string(),
        };
        Self { is_old, field: "status", message }
    }
}

impl<'a> Request<'a> {
    /// The subject of the judgement.
    ///
    /// The write uses the `status` subresource, unless the CRD has none. Without a CRD, the policies
    /// that select the object decide. Without the subresource, status is a part of the main resource,
    /// and an object without a previous one is new.
    ///
    /// # Errors
    /// When the object or the previous one cannot be judged.
    pub fn subject(self, policies: &PolicySet, plurals: &Plurals) -> Result<Subject<'a>, Unfit> {
        let Request { identity, object, old, writer, recorded } = self;
        let read =
            |text, is_old| Object::parse(text).map_err(|error| Unfit::of(text, is_old, &error));
        if let Some(recorded) = recorded {
            return Ok(Subject {
                resource: recorded.resource.clone(),
                subresource: recorded.subresource.as_str().into(),
                operation: recorded.operation,
                writer: recorded.writer.clone(),
                object: read(object, false)?,
                old: old.map(|old| read(old, true)).transpose()?,
            });
        }
        let mut subject = Subject {
            resource: Resource {
                group: identity.group().into(),
                version: identity.version().into(),
                resource: plurals.plural(identity, policies).into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer,
            object: read(object, false)?,
            old: old.map(|old| read(old, true)).transpose()?,
        };
        let has_status = plurals
            .has_status_subresource(identity)
            .unwrap_or_else(|| policies.select(&subject).next().is_some());
        if !has_status {
            subject.subresource = "".into();
            if subject.old.is_none() {
                subject.operation = Operation::Create;
            }
        }
        Ok(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::resource::{CustomResource, ServedVersion};
    use statusgate_core::policy::Source;

    #[test]
    fn the_crd_or_the_policy_decides_on_the_subresource() {
        let policy = |name: &str, plural: &str, subresource: bool| {
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec: {{convention: appcat, resources: [{{apiGroups: [g], apiVersions: [v1], resources: [{plural}], statusSubresource: {subresource}}}]}}\n"
            )
        };
        let text = [policy("with", "as", true), policy("without", "bs", false)].join("---\n");
        let policies = PolicySet::compile(&[Source { name: "p".into(), text }]).unwrap();
        let versions = vec![ServedVersion { name: "v1".into(), status_subresource: false }];
        let (group, plural, kind) = ("g".into(), "as".into(), "A".into());
        let crds = Plurals::of(vec![CustomResource { group, plural, kind, versions }]);
        let asked = |kind: &str, old: Option<&'static str>, plurals: &Plurals| {
            let identity = Identity {
                api_version: "g/v1".into(),
                kind: kind.into(),
                namespace: String::new(),
                name: String::new(),
            };
            let (object, writer) = ("{}", Writer::default());
            let request = Request { identity: &identity, object, old, writer, recorded: None };
            let subject = request.subject(&policies, plurals).unwrap();
            (subject.operation, subject.subresource.to_string(), policies.select(&subject).count())
        };
        let guessed = Plurals::default();
        let (update, create) = (Operation::Update, Operation::Create);
        assert_eq!(asked("A", None, &guessed), (update, "status".to_owned(), 1));
        assert_eq!(asked("B", None, &guessed), (create, String::new(), 1));
        assert_eq!(asked("B", Some("{}"), &guessed), (update, String::new(), 1));
        // The API server never sends what the policy waits for.
        assert_eq!(asked("A", None, &crds), (create, String::new(), 0));
    }
}
