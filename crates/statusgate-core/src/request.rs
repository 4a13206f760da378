//! The request for which a manifest is judged.

use jiff::Timestamp;

use crate::language::plural_of_kind;
use crate::model::{Object, ObjectError, Operation, Resource, Subject, Writer};
use crate::policy::PolicySet;
use crate::source::{Identity, Manifest, Members, Record, RecordedRequest, kind_of, reason};

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

/// How a cluster serves the kind of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The plural of the kind.
    pub plural: String,
    /// Whether it has a status subresource; `None` if only the policies can tell.
    pub has_status: Option<bool>,
}

impl Served {
    /// Without a CRD: the first candidate that a policy names for the same group and version; otherwise a guess by
    /// the rules of English, like `kubectl`.
    ///
    /// Policies come before the guess, because plurals may be irregular: that of AppCat's VSHNRedis is
    /// `vshnredis`.
    pub fn guessed(identity: &Identity, policies: &PolicySet) -> Self {
        let singular = identity.kind.to_ascii_lowercase();
        let guess = plural_of_kind(&singular);
        let others = [singular.clone(), format!("{singular}s"), format!("{singular}es")];
        let named = std::iter::once(&guess).chain(&others).find(|plural| {
            policies.policies().iter().flat_map(|policy| &policy.resources).any(|rule| {
                rule.resources.iter().any(|glob| glob.exact() == Some(plural.as_str()))
                    && rule.api_groups.iter().any(|glob| glob.matches(identity.group()))
                    && rule.api_versions.iter().any(|glob| glob.matches(identity.version()))
            })
        });
        Self { plural: named.unwrap_or(&guess).clone(), has_status: None }
    }
}

/// The user of a write as the API server sees it: it adds the groups of a service account if there are no groups,
/// and the group of all authenticated users.
pub fn writer<'a>(user: &'a str, groups: &'a [String]) -> Writer<'a> {
    let mut groups: Vec<_> = groups.iter().map(|group| group.as_str().into()).collect();
    let account = user.strip_prefix("system:serviceaccount:");
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
        && groups.is_empty()
    {
        groups.push("system:serviceaccounts".into());
        groups.push(format!("system:serviceaccounts:{namespace}").into());
    }
    if !user.is_empty() && user != "system:anonymous" {
        groups.push("system:authenticated".into());
    }
    Writer { user: user.into(), groups }
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
    /// The write of a manifest, with the stored one.
    pub fn of(manifest: &Manifest<'a>, old: Option<Manifest<'a>>, writer: Writer<'a>) -> Self {
        Self {
            identity: manifest.identity,
            object: manifest.text,
            old: old.map(|old| old.text),
            writer,
            recorded: manifest.record.and_then(Record::request),
        }
    }

    /// The time of the write, if it was recorded.
    pub fn time(&self) -> Option<Timestamp> {
        self.recorded?.time.as_deref()?.parse().ok()
    }

    /// The subject of the judgement.
    ///
    /// The write uses the `status` subresource, unless the CRD has none. Without a CRD, the policies
    /// that select the object decide. Without the subresource, status is a part of the main resource,
    /// and an object without a previous one is new.
    ///
    /// # Errors
    /// When the object or the previous one cannot be judged.
    pub fn subject(self, policies: &PolicySet, served: Served) -> Result<Subject<'a>, Unfit> {
        let Request { identity, object, old, writer, recorded } = self;
        let read =
            |text, is_old| Object::parse(text).map_err(|error| Unfit::of(text, is_old, &error));
        let (object, old) = (read(object, false)?, old.map(|old| read(old, true)).transpose()?);
        if let Some(recorded) = recorded {
            let subject = Subject {
                resource: recorded.resource.clone(),
                subresource: recorded.subresource.as_str().into(),
                operation: recorded.operation,
                writer: recorded.writer.clone(),
                object,
                old,
            };
            return Ok(as_stored(subject));
        }
        let mut subject = Subject {
            resource: Resource::new(identity.group(), identity.version(), served.plural),
            subresource: "status".into(),
            operation: Operation::Update,
            writer,
            object,
            old,
        };
        let has_status =
            served.has_status.unwrap_or_else(|| policies.select(&subject).next().is_some());
        if !has_status {
            subject.subresource = "".into();
            if subject.old.is_none() {
                subject.operation = Operation::Create;
            }
        }
        Ok(as_stored(subject))
    }
}

