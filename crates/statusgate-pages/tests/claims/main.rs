//! What statusgate promises, tried on every small convention and on small writes.
//!
//! [`grammar`] lists every word of the language at every place of a document; a test compares the list with the
//! schemas, so that a new key needs a case. [`small`] compiles one convention from it, and [`world`] makes the
//! stored and the written objects from the fields that the convention names. Each other file is a claim: a
//! function that judges one convention, or one convention in one world.
//!
//! `make test` tries a fixed part in less than a minute. `make enumerate` tries everything (`CLAIMS=all`) and
//! prints how many cases each claim judged, and in how many of them it could have failed. A counterexample is
//! reduced and printed as files for `statusgate check`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod coverage;
mod explanations;
mod grammar;
mod linted;
mod mutation;
mod ratchet;
mod relevance;
mod search;
mod small;
mod webhook;
mod world;
