//! Health on a page.

use super::Page;
use crate::policy::convention::{Health, HealthRule};

impl Page {
    pub(super) fn health(&mut self, health: &Health) {
        self.heading("Health");
        self.text("The first of these counts:");
        let (even_if_stale, others): (Vec<_>, Vec<_>) =
            health.rules.iter().partition(|rule| rule.even_if_stale);
        let fixed = |is: &str, when: String| [is.to_owned(), when, String::new(), String::new()];
        let mut rows = vec![fixed("terminating", "metadata.deletionTimestamp is set".to_owned())];
        rows.extend(even_if_stale.into_iter().map(row));
        let observed = health.observed_generation.field();
        rows.push(fixed("inProgress", format!("{observed} is behind metadata.generation")));
        rows.extend(others.into_iter().map(row));
        rows.push(fixed(health.default.name(), "otherwise".to_owned()));
        self.table(["health", "where", "rule", "source"], rows);
        self.text("A condition that observed an older generation is no evidence.");
    }
}

fn row(rule: &HealthRule) -> [String; 4] {
    let (class, when) = match (rule.class(), &rule.when) {
        (Some(class), Some(when)) => {
            let list = rule.list.as_ref().map(|list| format!("in {}: ", list.field()));
            (class.to_string(), format!("{}{}", list.unwrap_or_default(), when.in_words()))
        }
        _ => ("that of the phase".to_owned(), "the phase has one".to_owned()),
    };
    [class, when, rule.name.to_string(), rule.source.clone()]
}
