//! Names of groups, versions and plurals that no resource can have.
//!
//! A CustomResourceDefinition may use a DNS subdomain as group, and DNS-1035 labels as version and plural:
//! <https://github.com/kubernetes/apiextensions-apiserver/blob/v0.34.0/pkg/apis/apiextensions/validation/validation.go>.
//! The names of built-in resources follow the same rules.

use super::Glob;

/// Why a name matches nothing, and the fix.
pub(crate) type Unmatchable = (String, String);

/// Why no API group matches.
pub(crate) fn group(glob: &Glob) -> Option<Unmatchable> {
    let name = glob.to_string();
    if let Some((group, version)) = name.split_once('/') {
        let message = format!("the group \"{name}\" has a version in it");
        let help = format!("write \"{group}\" here, and \"{version}\" in apiVersions");
        return Some((message, help));
    }
    let fits = |name: &str| name.chars().all(|letter| in_label(letter) || letter == '.');
    let example = "a group is a domain in lower case, such as example.com";
    (!fits(&name)).then(|| unmatchable("API group", &name, lower(&name, fits), example))
}

/// Why no API version matches.
pub(crate) fn version(glob: &Glob) -> Option<Unmatchable> {
    let name = glob.to_string();
    if let Some((group, version)) = name.split_once('/') {
        let message = format!("the version \"{name}\" has a group in it");
        let help = format!("write \"{version}\" here, and \"{group}\" in apiGroups");
        return Some((message, help));
    }
    let near = lower(&name, is_label).or_else(|| lower(&format!("v{name}"), is_label));
    let example = "a version is a word such as v1 or v2beta1";
    (!is_label(&name)).then(|| unmatchable("API version", &name, near, example))
}

/// Why no plural matches.
pub(crate) fn plural(glob: &Glob) -> Option<Unmatchable> {
    let name = glob.to_string();
    if name.contains('/') {
        let message = "write the plural without its subresource".to_owned();
        let help =
            "statusgate selects status writes automatically; see statusSubresource".to_owned();
        return Some((message, help));
    }
    if let Some((plural, group)) = name.split_once('.') {
        let message = format!("the resource \"{name}\" has a group in it");
        let help = format!("write \"{plural}\" here, and \"{group}\" in apiGroups");
        return Some((message, help));
    }
    // Upper case is a kind, often in the singular.
    let near = lower(&name, is_label).map(|name| match name.ends_with(['s', '*']) {
        true => name,
        false => plural_of_kind(&name),
    });
    let example = "a resource is a plural in lower case, such as deployments";
    (!is_label(&name)).then(|| unmatchable("resource", &name, near, example))
}

/// The plural that the English name of a kind suggests: apimachinery's `UnsafeGuessKindToResource`, with two
/// additions: a vowel before the y, and sibilants other than s. apimachinery guesses `gatewaies`, and
/// discovery corrects it.
pub fn plural_of_kind(kind: &str) -> String {
    let singular = kind.to_ascii_lowercase();
    if let Some(stem) = singular.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    // The only built-in kind in the plural.
    if singular == "endpoints" {
        return singular;
    }
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end));
    format!("{singular}{}", if sibilant { "es" } else { "s" })
}

fn unmatchable(what: &str, name: &str, near: Option<String>, example: &str) -> Unmatchable {
    let help = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => example.to_owned(),
    };
    (format!("no {what} can have the name \"{name}\""), help)
}

/// The name in lower case, if that fits.
fn lower(name: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    Some(name.to_ascii_lowercase()).filter(|name| fits(name))
}

/// Whether a DNS-1035 label can match.
fn is_label(name: &str) -> bool {
    name.chars().all(in_label)
        && name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '*')
        && !name.ends_with('-')
}

fn in_label(letter: char) -> bool {
    matches!(letter, 'a'..='z' | '0'..='9' | '-' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_real_resources_match() {
        for name in ["", "apps", "*", "*.services.k8s.aws", "rbac.authorization.k8s.io"] {
            assert_eq!(group(&name.into()), None, "{name}");
        }
        // The version of a custom resource may be any word.
        for name in ["v1", "v1alpha1", "v2*", "*beta1", "*", "v1beta1-build3", "latest"] {
            assert_eq!(version(&name.into()), None, "{name}");
        }
        for name in ["pods", "vshnredis", "*", "x*s", "*-things"] {
            assert_eq!(plural(&name.into()), None, "{name}");
        }
    }

    #[test]
    fn guesses_follow_english() {
        for (kind, plural) in [
            ("Gateway", "gateways"),
            ("HelmRepository", "helmrepositories"),
            ("Ingress", "ingresses"),
            ("Switch", "switches"),
            ("Box", "boxes"),
            ("Endpoints", "endpoints"),
            ("Kafka", "kafkas"),
        ] {
            assert_eq!(plural_of_kind(kind), plural);
        }
    }
}
