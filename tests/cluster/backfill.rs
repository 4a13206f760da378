//! `statusgate backfill`, `statusgate doctor`, `statusgate export`, `statusgate wait` and `statusgate ui`. Two tests stop the API server.

mod command;
mod plane;
mod writer;

mod doctor;
mod export;
mod interrupted;
mod record;
pub(crate) mod registrations;
mod rejected;
mod shards;
mod toy;
mod ui;
mod wait;
