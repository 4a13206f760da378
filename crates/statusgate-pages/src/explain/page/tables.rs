//! The truth tables on a page, in few lines.

use indexmap::IndexMap;

use super::{Block, Page};
use statusgate_analysis::facts::{Answer, Fact, Space};
use statusgate_analysis::minimize::Cube;
use statusgate_analysis::table::{self, PhaseOutcome, Table};
use statusgate_analysis::words;
use statusgate_core::policy::convention::{Convention, PhaseRules};

/// A table of rules with more lines than this is split into one for each rule.
const READABLE: usize = 24;

/// Combinations of one rule that are walked for a page: some seconds of work, in a debug build.
pub(crate) const MAX_COMBINATIONS: usize = 1 << 15;

/// The limit for several rules, which can have separate tables.
const MAX_OF_SEVERAL: usize = 1 << 12;

const ADMISSIBLE: &str = "admissible";
const REPAIR: &str = "Repair chooses";

impl Page {
    pub(super) fn truth(&mut self, convention: &Convention) {
        match &convention.phase {
            Some(rules) if table::has_evidence(rules) => self.truth_of_phase(convention, rules),
            phase => {
                if phase.is_some() {
                    self.heading("Truth table");
                    self.text("No phase has evidence: each is admissible in every state.");
                }
                self.truth_of_rules(convention);
            }
        }
    }

    fn truth_of_phase(&mut self, convention: &Convention, rules: &PhaseRules) {
        self.heading("Truth table");
        let table = match Table::of_phase(convention, rules) {
            Ok(table) => table,
            Err(space) => return self.too_many(&space),
        };
        self.text(format!(
            "All {} combinations of the facts that evidence depends on. An empty cell means any value.",
            table.rows.len()
        ));
        let in_words = |combination: &[usize], outcome: &PhaseOutcome| {
            let stored = table.space.answer(&Fact::Phase { old: true }, combination);
            outcome_in_words(rules, outcome, stored)
        };
        let lines = table.collapsed(|combination, outcome| {
            let (admissible, repair) = in_words(combination, outcome);
            Some(vec![admissible, repair])
        });
        if lines.len() <= READABLE {
            self.lines(&table.space, &lines, &[ADMISSIBLE, REPAIR]);
            return;
        }
        // Two questions, and two tables that can be read: they depend on different facts.
        let lines =
            table.collapsed(|combination, outcome| Some(vec![in_words(combination, outcome).0]));
        self.lines(&table.space, &lines, &[ADMISSIBLE]);
        self.text("The phase that Repair chooses instead of an inadmissible one:");
        let lines = table.collapsed(|combination, outcome| {
            let (admissible, repair) = in_words(combination, outcome);
            Some(vec![if repair.is_empty() { admissible } else { repair }])
        });
        self.lines(&table.space, &lines, &[REPAIR]);
    }

    fn lines(&mut self, space: &Space, lines: &[(Cube, Vec<String>)], what: &[&str]) {
        let facts = space.facts.len();
        let outcomes = what.iter().map(|name| (*name).to_owned());
        let head = space.facts.keys().map(Fact::label).chain(outcomes).collect();
        let rows = lines.iter().map(|(cube, outcome)| {
            let cells = (0..facts).map(|fact| cube.label(space, fact));
            cells.chain(outcome.iter().cloned()).collect()
        });
        self.blocks.push(Block::Table { head, rows: rows.collect() });
    }

    fn truth_of_rules(&mut self, convention: &Convention) {
        if convention.rules.is_empty() {
            return;
        }
        self.heading("Truth table of the rules");
        self.text("The states in which a rule is violated. An empty cell means any value.");
        for group in groups(convention) {
            if !self.truth_of_group(convention, &group, READABLE) {
                for rule in group {
                    self.truth_of_group(convention, &[rule], usize::MAX);
                }
            }
        }
    }

    /// Whether the table of these rules has no more lines than is readable, and so was added.
    fn truth_of_group(&mut self, convention: &Convention, rules: &[usize], most: usize) -> bool {
        let combinations = if rules.len() == 1 { MAX_COMBINATIONS } else { MAX_OF_SEVERAL };
        let table = match Table::of_rules(convention, rules, combinations) {
            Ok(table) => table,
            Err(space) if rules.len() == 1 => {
                self.too_many(&space);
                return true;
            }
            Err(_) => return false,
        };
        let lines = table.collapsed(|_, firing| {
            let rules = firing.iter().filter_map(|rule| convention.rules.get(*rule));
            let names = rules.map(|rule| {
                format!("{} ({})", words::short_id(&rule.rule), words::action(rule.action))
            });
            (!firing.is_empty()).then(|| vec![names.collect::<Vec<_>>().join(", ")])
        });
        if lines.len() > most {
            return false;
        }
        self.lines(&table.space, &lines, &["violated"]);
        true
    }

    fn too_many(&mut self, space: &Space) {
        self.text(format!(
            "The combinations of {} are too many for a table.",
            words::any_of(space.facts.keys().map(Fact::label)).replace(" or ", " and ")
        ));
    }
}

/// Rules that share a fact share a table.
fn groups(convention: &Convention) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<Fact>, Vec<usize>)> = Vec::new();
    for rule in 0..convention.rules.len() {
        let (mut facts, mut members) = (table::facts_of_rule(convention, rule), vec![rule]);
        let (joined, rest): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(known, _)| known.iter().any(|fact| facts.contains(fact)));
        groups = rest;
        for (known, others) in joined {
            facts.extend(known);
            members.extend(others);
        }
        members.sort_unstable();
        groups.push((facts, members));
    }
    groups.sort_by(|(_, one), (_, other)| one.cmp(other));
    groups.into_iter().map(|(_, members)| members).collect()
}

/// The admissible phases, and what Repair chooses where another one was written.
fn outcome_in_words(
    rules: &PhaseRules,
    outcome: &PhaseOutcome,
    stored: Option<&Answer>,
) -> (String, String) {
    let name = |at: usize| rules.phases.get(at).map(|phase| phase.name.clone()).unwrap_or_default();
    if let Some(imposed) = outcome.imposed {
        return (format!("{} is imposed", name(imposed)), String::new());
    }
    let (inside, outside): (Vec<usize>, Vec<usize>) =
        (0..rules.phases.len()).partition(|at| outcome.admissible.get(*at) == Some(&true));
    let names = |places: &[usize]| places.iter().map(|at| name(*at)).collect::<Vec<_>>().join(", ");
    let admissible = words::shortest(&names(&inside), &names(&outside));
    let mut choices: IndexMap<String, Vec<usize>> = IndexMap::new();
    for at in outside {
        let choice = match outcome.repairs.get(at).copied().flatten().map(name) {
            None => "nothing".to_owned(),
            Some(chosen) if stored.is_some_and(|stored| stored.label() == chosen) => {
                "the stored phase".to_owned()
            }
            Some(chosen) => chosen,
        };
        choices.entry(choice).or_default().push(at);
    }
    let parts = choices.iter().map(|(chosen, of)| match choices.len() {
        1 => chosen.clone(),
        _ => format!("{chosen} for {}", names(of)),
    });
    (admissible, parts.collect::<Vec<_>>().join("; "))
}
