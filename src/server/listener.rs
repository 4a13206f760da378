//! Accepts connections and owns their tasks.
//!
//! axum's `serve` has no TLS, no connection limit and no timeouts. This loop takes a permit *before*
//! it accepts a connection, so that surplus connections wait in the kernel's queue. Every connection
//! is a task in one `JoinSet`: the server is drained when the set is empty.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::StartError;
use super::connection::{self, Connections};

/// A bound port and the settings of its connections.
#[derive(Debug)]
pub(super) struct Listener {
    /// The bound address, with the real port if port 0 was requested.
    pub(super) address: SocketAddr,
    tcp: TcpListener,
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
}

impl Listener {
    /// Binds the port. Clients can connect, but get no response until [`Listener::run`].
    pub(super) fn bind(
        address: SocketAddr,
        reuse_port: bool,
        max_connections: usize,
        connections: Arc<Connections>,
    ) -> Result<Self, StartError> {
        let (tcp, address) = listen(address, reuse_port)
            .map_err(|source| StartError::FailedListen { address, source })?;
        let permits = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
        Ok(Self { address, tcp, connections, permits })
    }

    /// Accepts until the server closes, then waits for the connections until the server ends.
    pub(super) async fn run(self) {
        let Self { tcp, connections, permits, .. } = self;
        let mut stage = connections.stage.clone();
        let mut tasks = JoinSet::new();
        let mut permit = None;
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                biased;
                () = stage.closing() => break,
                // A finished task keeps its memory until it is joined.
                Some(_) = tasks.join_next() => {}
                acquired = Arc::clone(&permits).acquire_owned(), if permit.is_none() => {
                    permit = acquired.ok();
                }
                accepted = tcp.accept(), if permit.is_some() => match accepted {
                    Ok((stream, _)) => {
                        pause = FIRST_PAUSE;
                        spawn(&mut tasks, stream, &connections, permit.take());
                    }
                    Err(error) if is_about_one_client(&error) => {}
                    // Out of file descriptors or memory until a connection ends. Without a pause,
                    // this loop would spin.
                    Err(error) => {
                        tracing::error!(%error, "failed to accept a connection");
                        tokio::select! {
                            () = stage.closing() => break,
                            () = sleep(pause) => pause = (pause * 2).min(LAST_PAUSE),
                        }
                    }
                }
            }
        }
        // Closing the port would reset the connections in the kernel's queue, which their clients
        // consider open. Accept them even above the limit: the queue is bounded. tokio's view of
        // the queue may be outdated, so ask the kernel.
        match tcp.into_std() {
            Ok(tcp) => {
                while let Some(stream) = accept_queued(&tcp) {
                    spawn(&mut tasks, stream, &connections, None);
                }
            }
            Err(error) => tracing::error!(%error, "failed to accept the queued connections"),
        }
        tokio::select! {
            () = async { while tasks.join_next().await.is_some() {} } => {}
            () = stage.ended() => tasks.shutdown().await,
        }
    }
}

fn listen(address: SocketAddr, reuse_port: bool) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As in std and tokio: a restart must not wait for old connections in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    if reuse_port {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    let tcp = socket.listen(BACKLOG)?;
    let address = tcp.local_addr()?;
    Ok((tcp, address))
}

fn spawn(
    tasks: &mut JoinSet<()>,
    stream: TcpStream,
    connections: &Arc<Connections>,
    permit: Option<OwnedSemaphorePermit>,
) {
    let connections = Arc::clone(connections);
    tasks.spawn(async move {
        connection::serve(stream, &connections).await;
        drop(permit);
    });
}

fn accept_queued(tcp: &std::net::TcpListener) -> Option<TcpStream> {
    loop {
        match tcp.accept() {
            Ok((stream, _)) => {
                return stream
                    .set_nonblocking(true)
                    .and_then(|()| TcpStream::from_std(stream))
                    .inspect_err(|error| tracing::error!(%error, "lost a queued connection"))
                    .ok();
            }
            Err(error) if is_about_one_client(&error) => {}
            // `WouldBlock`: the queue is empty.
            Err(_) => return None,
        }
    }
}

/// Whether accept(2) reports an error of the new connection, not of the listener.
fn is_about_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// The kernel limits it to `net.core.somaxconn`, by default 4096. API servers reuse connections: a
/// burst of writes opens at most some hundred.
const BACKLOG: u32 = 1024;

/// Short, because a connection may end at any moment.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Short compared with the API server's timeout of ten seconds.
const LAST_PAUSE: Duration = Duration::from_secs(1);
