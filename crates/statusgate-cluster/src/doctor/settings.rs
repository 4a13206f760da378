//! The settings of registrations that do not depend on policies.

use super::hook::Hook;
use super::{CheckResult, about_objects};
use crate::manifests::registrations::HookKind;
use statusgate_core::model::Webhook;

/// Checks that both webhooks about objects are registered. `unread` contains the kinds that could not be listed.
pub(super) fn presence(hooks: &[Hook], unread: &[(HookKind, String)]) -> Vec<CheckResult> {
    let mut checks = Vec::new();
    for (kind, reason) in unread {
        let help = format!("allow this account to list {}", kind.plural());
        checks.push(CheckResult::warning("registration", kind.name(), reason, help));
    }
    for (kind, webhook, lost) in [
        (HookKind::Mutating, Webhook::Mutate, "it sets no defaults and repairs nothing"),
        (HookKind::Validating, Webhook::Validate, "every status is stored"),
    ] {
        let is_unread = unread.iter().any(|(unread, _)| *unread == kind);
        if is_unread || about_objects(hooks, kind).next().is_some() {
            continue;
        }
        let message = format!("no registration calls {}: {lost}", webhook.path());
        let help =
            "apply `statusgate manifests install`, or name the registration with --registration";
        // Some may be omitted on purpose, but not all.
        checks.push(if hooks.iter().all(Hook::is_about_documents) {
            CheckResult::problem("registration", kind.name(), message, help)
        } else {
            CheckResult::warning("registration", kind.name(), message, help)
        });
    }
    checks
}

/// Checks the settings of a webhook.
pub(super) fn sane(hook: &Hook) -> Vec<CheckResult> {
    let subject = hook.subject();
    let is_mutating = hook.kind == HookKind::Mutating;
    let settings = &hook.settings;
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let (failure_policy, match_policy) =
        (word(&settings.failure_policy), word(&settings.match_policy));
    let timeout = settings.timeout_seconds.unwrap_or_default();
    let mut checks = Vec::new();
    let mut warn = |id, message: String, help: &str| {
        checks.push(CheckResult::warning(id, subject.clone(), message, help));
    };
    if failure_policy == "Fail" && hook.is_about_documents() {
        let message = "Fail: no policy can be corrected while the webhook is down".into();
        warn("failure-policy", message, "set failurePolicy: Ignore");
    }
    if timeout > LONGEST_TIMEOUT {
        let message = format!("{timeout} s: a status write may wait this long");
        let help = "set timeoutSeconds: 5; a response takes less than a millisecond";
        warn("timeout", message, help);
    }
    if timeout < SHORTEST_TIMEOUT {
        let message = format!("{timeout} s: too short for a server that sends Retry-After: 1");
        warn("timeout", message, "set timeoutSeconds: 5");
    }
    if match_policy == "Exact" {
        let message = "Exact: the webhook misses writes in other versions of a resource".into();
        warn("match-policy", message, "set matchPolicy: Equivalent");
    }
    if is_mutating && settings.reinvocation_policy.as_deref() != Some("IfNeeded") {
        let message = "Never: the webhook misses the changes of later webhooks".into();
        warn("reinvocation", message, "set reinvocationPolicy: IfNeeded");
    }
    if hook.is_narrow() {
        let message = "a selector or a match condition excludes some objects".into();
        warn("selector", message, "no action is needed if this is intended");
    }
    let mut fail = |id, message: String, help: &str| {
        checks.push(CheckResult::problem(id, subject.clone(), message, help));
    };
    let versions = &settings.admission_review_versions;
    if !versions.iter().any(|version| version == "v1") {
        let message = format!("{versions:?} lacks v1: the API server cannot send a request");
        fail("review-versions", message, "set admissionReviewVersions: [v1]");
    }
    if !matches!(settings.side_effects.as_str(), "None" | "NoneOnDryRun") {
        let message = format!("{}: the API server rejects dry runs", settings.side_effects);
        fail("side-effects", message, "set sideEffects: None");
    }
    let served = hook.webhook().path();
    if let Some(path) = hook.path().filter(|path| path != served && !hook.is_about_documents()) {
        let message = format!("the path is {path:?}, but statusgate serves {served}");
        fail("path", message, &format!("set path: {served}"));
    }
    if checks.is_empty() {
        let message = format!("{failure_policy}, {timeout} s, {match_policy}");
        checks.push(CheckResult::ok("settings", subject, message));
    }
    checks
}

/// Twice the default of `manifests registrations`. The API server allows 30, and ends the whole request at 34.
const LONGEST_TIMEOUT: i32 = 10;

/// A server under load sends `Retry-After: 1`.
const SHORTEST_TIMEOUT: i32 = 2;

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;

    use super::super::rules::tests::hook;
    use super::*;
    use crate::Level;

    fn found(change: impl FnOnce(&mut MutatingWebhook)) -> Vec<(&'static str, Level)> {
        let mut hook = hook(Vec::new());
        hook.settings.client_config.url = Some("https://statusgate.example.org/mutate".into());
        change(&mut hook.settings);
        sane(&hook).iter().map(|check| (check.id, check.level)).collect()
    }

    #[test]
    fn the_settings_of_deploy_are_clean_and_deviations_are_reported() {
        assert_eq!(found(|_| {}), [("settings", Level::Ok)]);
        let warning = |id| [(id, Level::Warning)];
        let problem = |id| [(id, Level::Problem)];
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(found(|hook| hook.failure_policy = text("Fail")), [("settings", Level::Ok)]);
        assert_eq!(found(|hook| hook.timeout_seconds = Some(30)), warning("timeout"));
        assert_eq!(found(|hook| hook.timeout_seconds = Some(1)), warning("timeout"));
        assert_eq!(found(|hook| hook.match_policy = text("Exact")), warning("match-policy"));
        assert_eq!(found(|hook| hook.reinvocation_policy = text("Never")), warning("reinvocation"));
        assert_eq!(
            found(|hook| hook.admission_review_versions = vec!["v1beta1".into()]),
            problem("review-versions")
        );
        assert_eq!(found(|hook| hook.side_effects = "Some".into()), problem("side-effects"));
        let url = "https://statusgate.example.org/validate";
        assert_eq!(found(|hook| hook.client_config.url = text(url)), problem("path"));
    }

    #[test]
    fn no_registration_is_a_problem_and_a_missing_part_a_warning() {
        let levels = |hooks: &[Hook]| {
            presence(hooks, &[]).iter().map(|check| check.level).collect::<Vec<_>>()
        };
        let validating = |path: &str| {
            let mut hook = Hook { kind: HookKind::Validating, ..hook(Vec::new()) };
            hook.settings.client_config.url = Some(format!("https://statusgate{path}"));
            hook
        };
        let mutating = || hook(Vec::new());
        assert_eq!(levels(&[]), [Level::Problem; 2]);
        assert_eq!(levels(&[validating("/documents")]), [Level::Problem; 2]);
        assert_eq!(levels(&[mutating()]), [Level::Warning]);
        assert_eq!(levels(&[mutating(), validating("/validate")]), []);
        let unread = [(HookKind::Validating, "403".to_owned())];
        let checks = presence(&[hook(Vec::new())], &unread);
        assert_eq!(checks.iter().map(|check| &*check.message).collect::<Vec<_>>(), ["403"]);
    }
}
