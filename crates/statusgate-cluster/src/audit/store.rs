//! Stores policy reports in the cluster.

use std::collections::{BTreeSet, HashMap};

use http::Method;

use super::super::call::Call;
use super::super::error::unless_missing;
use super::super::hash::fnv1a_64;
use super::super::identity::read_object;
use super::super::secret::FIELD_MANAGER;
use super::super::{Backoff, Cluster, ClusterError, Patience, Query, Target, object_path};
use super::report::{MANAGED_BY, REPORT_NAME, ReportApi, Reports};

/// Writes reports, and deletes those of namespaces without judged objects.
#[derive(Debug, Default)]
pub struct Store {
    api: ReportApi,
    /// The hash of each written report, by namespace: `--watch` writes only changed reports.
    written: HashMap<String, u64>,
}

/// The number of reports by result.
#[derive(Debug, Default)]
pub struct ReportCounts {
    /// Written.
    pub written: u64,
    /// Not written again, because an earlier pass wrote the same.
    pub unchanged: u64,
    /// Deleted, because their namespace has no judged objects.
    pub deleted: u64,
    /// Reports that a webhook or a quota rejected. The next run tries them again.
    pub failures: Vec<ClusterError>,
}

impl Store {
    /// Finds before the audit the first API of reports that the cluster serves.
    ///
    /// # Errors
    /// When it serves none or does not respond.
    pub async fn find(cluster: &Cluster) -> Result<Self, ClusterError> {
        for api in ReportApi::ALL {
            let api_version = api.api_version();
            let what = format!("discover the resources of {api_version}");
            let path = format!("/apis/{api_version}");
            if unless_missing(cluster.read(&what, &path, Patience::SHORT).await)?.is_some() {
                return Ok(Self { api, ..Self::default() });
            }
        }
        Err(ClusterError::NoReports)
    }

    /// Writes the reports by server-side apply, and deletes other reports of statusgate in the same
    /// namespace; without a namespace: in all namespaces and in the cluster.
    ///
    /// # Errors
    /// When the server does not respond, or does not list reports. After the failure of one report, the
    /// others are written.
    pub async fn write(
        &mut self,
        cluster: &Cluster,
        reports: &Reports,
        namespace: &str,
    ) -> Result<ReportCounts, ClusterError> {
        let mut stored = ReportCounts::default();
        let api = self.api;
        let existing = existing(cluster, api, namespace).await?;
        let mut wanted = BTreeSet::new();
        // For all reports together: a broken webhook must not delay each of them.
        let mut own = Patience::OBJECT.start();
        for (namespace, document) in reports.documents(api) {
            wanted.insert(namespace.to_owned());
            let text = document.to_string();
            let hash = fnv1a_64(text.as_bytes());
            if existing.contains(namespace) && self.written.get(namespace) == Some(&hash) {
                stored.unchanged += 1;
                continue;
            }
            match apply(cluster, api, namespace, &text, &mut own).await {
                Ok(true) => {
                    self.written.insert(namespace.to_owned(), hash);
                    stored.written += 1;
                }
                Ok(false) => {}
                Err(error) => stored.fail(error)?,
            }
        }
        for namespace in existing.difference(&wanted) {
            match delete(cluster, api, namespace, &mut own).await {
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

impl ReportCounts {
    /// Adds the failure of one report. Returns a failure of the whole server.
    fn fail(&mut self, error: ClusterError) -> Result<(), ClusterError> {
        if error.is_of_the_server() && error.code() != Some(500) {
            return Err(error);
        }
        self.failures.push(error);
        Ok(())
    }
}

/// The namespaces with a report of statusgate; "" for that of the cluster.
async fn existing(
    cluster: &Cluster,
    api: ReportApi,
    namespace: &str,
) -> Result<BTreeSet<String>, ClusterError> {
    let query = Query {
        // A report may have a megabyte.
        limit: 10,
        namespace: namespace.to_owned(),
        selector: format!("{}={}", MANAGED_BY.0, MANAGED_BY.1),
    };
    let kinds: &[bool] = if namespace.is_empty() { &[true, false] } else { &[true] };
    let mut found = BTreeSet::new();
    for target in kinds.iter().map(|namespaced| target(api, *namespaced)) {
        let mut pages = cluster.pages(&target, &query);
        while let Some(page) = pages.next().await? {
            for text in page.items() {
                let object = read_object(text).map_err(|source| target.bad_list(source))?;
                if object.metadata.name == REPORT_NAME {
                    found.insert(object.metadata.namespace.into_owned());
                }
            }
        }
    }
    Ok(found)
}

/// Writes a report. Returns `false` if its namespace was deleted or is being deleted. Apply is forced: only
/// statusgate writes a report with this name.
async fn apply(
    cluster: &Cluster,
    api: ReportApi,
    namespace: &str,
    text: &str,
    own: &mut Backoff,
) -> Result<bool, ClusterError> {
    let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", path(api, namespace));
    let call = Call::apply(&path, text);
    let what = what("apply", api, namespace);
    let answer = cluster.retry(&what, &call, &mut Patience::LONG.start(), Some(own)).await?;
    match answer.status {
        200..300 => Ok(true),
        404 if !namespace.is_empty() => Ok(false),
        403 | 409 if answer.message().contains("being terminated") => Ok(false),
        _ => Err(cluster.failed(&what, Ok(answer))),
    }
}

async fn delete(
    cluster: &Cluster,
    api: ReportApi,
    namespace: &str,
    own: &mut Backoff,
) -> Result<(), ClusterError> {
    let path = path(api, namespace);
    let call = Call { method: Method::DELETE, ..Call::get(&path) };
    let what = what("delete", api, namespace);
    let answer = cluster.retry(&what, &call, &mut Patience::LONG.start(), Some(own)).await?;
    match answer.status {
        200..300 | 404 => Ok(()),
        _ => Err(cluster.failed(&what, Ok(answer))),
    }
}

fn what(verb: &str, api: ReportApi, namespace: &str) -> String {
    let kind = api.kind(!namespace.is_empty());
    format!("{verb} the {kind} {}", object_path(namespace, REPORT_NAME))
}

fn path(api: ReportApi, namespace: &str) -> String {
    target(api, !namespace.is_empty()).object_path(namespace, REPORT_NAME)
}

fn target(api: ReportApi, namespaced: bool) -> Target {
    let (group, version) = api.api_version().split_once('/').unwrap_or_default();
    let kind = api.kind(namespaced);
    Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        kind: kind.to_owned(),
        namespaced,
        ..Target::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_belongs_to_a_namespace_or_to_the_cluster() {
        let api = ReportApi::PolicyReport;
        assert_eq!(
            path(api, "shop"),
            "/apis/wgpolicyk8s.io/v1alpha2/namespaces/shop/policyreports/statusgate"
        );
        assert_eq!(path(api, ""), "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports/statusgate");
        assert_eq!(what("apply", api, "shop"), "apply the PolicyReport shop/statusgate");
        let api = ReportApi::OpenReports;
        assert_eq!(
            path(api, "shop"),
            "/apis/openreports.io/v1alpha1/namespaces/shop/reports/statusgate"
        );
        assert_eq!(path(api, ""), "/apis/openreports.io/v1alpha1/clusterreports/statusgate");
    }
}
