//! Objects without a kstatus result.

/// An object for which `Compute` of kstatus returns an error or panics. Its callers report such an
/// object as Unknown until the object changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// A field that kstatus reads strictly has another type.
    #[error("{path} is {found}, but kstatus requires {expected}")]
    WrongType {
        /// The field, such as `status.conditions[0].reason`.
        path: String,
        /// The JSON type of the value: `a boolean`.
        found: &'static str,
        /// The required type.
        expected: &'static str,
    },
    /// A Pod has a phase that kstatus does not know.
    #[error("status.phase is {phase:?}, which is not a Pod phase that kstatus knows")]
    PodPhase {
        /// The phase.
        phase: String,
    },
}
