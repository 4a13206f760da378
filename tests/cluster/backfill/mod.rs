//! `statusgate backfill`, `statusgate doctor`, `statusgate export` and `statusgate wait`. One test restarts the API server.

mod command;
mod plane;
mod writer;

mod doctor;
mod export;
mod interrupted;
mod record;
mod refused;
mod registrations;
mod shards;
mod wait;
