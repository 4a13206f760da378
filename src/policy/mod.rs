//! What people write (`StatusPolicy`, `StatusConvention`), and what the engine runs: compiled,
//! checked, indexed. Pure: texts in, a [`PolicySet`] or [`Diagnostics`] out.

mod action;
pub mod cel;
pub mod convention;
mod declared;

mod document;
mod extends;
mod files;
mod json_schema;
mod known;
mod order;
mod owner;
mod predicate;
mod schema;
mod selected;
mod set;

pub use crate::source::{Diagnostic, Diagnostics, Source};
pub use action::{Action, Disposition};
pub use cel::CelRule;
pub use declared::Declared;
pub use document::{Owner, Policy, ResourceRule, WriterRule, Writers};
pub use files::{load, load_files};
pub use json_schema::DocumentKind;
pub(crate) use order::Step;
pub(crate) use owner::overlap;
pub use schema::{Check, FieldRule, FieldType, Format};
pub(crate) use selected::Selected;
pub use set::PolicySet;
