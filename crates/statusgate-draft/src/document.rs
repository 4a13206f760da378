//! A draft: its rules with their support, and their YAML.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::recording::Recording;
use super::text::{flow, scalar, shown};
use super::{MAX_LINES, MIN_OBJECTS};

/// A draft of a convention and of its policy, and questions to the author.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The name of the convention and of the policy.
    pub name: String,
    /// The convention that it extends; empty if none fits.
    pub base: String,
    resources: Value,
    pub(crate) entries: Vec<Entry>,
    /// What only the author knows, the most important first.
    pub questions: Vec<String>,
    /// How many rules and questions were left out because of [`MAX_LINES`].
    pub left_out: usize,
}

/// One part of the convention.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// The keys in `spec` that lead to it; items of lists by their `path`, `phase` or id.
    pub(crate) at: Vec<String>,
    pub(crate) value: Value,
    support: String,
    pub(crate) weight: u32,
    /// The second halves of the ids of its rules. A part without rules belongs to others.
    pub(crate) rules: Vec<String>,
}

impl Entry {
    /// What shows it.
    pub(crate) fn support(&mut self, text: impl Into<String>) -> &mut Self {
        self.support = text.into();
        self
    }

    /// A rule of it, with the objects that show it. The rule of the least weight is left out first.
    pub(crate) fn rule(&mut self, id: &str, objects: u32) -> &mut Self {
        self.weight = objects;
        self.rules.push(id.to_owned());
        self
    }

    pub(crate) fn has_rule(&self, id: &str) -> bool {
        self.rules.iter().any(|own| own == id)
    }
}

/// A line of the document.
pub(crate) struct Line {
    text: String,
    /// The first keys of its entries; none if it has no entries.
    pub(crate) at: Vec<String>,
}

/// The bytes of the name of a document.
const MAX_NAME: usize = 63;

/// The questions. The less important ones need the place of rules.
const MAX_QUESTIONS: usize = 10;

/// The keys whose content has lines of its own, and those of them that are lists.
const BLOCKS: [&str; 8] =
    ["conditions", "members", "types", "each", "phase", "values", "fields", "rules"];
const LISTS: [&str; 5] = ["conditions", "each", "values", "fields", "rules"];

/// The order of the keys of `spec`, and of those of a list. The others come first.
const ORDER: [&str; 6] = ["without", "conditions", "generation", "phase", "fields", "rules"];
const LIST_ORDER: [&str; 4] = ["transitionTime", "members", "types", "each"];

impl Draft {
    pub(crate) fn new(recording: &Recording<'_>, base: &str) -> Self {
        let (resource, objects) = (recording.name(), recording.objects);
        let name = resource.to_ascii_lowercase();
        let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let mut resources = json!({
            "apiGroups": [recording.group],
            "apiVersions": recording.versions,
            "resources": [recording.plural],
        });
        if !recording.has_subresource {
            resources["statusSubresource"] = false.into();
        }
        let name = name[..name.len().min(MAX_NAME)].trim_matches('-').to_owned();
        let mut draft = Self { name, base: base.to_owned(), resources, ..Self::default() };
        let (kind, writes) = (shown(&recording.kind), recording.writes.len());
        draft.add(&["title"], format!("Draft for {kind} ({})", shown(&resource)));
        let source = format!("statusgate draft, {writes} status writes of {objects} objects");
        draft.add(&["source"], source);
        if !base.is_empty() {
            draft.add(&["extends"], base);
        }
        if objects < MIN_OBJECTS {
            let few = format!("{objects} objects were recorded, and a rule needs {MIN_OBJECTS}");
            draft.questions.push(few + ": record more");
        }
        if recording.left_out > 0 {
            draft.questions.push(format!("{} more writes were not read", recording.left_out));
        }
        draft
    }

    pub(crate) fn add(&mut self, at: &[&str], value: impl Into<Value>) -> &mut Entry {
        let (index, at) = (self.entries.len(), at.iter().map(|&key| key.into()).collect());
        self.entries.push(Entry { at, value: value.into(), ..Entry::default() });
        &mut self.entries[index]
    }

