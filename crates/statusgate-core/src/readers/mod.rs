//! Health in the formats of the tools that read it.
//!
//! A convention becomes one [`Program`] for each kind. Each reader has a file that writes programs in its format.

pub mod program;

pub use program::Program;
