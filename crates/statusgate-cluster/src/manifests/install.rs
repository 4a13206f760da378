//! The objects of an installation: `statusgate manifests install`.
//!
//! `deploy/` holds the output of this module for some settings, and the Helm chart renders the same
//! objects; tests compare both with it.

use serde_json::Value;
use serde_saphyr::SerializeError;

use super::registrations::FailurePolicy;
use super::yaml;
use statusgate_core::values;

/// The objects, with comments for people, in the order to create them. The lines between `#if` and `#end` depend
/// on the settings, and words that begin with `$` are replaced by their values.
const TEMPLATE: &str = include_str!("install/objects.yaml");

/// The settings of an installation, which are also arguments of `manifests install`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Installation {
    /// The namespace of the server.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system", value_parser = values::namespace)]
    pub namespace: String,

    /// The image of the server. No public registry has one: build the Dockerfile and push the image.
    #[arg(long, value_name = "IMAGE", default_value = concat!("statusgate:", env!("CARGO_PKG_VERSION")))]
    pub image: String,

    /// Where the serving certificate is from.
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "managed")]
    pub certificates: Certificates,

    /// The number of pods.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: u32,

    /// What API servers do with a write while no replica answers. For new registrations; `kubectl edit`
    /// changes existing ones.
    #[arg(long, value_name = "Ignore|Fail", ignore_case = true, default_value = "Ignore")]
    pub failure_policy: FailurePolicy,

    /// The priority class of the pods, for example system-cluster-critical.
    #[arg(long, value_name = "NAME", value_parser = values::dns_name)]
    pub priority_class: Option<String>,

    /// The oldest API server that has to accept the objects. Before 1.21, it does not serve version v1 of
    /// the PodDisruptionBudget.
    // Its minor version.
    #[arg(long, value_name = "VERSION", default_value = "1.27", value_parser = minor_version)]
    pub kubernetes_version: u32,

    /// Leave out a part. May be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    pub without: Vec<Part>,
}

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The CRDs of StatusPolicy and StatusConvention.
    Crds,
    /// Policies in the cluster, with their CRDs: the server reads the ConfigMap statusgate-policies.
    WatchPolicies,
    /// Managed registrations: print them with `statusgate manifests registrations`.
    ManageWebhooks,
}

/// The source of the serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Certificates {
    /// The server creates and renews it, in the Secret statusgate-tls.
    Managed,
    /// cert-manager creates and renews it.
    CertManager,
    /// You create the Secret statusgate-tls, and the caBundle of the registrations.
    Files,
}

/// Reads `1.27`, `v1.27` or `1.27.3`.
fn minor_version(text: &str) -> Result<u32, String> {
    let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
    let minor = minor.and_then(|rest| rest.split('.').next()?.parse().ok());
    minor.ok_or_else(|| format!("{text:?} is not a version of Kubernetes such as 1.27"))
}

impl Installation {
    /// The objects as YAML with comments. The CRDs are not among them.
    ///
    /// # Errors
    /// Those of the printer.
    pub fn print(&self) -> Result<String, SerializeError> {
        let mut text = String::new();
        // For each `#if` around a line, whether its condition is true.
        let mut conditions: Vec<bool> = Vec::new();
        for line in TEMPLATE.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("#if", name) => conditions.push(match name.strip_prefix('!') {
                    Some(name) => !self.has(name),
                    None => self.has(name),
                }),
                ("#else", _) => {
                    if let Some(last) = conditions.last_mut() {
                        *last = !*last;
                    }
                }
                ("#end", _) => drop(conditions.pop()),
                _ if conditions.iter().all(|condition| *condition) => {
                    text.push_str(line);
                    text.push('\n');
                }
                _ => {}
            }
        }
        for (name, value) in [
            ("$namespace", Value::from(self.namespace.as_str())),
            ("$replicas", self.replicas.into()),
            ("$api", self.has("api").into()),
            ("$priority-class", self.priority_class.as_deref().into()),
            ("$image", self.image.as_str().into()),
        ] {
            // A whole value may need quotes: a namespace may have the name 1.
            let whole = yaml::print(std::slice::from_ref(&value))?;
            text = text.replace(&format!(": {name}\n"), &format!(": {whole}"));
            text = text.replace(name, value.as_str().unwrap_or_default());
        }
        Ok(text)
    }

    /// Whether a part is not left out.
    pub fn includes(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    /// Whether a condition of the template is true.
    fn has(&self, condition: &str) -> bool {
        let managed = self.certificates == Certificates::Managed;
        let watch_policies = self.includes(Part::WatchPolicies);
        let manage_webhooks = self.includes(Part::ManageWebhooks);
        match condition {
            "watch-policies" => watch_policies,
            "manage-webhooks" => manage_webhooks,
            "managed" => managed,
            "cert-manager" => self.certificates == Certificates::CertManager,
            "registrations" => manage_webhooks || managed,
            "replicas" => watch_policies || managed,
            "api" => watch_policies || manage_webhooks || managed,
            "mounts" => !watch_policies || !managed,
            "fail" => self.failure_policy == FailurePolicy::Fail,
            "priority-class" => self.priority_class.is_some(),
            "1.21" => self.kubernetes_version >= 21,
            "1.27" => self.kubernetes_version >= 27,
            // A test proves that the template has no other conditions.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
