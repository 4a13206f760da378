//! The page of a convention: all its content in words. [`super::render`] formats it for a terminal or as
//! Markdown.

mod lists;
mod phase;
mod tables;

pub(crate) use tables::MAX_COMBINATIONS;

use serde::Serialize;

use statusgate_analysis::line::{Line, Scope, lines};
use statusgate_analysis::words;
use statusgate_core::documents::{CopySource, MemberOf, Origin};
use statusgate_core::language::Predicate;
use statusgate_core::policy::Check;
use statusgate_core::policy::convention::{
    Backfill, Convention, Filling, Health, HealthRule, ResourceVersion, ValueSource, Writes,
};

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Block {
    /// The title of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Points.
    List(Vec<String>),
    /// A document in YAML.
    Code(String),
    /// Rows under a head. Columns without any content are not shown.
    Table {
        /// The names of the columns.
        head: Vec<String>,
        /// The cells.
        rows: Vec<Vec<String>>,
    },
}

/// The content of a convention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its name.
    pub title: String,
    /// The rest.
    pub blocks: Vec<Block>,
}

impl Page {
    /// Writes the page of a convention.
    pub fn of(convention: &Convention) -> Self {
        let mut page = Self { title: convention.name.clone(), blocks: Vec::new() };
        if !convention.title.is_empty() {
            page.text(format!("{}.", convention.title));
        }
        page.source(&convention.source);
        if !convention.differences.is_empty() {
            page.heading("Differences between the system and its documentation");
            page.list(convention.differences.clone());
        }
        page.stale_writers(&convention.resource_version);
        if convention.writes == Some(Writes::Together) {
            page.text("The writers send phase and conditions in one request. A write of only one of them is judged, too.");
        }
        let lines = lines(convention);
        for (index, list) in convention.conditions.iter().enumerate() {
            page.condition_list(list);
            page.violations(&lines, Scope::List(index));
        }
        page.generation(convention);
        page.violations(&lines, Scope::Generation);
        if let Some(rules) = &convention.phase {
            page.phase(rules);
            page.violations(&lines, Scope::Phase);
        }
        if let Some(health) = &convention.health {
            page.health(health);
        }
        page.fields(convention);
        page.rules(convention);
        page.backfill(convention);
        page.truth(convention);
        page
    }

    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub(crate) fn list(&mut self, points: Vec<String>) {
        if !points.is_empty() {
            self.blocks.push(Block::List(points));
        }
    }

    fn table<const N: usize>(&mut self, head: [&str; N], rows: Vec<[String; N]>) {
        if !rows.is_empty() {
            let rows = rows.into_iter().map(Vec::from).collect();
            self.blocks.push(Block::Table { head: head.map(str::to_owned).into(), rows });
        }
    }

    /// A section with only a table, unless that has no rows.
    fn section<const N: usize>(&mut self, title: &str, head: [&str; N], rows: Vec<[String; N]>) {
        if !rows.is_empty() {
            self.heading(title);
            self.table(head, rows);
        }
    }

