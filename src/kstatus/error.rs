//! Why kstatus cannot say anything of an object.

/// An object that kstatus' `Compute` returns an error for, or panics over. Its callers report such an
/// object as Unknown, for ever: nothing but another write of the object changes that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// A field that kstatus reads strictly is of another type.
    #[error("{path} is {found}, and kstatus reads only {expected} there")]
    WrongType {
        /// The field as a person writes it, `status.conditions[0].reason`.
        path: String,
        /// What is there, in JSON's words: `a boolean`.
        found: &'static str,
        /// What may be there.
        expected: &'static str,
    },
    /// A Pod in a phase that Kubernetes does not have.
    #[error("status.phase is {phase:?}, and kstatus knows no such phase of a Pod")]
    PodPhase {
        /// The phase.
        phase: String,
    },
}
