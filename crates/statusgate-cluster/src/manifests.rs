//! What is applied to a cluster, generated: CRDs, webhook registrations, and the installation.
//!
//! Pure: from policies and a list of the custom resources of a cluster to JSON values. `cli/` prints them,
//! and `manager/` compares them with the cluster.

pub mod conditions;
pub mod coverage;
pub mod crds;
pub mod install;
pub mod registrations;
pub mod resource;
pub mod rules;
pub mod selectors;
pub mod yaml;
