//! `statusgate ui`: a page with the conventions, a playground, and a cluster.

mod live;

use std::future::pending;
use std::net::SocketAddr;

use anyhow::{Context, bail};

use self::live::Live;
use super::connection::{Connection, Selection, block_on};
use super::in_use::PoliciesInUse;
use super::signals::Signals;
use super::{Outcome, say};
use crate::ui::Ui;

/// The arguments of `ui`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "It serves until Ctrl-C. With --kubeconfig or --context, the page also shows the audit of \
                  this cluster; it only reads. Otherwise it works without a network and without a cluster. \
                  Nothing is stored.\n\n\
                  Exit code 2: the address is not free, or the cluster or the policies cannot be read."
)]
pub(super) struct Args {
    /// The address. If other machines can reach it, the printed address contains a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,

    #[command(flatten)]
    policies: PoliciesInUse,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    selection: Selection,
}

/// Serves the page until a signal arrives.
///
/// # Errors
/// When the address is not free, or the cluster or the policies cannot be read.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let of_cluster = args.connection.kubeconfig.is_some() || args.connection.context.is_some();
    if !of_cluster && (!args.policies.paths.is_empty() || args.selection != Selection::default()) {
        bail!("policies and objects are of a cluster: add --kubeconfig or --context");
    }
    block_on(async {
        let mut signals = Signals::listen()?;
        let listen = args.listen;
        let ui = Ui::bind(listen).await;
        let ui = ui.with_context(|| {
            format!("cannot listen on {listen}; choose another address with --listen")
        })?;
        let live = if of_cluster { Some(Live::open(args.clone()).await?) } else { None };
        say(format_args!("statusgate ui: {}", ui.url()));
        let calls = live.as_ref().map(Live::calls);
        let passes = async {
            match &live {
                Some(live) => live.run().await,
                None => pending().await,
            }
        };
        tokio::select! {
            served = ui.serve(calls, async move { signals.next().await }) => served,
            failed = passes => failed,
        }
        .context("the server failed")?;
        Ok(Outcome::Clean)
    })
}
