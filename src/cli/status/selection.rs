//! Which policies speak of an object: they name plurals, a manifest has a kind.

use crate::files::Identity;
use crate::policy::Policy;

/// The plural under which a policy selects an object; `None` where it does not.
///
/// Offline there is nobody to ask for the plural of a kind. One that the policy names and that can
/// be this kind's is right, for a policy that names it knows it (`vshnredis` is its own plural).
/// Where the policy has a star, `kubectl`'s guess must do.
pub(super) fn plural_under(policy: &Policy, identity: &Identity) -> Option<String> {
    let any =
        |globs: &[crate::policy::Glob], name: &str| globs.iter().any(|glob| glob.matches(name));
    let rules = || {
        policy.resources.iter().filter(|rule| {
            any(&rule.groups, identity.group()) && any(&rule.versions, identity.version())
        })
    };
    let kind = identity.kind.to_lowercase();
    let guess = guess(&kind);
    let candidates = [guess.clone(), kind.clone(), format!("{kind}s"), format!("{kind}es")];
    let named = candidates.iter().find(|candidate| {
        let mut globs = rules().flat_map(|rule| &rule.resources);
        globs.any(|glob| glob.exact() == Some(candidate.as_str()))
    });
    match named {
        Some(named) => Some(named.clone()),
        None => rules().any(|rule| any(&rule.resources, &guess)).then_some(guess),
    }
}

/// As `meta.UnsafeGuessKindToResource` of apimachinery makes it.
fn guess(kind: &str) -> String {
    match kind.as_bytes() {
        b"endpoints" => kind.to_owned(),
        [.., b's'] => format!("{kind}es"),
        [stem @ .., b'y'] => format!("{}ies", String::from_utf8_lossy(stem)),
        _ => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{PolicySet, Source};

    fn plural(resources: &str, kind: &str, api_version: &str) -> Option<String> {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: a}}\nspec:\n  \
             convention: appcat\n  resources:\n    - {{apiGroups: [g.example], apiVersions: [v1], \
             resources: {resources}}}\n"
        );
        let policies = PolicySet::compile(&[Source { name: "a.yaml".to_owned(), text }]).unwrap();
        let identity = Identity {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        plural_under(&policies.policies()[0], &identity)
    }

    #[test]
    fn the_plural_that_the_policy_names_wins_over_the_guess() {
        for (resources, kind, expected) in [
            ("[vshnredis]", "VSHNRedis", Some("vshnredis")),
            ("[xvshnpostgresqls]", "XVSHNPostgreSQL", Some("xvshnpostgresqls")),
            ("[helmrepositories]", "HelmRepository", Some("helmrepositories")),
            ("[gateways]", "Gateway", Some("gateways")),
            ("[ingresses]", "Ingress", Some("ingresses")),
            ("['*']", "HelmRepository", Some("helmrepositories")),
            ("['*', vshnredis]", "VSHNRedis", Some("vshnredis")),
            ("['x*']", "VSHNRedis", None),
            ("[things]", "Other", None),
        ] {
            let found = plural(resources, kind, "g.example/v1");
            assert_eq!(found.as_deref(), expected, "{resources} {kind}");
        }
    }

    #[test]
    fn group_and_version_must_match_too() {
        assert!(plural("[things]", "Thing", "g.example/v1").is_some());
        for other in ["g.example/v2", "h.example/v1", "v1"] {
            assert_eq!(plural("[things]", "Thing", other), None, "{other}");
        }
    }
}
