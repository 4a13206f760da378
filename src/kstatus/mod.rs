//! What kstatus says of an object: the answer that `kubectl`-like tools, kpt, Flux and Argo-style
//! waits act on.
//!
//! kstatus (kubernetes-sigs/cli-utils, `pkg/kstatus/status`) is a library, and its behaviour *is* the
//! convention: what a tool concludes from a status is what that code returns, surprises included. So
//! this is no reading of its documentation but the same function, decision by decision, down to how
//! Go reads a field of the wrong type. `tests/kstatus` compares it with recorded answers.
//!
//! The reference is revision 5895ad6 (October 2025). Where a rule looks wrong (a Failed phase that
//! is Current, a Pod that failed and is Current), it is wrong there too, and on purpose stays so.
//!
//! ```
//! use statusgate::kstatus::{Status, compute};
//! use statusgate::model::Json;
//!
//! let object = Json::parse(r#"{"apiVersion": "a.example/v1", "kind": "A",
//!     "metadata": {"generation": 2}, "status": {"observedGeneration": 1}}"#)?;
//! let result = compute(&object, 0)?;
//! assert_eq!(result.status, Status::InProgress);
//! assert_eq!(result.conditions[0].reason, "LatestGenerationNotObserved");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregate;
mod builtin;
mod compute;
mod error;
mod fields;
mod job;
mod pod;
mod result;
mod workloads;

pub use aggregate::aggregate;
pub use compute::compute;
pub use error::ComputeError;
pub use result::{Condition, KStatus, Status};
