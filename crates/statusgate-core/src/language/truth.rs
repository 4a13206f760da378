//! Three-valued logic.
//!
//! A condition is True, False, Unknown or absent. A predicate about an absent condition has no answer, and
//! neither has its negation: missing evidence never rejects a write. `all`, `any` and `not` follow Kleene's
//! logic.

/// An answer to a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It definitely does not hold.
    False,
    /// The object has no evidence for an answer.
    NoEvidence,
}

impl Truth {
    /// A definite answer, or no evidence.
    pub const fn of(answer: Option<bool>) -> Self {
        match answer {
            Some(true) => Self::True,
            Some(false) => Self::False,
            None => Self::NoEvidence,
        }
    }

    /// Whether all hold. One False decides; otherwise one missing answer makes the result unknown.
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        Self::fold(answers, Self::True, Self::False)
    }

    /// Whether at least one holds. One True decides; otherwise one missing answer makes the result unknown.
    pub(super) fn any(answers: impl IntoIterator<Item = Self>) -> Self {
        Self::fold(answers, Self::False, Self::True)
    }

    fn fold(answers: impl IntoIterator<Item = Self>, neutral: Self, deciding: Self) -> Self {
        let mut whole = neutral;
        for answer in answers {
            if answer == deciding {
                return deciding;
            }
            if answer == Self::NoEvidence {
                whole = answer;
            }
        }
        whole
    }

    /// This answer and that of a test, if there is one. The test is not evaluated if this is False.
    pub(super) fn and<T>(self, test: Option<&T>, ask: impl FnOnce(&T) -> Option<bool>) -> Self {
        match test {
            Some(test) if self != Self::False => Self::all([self, Self::of(ask(test))]),
            _ => self,
        }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::NoEvidence => Self::NoEvidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{self, False, NoEvidence, True};

    #[test]
    fn logic_is_kleenes() {
        for (one, other, all, any) in [
            (True, True, True, True),
            (True, False, False, True),
            (False, False, False, False),
            (True, NoEvidence, NoEvidence, True),
            (False, NoEvidence, False, NoEvidence),
            (NoEvidence, NoEvidence, NoEvidence, NoEvidence),
        ] {
            assert_eq!(Truth::all([one, other]), all);
            assert_eq!(Truth::all([other, one]), all);
            assert_eq!(Truth::any([one, other]), any);
            assert_eq!(Truth::any([other, one]), any);
        }
        assert_eq!([!True, !False, !NoEvidence], [False, True, NoEvidence]);
        assert_eq!(True.and(None::<&bool>, |_| None), True);
        assert_eq!(False.and(Some(&true), |_| None), False);
        assert_eq!(True.and(Some(&true), |_| None), NoEvidence);
    }
}
