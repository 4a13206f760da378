//! `statusgate manifests registrations`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::super::connection::{Connection, block_on};
use super::super::plurals::read_crds;
use super::super::policies::Policies;
use super::super::{Outcome, print, say};
use statusgate_cluster::manifests::registrations::{
    Address, Calls, FailurePolicy, RegistrationSettings, has_match_conditions, https_url,
    registrations,
};
use statusgate_cluster::manifests::rules::gaps;
use statusgate_cluster::manifests::yaml;
use statusgate_core::values;

/// The arguments of `manifests registrations`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints YAML for kubectl apply. The rules name the custom resources that the policies \
                  select, and never a built-in kind.\n\n\
                  Exit code 0: the rules cover every resource that a policy names. 1: some have no rule; \
                  they are listed on stderr, and the registrations are printed. 2: a file cannot be read, \
                  or the API server does not respond."
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    policies: Policies,

    /// CustomResourceDefinitions: a file, a folder, or `-` for standard input. May be repeated.
    #[arg(long, value_name = "PATH", required_unless_present = "from_cluster")]
    crds: Vec<PathBuf>,

    /// Read the definitions and the version from a cluster.
    #[arg(long, conflicts_with = "crds")]
    from_cluster: bool,

    #[command(flatten)]
    connection: Connection,

    /// The namespace of statusgate. Its objects are not judged.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system", value_parser = values::namespace)]
    namespace: String,

    /// The Service of statusgate, in its namespace, with port 443.
    #[arg(long, value_name = "NAME", default_value = "statusgate")]
    service: String,

    /// The address of a server outside the cluster, such as https://127.0.0.1:8443, instead of the Service.
    #[arg(long, value_name = "URL", value_parser = https_url, conflicts_with = "service")]
    url: Option<String>,

    /// The PEM certificates for caBundle. Default: none, cert-manager or statusgate adds them.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// What happens to a write while no replica answers. The webhook for policies always
    /// ignores failures.
    #[arg(long, value_name = "Ignore|Fail", ignore_case = true, default_value = "Ignore")]
    failure_policy: FailurePolicy,

    /// The version of the API server, such as 1.33. Since 1.28, match conditions omit unnecessary requests.
    /// Default: the version of the cluster; without a cluster, no match conditions.
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
}

/// Prints the registrations.
///
/// # Errors
/// When policies, definitions or certificates cannot be read.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let authorities = args.ca_file.as_deref().map(authorities).transpose()?.unwrap_or_default();
    let (resources, version) = if args.from_cluster {
        block_on(async {
            let cluster = args.connection.open().await?;
            let resources = cluster.custom_resources(&policies, |resource, _| resource).await?;
            Ok((resources, Some(cluster.version().to_owned())))
        })?
    } else {
        (read_crds(&args.crds, true)?, None)
    };
    let version = args.kubernetes_version.clone().or(version);
    let address = match &args.url {
        Some(url) => Address::Url(url.clone()),
        None => Address::Service(args.service.clone()),
    };
    let settings = RegistrationSettings {
        namespace: args.namespace.clone(),
        address,
        authorities,
        failure_policy: args.failure_policy,
    };
    let match_conditions = version.is_some_and(|version| has_match_conditions(&version));
    let calls = Calls::of(&policies, &resources, match_conditions);
    print(&yaml::print(&registrations(&calls, &settings))?)?;
    let gaps = gaps(&policies, &resources);
    for gap in &gaps {
        let (policy, resource) = (&gap.policy, &gap.resource);
        say(format_args!("policy {policy}: no rule for {resource}: {}", gap.reason.describe()));
    }
    Ok(Outcome::of(!gaps.is_empty()))
}

/// The certificates of a file, without the rest: a key in it must not be printed.
fn authorities(path: &Path) -> anyhow::Result<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let blocks = text.split(BEGIN).skip(1).filter_map(|block| Some(block.split_once(END)?.0));
    let blocks: Vec<String> = blocks.map(|block| format!("{BEGIN}{block}{END}\n")).collect();
    if blocks.is_empty() {
        bail!("{} contains no PEM certificate", name());
    }
    Ok(blocks.concat())
}
