//! What people write (`StatusPolicy`, `StatusConvention`), and what the engine runs: compiled,
//! checked, indexed. Texts in, a [`PolicySet`] or [`Diagnostics`] out.

pub mod built_in;
pub mod cel;
mod checks;
mod claims;
mod compile;
pub mod convention;
mod defined;
mod document;
mod extends;
mod known;
mod mentioned;
mod near;
mod owners;
mod rules;
mod selected;
mod set;
mod settings;

pub use crate::documents::{
    Action, Check, Disposition, Field, FieldType, Format, Owner, Resources, Writer, Writers,
};
pub use crate::language::Glob;
pub use crate::model::Id;
pub use crate::source::{Diagnostic, Diagnostics, Source};
pub use cel::CelRule;
pub use checks::kebab;
pub use claims::Conflict;
pub use claims::overlap;
pub use defined::{Defined, DefinedVersions};
pub use document::Policy;
pub use rules::{DeclaredRule, RuleTable};
pub use selected::{Selected, Step};
pub use set::{Conventions, PolicySet, Skipped};
pub use settings::Misfit;
