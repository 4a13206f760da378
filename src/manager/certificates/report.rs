//! What the logs and metrics report about the steps of the rotation.

use crate::tls::rotation::{Facts, Pause, Step};

/// Logs a step that is stored in the Secret. `reason` is why the previous content is unusable.
pub(super) fn written(step: &Step, secret: &str, reason: &str, facts: &Facts) {
    let not_after = facts.leaf.validity.not_after;
    match step {
        Step::Create { .. } if reason.is_empty() => {
            tracing::info!(secret, %not_after, "created the Secret of the managed certificate");
        }
        Step::Create { .. } => {
            tracing::warn!(secret, reason, "replaced an invalid Secret by new certificates");
        }
        Step::Restore => {
            tracing::warn!(secret, reason, "wrote back the Secret of the managed certificate");
        }
        Step::Trust => tracing::warn!(
            secret,
            "the Secret was replaced: added the authority of the certificate in use to ca.crt"
        ),
        Step::AddAuthority(validity) => {
            let (authority, not_after) = (&facts.newest.id, validity.not_after);
            tracing::info!(secret, authority, %not_after, "added a new authority to ca.crt");
        }
        Step::Issue { late: true, .. } => {
            tracing::warn!(
                secret,
                %not_after,
                "the certificate was not valid by the clock of this server: issued a new one"
            );
        }
        Step::Issue { .. } => tracing::info!(secret, %not_after, "issued a new certificate"),
        Step::Retire => {
            tracing::info!(
                secret,
                "removed the older authorities from ca.crt: no replica uses them"
            );
        }
        Step::Serve | Step::Wait(..) => {}
    }
}

/// Logs what the rotation waits for.
pub(super) fn pause(pause: Pause) {
    match pause {
        Pause::Registrations => {
            tracing::info!("the next certificate waits until every caBundle has its authority");
        }
        Pause::Replicas => {
            tracing::info!("older authorities stay until all replicas use the newest one");
        }
        Pause::Rescue => {
            tracing::info!("waiting for another replica to write back the Secret");
        }
        Pause::Renewal => {}
    }
}

/// The label of a step in metrics.
pub(super) const fn name(step: &Step) -> &'static str {
    match step {
        Step::Create { .. } => "create",
        Step::Restore => "restore",
        Step::Trust => "trust",
        Step::AddAuthority(_) => "add_authority",
        Step::Issue { .. } => "issue",
        Step::Retire => "retire",
        Step::Serve => "serve",
        Step::Wait(..) => "wait",
    }
}
