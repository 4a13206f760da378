//! What the policies select in a cluster: the first step of audit and backfill.

use super::connection::{Connection, Selection};
use super::policies::Policies;
use super::{checks, say};
use statusgate_cluster::audit::Findings;
use statusgate_cluster::{CheckResult, Cluster, Gap, Query, Target, precheck};
use statusgate_core::causes::with_causes;
use statusgate_core::policy::PolicySet;

/// The flags of audit and backfill: policies, a cluster, and a part of its objects.
#[derive(Debug, clap::Args)]
pub(super) struct SurveyArgs {
    #[command(flatten)]
    pub(super) policies: Policies,

    #[command(flatten)]
    pub(super) connection: Connection,

    #[command(flatten)]
    pub(super) selection: Selection,
}

/// The cluster and its resources that are selected.
pub(super) struct Survey {
    pub(super) cluster: Cluster,
    pub(super) targets: Vec<Target>,
    /// Resources that policies name but that are not judged.
    pub(super) gaps: Vec<CheckResult>,
    /// API groups without a responding server.
    pub(super) unavailable: Vec<String>,
}

impl SurveyArgs {
    /// Connects and finds the targets, for a person who watches stderr.
    pub(super) async fn print(&self, policies: &PolicySet) -> anyhow::Result<Survey> {
        let cluster = self.connection.open().await?;
        let given = !self.policies.paths.is_empty();
        let survey =
            Survey::of(cluster, policies, given, &self.selection, checks::complain).await?;
        if survey.targets.is_empty() {
            say("no resources are left to judge");
        }
        Ok(survey)
    }
}

impl Survey {
    /// Finds the targets. `report` receives the gaps before the selection is applied: they may be the reason
    /// why it selects nothing. `given`: whether the policies are those of the user. The example policies name
    /// more than any cluster serves, which is no gap.
    pub(super) async fn of(
        cluster: Cluster,
        policies: &PolicySet,
        given: bool,
        selection: &Selection,
        report: impl FnOnce(&[CheckResult]),
    ) -> anyhow::Result<Self> {
        let mut found = cluster.targets(policies).await?;
        found.gaps.retain(|gap| given || !matches!(gap, Gap::NotServed { .. }));
        let gaps = precheck::gaps(&found);
        report(&gaps);
        let unavailable = found.unavailable().map(str::to_owned).collect();
        let targets = selection.narrow(found.list, &found.gaps)?;
        Ok(Self { cluster, targets, gaps, unavailable })
    }

    /// The number of objects of the targets, if the server reports it.
    pub(super) async fn count(&self, query: &Query) -> Option<u64> {
        let mut total = 0;
        for target in &self.targets {
            // The run itself reports why a target cannot be listed.
            total += self.cluster.count(target, query).await.ok()??;
        }
        Some(total)
    }

    /// The kinds and groups that an audit could not list, with the reason.
    pub(super) fn unreached(&self, findings: &Findings) -> Vec<String> {
        let groups = self.unavailable.iter();
        let groups =
            groups.map(|group| format!("cannot judge {group}: its server does not respond"));
        findings.failures.iter().map(|failure| with_causes(failure)).chain(groups).collect()
    }
}
