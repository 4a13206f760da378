//! `admission.k8s.io/v1` on the wire: a review's bytes in, an answer's bytes out.
//!
//! Own types and not kube's: those copy and buffer the whole objects, and write the patch as a list
//! of numbers where the API server wants base64.

mod envelope;
mod response;
mod review;

pub use response::answer;
pub use review::{Identity, Review, ReviewError};