    /// Leaves out the last questions, and the weakest rules until the document has at most [`MAX_LINES`].
    pub(crate) fn shorten(&mut self) {
        self.left_out += self.questions.len().saturating_sub(MAX_QUESTIONS);
        self.questions.truncate(MAX_QUESTIONS);
        while self.lines().len() > MAX_LINES {
            let entries = self.entries.iter().enumerate();
            let rules = entries.filter(|(_, entry)| !entry.rules.is_empty());
            let Some((weakest, _)) = rules.min_by_key(|(_, entry)| entry.weight) else { return };
            self.entries.remove(weakest);
            self.left_out += 1;
        }
    }

    /// Both documents as YAML.
    pub fn to_yaml(&self) -> String {
        self.lines().into_iter().map(|line| line.text + "\n").collect()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let name = scalar(&self.name);
        let mut lines = plain(&format!(
            "# What was recorded became a rule, also if it is a bug of the controller. Compare each rule with its code.\n\
             apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: {name}}}\nspec:"
        ));
        block(&mut lines, &self.entries.iter().collect::<Vec<_>>(), 0);
        let mut end = format!(
            "---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec:\n  convention: {name}\n  \
             enforcement: Warn\n  resources:\n    - {}\n",
            flow(&self.resources)
        );
        if self.left_out > 0 {
            end += &format!("# {} weaker rules and questions were left out.\n", self.left_out);
        }
        if !self.questions.is_empty() {
            end += &format!(
                "# Questions to you (comments only):\n# - {}",
                self.questions.join("\n# - ")
            );
        }
        lines.extend(plain(&end));
        lines
    }
}

/// Lines without entries.
fn plain(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line { text: line.to_owned(), at: Vec::new() }).collect()
}

/// The lines of entries that share their first keys.
fn block(lines: &mut Vec<Line>, entries: &[&Entry], depth: usize) {
    let indent = "  ".repeat(depth + 1);
    for (key, group) in groups(entries, depth) {
        let at = &group[0].at[..=depth];
        let parent = if let [.., parent, _] = at { parent } else { "" };
        let is_item = LISTS.contains(&parent);
        // A type or a member can have any name.
        let is_named = matches!(parent, "types" | "members");
        let has_parts = group.iter().any(|entry| entry.at.len() > depth + 1);
        let is_block = !is_item && !is_named && BLOCKS.contains(&key);
        if is_block || (parent == "conditions" && has_parts) {
            let name = scalar(key);
            let heading = if is_item { format!("- path: {name}") } else { format!("{name}:") };
            lines.extend(plain(&format!("{indent}{heading}")));
            block(lines, &group, depth + 1);
            continue;
        }
        let mut value = value(&group, depth + 1);
        if key == "without" && depth == 0 {
            value = groups(&group, 1).into_iter().map(|(name, _)| name).collect();
        }
        let start = if is_item { "- ".to_owned() } else { format!("{}: ", scalar(key)) };
        let mut text = format!("{indent}{start}{}", flow(&value));
        let supports = group.iter().map(|entry| entry.support.as_str());
        let supports: Vec<&str> = supports.filter(|support| !support.is_empty()).collect();
        if !supports.is_empty() {
            text += &format!("  # {}", supports.join("; "));
        }
        lines.push(Line { text, at: at.to_vec() });
    }
}

/// The entries by their next key, in the order of the entries.
fn groups<'d>(entries: &[&'d Entry], depth: usize) -> Vec<(&'d str, Vec<&'d Entry>)> {
    let mut groups: IndexMap<&str, Vec<&Entry>> = IndexMap::new();
    for entry in entries {
        if let Some(key) = entry.at.get(depth) {
            groups.entry(key).or_default().push(entry);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let order: &[&str] = match depth {
        0 => &ORDER,
        2 if entries[0].at[0] == "conditions" => &LIST_ORDER,
        _ => &[],
    };
    groups.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    groups
}

/// The value of entries that share their first keys.
fn value(entries: &[&Entry], depth: usize) -> Value {
    let own = entries.iter().find(|entry| entry.at.len() == depth);
    let mut value_of_group = own.map_or_else(|| json!({}), |entry| entry.value.clone());
    for (key, group) in groups(entries, depth) {
        value_of_group[key] = value(&group, depth + 1);
    }
    value_of_group
}
