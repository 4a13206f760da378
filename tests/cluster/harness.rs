//! What all tests of a cluster use.

pub(crate) mod balancer;
pub(crate) mod leash;
pub(crate) mod objects;
pub(crate) mod patience;
pub(crate) mod plane;
pub(crate) mod pool;
pub(crate) mod probes;
pub(crate) mod traffic;
