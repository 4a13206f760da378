//! Whether a registration is set up as it should be, whatever it is asked about.

use super::{Door, Hook};
use crate::cluster::Check;

/// Whether there is a registration for each webhook. `told` has what could not be read.
pub(super) fn presence(hooks: &[Hook], told: &[Check]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (door, lost) in [
        (Door::Mutating, "it sets no defaults and repairs nothing"),
        (Door::Validating, "it rejects nothing"),
    ] {
        let unread = told.iter().any(|check| check.subject == door.kind());
        if unread || hooks.iter().any(|hook| hook.door == door) {
            continue;
        }
        let message = format!("no registration calls statusgate: {lost}");
        let help = "apply deploy/base, or name the registration with --registration";
        // One of the two may be left out on purpose, both hardly.
        checks.push(if hooks.is_empty() {
            Check::problem("registration", door.kind(), message, help)
        } else {
            Check::warning("registration", door.kind(), message, help)
        });
    }
    checks
}

/// Whether the settings of a webhook are sane.
pub(super) fn sane(hook: &Hook) -> Vec<Check> {
    let subject = hook.subject();
    let mut checks = Vec::new();
    let mut warn = |id, message: String, help: &str| {
        checks.push(Check::warning(id, subject.clone(), message, help));
    };
    if hook.failure_policy == "Fail" && hook.door == Door::Mutating {
        let help =
            "set failurePolicy: Ignore; a default that is missing for minutes does less harm";
        warn(
            "failure-policy",
            "Fail: no status can be written while the webhook is down".into(),
            help,
        );
    }
    if hook.timeout > LONGEST_TIMEOUT {
        let message = format!("{} s: a status write may wait this long", hook.timeout);
        warn("timeout", message, "set timeoutSeconds: 5; a response takes less than a millisecond");
    }
    if hook.timeout < SHORTEST_TIMEOUT {
        let message =
            format!("{} s: too short for a server that sends Retry-After: 1", hook.timeout);
        warn("timeout", message, "set timeoutSeconds: 5");
    }
    if hook.match_policy == "Exact" {
        let message = "Exact: the webhook misses writes in other versions of a resource".into();
        warn("match-policy", message, "set matchPolicy: Equivalent");
    }
    if hook.door == Door::Mutating && hook.reinvocation_policy != "IfNeeded" {
        let message = "Never: the webhook misses the changes of later webhooks".into();
        warn("reinvocation", message, "set reinvocationPolicy: IfNeeded");
    }
    if hook.narrowed {
        let message = "a selector or a match condition excludes some objects".into();
        warn("selector", message, "no action is needed if this is intended");
    }
    if !hook.review_versions.iter().any(|version| version == "v1") {
        let message =
            format!("{:?} lacks v1: the API server cannot send a request", hook.review_versions);
        let help = "set admissionReviewVersions: [v1]";
        checks.push(Check::problem("review-versions", subject.clone(), message, help));
    }
    if !matches!(hook.side_effects.as_str(), "None" | "NoneOnDryRun") {
        let message = format!("{}: the API server rejects dry runs", hook.side_effects);
        checks.push(Check::problem(
            "side-effects",
            subject.clone(),
            message,
            "set sideEffects: None",
        ));
    }
    if let Some(path) = path(hook)
        && path != hook.door.path()
    {
        let message = format!("the path is {path:?}, but statusgate serves {}", hook.door.path());
        let help = format!("set path: {}", hook.door.path());
        checks.push(Check::problem("path", subject.clone(), message, help));
    }
    if checks.is_empty() {
        let message = format!("{}, {} s, {}", hook.failure_policy, hook.timeout, hook.match_policy);
        checks.push(Check::ok("settings", subject, message));
    }
    checks
}

fn path(hook: &Hook) -> Option<String> {
    match (&hook.service, &hook.url) {
        (Some(service), _) => Some(service.path.clone()),
        (None, Some(url)) => url.parse::<http::Uri>().ok().map(|url| url.path().to_owned()),
        (None, None) => None,
    }
}

/// Twice the default of `deploy/base`. The API server allows 30, and ends the whole request at 34.
const LONGEST_TIMEOUT: i32 = 10;

/// A server under load answers `Retry-After: 1`.
const SHORTEST_TIMEOUT: i32 = 2;

#[cfg(test)]
mod tests {
    use super::super::rules::tests::hook;
    use super::*;
    use crate::cluster::Level;

    fn told(change: impl FnOnce(&mut Hook)) -> Vec<(&'static str, Level)> {
        let mut hook = hook(Vec::new());
        hook.url = Some("https://statusgate.example.org/mutate".into());
        change(&mut hook);
        sane(&hook).iter().map(|check| (check.id, check.level)).collect()
    }

    #[test]
    fn the_settings_of_deploy_are_clean_and_each_departure_is_told() {
        assert_eq!(told(|_| {}), [("settings", Level::Ok)]);
        let warning = |id| [(id, Level::Warning)];
        let problem = |id| [(id, Level::Problem)];
        assert_eq!(told(|hook| hook.failure_policy = "Fail".into()), warning("failure-policy"));
        assert_eq!(told(|hook| hook.timeout = 30), warning("timeout"));
        assert_eq!(told(|hook| hook.timeout = 1), warning("timeout"));
        assert_eq!(told(|hook| hook.match_policy = "Exact".into()), warning("match-policy"));
        assert_eq!(told(|hook| hook.reinvocation_policy = "Never".into()), warning("reinvocation"));
        assert_eq!(told(|hook| hook.narrowed = true), warning("selector"));
        assert_eq!(
            told(|hook| hook.review_versions = vec!["v1beta1".into()]),
            problem("review-versions")
        );
        assert_eq!(told(|hook| hook.side_effects = "Some".into()), problem("side-effects"));
        let url = "https://statusgate.example.org/validate";
        assert_eq!(told(|hook| hook.url = Some(url.into())), problem("path"));
    }

    #[test]
    fn no_registration_at_all_is_a_problem_and_half_of_it_a_warning() {
        let levels = |hooks: &[Hook]| {
            presence(hooks, &[]).iter().map(|check| check.level).collect::<Vec<_>>()
        };
        assert_eq!(levels(&[]), [Level::Problem, Level::Problem]);
        assert_eq!(levels(&[hook(Vec::new())]), [Level::Warning]);
        let mut other = hook(Vec::new());
        other.door = Door::Validating;
        assert_eq!(levels(&[hook(Vec::new()), other]), []);
        let unread = Check::warning("registration", Door::Validating.kind(), "403", "");
        assert_eq!(presence(&[hook(Vec::new())], &[unread]), []);
    }
}
