//! Files, folders and standard input: the texts that `statusgate_core` reads.

mod open;
mod policies;

pub use open::{ReadError, open, open_policies, read_bytes};
pub use policies::{load_policies, load_policies_or_examples};
