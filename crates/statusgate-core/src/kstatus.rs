//! The kstatus result of an object, which kpt, Flux and other tools use to wait for objects.
//!
//! kstatus (`pkg/kstatus/status` of a repository cli-utils) is a library, and its behavior *is* the
//! convention. So this is the same function, decision by decision, including how Go reads a field of
//! the wrong type. `tests/pure/kstatus` compares it with recorded results.
//!
//! The references are kubernetes-sigs/cli-utils 5895ad6 (October 2025) and fluxcd/cli-utils 967855f (May 2026). Rules that look wrong (a failed Pod is Current)
//! are the same there.
//!
//! ```
//! use statusgate_core::kstatus::{Fork, Status, compute};
//! use statusgate_core::model::Json;
//!
//! let object = Json::parse(r#"{"apiVersion": "a.example/v1", "kind": "A",
//!     "metadata": {"generation": 2}, "status": {"observedGeneration": 1}}"#)?;
//! let result = compute(&object, 0, Fork::KubernetesSigs)?;
//! assert_eq!(result.status, Status::InProgress);
//! assert_eq!(result.conditions[0].reason, "LatestGenerationNotObserved");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod compute;
mod error;
mod failure;
mod fields;
mod job;
mod pod;
mod result;
mod workloads;

pub use compute::{Fork, compute};
pub use error::ComputeError;
pub use failure::is_group_of_kubernetes;
pub(crate) use failure::{failure, is_of_kubernetes};
pub use result::{KStatus, StandardCondition, Status};
