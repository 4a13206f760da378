//! Errors in one line.

use std::error::Error;

/// An error with its causes, in one line. Messages of some libraries already contain the cause; it is
/// not repeated.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text.push_str(&format!(": {message}"));
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    #[test]
    fn a_cause_is_not_repeated() {
        let layer = |text, source: Option<Layer>| Layer { text, source: source.map(Box::new) };
        let inner = || layer("no such file", None);
        let middle = || layer("cannot read x: no such file", Some(inner()));
        assert_eq!(with_causes(&middle()), "cannot read x: no such file");
        let outer = layer("cannot use the kubeconfig", Some(middle()));
        assert_eq!(with_causes(&outer), "cannot use the kubeconfig: cannot read x: no such file");
        assert_eq!(with_causes(&layer("a", Some(inner()))), "a: no such file");
    }
}
