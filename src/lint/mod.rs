//! What can be proven of a convention.