    fn violations(&mut self, lines: &[Line<'_>], scope: Scope) {
        let rows = lines.iter().filter(|line| line.scope == scope).map(|line| {
            [line.sentence.clone(), words::action(line.action).to_owned(), line.id.to_owned()]
        });
        self.table(["violated where", "action", "rule"], rows.collect());
    }

    fn stale_writers(&mut self, version: &ResourceVersion) {
        self.heading("Stale writers");
        self.text(if version.always {
            "Every status write has a resourceVersion, so the API server rejects a status that was computed from \
             an old object (409 Conflict)."
        } else {
            "A writer with a stale cache may repeat a status that it wrote shortly before. No rule of a built-in \
             convention rejects that."
        });
        self.source(&version.source);
    }

    fn generation(&mut self, convention: &Convention) {
        let Some(rules) = &convention.generation else { return };
        self.heading("Generations");
        let paths: Vec<&str> = rules.paths.iter().flatten().map(|path| path.field()).collect();
        if paths.is_empty() {
            self.text("The observedGeneration of conditions is compared with metadata.generation.");
        } else {
            self.text(format!(
                "{} and the observedGeneration of conditions are compared with metadata.generation.",
                paths.join(", ")
            ));
        }
        self.source(&rules.source);
    }

    fn health(&mut self, health: &Health) {
        self.heading("Health");
        self.text("The first of these counts:");
        let (even_if_stale, others): (Vec<_>, Vec<_>) =
            health.rules.iter().partition(|rule| rule.even_if_stale);
        let fixed = |is: &str, when: String| [is.to_owned(), when, String::new(), String::new()];
        let mut rows = vec![fixed("terminating", "metadata.deletionTimestamp is set".to_owned())];
        rows.extend(even_if_stale.into_iter().map(health_row));
        rows.extend(health.observed_generation.iter().map(|path| {
            fixed("inProgress", format!("{} is behind metadata.generation", path.field()))
        }));
        rows.extend(others.into_iter().map(health_row));
        rows.push(fixed(health.default.name(), "otherwise".to_owned()));
        self.table(["health", "where", "rule", "source"], rows);
        self.text("A condition that observed an older generation is no evidence.");
    }

    fn fields(&mut self, convention: &Convention) {
        let fields = convention.fields.iter();
        let rows = fields.map(|field| requirement(field.path.field(), &field.check));
        self.section("Other fields", ["field", "requirement", "rule", "source"], rows.collect());
    }

    fn rules(&mut self, convention: &Convention) {
        let rows = convention.rules.iter().map(|rule| {
            [
                rule.rule.to_string(),
                rule.when.in_words(),
                rule.trigger.as_ref().map(words::trigger).unwrap_or_default(),
                words::action(rule.action).to_owned(),
                rule.message.to_string(),
                off_unless_enabled(rule.optional),
                rule.source.clone(),
            ]
        });
        let head = ["rule", "violated where", "looks at", "action", "message", "", "source"];
        self.section("Rules", head, rows.collect());
    }

    fn backfill(&mut self, convention: &Convention) {
        let rows = convention.backfill.iter().map(|fill| {
            let when = fill.when.as_ref().map(Predicate::in_words).unwrap_or_default();
            let off = off_unless_enabled(fill.optional);
            [fill.name.clone(), filling(fill), when, off, fill.source.clone()]
        });
        let head = ["name", "sets", "only where", "", "source"];
        self.section("Backfill", head, rows.collect());
    }

    pub(super) fn source(&mut self, source: &str) {
        if !source.is_empty() {
            self.text(format!("Source: {source}."));
        }
    }
}

fn health_row(rule: &HealthRule) -> [String; 4] {
    let (class, when) = match (rule.class(), &rule.when) {
        (Some(class), Some(when)) => {
            let list = rule.list.as_ref().map(|list| format!("in {}: ", list.field()));
            (class.to_string(), format!("{}{}", list.unwrap_or_default(), when.in_words()))
        }
        _ => ("that of the phase".to_owned(), "the phase has one".to_owned()),
    };
    [class, when, rule.name.to_string(), rule.source.clone()]
}

/// The row of a check: what it is about, what it requires, its rule and its source.
fn requirement(name: &str, check: &Check) -> [String; 4] {
    [name.to_owned(), words::check(check), check.rule.to_string(), check.source.clone()]
}

fn off_unless_enabled(optional: bool) -> String {
    if optional { "off unless a policy enables it".to_owned() } else { String::new() }
}

fn filling(fill: &Backfill) -> String {
    let path = fill.path().field();
    match &fill.filling {
        Filling::Absent(_) => format!("nothing: {path} stays absent, and a null is removed"),
        Filling::Field(_, sources) => format!("{path}: {}", sources_in_words(sources)),
        Filling::Member { member, sources, .. } => {
            format!("{member} of each element of {path}: {}", sources_in_words(sources))
        }
        Filling::Element { kind, members, .. } => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, sources)| format!("{name} {}", sources_in_words(sources)))
                .collect();
            format!("condition {kind} in {path}: {}", members.join(", "))
        }
        Filling::Steady { member, unless, .. } => {
            let same = unless.join(", ");
            format!("the stored {member} in each element of {path}, if {same} did not change")
        }
        Filling::SteadyStatus { times, .. } => {
            format!("the stored {path}, if only times changed ({})", times.join(", "))
        }
        Filling::AbsentMember { member, of, .. } => {
            let of = of.in_words();
            format!("nothing: {member} is removed from each element of {path} where {of}")
        }
        Filling::Unique(_) => {
            format!(
                "nothing: of the elements of {path} with one key, all but the newest are removed"
            )
        }
    }
}

fn sources_in_words(sources: &[ValueSource]) -> String {
    let words = sources.iter().map(|source| match source {
        ValueSource::Value(value) => value.to_string(),
        ValueSource::Copy(CopySource::Member(MemberOf { condition, member })) => {
            format!("the {member} of {condition}")
        }
        ValueSource::Copy(CopySource::Origin(origin)) => match origin {
            Origin::Stored => "the stored one".to_owned(),
            Origin::Transition => {
                "the stored one while the condition is the same, else the time of the write"
                    .to_owned()
            }
            Origin::Field(path) => path.field().to_owned(),
            metadata => metadata.to_string().trim_start_matches('/').replace('/', "."),
        },
    });
    words.collect::<Vec<_>>().join(", else ")
}
