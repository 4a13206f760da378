//! The part of statusgate that decides: documents and objects in, verdicts out.
//!
//! ```text
//! documents ─► policy (parse, compile) ─► PolicySet ─► engine
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the vocabulary: JSON as borrowed text, pointers, the subject of a judgement |
//! | [`source`] | input text as trees with locations; diagnostics with carets |
//! | [`language`] | the words of predicates, one file each |
//! | [`documents`] | `StatusPolicy` and `StatusConvention` as types; their schemas and the structural check |
//! | [`kstatus`] | what kstatus concludes from an object: [`kstatus::compute`] |
//! | [`policy`] | documents as written, compiled to a [`policy::PolicySet`]; diagnostics |
//! | [`engine`] | [`engine::decide`]: the only place where a verdict is reached |
//! | [`schema`] | the schema of a CustomResourceDefinition: what the API server accepts and stores |
//! | [`request`] | the request for which a manifest is judged |
//! | [`wire`] | `admission.k8s.io/v1` in and out |
//! | [`admit`] | a review as bytes to its answer as bytes: [`admit::admit`] |
//! | [`values`], [`causes`] | what all commands share: values of arguments, and errors in one line |
//!
//! The crate is pure: no IO, no clock, no async and no Kubernetes client. Its Cargo.toml names none of
//! their crates, and it compiles for `wasm32-unknown-unknown` (`make wasm`).
//!
//! Begin with [`admit`] for a review, with [`policy`] for a document.

pub mod admit;
pub mod causes;
pub mod documents;
pub mod engine;
pub mod kstatus;
pub mod language;
pub mod model;
pub mod policy;
pub mod request;
pub mod schema;
pub mod source;
pub mod values;
pub mod wire;
