//! Both webhooks registered: the stored objects and the answers to clients.
//!
//! Every test creates its own objects in one control plane, which the first test starts.

mod cluster;
mod registration;
mod server;

mod apply;
mod audit;
mod backfill;
mod certificates;
mod crossplane;
mod deletion;
mod disagreement;
mod large;
mod lifecycle;
mod no_subresource;
mod nulls;
mod owned_conditions;
mod steady_times;