/// The write as the API server stores it. A status write cannot change the generation: if the object has a newer one, other
/// writes came between the two objects, and the previous one is not what was stored.
fn as_stored(subject: Subject<'_>) -> Subject<'_> {
    let generation = |object: &Object<'_>| object.metadata.generation;
    match subject.old.as_ref().and_then(generation) {
        Some(old) if generation(&subject.object) > Some(old) => subject,
        _ => subject.as_stored(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Source;

    #[test]
    fn a_service_account_is_in_its_groups() {
        let groups = |user: &str, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|group| (*group).to_owned()).collect();
            writer(user, &given).groups.join(" ")
        };
        assert_eq!(
            groups("system:serviceaccount:ns:name", &[]),
            "system:serviceaccounts system:serviceaccounts:ns system:authenticated"
        );
        assert_eq!(groups("jane", &["admins"]), "admins system:authenticated");
        assert_eq!(groups("", &[]), "");
    }

    #[test]
    fn the_crd_or_the_policy_decides_on_the_subresource() {
        let policy = |name: &str, plural: &str, subresource: bool| {
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec: {{convention: appcat, resources: [{{apiGroups: [g], apiVersions: [v1], resources: [{plural}], statusSubresource: {subresource}}}]}}\n"
            )
        };
        let text = [policy("with", "as", true), policy("without", "bs", false)].join("---\n");
        let policies = PolicySet::compile(&[Source { name: "p".into(), text }]).unwrap();
        let asked = |kind: &str, old: Option<&'static str>, has_status: Option<bool>| {
            let identity = Identity {
                api_version: "g/v1".into(),
                kind: kind.into(),
                namespace: String::new(),
                name: String::new(),
            };
            let (object, writer) = ("{}", Writer::default());
            let request = Request { identity: &identity, object, old, writer, recorded: None };
            let served = Served { has_status, ..Served::guessed(&identity, &policies) };
            let subject = request.subject(&policies, served).unwrap();
            (subject.operation, subject.subresource.to_string(), policies.select(&subject).count())
        };
        let (update, create) = (Operation::Update, Operation::Create);
        assert_eq!(asked("A", None, None), (update, "status".to_owned(), 1));
        assert_eq!(asked("B", None, None), (create, String::new(), 1));
        assert_eq!(asked("B", Some("{}"), None), (update, String::new(), 1));
        // The API server never sends what the policy waits for.
        assert_eq!(asked("A", None, Some(false)), (create, String::new(), 0));
    }

    #[test]
    fn a_status_write_keeps_the_rest_of_the_previous_object() {
        let policies = PolicySet::compile(&[]).unwrap();
        let name = |has_status: bool, generation: i64| {
            let identity = Identity {
                api_version: "g/v1".into(),
                kind: "A".into(),
                namespace: String::new(),
                name: String::new(),
            };
            let object = format!(r#"{{"metadata":{{"name":"new","generation":{generation}}}}}"#);
            let old = Some(r#"{"metadata":{"name":"old","generation":1}}"#);
            let (writer, recorded) = (Writer::default(), None);
            let request = Request { identity: &identity, object: &object, old, writer, recorded };
            let served = Served { plural: "as".into(), has_status: Some(has_status) };
            request.subject(&policies, served).unwrap().object.metadata.name.to_string()
        };
        assert_eq!((&*name(true, 1), &*name(false, 1)), ("old", "new"));
        assert_eq!(name(true, 2), "new", "other writes came between");
    }
}
