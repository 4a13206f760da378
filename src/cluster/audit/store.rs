//! Storing reports where the cluster has a place for them.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use http::Method;
use serde_json::Value;

use super::super::client::passes;
use super::super::{Answer, Backoff, Cluster, ClusterError, Identity, Patience, Query, Target};
use super::report::{API_VERSION, MANAGED_BY, REPORT_NAME, Reports};

/// Writes reports, and takes away those that nothing speaks for any more.
#[derive(Debug, Default)]
pub struct Store {
    /// What was written, by namespace: a watch writes what changed, and not everything every minute.
    written: HashMap<String, u64>,
}

/// Which reports are ours to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of all namespaces, and the one of the cluster.
    Everything,
    /// The one of this namespace.
    Namespace(String),
}

/// What became of reports.
#[derive(Debug, Default)]
pub struct Stored {
    /// Written.
    pub written: u64,
    /// Left as they were: a watch had written the same before.
    pub unchanged: u64,
    /// Deleted: nothing of their namespace is judged any more.
    pub deleted: u64,
    /// Why others could not be written or deleted: a webhook or a quota of their namespace. The next
    /// run tries them again.
    pub failures: Vec<ClusterError>,
}

impl Store {
    /// Whether the cluster has the kinds: before an audit, not after it.
    ///
    /// # Errors
    /// When it has not, or does not answer.
    pub async fn find(cluster: &Cluster) -> Result<Self, ClusterError> {
        let what = format!("discover the resources of {API_VERSION}");
        match cluster.read(&what, &format!("/apis/{API_VERSION}"), Patience::SHORT).await {
            Ok(_) => Ok(Self::default()),
            Err(ClusterError::Refused { code: 404, .. }) => Err(ClusterError::NoReports),
            Err(error) => Err(error),
        }
    }

    /// Writes the reports by server-side apply, and deletes those of statusgate in the same scope
    /// that are not among them.
    ///
    /// # Errors
    /// When the server is out of reach, or does not list reports. A single report that is refused is
    /// among the failures, and the others are written.
    pub async fn write(
        &mut self,
        cluster: &Cluster,
        reports: &Reports,
        scope: &Scope,
    ) -> Result<Stored, ClusterError> {
        let mut stored = Stored::default();
        let existing = existing(cluster, scope).await?;
        let mut wanted = BTreeSet::new();
        // For all reports together: a webhook that is down must not cost its patience in each
        // namespace.
        let mut own = Patience::OBJECT.start();
        for (namespace, document) in reports.documents() {
            wanted.insert(namespace.to_owned());
            let text = document.to_string();
            let hash = hash(&text);
            let known = existing.contains(namespace) && self.written.get(namespace) == Some(&hash);
            if known {
                stored.unchanged += 1;
                continue;
            }
            match apply(cluster, namespace, &document, &mut own).await {
                Ok(true) => {
                    self.written.insert(namespace.to_owned(), hash);
                    stored.written += 1;
                }
                Ok(false) => {}
                Err(error) => stored.fail(error)?,
            }
        }
        for namespace in existing.difference(&wanted) {
            match delete(cluster, namespace, &mut own).await {
                Ok(()) => {
                    self.written.remove(namespace);
                    stored.deleted += 1;
                }
                Err(error) => stored.fail(error)?,
            }
        }
        Ok(stored)
    }
}

impl Stored {
    /// Notes what is of one report; passes on what all others would meet as well.
    fn fail(&mut self, error: ClusterError) -> Result<(), ClusterError> {
        if error.is_of_the_server() && error.code() != Some(500) {
            return Err(error);
        }
        self.failures.push(error);
        Ok(())
    }
}

/// The namespaces in which there is a report of ours; "" for the one of the cluster.
async fn existing(cluster: &Cluster, scope: &Scope) -> Result<BTreeSet<String>, ClusterError> {
    let (namespace, kinds): (&str, &[bool]) = match scope {
        Scope::Everything => ("", &[true, false]),
        Scope::Namespace(namespace) => (namespace, &[true]),
    };
    let query = Query {
        // A report may have a megabyte.
        limit: 10,
        namespace: namespace.to_owned(),
        selector: format!("{}={}", MANAGED_BY.0, MANAGED_BY.1),
    };
    let mut found = BTreeSet::new();
    for namespaced in kinds {
        let target = target(*namespaced);
        let bad =
            |source| ClusterError::BadAnswer { what: format!("list {}", target.name()), source };
        let mut pages = cluster.pages(&target, &query);
        while let Some(page) = pages.next().await? {
            for text in page.items().map_err(bad)? {
                let identity = Identity::parse(text).map_err(bad)?;
                if identity.name == REPORT_NAME {
                    found.insert(identity.namespace.into_owned());
                }
            }
        }
    }
    Ok(found)
}

