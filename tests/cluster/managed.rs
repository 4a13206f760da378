//! `statusgate serve` with everything managed: policies, certificate and registrations, and two server processes
//! behind a load balancer.

mod caller;
mod plane;
mod replica;

mod clock;
mod doctor;
mod enforced;
mod files;
mod gitops;
mod killed;
mod many;
mod outage;
mod permissions;
mod policies;
mod runbooks;
mod soak;
mod unavailable;
mod versions;
mod withheld;
mod writes;
