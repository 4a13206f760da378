//! Documents that record the write of an object: AdmissionReviews and their requests, events of a watch, and
//! events of the API server's audit log.

use std::borrow::Cow;

use super::export;
use super::json::{Members, items, kind_of};
use super::objects::{Identity, Outer};
use crate::model::{Operation, Reader, Resource, Writer, read};

/// What a document records in addition to the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event of a watch. The stored object is that of the previous event.
    Watch,
    /// An AdmissionReview. It has the stored object itself.
    Review(RecordedRequest),
    /// An event of the audit log. The stored object is that of the previous event.
    Audit(RecordedRequest),
}

/// The request of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The resource.
    pub resource: Resource<'static>,
    /// `status`, or empty for the main resource.
    pub subresource: String,
    /// The operation.
    pub operation: Operation,
    /// The user, or the one that it impersonates.
    pub writer: Writer<'static>,
    /// The time of the request (RFC 3339). An AdmissionReview has none, unless `record` wrote it.
    pub time: Option<String>,
    /// Whether the API server left the object out because the event was too large.
    pub is_truncated: bool,
}

impl Record {
    /// The request, unless this is a watch.
    pub const fn request(&self) -> Option<&RecordedRequest> {
        match self {
            Self::Watch => None,
            Self::Review(request) | Self::Audit(request) => Some(request),
        }
    }

    /// Whether the stored object is in an earlier document.
    pub const fn is_in_sequence(&self) -> bool {
        matches!(self, Self::Watch | Self::Audit(_))
    }
}

/// A member of a member, as names on the way.
pub(super) type Path = &'static [&'static str];

/// What a document is.
pub(super) enum Recorded<'d> {
    /// An object, or something else that is no record.
    Nothing,
    /// A record of something that stores no status: a read, a deletion, a rejected request.
    NoWrite,
    /// A write with its object, and the stored object if the document has it.
    Write { record: Record, object: (Path, &'d str), old: Option<(Path, &'d str)> },
    /// A write with the reference to its object only.
    Reference { record: Record, path: Path, text: &'d str, identity: Identity },
    /// A record that cannot be read: the member and the error.
    Invalid(Path, String),
}

impl<'d> Recorded<'d> {
    /// `outer`: apiVersion and kind of the items of a typed list, as in an `EventList`.
    pub(super) fn of(whole: &str, document: &Members<'d>, outer: Outer<'_>) -> Self {
        let (api_version, kind) = outer.unwrap_or_default();
        let text = |name, outer| document.string(name).unwrap_or(Cow::Borrowed(outer));
        match (&*text("apiVersion", api_version), &*text("kind", kind)) {
            ("admission.k8s.io/v1", "AdmissionReview") => review(document),
            ("audit.k8s.io/v1", "Event") => audit(document),
            ("", "")
                if ["operation", "userInfo"].iter().all(|name| document.get(name).is_some()) =>
            {
                request(document, None, [&["object"], &["oldObject"]])
            }
            ("", "") => match (watch(document), export::command(whole)) {
                (Self::Nothing, Some(command)) => Self::Invalid(&[], export::message(&command)),
                (found, _) => found,
            },
            _ => Self::Nothing,
        }
    }
}

/// `metav1.WatchEvent`, as the API server and `kubectl get --output-watch-events` write it.
fn watch<'d>(event: &Members<'d>) -> Recorded<'d> {
    let (Some(kind), Some(object)) = (event.string("type"), event.get("object")) else {
        return Recorded::Nothing;
    };
    match &*kind {
        "ADDED" | "MODIFIED" => {
            Recorded::Write { record: Record::Watch, object: (&["object"], object), old: None }
        }
        // The last state, which an earlier event has.
        "DELETED" | "BOOKMARK" => Recorded::NoWrite,
        "ERROR" => {
            let message = member(object, "message");
            Recorded::Invalid(&["object"], format!("the watch ended: {message}"))
        }
        _ => Recorded::Nothing,
    }
}

