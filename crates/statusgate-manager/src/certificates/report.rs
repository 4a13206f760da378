//! What the logs and metrics report about the steps of the rotation.

use statusgate_tls::rotation::{Pause, RotationStep, SecretSummary};

/// Logs a step that is stored in the Secret. `reason` is why the previous content is unusable.
pub(super) fn written(step: &RotationStep, secret: &str, reason: &str, summary: &SecretSummary) {
    let not_after = summary.leaf.validity.not_after;
    match step {
        RotationStep::Create { .. } if reason.is_empty() => {
            tracing::info!(secret, %not_after, "created the Secret of the managed certificate");
        }
        RotationStep::Create { .. } => {
            tracing::warn!(secret, reason, "replaced an invalid Secret by new certificates");
        }
        RotationStep::Restore => {
            tracing::warn!(secret, reason, "wrote back the Secret of the managed certificate");
        }
        RotationStep::Trust => tracing::warn!(
            secret,
            "the Secret was replaced: added the authority of the certificate in use to ca.crt"
        ),
        RotationStep::AddAuthority(validity) => {
            let (authority, not_after) = (&summary.newest.id, validity.not_after);
            tracing::info!(secret, authority, %not_after, "added a new authority to ca.crt");
        }
        RotationStep::Issue { late: true, .. } => {
            tracing::warn!(
                secret,
                %not_after,
                "the certificate was not valid by the clock of this server: issued a new one"
            );
        }
        RotationStep::Issue { .. } => {
            tracing::info!(secret, %not_after, "issued a new certificate")
        }
        RotationStep::Retire => {
            tracing::info!(
                secret,
                "removed the older authorities from ca.crt: no replica uses them"
            );
        }
        RotationStep::Serve | RotationStep::Wait(..) => {}
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
pub(super) const fn name(step: &RotationStep) -> &'static str {
    match step {
        RotationStep::Create { .. } => "create",
        RotationStep::Restore => "restore",
        RotationStep::Trust => "trust",
        RotationStep::AddAuthority(_) => "add_authority",
        RotationStep::Issue { .. } => "issue",
        RotationStep::Retire => "retire",
        RotationStep::Serve => "serve",
        RotationStep::Wait(..) => "wait",
    }
}
