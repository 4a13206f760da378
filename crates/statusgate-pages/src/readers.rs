//! Health in the formats of the tools that read it.
//!
//! A convention becomes one [`Program`] for each kind. Each reader has a file that writes programs in its format.

mod cel;
pub mod checks;
pub mod lua;
mod pattern;
pub mod program;
mod witness;

use indexmap::IndexSet;

use statusgate_core::language::Observed;
use statusgate_core::language::formula::{Comparison, Question};

pub use program::Program;
pub use witness::Witness;

/// A kind of objects with the programs of its versions.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The served versions that have a health, each with its program.
    pub versions: Vec<(String, Program)>,
    /// Whether the kind is known to have no other versions.
    pub complete: bool,
}

/// A tool that reads health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Argo CD.
    ArgoCd,
    /// Flux, in a Kustomization.
    Flux,
    /// Flux, in a HelmRelease.
    FluxHelmRelease,
    /// Crossplane's function-auto-ready.
    AutoReady,
    /// kro.
    Kro,
}

impl Readable {
    /// `Certificate.cert-manager.io`.
    pub fn name(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// `cert-manager.io/v1`.
    fn api_version(&self, version: &str) -> String {
        in_group(&self.group, version)
    }

    /// The kind with the programs in a language that cannot ask all questions.
    fn asking(&self, can_ask: fn(&Question) -> bool) -> Self {
        let versions = self.versions.iter();
        let versions =
            versions.map(|(version, program)| (version.clone(), program.asking(can_ask)));
        Self { versions: versions.collect(), ..self.clone() }
    }

    /// Where the health comes from: `convention cert-manager, statusgate 0.1.0`.
    pub fn origin(&self) -> String {
        let names: IndexSet<&str> =
            self.versions.iter().map(|(_, program)| program.convention.as_str()).collect();
        let several = if names.len() > 1 { "conventions" } else { "convention" };
        let names = Vec::from_iter(names).join(" and ");
        format!("{several} {names}, statusgate {}", env!("CARGO_PKG_VERSION"))
    }
}

impl Reader {
    /// What this reader cannot express.
    pub fn gaps(self, kind: &Readable) -> Vec<String> {
        let kind = kind.asking(match self {
            Self::ArgoCd => lua::can_ask,
            Self::Flux | Self::FluxHelmRelease | Self::AutoReady | Self::Kro => cel::can_ask,
        });
        let gaps = kind.versions.iter().flat_map(|(_, program)| program.gaps());
        gaps.collect::<IndexSet<String>>().into_iter().collect()
    }

    /// All.
    pub const ALL: [Self; 5] =
        [Self::ArgoCd, Self::Flux, Self::FluxHelmRelease, Self::AutoReady, Self::Kro];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "argocd",
            Self::Flux => "flux",
            Self::FluxHelmRelease => "flux-helmrelease",
            Self::AutoReady => "auto-ready",
            Self::Kro => "kro",
        }
    }

    /// The health of these kinds, ready to apply.
    pub fn export(self, kinds: &[Readable]) -> String {
        match self {
            Self::ArgoCd => lua::config_map(kinds),
            Self::Flux => checks::flux(kinds, ""),
            Self::FluxHelmRelease => checks::flux(kinds, "  waitStrategy:\n    name: poller\n"),
            Self::AutoReady => checks::auto_ready(kinds),
            Self::Kro => checks::kro(kinds),
        }
    }
}

/// The operator of a comparison, in CEL and in Lua.
const fn sign(how: Comparison) -> &'static str {
    match how {
        Comparison::AtLeast => ">=",
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::More => ">",
    }
}

/// The operator that compares an observedGeneration with the newest generation. `None` if each relation is admissible.
fn relation(among: &[Observed]) -> Option<&'static str> {
    let all = [Observed::Behind, Observed::Current, Observed::Ahead];
    match all.map(|relation| among.contains(&relation)) {
        [true, true, true] | [false, false, false] => None,
        [true, false, false] => Some("<"),
        [true, true, false] => Some("<="),
        [false, true, false] => Some("=="),
        [false, true, true] => Some(">="),
        [false, false, true] => Some(">"),
        [true, false, true] => Some("!="),
    }
}

/// `cert-manager.io/v1`, or the name alone in the core group.
fn in_group(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}