fn review<'d>(review: &Members<'d>) -> Recorded<'d> {
    match review.get("request").and_then(Members::parse) {
        Some(of) => request(&of, time(review), [&["request", "object"], &["request", "oldObject"]]),
        None => Recorded::Invalid(&[], "this AdmissionReview has no request".to_owned()),
    }
}

/// The request of an AdmissionReview. `paths`: of the object and of the stored object.
fn request<'d>(request: &Members<'d>, time: Option<String>, paths: [Path; 2]) -> Recorded<'d> {
    let Some(operation) = Operation::parse(&text(request, "operation")) else {
        let message = "\"operation\" must be CREATE, UPDATE, DELETE or CONNECT".to_owned();
        return Recorded::Invalid(&[], message);
    };
    let object = request.get("object").filter(|object| *object != "null");
    let is_write = matches!(operation, Operation::Create | Operation::Update);
    let is_dry = request.get("dryRun") == Some("true");
    let Some(object) = object.filter(|_| is_write && !is_dry) else {
        return Recorded::NoWrite;
    };
    let resource = request.get("resource").and_then(Members::parse).unwrap_or_default();
    let [group, version, plural] =
        ["group", "version", "resource"].map(|name| text(&resource, name));
    let record = Record::Review(RecordedRequest {
        resource: Resource::new(group, version, plural),
        subresource: text(request, "subResource"),
        operation,
        writer: writer(request.get("userInfo")),
        time,
        is_truncated: false,
    });
    let old = request.get("oldObject").filter(|old| *old != "null");
    Recorded::Write { record, object: (paths[0], object), old: old.map(|old| (paths[1], old)) }
}

/// `audit.k8s.io/v1`: one event for each stage of a request. `requestObject` is the body, so a patch
/// for a patch; `responseObject` is what was stored.
fn audit<'d>(event: &Members<'d>) -> Recorded<'d> {
    let operation = match &*text(event, "verb") {
        "create" => Operation::Create,
        "update" | "patch" => Operation::Update,
        _ => return Recorded::NoWrite,
    };
    let code = event.get("responseStatus").map(|status| number(status, "code"));
    let succeeded = code.is_none_or(|code| (200..300).contains(&code));
    let is_dry = text(event, "requestURI").contains("dryRun=");
    if text(event, "stage") != "ResponseComplete" || !succeeded || is_dry {
        return Recorded::NoWrite;
    }
    let Some((reference, of)) =
        event.get("objectRef").and_then(|text| Some((text, Members::parse(text)?)))
    else {
        return Recorded::NoWrite;
    };
    let [group, version, plural] =
        ["apiGroup", "apiVersion", "resource"].map(|name| text(&of, name));
    let user = event.get("impersonatedUser").or_else(|| event.get("user"));
    let record = Record::Audit(RecordedRequest {
        resource: Resource::new(group.clone(), version.clone(), plural.clone()),
        subresource: text(&of, "subresource"),
        operation,
        writer: writer(user),
        time: time(event),
        is_truncated: member(event.get("annotations").unwrap_or_default(), TRUNCATED) == "true",
    });
    match event.get("responseObject").filter(|object| kind_of(object) == "an object") {
        // The answer of some subresources, such as `binding`.
        Some(object) if member(object, "kind") == "Status" => Recorded::NoWrite,
        Some(object) => {
            Recorded::Write { record, object: (&["responseObject"], object), old: None }
        }
        None => {
            // A reference has the plural and not the kind.
            let identity = Identity {
                api_version: if group.is_empty() { version } else { format!("{group}/{version}") },
                kind: plural,
                namespace: text(&of, "namespace"),
                name: text(&of, "name"),
            };
            Recorded::Reference { record, path: &["objectRef"], text: reference, identity }
        }
    }
}

/// `apiserver/plugin/pkg/audit/truncate/truncate.go`: the event was larger than `--audit-log-truncate-max-event-size`.
const TRUNCATED: &str = "audit.k8s.io/truncated";