/// Whether it was written; not, where the namespace is gone or going.
async fn apply(
    cluster: &Cluster,
    namespace: &str,
    document: &Value,
    own: &mut Backoff,
) -> Result<bool, ClusterError> {
    let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", path(namespace));
    let body = document.to_string().into_bytes();
    let request = Request { method: Method::PATCH, path, format: FORMAT, body };
    let answer = send(cluster, &what("apply", namespace), &request, own).await?;
    match answer.status {
        200..300 => Ok(true),
        404 if !namespace.is_empty() => Ok(false),
        403 | 409 if answer.message().contains("being terminated") => Ok(false),
        _ => Err(cluster.failed(&what("apply", namespace), Ok(answer))),
    }
}

async fn delete(cluster: &Cluster, namespace: &str, own: &mut Backoff) -> Result<(), ClusterError> {
    let path = path(namespace);
    let request = Request { method: Method::DELETE, path, format: "", body: Vec::new() };
    let answer = send(cluster, &what("delete", namespace), &request, own).await?;
    match answer.status {
        200..300 | 404 => Ok(()),
        _ => Err(cluster.failed(&what("delete", namespace), Ok(answer))),
    }
}

/// What is sent.
struct Request {
    method: Method,
    path: String,
    format: &'static str,
    body: Vec<u8>,
}

/// Sends, and tries again for as long as the reason of a failure passes. `own` is how long a 500 is
/// taken for one of those.
async fn send(
    cluster: &Cluster,
    what: &str,
    request: &Request,
    own: &mut Backoff,
) -> Result<Answer, ClusterError> {
    let Request { method, path, format, body } = request;
    let mut backoff = Patience::LONG.start();
    loop {
        let answer = cluster.send(method.clone(), path, format, body.clone()).await;
        let passes = passes(&answer);
        if let (Ok(answer), false) = (&answer, passes) {
            let Answer { status, retry_after, body } = answer;
            return Ok(Answer { status: *status, retry_after: *retry_after, body: body.clone() });
        }
        let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
        let is_own = answer.as_ref().is_ok_and(|answer| answer.status == 500);
        let backoff = if is_own { &mut *own } else { &mut backoff };
        match backoff.wait(asked) {
            Some(wait) if passes => tokio::time::sleep(wait).await,
            _ => return Err(cluster.failed(what, answer)),
        }
    }
}

fn what(verb: &str, namespace: &str) -> String {
    match namespace {
        "" => format!("{verb} the ClusterPolicyReport {REPORT_NAME}"),
        _ => format!("{verb} the PolicyReport {namespace}/{REPORT_NAME}"),
    }
}

fn path(namespace: &str) -> String {
    target(!namespace.is_empty()).object_path(namespace, REPORT_NAME)
}

fn target(namespaced: bool) -> Target {
    let (plural, kind) = if namespaced {
        ("policyreports", "PolicyReport")
    } else {
        ("clusterpolicyreports", "ClusterPolicyReport")
    };
    let (group, version) = API_VERSION.split_once('/').unwrap_or_default();
    Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        status_subresource: false,
        policies: Vec::new(),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Under this name the reports show in `managedFields`. Forced: nobody else writes a report of this
/// name, and an old one of another manager must not stop the audit.
const FIELD_MANAGER: &str = "statusgate";

/// JSON is YAML, and 1.20 knows no other name for it.
const FORMAT: &str = "application/apply-patch+yaml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_place_in_its_namespace_or_in_the_cluster() {
        assert_eq!(
            path("shop"),
            "/apis/wgpolicyk8s.io/v1alpha2/namespaces/shop/policyreports/statusgate"
        );
        assert_eq!(path(""), "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports/statusgate");
        assert_eq!(what("apply", "shop"), "apply the PolicyReport shop/statusgate");
    }
}
