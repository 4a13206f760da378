//! `statusgate ui`: a page with the conventions and a playground.

use std::net::SocketAddr;

use anyhow::Context;

use super::connection::block_on;
use super::signals::Signals;
use super::{Outcome, say};
use crate::ui::Ui;

/// The arguments of `ui`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It serves until Ctrl-C. The page works without a network and without a cluster; nothing is stored. \
                        Exit code 2: the address is not free."
)]
pub struct Args {
    /// The address. If other machines can reach it, the printed address contains a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
}

/// Serves the page until a signal arrives.
///
/// # Errors
/// When the address is not free.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    block_on(async {
        let mut signals = Signals::listen()?;
        let listen = args.listen;
        let ui = Ui::bind(listen).await;
        let ui = ui.with_context(|| {
            format!("cannot listen on {listen}; choose another address with --listen")
        })?;
        say(format_args!("statusgate ui: {}", ui.url()));
        ui.serve(async move { signals.next().await }).await.context("the server failed")?;
        Ok(Outcome::Clean)
    })
}
