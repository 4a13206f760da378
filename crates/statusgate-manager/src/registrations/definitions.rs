//! The CustomResourceDefinitions of the cluster: which there are, and what those say that policies select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_cluster::registrations::{DefinitionEvent, Revision};
use statusgate_cluster::{Cluster, ClusterError};
use statusgate_core::policy::{Defined, DefinedVersions, PolicySet};

/// The definitions in the cluster: those that are known, and whether they are all.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) complete: bool,
    known: BTreeMap<String, Revision>,
}

impl Definitions {
    /// Returns whether the complete list differs. A changed status of a definition is no difference.
    pub(super) fn note(&mut self, change: DefinitionEvent) -> bool {
        let changed = match change {
            DefinitionEvent::Restarted => {
                *self = Self::default();
                false
            }
            DefinitionEvent::Present(name, revision) => {
                let known = self.known.insert(name, revision.clone());
                known.is_none_or(|known| known != revision)
            }
            DefinitionEvent::Deleted(name) => self.known.remove(&name).is_some(),
            DefinitionEvent::Complete => {
                self.complete = true;
                true
            }
        };
        changed && self.complete
    }

    /// Those that policies may select; `None` until all are known.
    pub(super) fn selected_by(&self, policies: &PolicySet) -> Option<BTreeMap<String, Revision>> {
        let selected = self.known.iter().filter(|(name, _)| policies.may_select(name));
        self.complete
            .then(|| selected.map(|(name, revision)| (name.clone(), revision.clone())).collect())
    }
}

/// The definitions that policies may select, as they were read.
#[derive(Default)]
pub(super) struct SelectedDefinitions {
    known: BTreeMap<String, Known>,
    /// Whether they differ from those in use.
    is_changed: bool,
    /// What their schemas reject, as it was logged: policies and causes.
    withheld: BTreeSet<(String, String)>,
}

/// A definition.
struct Known {
    revision: Revision,
    resource: CustomResource,
    /// Its versions, with their schemas around the fields that policies set.
    versions: Vec<Defined>,
    /// These policies.
    policies: Arc<PolicySet>,
}

impl Known {
    /// Whether policies set the same fields.
    fn fits(&self, policies: &Arc<PolicySet>) -> bool {
        let mut versions = self.versions.iter();
        Arc::ptr_eq(&self.policies, policies)
            || versions.all(|version| version.fields(policies) == version.fields(&self.policies))
    }
}

impl SelectedDefinitions {
    /// Reads those that changed, or that lack fields of these policies.
    pub(super) async fn read(
        &mut self,
        cluster: &Cluster,
        policies: &Arc<PolicySet>,
        revisions: BTreeMap<String, Revision>,
    ) -> Result<(), ClusterError> {
        let before = self.known.len();
        self.known.retain(|name, _| revisions.contains_key(name));
        self.is_changed |= self.known.len() != before;
        for (name, revision) in revisions {
            if let Some(known) = self.known.get_mut(&name)
                && known.revision == revision
                && known.fits(policies)
            {
                known.policies = Arc::clone(policies);
                continue;
            }
            let read = cluster.custom_resource(&name, |resource, text| {
                let definition = serde_json::from_slice(text).unwrap_or_default();
                let versions = Defined::served(&definition, cluster.minor()).into_iter();
                let versions = versions.map(|version| version.around(&version.fields(policies)));
                let (revision, policies) = (revision.clone(), Arc::clone(policies));
                Known { revision, resource, versions: versions.collect(), policies }
            });
            match read.await? {
                Some(known) => self.known.insert(name, known),
                None => self.known.remove(&name),
            };
            self.is_changed = true;
        }
        Ok(())
    }

    /// Their versions, if they differ from those of the last call.
    pub(super) fn take_changed(&mut self) -> Option<DefinedVersions> {
        let changed = std::mem::take(&mut self.is_changed);
        changed.then(|| self.versions().cloned().collect())
    }

    pub(super) fn resources(&self) -> Vec<CustomResource> {
        self.known.values().map(|known| known.resource.clone()).collect()
    }

    fn versions(&self) -> impl Iterator<Item = &Defined> {
        self.known.values().flat_map(|known| &known.versions)
    }

    /// Adds to the coverage of each policy what the schemas of its resources reject. Logs what is new.
    pub(super) fn add_withheld(
        &mut self,
        policies: &PolicySet,
        coverage: &mut BTreeMap<String, Coverage>,
    ) {
        let mut withheld = BTreeSet::new();
        for version in self.versions() {
            for policy in policies.policies().iter().filter(|policy| version.is_selected(policy)) {
                let misfits = version.misfits(policy).into_iter();
                for misfit in misfits.filter(|misfit| !misfit.is_pruned) {
                    let cause = format!("{}: {}", version.name, misfit.message);
                    if let Some(of) = coverage.get_mut(&*policy.name) {
                        of.withheld.push(cause.clone());
                    }
                    withheld.insert((policy.name.to_string(), cause));
                }
            }
        }
        for (policy, cause) in withheld.difference(&self.withheld) {
            tracing::warn!(policy, cause, "a schema rejects a value of a policy: it is withheld");
        }
        self.withheld = withheld;
    }
}
