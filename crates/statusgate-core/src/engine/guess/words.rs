//! What the words of a status say.

use crate::documents::HealthStatus;

/// What a word says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Bad,
    Paused,
    Working,
    Good,
    /// Something that happened once: absent is bad, present proves nothing.
    Milestone,
}

const BAD: &str = "failed failure failing error errors errored degraded stalled invalid unhealthy \
     rejected aborted fatal misconfigured noncompliant unavailable broken crashed red";
const PAUSED: &str = "paused suspended stopped hibernated disabled";
const WORKING: &str = "pending waiting queued inprogress progress yellow new";
/// Words with the ending of work that say something else.
const NO_WORK: &str = "nothing missing running";
const GOOD: &str = "ready available healthy succeeded success successful complete completed finished \
     synced synchronized reconciled active deployed enabled stable connected approved \
     online up installed provisioned applied valid accepted programmed compliant \
     established green bound ok";
const MILESTONES: &str = "created initialized registered running scheduled configured launched admitted \
     resolved validated built";
/// Conditions that are False until the work is done.
const GOALS: &str = "complete completed succeeded finished available";
const NEGATIONS: &str = "not un in non no partially";

/// A longer text is a sentence.
const LONGEST_WORD: usize = 60;

impl Says {
    /// The health of an object with this word; none if the word proves nothing.
    pub(super) const fn health(self) -> Option<HealthStatus> {
        match self {
            Self::Bad => Some(HealthStatus::Failed),
            Self::Paused => Some(HealthStatus::Suspended),
            Self::Working => Some(HealthStatus::InProgress),
            Self::Good => Some(HealthStatus::Current),
            Self::Milestone => None,
        }
    }
}

/// What the last word of a text says: `DependenciesInstalled` is installed.
pub(super) fn says(text: &str) -> Option<Says> {
    if text.len() > LONGEST_WORD {
        return None;
    }
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (first, last) = (*words.first()?, *words.last()?);
    let is_sentence = text.contains(' ');
    if lists(WORKING, first) || is_sentence && first.ends_with("ing") {
        return Some(Says::Working);
    }
    if words.len() > 1 && ["no", "without"].contains(&first) {
        return None;
    }
    let is_negated = ["not", "partially"].contains(&first)
        || words.iter().rev().nth(1).is_some_and(|before| lists(NEGATIONS, before));
    let is_bad = lists(BAD, last)
        || ["failed", "error", "invalid"].contains(&first)
        || last == "occurred" && words.contains(&"error");
    match () {
        () if is_bad => Some(Says::Bad),
        () if lists(PAUSED, last) || first == "inactive" => Some(Says::Paused),
        () if lists(WORKING, last) => Some(Says::Working),
        () if last.ends_with("ing") && !lists(NO_WORK, last) => Some(Says::Working),
        () if is_negated => Some(Says::Working),
        () if lists(GOOD, last) => Some(Says::Good),
        () if lists(MILESTONES, last) => Some(Says::Milestone),
        () => None,
    }
}

/// Whether a condition of this type is False until the work is done.
pub(super) fn is_goal(kind: &str) -> bool {
    tokens(kind).last().is_some_and(|last| lists(GOALS, last))
}

fn lists(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

/// The words of a text in camel case, or with other characters between them, in lower case.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_ascii_alphanumeric() {
            let ends_acronym = before.is_ascii_uppercase()
                && letter.is_ascii_uppercase()
                && letters.peek().is_some_and(char::is_ascii_lowercase);
            let continues = before.is_ascii_alphanumeric()
                && before.is_ascii_digit() == letter.is_ascii_digit()
                && (before.is_ascii_uppercase() || !letter.is_ascii_uppercase())
                && !ends_acronym;
            match tokens.last_mut().filter(|_| continues) {
                Some(token) => token.push(letter.to_ascii_lowercase()),
                None => tokens.push(letter.to_ascii_lowercase().to_string()),
            }
        }
        before = letter;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_divided_into_words() {
        for (text, words) in [
            ("DependenciesInstalled", &["dependencies", "installed"][..]),
            ("HTTPRouteReady", &["http", "route", "ready"]),
            ("not-ready yet", &["not", "ready", "yet"]),
            ("Phase2Done", &["phase", "2", "done"]),
            ("RUNNING", &["running"]),
            ("", &[]),
        ] {
            assert_eq!(tokens(text), words, "{text}");
        }
    }

    #[test]
    fn the_last_word_decides_unless_it_is_negated() {
        for (text, expected) in [
            ("DependenciesInstalled", Some(Says::Good)),
            ("InstallFailed", Some(Says::Bad)),
            ("ReconcileErrorOccurred", Some(Says::Bad)),
            ("NotReady", Some(Says::Working)),
            ("Waiting for Pods to be ready", Some(Says::Working)),
            ("NoErrors", None),
            ("Provisioning", Some(Says::Working)),
            ("Missing", None),
            ("Created", Some(Says::Milestone)),
            ("Suspended", Some(Says::Paused)),
        ] {
            assert_eq!(says(text), expected, "{text}");
        }
    }
}
