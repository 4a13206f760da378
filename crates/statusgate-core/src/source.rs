//! Text from files, folders and pipes: policies as trees with locations, manifests as JSON text.
//!
//! One reader builds both from the events of a YAML parser, in the dialect of each. Manifests are
//! everything that `kubectl` reads: YAML of several documents, JSON, JSON lines, `List`s and the output
//! of `kubectl get -o yaml`. Each object becomes JSON text, because the API server would see that JSON
//! and [`Object::parse`](crate::model::Object::parse) borrows from it. The tree of a `List` is kept; that
//! of any other document is built again only if its object has a finding. JSON never becomes a tree.
//!
//! AdmissionReviews, events of a watch and events of the audit log record how an object was written
//! ([`Record`]).
//!
//! Reading continues after a mistake. A broken document gives a [`Diagnostic`] in addition to the
//! objects of the others.
//!
//! ```
//! use statusgate_core::source::{Manifests, Source};
//!
//! let text = "apiVersion: g/v1\nkind: Thing\nstatus:\n  phase: Ready\n---\nbroken: [\n";
//! let files = [Source::new("things.yaml", text)];
//! let manifests = Manifests::read(&files);
//! let thing = manifests.iter().next().ok_or("there is one")?;
//! assert_eq!(thing.text, r#"{"apiVersion":"g/v1","kind":"Thing","status":{"phase":"Ready"}}"#);
//! assert_eq!(thing.place("status.phase").to_string(), "things.yaml:4:10");
//! assert_eq!(manifests.mistakes().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod diagnostic;
mod document;
mod export;
mod fields;
mod json;
mod manifest;
mod near;
mod objects;
mod place;
mod problems;
mod record;
mod stored;
mod text;
pub mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, Warning};
pub use document::json_at;
pub use fields::Places;
pub use json::{Members, kind_of, reason};
pub use manifest::{Manifest, Manifests};
pub use objects::Identity;
pub use place::{Place, json_as_yaml, one_line};
pub use record::{Record, RecordedRequest};
pub use stored::{ObjectKey, Stored};
pub use text::{STDIN, Source};
