//! `admission.k8s.io/v1` on the wire: parses a review, writes the response.
//!
//! The types of kube are not suitable: they copy and buffer complete objects, and write the patch as a
//! list of numbers instead of base64.

mod request;
mod response;
mod review;

pub use request::{AdmissionRequest, ReviewError, depth_of};
pub use response::{respond, respond_about_document};
