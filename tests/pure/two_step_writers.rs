//! Can writers that need several requests reach their goal? The tests try every interleaving.
//!
//! Each write passes both webhooks. A model has a few thousand states, so the search visits all of
//! them and finds every state from which the goal is out of reach.

mod cluster_api;
mod crossplane;
mod search;
