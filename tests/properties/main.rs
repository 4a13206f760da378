//! What holds for every policy, every stored status and every write. The statuses use the words of the
//! policy's convention and contain hostile values.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

mod argo_cd;
#[path = "../support/case.rs"]
mod case;
mod exports;
mod health_checks;
#[path = "../support/health_objects.rs"]
mod health_objects;
mod judging;
mod list_shortcuts;
mod match_conditions;
#[path = "../support/settings.rs"]
mod settings;
mod several_policies;
mod stale_writer;
#[path = "../support/statuses.rs"]
mod statuses;
#[path = "../support/mod.rs"]
mod support;
