//! The flags of every command that asks a cluster: where it is, and which objects.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::namespace;
use crate::cluster::{Cluster, ClusterError, Gap, Query, Target};

/// Where the cluster is.
#[derive(Debug, clap::Args)]
pub struct Connection {
    /// The kubeconfig. Default: what kubectl would take, or the service account in a pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, where it is not the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Which of the objects that policies match.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// Only objects in this namespace; leaves out kinds that have none.
    #[arg(short, long, value_name = "NAME", value_parser = namespace::parse)]
    namespace: Option<String>,

    /// Only objects that this label selector selects.
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
    /// A kubeconfig or a server that is of no use.
    pub async fn open(&self) -> Result<Cluster, ClusterError> {
        Cluster::connect(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

impl Selection {
    /// The objects of each kind.
    #[must_use]
    pub fn query(&self) -> Query {
        Query {
            namespace: self.namespace.clone().unwrap_or_default(),
            selector: self.selector.clone().unwrap_or_default(),
            ..Query::default()
        }
    }

    /// The kinds that are asked for. None, where policies are wrong about all of them: that is a
    /// problem of these (`gaps`) and not of what was asked, and whoever asks has to tell it.
    ///
    /// # Errors
    /// When there is none: a name that is wrong, or policies for another cluster.
    pub fn narrow(&self, targets: Vec<Target>, gaps: &[Gap]) -> anyhow::Result<Vec<Target>> {
        let wrong = || gaps.iter().filter(|gap| matches!(gap, Gap::WrongSubresource { .. }));
        if targets.is_empty() && wrong().next().is_none() {
            if gaps.iter().any(|gap| matches!(gap, Gap::Unavailable { .. })) {
                bail!("none of the resources that the policies name could be found here");
            }
            bail!("this cluster serves none of the resources that the policies name");
        }
        for name in self.resources.iter().chain(&self.kinds) {
            let asked = |target: &Target| is_resource(name, target) || is_kind(name, target);
            if !targets.iter().any(asked) && !wrong().any(|gap| is_of(name, gap)) {
                let known: Vec<String> = targets.iter().map(Target::name).collect();
                bail!("no policy judges a {name} here; there are {}", known.join(", "));
            }
        }
        let everything = self.resources.is_empty() && self.kinds.is_empty();
        let asked = |target: &Target| {
            everything
                || self.resources.iter().any(|name| is_resource(name, target))
                || self.kinds.iter().any(|name| is_kind(name, target))
        };
        let reachable = |target: &Target| target.namespaced || self.namespace.is_none();
        let mut found: Vec<Target> = targets.into_iter().filter(asked).collect();
        if found.is_empty() {
            return Ok(found);
        }
        found.retain(reachable);
        if found.is_empty() {
            bail!("none of these kinds lives in namespaces: leave --namespace out");
        }
        Ok(found)
    }

    /// Whether some objects of a namespace are left out.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.selector.is_some() || !self.resources.is_empty() || !self.kinds.is_empty()
    }

    /// What is gone over, in words that stay the same for the same selection.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut words = Vec::new();
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names.join(" ")
        };
        if let Some(namespace) = &self.namespace {
            words.push(format!("namespace {namespace}"));
        }
        if let Some(selector) = &self.selector {
            words.push(format!("selector {selector}"));
        }
        if !self.resources.is_empty() {
            words.push(format!("resources {}", sorted(&self.resources)));
        }
        if !self.kinds.is_empty() {
            words.push(format!("kinds {}", sorted(&self.kinds)));
        }
        if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
    }
}

/// Runs what talks to a cluster.
///
/// # Errors
/// When there is no runtime, and those of `work`.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // One thread: an object takes tens of microseconds, of which waking another thread for each
    // answer was a fifth, and an API server takes milliseconds to store it.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(work)
}

/// Whether a gap is about what is called so.
fn is_of(name: &str, gap: &Gap) -> bool {
    let Gap::WrongSubresource { resource, kind, .. } = gap else { return false };
    name == resource || resource.split('.').next() == Some(name) || name.eq_ignore_ascii_case(kind)
}

fn is_resource(name: &str, target: &Target) -> bool {
    name == target.plural || name == target.name()
}

fn is_kind(name: &str, target: &Target) -> bool {
    name.eq_ignore_ascii_case(&target.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        [("foos", "Foo", true), ("bars", "Bar", false)]
            .map(|(plural, kind, namespaced)| Target {
                group: "a.io".into(),
                version: "v1".into(),
                plural: plural.into(),
                kind: kind.into(),
                namespaced,
                status_subresource: true,
                policies: vec![0],
            })
            .into()
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
    fn kinds_are_named_in_any_of_their_ways() {
        assert_eq!(narrowed(&selection(None, &[], &[])).as_deref(), Ok("foos.a.io bars.a.io"));
        assert_eq!(narrowed(&selection(None, &["bars"], &[])).as_deref(), Ok("bars.a.io"));
        assert_eq!(narrowed(&selection(None, &["bars.a.io"], &[])).as_deref(), Ok("bars.a.io"));
        assert_eq!(narrowed(&selection(None, &[], &["foo"])).as_deref(), Ok("foos.a.io"));
        assert_eq!(narrowed(&selection(Some("n"), &[], &[])).as_deref(), Ok("foos.a.io"));
    }

    #[test]
    fn a_selection_of_nothing_is_a_mistake() {
        let unknown = narrowed(&selection(None, &["bazs"], &[])).unwrap_err();
        assert_eq!(unknown, "no policy judges a bazs here; there are foos.a.io, bars.a.io");
        assert!(narrowed(&selection(Some("n"), &["bars"], &[])).is_err());
        let everything = selection(None, &[], &[]);
        assert!(everything.narrow(Vec::new(), &gaps()[..1]).is_err());
    }

    #[test]
    fn what_a_policy_is_wrong_about_is_no_mistake_of_who_asks() {
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
