//! The members that `-o json` of check and status share: which object it is, and which policies judge it.

use std::fmt;

use serde::Serialize;

use statusgate_core::model::Subject;
use statusgate_core::policy::PolicySet;
use statusgate_core::request::Unfit;
use statusgate_core::source::{Identity, Manifest, Record, RecordedRequest, one_line};

/// One object. These members are stable: docs/check.md describes them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ObjectEntry {
    /// Empty for an object of a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) file: String,
    /// The line where the object begins, from 1.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) line: usize,
    /// The number of its document in the file, from 1.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) document: usize,
    /// Its index, if the document is a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<usize>,
    #[serde(flatten)]
    pub(super) identity: Identity,
    /// The request, if the input records it.
    #[serde(flatten)]
    pub(super) written: Option<WriteRequest>,
    /// The policies that judge it.
    pub(super) policies: Vec<String>,
    /// Why it is not judged: no policy selects it, or it has no status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unjudged: Option<String>,
}

/// The request of a write.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WriteRequest {
    pub(super) user: String,
    operation: &'static str,
    subresource: String,
}

/// `Kind namespace/name`, and who wrote it.
impl fmt::Display for ObjectEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.identity)?;
        match &self.written {
            Some(written) => write!(formatter, " by {}", one_line(&written.user)),
            None => Ok(()),
        }
    }
}

impl ObjectEntry {
    /// The entry of an object in a file, as the subject of the policies.
    pub(super) fn of(
        manifest: &Manifest<'_>,
        policies: &PolicySet,
        subject: Result<&Subject<'_>, &Unfit>,
    ) -> Self {
        let written = |request: &RecordedRequest| WriteRequest {
            user: request.writer.user.to_string(),
            operation: request.operation.name(),
            subresource: request.subresource.clone(),
        };
        Self {
            file: manifest.file.to_owned(),
            line: manifest.line(),
            document: manifest.document,
            item: manifest.item,
            written: manifest.record.and_then(Record::request).map(written),
            ..Self::stored(manifest.identity, policies, subject)
        }
    }

    /// The entry of an object in a cluster.
    pub(super) fn stored(
        identity: &Identity,
        policies: &PolicySet,
        subject: Result<&Subject<'_>, &Unfit>,
    ) -> Self {
        let selecting = subject.iter().flat_map(|subject| policies.select(subject));
        let selecting: Vec<String> = selecting.map(|(_, policy)| policy.name.to_string()).collect();
        let unjudged = match subject {
            Err(unfit) => Some(unfit.to_string()),
            Ok(subject) => selecting.is_empty().then(|| policies.why_unselected(subject)),
        };
        let identity = identity.clone();
        let (file, written) = (String::new(), None);
        let (line, document, item) = (0, 0, None);
        Self { file, line, document, item, identity, written, policies: selecting, unjudged }
    }
}

/// Whether a number from 1 is absent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(number: &usize) -> bool {
    *number == 0
}
