//! Accepts connections and owns their tasks.
//!
//! axum's `serve` has no TLS, no connection limit and no timeouts. At the limit, this loop closes the oldest
//! connection without a request when a new one arrives: it is probably of a port scan or of a hostile peer.
//! If each had a request, surplus connections wait in the kernel's queue. Every connection is a task in
//! one `JoinSet`: the server is drained when the set is empty.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::StartError;
use super::activity::Activity;
use super::connection::{self, Connections};

/// A bound port and the settings of its connections.
#[derive(Debug)]
pub(super) struct Listener {
    /// The bound address, with the real port if port 0 was requested.
    pub(super) address: SocketAddr,
    tcp: TcpListener,
    connections: Arc<Connections>,
    max_connections: usize,
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
        Ok(Self { address, tcp, connections, max_connections })
    }

    /// Accepts until the server closes, then waits for the connections until the server ends.
    pub(super) async fn run(self) {
        let Self { tcp, connections, max_connections, .. } = self;
        let mut stage = connections.stage.clone();
        let mut open = Open::new(connections);
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                biased;
                () = stage.closing() => break,
                () = open.ended(), if !open.is_empty() => {}
                accepted = tcp.accept() => match accepted {
                    Ok((stream, _)) => {
                        pause = FIRST_PAUSE;
                        if open.by_age.len() >= max_connections && !open.close_oldest_unused() {
                            tokio::select! {
                                () = stage.closing() => {}
                                () = open.ended() => {}
                            }
                        }
                        open.serve(stream);
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
                    open.serve(stream);
                }
            }
            Err(error) => tracing::error!(%error, "failed to accept the queued connections"),
        }
        tokio::select! {
            () = async { while !open.is_empty() { open.ended().await } } => {}
            () = stage.ended() => open.tasks.shutdown().await,
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
    // Accepted connections inherit both. Otherwise, the kernel would hold megabytes for each peer that sends
    // without a request or does not read.
    socket.set_recv_buffer_size(RECEIVED)?;
    socket.set_send_buffer_size(UNREAD)?;
    socket.bind(address)?;
    let tcp = socket.listen(BACKLOG)?;
    let address = tcp.local_addr()?;
    Ok((tcp, address))
}

/// The open connections.
struct Open {
    connections: Arc<Connections>,
    tasks: JoinSet<()>,
    /// In the order of their arrival, without those that are being closed.
    by_age: VecDeque<(AbortHandle, Arc<Activity>)>,
}

impl Open {
    fn new(connections: Arc<Connections>) -> Self {
        Self { connections, tasks: JoinSet::new(), by_age: VecDeque::new() }
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn serve(&mut self, stream: TcpStream) {
        let (connections, activity) = (Arc::clone(&self.connections), Arc::default());
        let shared = Arc::clone(&activity);
        let task = self.tasks.spawn(async move {
            connection::serve(stream, &connections, shared).await;
        });
        self.by_age.push_back((task, activity));
    }

    /// Closes the connection that waits longest for its first request. Returns whether there is one.
    fn close_oldest_unused(&mut self) -> bool {
        let oldest = self.by_age.iter().position(|(_, activity)| !activity.has_served());
        let Some((task, _)) = oldest.and_then(|at| self.by_age.remove(at)) else { return false };
        task.abort();
        true
    }

    /// Waits for the end of a connection. A finished task keeps its memory until it is joined.
    async fn ended(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else { return };
        let id = ended.map_or_else(|failed| failed.id(), |(id, ())| id);
        self.by_age.retain(|(task, _)| task.id() != id);
    }
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

/// Bytes that the kernel holds of a connection until they are read here. It doubles both numbers, for its own
/// structures.
const RECEIVED: u32 = 128 << 10;

/// Bytes that the kernel holds until the peer reads them.
const UNREAD: u32 = 64 << 10;

/// Short, because a connection may end at any moment.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Short compared with the API server's timeout of ten seconds.
const LAST_PAUSE: Duration = Duration::from_secs(1);
