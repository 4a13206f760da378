//! The flags of every command that connects to a cluster: where it is, and which objects.

use std::path::PathBuf;

use anyhow::{Context, bail};

use statusgate_cluster::{Cluster, ClusterError, Gap, Query, Target};
use statusgate_core::values;

/// Where the cluster is.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Connection {
    /// The kubeconfig. Default: the one that kubectl uses, or the service account of a pod.
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig. Default: the current context.
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
}

/// Restricts the objects that policies select.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(super) struct Selection {
    /// Only objects in this namespace. Excludes cluster-scoped kinds.
    #[arg(short, long, value_name = "NAME", value_parser = values::namespace)]
    namespace: Option<String>,

    /// Only objects that match this label selector.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only this resource: a plural, with or without its group. May be repeated.
    #[arg(long = "resource", value_name = "PLURAL[.GROUP]")]
    resources: Vec<String>,

    /// Only this kind. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// An invalid kubeconfig, or a server that does not respond.
    pub(super) async fn open(&self) -> Result<Cluster, ClusterError> {
        Cluster::connect(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

impl Selection {
    /// The query for the objects of each kind.
    pub(super) fn query(&self) -> Query {
        Query {
            namespace: self.namespace.clone().unwrap_or_default(),
            selector: self.selector.clone().unwrap_or_default(),
            ..Query::default()
        }
    }

    /// The selected targets. The result is empty if the policies have the wrong `statusSubresource`
    /// for all of them: `gaps` then contains the error, and the caller has to report it.
    ///
    /// # Errors
    /// When the selection matches nothing: a wrong name, or policies for another cluster.
    pub(super) fn narrow(&self, targets: Vec<Target>, gaps: &[Gap]) -> anyhow::Result<Vec<Target>> {
        let wrong = || gaps.iter().filter(|gap| matches!(gap, Gap::WrongSubresource { .. }));
        if targets.is_empty() && wrong().next().is_none() {
            if gaps.iter().any(|gap| matches!(gap, Gap::Unavailable { .. })) {
                bail!("cannot find any of the resources that the policies name");
            }
            bail!("this cluster serves none of the resources that the policies name");
        }
        let names = || self.resources.iter().chain(&self.kinds);
        for name in names() {
            let is_selected = targets.iter().any(|target| is_named(name, target));
            if !is_selected && !wrong().any(|gap| is_of(name, gap)) {
                let known: Vec<String> = targets.iter().map(Target::name).collect();
                bail!(
                    "no policy selects {name} in this cluster; selected are {}",
                    known.join(", ")
                );
            }
        }
        let mut found = targets;
        if names().next().is_some() {
            found.retain(|target| names().any(|name| is_named(name, target)));
        }
        if found.is_empty() {
            return Ok(found);
        }
        found.retain(|target| target.namespaced || self.namespace.is_none());
        if found.is_empty() {
            bail!("the selected kinds are cluster-scoped: omit --namespace");
        }
        Ok(found)
    }

    /// Whether some objects of a namespace are excluded.
    pub(super) const fn is_partial(&self) -> bool {
        self.selector.is_some() || !self.resources.is_empty() || !self.kinds.is_empty()
    }
}

/// Runs asynchronous work on one thread. Waking another thread for each response took a fifth of the
/// time per object, while the API server needs milliseconds to store one.
///
/// # Errors
/// When there is no runtime, and those of `work`.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_stack_size(crate::STACK)
        .build()
        .context("failed to start the runtime")?
        .block_on(work)
}

/// Whether a gap concerns the resource or kind with this name.
fn is_of(name: &str, gap: &Gap) -> bool {
    let Gap::WrongSubresource { resource, kind, .. } = gap else { return false };
    name == resource || resource.split('.').next() == Some(name) || name.eq_ignore_ascii_case(kind)
}

/// Whether this is a name of the resource or of its kind.
fn is_named(name: &str, target: &Target) -> bool {
    name == target.plural || name == target.name() || name.eq_ignore_ascii_case(&target.kind)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A resource of the group a.io that the first policy selects.
    pub(crate) fn target(plural: &str, kind: &str) -> Target {
        let [group, version, plural, kind] = ["a.io", "v1", plural, kind].map(str::to_owned);
        let (namespaced, status_subresource) = (true, true);
        Target { group, version, plural, kind, namespaced, status_subresource, policies: vec![0] }
    }

    fn selection(namespace: Option<&str>, resources: &[&str], kinds: &[&str]) -> Selection {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection {
            namespace: namespace.map(str::to_owned),
            selector: None,
            resources: owned(resources),
            kinds: owned(kinds),
        }
    }

    fn targets() -> Vec<Target> {
        vec![target("foos", "Foo"), Target { namespaced: false, ..target("bars", "Bar") }]
    }

    fn gaps() -> [Gap; 2] {
        let not_served = Gap::NotServed { policy: "p".into(), resource: "bazs.a.io".into() };
        let (policy, resource, kind) = ("p".into(), "wrongs.a.io".into(), "Wrong".into());
        [not_served, Gap::WrongSubresource { policy, resource, kind, served: false }]
    }

    fn narrowed(selection: &Selection) -> Result<String, String> {
        let found = selection.narrow(targets(), &gaps()).map_err(|error| error.to_string())?;
        Ok(found.iter().map(Target::name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn kinds_can_be_selected_by_plural_resource_and_kind() {
        assert_eq!(narrowed(&selection(None, &[], &[])).as_deref(), Ok("foos.a.io bars.a.io"));
        assert_eq!(narrowed(&selection(None, &["bars"], &[])).as_deref(), Ok("bars.a.io"));
        assert_eq!(narrowed(&selection(None, &["bars.a.io"], &[])).as_deref(), Ok("bars.a.io"));
        assert_eq!(narrowed(&selection(None, &[], &["foo"])).as_deref(), Ok("foos.a.io"));
        assert_eq!(narrowed(&selection(None, &["Foo"], &[])).as_deref(), Ok("foos.a.io"));
        assert_eq!(narrowed(&selection(None, &[], &["bars.a.io"])).as_deref(), Ok("bars.a.io"));
        assert_eq!(narrowed(&selection(Some("n"), &[], &[])).as_deref(), Ok("foos.a.io"));
    }

    #[test]
    fn a_selection_that_matches_nothing_is_an_error() {
        let unknown = narrowed(&selection(None, &["bazs"], &[])).unwrap_err();
        assert_eq!(
            unknown,
            "no policy selects bazs in this cluster; selected are foos.a.io, bars.a.io"
        );
        assert!(narrowed(&selection(Some("n"), &["bars"], &[])).is_err());
        let everything = selection(None, &[], &[]);
        assert!(everything.narrow(Vec::new(), &gaps()[..1]).is_err());
    }

    #[test]
    fn a_wrong_policy_is_not_an_error_of_the_selection() {
        for (resources, kinds) in
            [(&["wrongs"][..], &[][..]), (&["wrongs.a.io"], &["wrong"]), (&[], &["Wrong"])]
        {
            for namespace in [None, Some("n")] {
                assert_eq!(narrowed(&selection(namespace, resources, kinds)).as_deref(), Ok(""));
            }
        }
        let both = selection(None, &["wrongs", "bars"], &[]);
        assert_eq!(narrowed(&both).as_deref(), Ok("bars.a.io"));
        assert_eq!(selection(None, &[], &[]).narrow(Vec::new(), &gaps()).unwrap(), []);
    }
}
