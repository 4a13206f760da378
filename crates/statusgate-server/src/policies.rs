//! The policies in use: those of files and those of the cluster, compiled together.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::telemetry::{Count, Counters, Declared, Metrics};
use statusgate_core::engine::phase_names;
use statusgate_core::policy::{DefinedVersions, Diagnostics, PolicySet, Skipped, Source};

/// The policies of a server. Clones share them. A set that does not compile never replaces the one in use.
#[derive(Clone)]
pub struct PolicyStore {
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
    sources: Arc<Mutex<Sources>>,
    metrics: Arc<Metrics>,
    published: watch::Sender<Arc<PolicySet>>,
}

/// The documents of the policies in use.
#[derive(Clone, Default)]
struct Sources {
    files: Vec<Source>,
    /// Of the cluster, the oldest first.
    documents: Vec<Source>,
    /// The schemas of the resources, as far as policies set fields in them.
    defined: Arc<DefinedVersions>,
}

impl PolicyStore {
    /// Compiles the documents of files.
    ///
    /// # Errors
    /// All mistakes in the documents.
    pub fn new(files: Vec<Source>, metrics: &Arc<Metrics>) -> Result<Self, Diagnostics> {
        let sources = Sources { files, ..Sources::default() };
        let snapshot = Snapshot::new(sources.compile()?, metrics);
        Ok(Self {
            published: watch::Sender::new(Arc::clone(&snapshot.policies)),
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            sources: Arc::new(Mutex::new(sources)),
            metrics: Arc::clone(metrics),
        })
    }

    /// The policies in use.
    pub fn current(&self) -> Arc<PolicySet> {
        Arc::clone(&self.snapshot.load().policies)
    }

    /// Receives each set of policies that is put into use.
    pub const fn published(&self) -> &watch::Sender<Arc<PolicySet>> {
        &self.published
    }

    /// The documents of the policies in use, without those of the cluster.
    pub fn files(&self) -> Vec<Source> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).files.clone()
    }

    /// Replaces the documents of files. Compiling takes milliseconds: do not call this on a worker that
    /// serves requests.
    ///
    /// # Errors
    /// All mistakes in the documents, together with those of the cluster. Nothing is replaced.
    pub fn replace_files(&self, files: Vec<Source>) -> Result<Arc<PolicySet>, Diagnostics> {
        self.replace(|sources| sources.files = files)
    }

    /// Replaces the documents of the cluster; the same rules apply.
    ///
    /// # Errors
    /// As for [`Self::replace_files`].
    pub fn replace_documents(&self, documents: Vec<Source>) -> Result<Arc<PolicySet>, Diagnostics> {
        self.replace(|sources| sources.documents = documents)
    }

    /// Replaces what is known of the resources: what their schemas reject is not set.
    pub fn replace_defined(&self, defined: DefinedVersions) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.defined = defined.into();
        let policies = PolicySet::clone(&self.current());
        self.publish(policies.with_defined(Arc::clone(&sources.defined)));
    }

    fn replace(&self, change: impl FnOnce(&mut Sources)) -> Result<Arc<PolicySet>, Diagnostics> {
        // Held while the documents are compiled: otherwise a change of the files and one of the cluster
        // could each replace the set without the change of the other. Reviews of objects do not take this lock.
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = sources.clone();
        change(&mut changed);
        let policies = self.publish(changed.compile()?);
        *sources = changed;
        Ok(policies)
    }

    fn publish(&self, policies: PolicySet) -> Arc<PolicySet> {
        let snapshot = Snapshot::new(policies, &self.metrics);
        let policies = Arc::clone(&snapshot.policies);
        self.snapshot.store(Arc::new(snapshot));
        self.published.send_replace(Arc::clone(&policies));
        policies
    }
}

/// One loaded set. Requests read policies and counters from the same snapshot, so that a position
/// means the same policy in both.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) policies: Arc<PolicySet>,
    pub(super) counters: Counters,
}

impl Snapshot {
    /// Creates the counters of all findings that are to be expected, so that `increase()` sees the
    /// first one too.
    pub(super) fn new(policies: PolicySet, metrics: &Metrics) -> Self {
        let each = policies.policies();
        metrics.server.policies.set(i64::try_from(each.len()).unwrap_or(i64::MAX));
        let declared = each.iter().map(|policy| Declared {
            name: &policy.name,
            rules: policy.rules().map(|(id, _)| id.to_string()).collect(),
            resources: policy.resource_names().collect(),
            phases: phase_names(&policy.convention).map(str::to_owned).collect(),
        });
        let counters = metrics.counters(declared);
        for policy in each {
            for (id, rule) in policy.rules().filter(|(_, rule)| !rule.optional) {
                for action in policy.actions_of(rule) {
                    let counter = counters.finding(policy.name.index(), id.index(), action);
                    counter.into_iter().for_each(Count::create);
                }
            }
        }
        Self { policies: Arc::new(policies), counters }
    }
}

/// Logs the documents of files that are no policies.
pub(super) fn log_skipped(policies: &PolicySet) {
    for Skipped { place, what } in policies.skipped() {
        tracing::info!(%place, what, "skipped a document that is not a policy or convention");
    }
}

impl Sources {
    fn compile(&self) -> Result<PolicySet, Diagnostics> {
        let Self { files, documents, defined } = self;
        let policies = PolicySet::compile_with_cluster(files, documents)?;
        Ok(policies.with_defined(Arc::clone(defined)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, plural: &str) -> Source {
        Source::new(
            name,
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
                 spec:\n  convention: metav1\n  resources:\n  - apiGroups: [a.io]\n    apiVersions: [v1]\n    \
                 resources: [{plural}]\n"
            ),
        )
    }

    fn names(store: &PolicyStore) -> Vec<String> {
        store.current().names().map(str::to_owned).collect()
    }

    #[test]
    fn files_and_documents_are_compiled_together_and_replaced_separately() {
        let metrics = Arc::new(Metrics::new(None));
        let store = PolicyStore::new(vec![policy("file", "foos")], &metrics).unwrap();
        store.replace_documents(vec![policy("document", "bars")]).unwrap();
        assert_eq!(names(&store), ["file", "document"]);
        store.replace_files(Vec::new()).unwrap();
        assert_eq!(names(&store), ["document"]);
        store.replace_documents(Vec::new()).unwrap();
        assert_eq!(names(&store), [""; 0]);
    }

    #[test]
    fn documents_that_do_not_compile_with_the_files_replace_nothing() {
        let metrics = Arc::new(Metrics::new(None));
        let store = PolicyStore::new(vec![policy("same", "foos")], &metrics).unwrap();
        let error = store.replace_documents(vec![policy("same", "bars")]).unwrap_err();
        assert!(error.to_string().contains("same"), "{error}");
        assert_eq!(names(&store), ["same"]);
        // The rejected documents are not compiled with the next change.
        store.replace_files(vec![policy("other", "foos")]).unwrap();
        assert_eq!(names(&store), ["other"]);
    }
}
