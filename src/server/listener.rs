//! Accepts connections and owns them.
//!
//! axum's own `serve` has no TLS, no cap and no timeouts, so the loop is ours. Its rules: a permit
//! is taken *before* a connection is accepted, so that the surplus waits in the kernel's queue and
//! costs us nothing; every connection is a task in one `JoinSet`, so that "drained" means "the set
//! is empty" and nothing outlives the listener.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::connection::{self, Connections};

/// A bound port and what is answered there.
#[derive(Debug)]
pub(super) struct Listener {
    tcp: TcpListener,
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
}

impl Listener {
    /// Binds. From here on clients can connect; they are answered once [`Listener::run`] runs.
    pub(super) fn bind(
        address: SocketAddr,
        reuse_port: bool,
        max_connections: usize,
        connections: Arc<Connections>,
    ) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As std and tokio do on Unix: a restart must not wait for old connections' TIME_WAIT.
        socket.set_reuseaddr(true)?;
        if reuse_port {
            socket.set_reuseport(true)?;
        }
        socket.bind(address)?;
        Ok(Self {
            tcp: socket.listen(BACKLOG)?,
            connections,
            permits: Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS))),
        })
    }

    /// The real address, where port 0 was asked for.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts until the server closes, then waits for the connections, or cuts them at the end.
    pub(super) async fn run(self) {
        let Self { tcp, connections, permits } = self;
        let mut stage = connections.stage.clone();
        let mut tasks = JoinSet::new();
        let mut permit = None;
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                biased;
                () = stage.closing() => break,
                // Ended tasks are taken out as they end: each still holds its memory until then.
                Some(_) = tasks.join_next() => {}
                taken = Arc::clone(&permits).acquire_owned(), if permit.is_none() => {
                    permit = taken.ok();
                }
                accepted = tcp.accept(), if permit.is_some() => match accepted {
                    Ok((stream, _)) => {
                        pause = FIRST_PAUSE;
                        spawn(&mut tasks, stream, &connections, permit.take());
                    }
                    // That client is gone; the next one may not be.
                    Err(error) if is_about_one_client(&error) => {}
                    // Out of file descriptors or memory: accepting again at once would fail again
                    // at once, and spin. It gets better when some connection ends.
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
        // Whoever is in the kernel's queue has a connection, as far as he knows: closing the port
        // now would reset it. Asked of the kernel itself and not of tokio, whose view of the queue
        // may be a moment old; over the cap, if need be: the queue is bounded and this is the end.
        match tcp.into_std() {
            Ok(tcp) => {
                while let Some(stream) = accept_queued(&tcp) {
                    spawn(&mut tasks, stream, &connections, None);
                }
            }
            Err(error) => tracing::error!(%error, "failed to take over the accept queue"),
        }
        tokio::select! {
            () = async { while tasks.join_next().await.is_some() {} } => {}
            () = stage.ended() => tasks.shutdown().await,
        }
    }
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
            // WouldBlock: the queue is empty.
            Err(_) => return None,
        }
    }
}

/// The errors that accept(2) passes on from the connection, not from the listener.
fn is_about_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// The kernel caps it at net.core.somaxconn, 4096 on today's Linux. A burst of writes opens some
/// hundred connections at most: API servers reuse them.
const BACKLOG: u32 = 1024;

/// Short, for the case that a connection is just ending.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Long enough not to spin, short against the API server's ten seconds.
const LAST_PAUSE: Duration = Duration::from_secs(1);
