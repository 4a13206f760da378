//! A draft: its rules with their support, and their YAML.

use serde_json::{Map, Value, json};

use super::MAX_LINES;
use super::recording::Recording;
use super::text::{flow, scalar, shown};

/// A draft of a convention and of its policy, and questions to the author.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The name of the convention and of the policy.
    pub name: String,
    /// The convention that it extends; empty if none fits.
    pub base: String,
    title: String,
    source: String,
    resources: Value,
    pub(crate) entries: Vec<Entry>,
    /// What only the author knows, the most important first.
    pub questions: Vec<String>,
    /// How many rules were left out because of [`MAX_LINES`].
    pub left_out: usize,
}

/// One part of the convention.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The keys in `spec` that lead to it; items of lists by their `path`, `phase` or id.
    pub(crate) at: Vec<String>,
    pub(crate) value: Value,
    /// What shows it.
    support: String,
    /// The weakest is left out first.
    pub(crate) weight: u32,
    /// The second halves of the ids of its rules. A part without rules belongs to others.
    pub(crate) rules: Vec<String>,
}

/// A line of the document, and the entries in it.
pub(crate) struct Line {
    text: String,
    pub(crate) entries: Vec<usize>,
}

/// The bytes of the name of a document.
const MAX_NAME: usize = 63;

/// The questions that always have a place.
const MIN_QUESTIONS: usize = 6;

/// The keys whose content has lines of its own, and those of them that are lists.
const BLOCKS: [&str; 8] =
    ["conditions", "members", "types", "each", "phase", "values", "fields", "rules"];
const LISTS: [&str; 5] = ["conditions", "each", "values", "fields", "rules"];

/// The order of the keys of `spec`, then of those of a list. The others of a list come first.
const ORDER: [&str; 10] = [
    "without",
    "conditions",
    "generation",
    "phase",
    "fields",
    "rules",
    "transitionTime",
    "members",
    "types",
    "each",
];

impl Draft {
    pub(crate) fn new(recording: &Recording<'_>, base: &str) -> Self {
        let name = recording.name().to_ascii_lowercase();
        let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let count = format!("{} status writes of {} objects", recording.len(), recording.objects);
        let mut resources = json!({
            "apiGroups": [recording.group],
            "apiVersions": recording.versions,
            "resources": [recording.plural],
        });
        if !recording.has_subresource {
            resources["statusSubresource"] = false.into();
        }
        Self {
            name: name[..name.len().min(MAX_NAME)].trim_matches('-').to_owned(),
            base: base.to_owned(),
            title: format!("Draft for {} ({})", shown(&recording.kind), shown(&recording.name())),
            source: format!("statusgate draft, {count}"),
            resources,
            entries: Vec::new(),
            questions: Vec::new(),
            left_out: 0,
        }
    }

    pub(crate) fn add(
        &mut self,
        at: &[&str],
        value: Value,
        support: impl Into<String>,
        weight: u32,
        rules: &[&str],
    ) {
        let [at, rules] = [at, rules].map(|texts| texts.iter().map(|&text| text.into()).collect());
        self.entries.push(Entry { at, value, support: support.into(), weight, rules });
    }

    /// Leaves out the weakest rules until the document has at most [`MAX_LINES`].
    pub(crate) fn shorten(&mut self) {
        while self.lines().len() > MAX_LINES {
            if self.questions.len() > MIN_QUESTIONS {
                self.questions.pop();
                continue;
            }
            let rules =
                self.entries.iter().enumerate().filter(|(_, entry)| !entry.rules.is_empty());
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
        let extends = (!self.base.is_empty()).then(|| format!("  extends: {}", scalar(&self.base)));
        let mut lines = vec![
            "# What was recorded became a rule, also if it is a bug of the controller. Compare each rule with its code.".to_owned(),
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention".to_owned(),
            format!("metadata: {{name: {name}}}\nspec:\n  title: {}", scalar(&self.title)),
            format!("  source: {}", scalar(&self.source)),
        ];
        lines.extend(extends);
        let mut lines = plain(&lines.join("\n"));
        let all: Vec<usize> = (0..self.entries.len()).collect();
        self.block(&mut lines, &all, 0, "  ");
        let mut rest = format!(
            "---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec:\n  convention: {name}\n  \
             enforcement: Warn\n  resources:\n    - {}",
            flow(&self.resources)
        );
        if self.left_out > 0 {
            rest += &format!("\n# {} weaker rules were left out.", self.left_out);
        }
        if !self.questions.is_empty() {
            rest += &format!(
                "\n# Questions to you (comments only):\n# - {}",
                self.questions.join("\n# - ")
            );
        }
        lines.extend(plain(&rest));
        lines
    }

    /// The entries by their next key, in the order of the entries.
    fn groups(&self, indices: &[usize], depth: usize) -> Vec<(&str, Vec<usize>)> {
        let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
        for index in indices {
            let Some(key) = self.entries[*index].at.get(depth) else { continue };
            match groups.iter_mut().find(|(known, _)| known == key) {
                Some((_, group)) => group.push(*index),
                None => groups.push((key, vec![*index])),
            }
        }
        if depth == 0
            || (depth == 2
                && groups.iter().any(|(_, group)| self.entries[group[0]].at[0] == "conditions"))
        {
            groups.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
        }
        groups
    }

    /// The lines of entries that share their first keys.
    fn block(&self, lines: &mut Vec<Line>, indices: &[usize], depth: usize, indent: &str) {
        for (key, group) in self.groups(indices, depth) {
            let parent =
                depth.checked_sub(1).map(|parent| self.entries[group[0]].at[parent].as_str());
            let is_item = parent.is_some_and(|parent| LISTS.contains(&parent));
            // A type or a member can have any name.
            let is_named = matches!(parent, Some("types" | "members"));
            let is_block = !is_item && !is_named && BLOCKS.contains(&key);
            if parent == Some("conditions") || is_block {
                let heading =
                    if is_item { format!("- path: {}", scalar(key)) } else { format!("{key}:") };
                lines.extend(plain(&format!("{indent}{heading}")));
                self.block(lines, &group, depth + 1, &format!("{indent}  "));
                continue;
            }
            let mut value = self.value(&group, depth + 1);
            let text = match parent {
                Some("values") => {
                    value["phase"] = key.into();
                    format!("- {}", flow(&value))
                }
                _ if is_item => format!("- {}", flow(&value)),
                None if key == "without" => {
                    let names: Vec<&str> =
                        self.groups(&group, depth + 1).iter().map(|(name, _)| *name).collect();
                    format!("without: {}", flow(&names.into()))
                }
                _ => format!("{}: {}", scalar(key), flow(&value)),
            };
            let support = group.iter().map(|index| self.entries[*index].support.as_str());
            let support =
                support.filter(|support| !support.is_empty()).collect::<Vec<_>>().join("; ");
            let comment = if support.is_empty() { support } else { format!("  # {support}") };
            lines.push(Line { text: format!("{indent}{text}{comment}"), entries: group });
        }
    }

    /// The value of entries that share their first keys.
    fn value(&self, indices: &[usize], depth: usize) -> Value {
        let own = indices.iter().find(|index| self.entries[**index].at.len() == depth);
        let mut value =
            own.map_or_else(|| Map::new().into(), |index| self.entries[*index].value.clone());
        for (key, group) in self.groups(indices, depth) {
            value[key] = self.value(&group, depth + 1);
        }
        value
    }
}

/// Lines without entries.
fn plain(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line { text: line.to_owned(), entries: Vec::new() }).collect()
}