fn writer(user: Option<&str>) -> Writer<'static> {
    let members = user.and_then(Members::parse).unwrap_or_default();
    let texts = members.get("groups").and_then(items).into_iter().flatten();
    let groups = texts.filter_map(|text| Some(read(text, Reader::text).ok()?.into_owned().into()));
    Writer { user: text(&members, "username").into(), groups: groups.collect() }
}

/// The member of the audit log; `record` adds it to a review.
fn time(document: &Members<'_>) -> Option<String> {
    document.string("requestReceivedTimestamp").map(Into::into)
}

fn text(members: &Members<'_>, name: &str) -> String {
    members.string(name).unwrap_or_default().into_owned()
}

fn member(object: &str, name: &str) -> String {
    Members::parse(object).map(|members| text(&members, name)).unwrap_or_default()
}

fn number(object: &str, name: &str) -> u16 {
    let members = Members::parse(object).unwrap_or_default();
    members.get(name).and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Manifests, Source};

    const OBJECT: &str = r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"}}"#;

    /// Objects with their request, references with a star, and mistakes.
    fn read(text: &str) -> Vec<String> {
        let files = [Source::new("a.json", text)];
        let manifests = Manifests::read(&files);
        let found = manifests.iter().map(|manifest| {
            let old = manifest.old().map(|old| format!(" was {}", old.text.len()));
            let request = manifest.record.unwrap().request().map(|request| {
                let super::RecordedRequest {
                    resource, subresource, operation, writer, time, ..
                } = request;
                let groups = writer.groups.join(",");
                format!(
                    " {}/{}/{}/{subresource} {} {} {groups} {time:?}",
                    resource.group,
                    resource.version,
                    resource.resource,
                    operation.name(),
                    writer.user
                )
            });
            format!(
                "{}{}{}",
                manifest.identity,
                request.unwrap_or_default(),
                old.unwrap_or_default()
            )
        });
        let references = manifests.references().map(|manifest| format!("*{}", manifest.identity));
        let mistakes = manifests.mistakes().iter().map(|mistake| {
            format!("{} {}", mistake.place.as_ref().unwrap().column, mistake.message)
        });
        found.chain(references).chain(mistakes).collect()
    }

    #[test]
    fn a_watch_has_states_and_its_end() {
        let event = |kind: &str| read(&format!(r#"{{"type":"{kind}","object":{OBJECT}}}"#));
        assert_eq!(event("ADDED"), ["K a"]);
        assert_eq!(event("MODIFIED"), ["K a"]);
        assert_eq!(event("DELETED"), [""; 0]);
        assert_eq!(event("BOOKMARK"), [""; 0]);
        let ended = read(r#"{"type":"ERROR","object":{"kind":"Status","message":"too old"}}"#);
        assert_eq!(ended, ["17 the watch ended: too old"]);
        // An object that contains the name of the format of audit logs is no export of one.
        let policy =
            OBJECT.replace("}}", r#"},"data":{"p":"{\"apiVersion\":\"audit.k8s.io/v1\"}"}}"#);
        assert_eq!(read(&format!(r#"{{"type":"ADDED","object":{policy}}}"#)), ["K a"]);
        assert_eq!(event("OTHER").len(), 1);
        assert!(event("OTHER")[0].contains("is missing"));
    }

    fn review(request: &str) -> Vec<String> {
        read(&format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#
        ))
    }

    #[test]
    fn a_review_has_the_request_and_both_objects() {
        let request = |operation: &str, more: &str| {
            format!(
                r#"{{"resource":{{"group":"g","version":"v1","resource":"ks"}},"subResource":"status",
                "operation":"{operation}","userInfo":{{"username":"u","groups":["x","y"]}},"object":{OBJECT}{more}}}"#
            )
        };
        let written = "K a g/v1/ks/status UPDATE u x,y None".to_owned();
        assert_eq!(review(&request("UPDATE", "")), [written.as_str()]);
        let both = review(&request("UPDATE", &format!(r#","oldObject":{OBJECT}"#)));
        assert_eq!(both, [format!("{written} was {}", OBJECT.len())]);
        assert_eq!(
            review(&request("CREATE", r#","oldObject":null"#)),
            [written.replace("UPDATE", "CREATE")]
        );
        assert_eq!(review(&request("UPDATE", r#","dryRun":true"#)), [""; 0]);
        assert_eq!(review(&request("DELETE", "")), [""; 0]);
        assert_eq!(review(r#"{"operation":"UPDATE","object":null}"#), [""; 0]);
        assert!(review("null")[0].ends_with("this AdmissionReview has no request"));
        assert!(review("{}")[0].ends_with("must be CREATE, UPDATE, DELETE or CONNECT"));
        let bare = request("UPDATE", &format!(r#","uid":"u","oldObject":{OBJECT}"#));
        assert_eq!(read(&bare), both, "without its AdmissionReview");
    }

    #[test]
    fn an_audit_log_has_the_stored_object_of_a_write_that_succeeded() {
        let event = |verb: &str, stage: &str, code: u16, more: &str| {
            format!(
                r#"{{"apiVersion":"audit.k8s.io/v1","kind":"Event","level":"RequestResponse","stage":"{stage}",
                "verb":"{verb}","user":{{"username":"u"}},"responseStatus":{{"code":{code}}},
                "objectRef":{{"resource":"ks","name":"a","namespace":"s","apiGroup":"g","apiVersion":"v1","subresource":"status"}},
                "requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z"{more}}}"#
            )
        };
        let response = format!(r#","responseObject":{OBJECT}"#);
        let written = |operation: &str, user: &str| {
            format!(r#"K a g/v1/ks/status {operation} {user}  Some("2026-01-01T00:00:00.000000Z")"#)
        };
        let done = "ResponseComplete";
        assert_eq!(read(&event("patch", done, 200, &response)), [written("UPDATE", "u")]);
        assert_eq!(read(&event("update", done, 200, &response)), [written("UPDATE", "u")]);
        assert_eq!(read(&event("create", done, 201, &response)), [written("CREATE", "u")]);
        let impersonated = format!(r#"{response},"impersonatedUser":{{"username":"v"}}"#);
        assert_eq!(read(&event("update", done, 200, &impersonated)), [written("UPDATE", "v")]);
        let dry = format!(r#"{response},"requestURI":"/apis/g/v1/ks/a?dryRun=All""#);
        for (verb, stage, code, more) in [
            ("get", done, 200, &*response),
            ("delete", done, 200, &response),
            ("update", "RequestReceived", 200, &response),
            ("update", done, 409, &response),
            ("update", done, 200, &dry),
            ("create", done, 201, r#","responseObject":{"kind":"Status"}"#),
        ] {
            assert_eq!(read(&event(verb, stage, code, more)), [""; 0], "{verb} {stage} {code}");
        }
        assert_eq!(read(&event("update", done, 200, "")), ["*ks s/a"]);
        let one = event("update", done, 200, &response);
        assert_eq!(read(&format!("[{one},{one}]")).len(), 2, "an array");
        // The webhook of an audit log sends lists, and items need no kind.
        let item = event("update", done, 200, &response).replacen(
            r#""apiVersion":"audit.k8s.io/v1","kind":"Event","#,
            "",
            1,
        );
        let list =
            format!(r#"{{"apiVersion":"audit.k8s.io/v1","kind":"EventList","items":[{item}]}}"#);
        assert_eq!(read(&list), [written("UPDATE", "u")]);
    }

    #[test]
    fn a_field_of_a_recorded_object_has_its_location_in_yaml_and_json() {
        for (text, column) in [
            ("type: ADDED\nobject:\n  apiVersion: g/v1\n  kind: K\n  status:\n    phase: x\n", 12),
            (
                "{\"type\":\"ADDED\",\n\"object\":\n\n{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\n\"status\":{\n   \"phase\":\"x\"}}}",
                12,
            ),
        ] {
            let files = [Source::new("a.yaml", text)];
            let manifests = Manifests::read(&files);
            let place = manifests.iter().next().unwrap().place("status.phase");
            assert_eq!((place.line, place.column), (6, column), "{text}");
        }
    }
}
