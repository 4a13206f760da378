//! A load balancer like a Service: new connections go to the backends that are ready.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::probes::is_ready;

/// Forwards TCP connections until it is dropped.
pub(crate) struct Balancer {
    address: SocketAddr,
    backends: Arc<Mutex<Vec<Backend>>>,
    tasks: Vec<AbortHandle>,
}

#[derive(Clone, Copy)]
struct Backend {
    address: SocketAddr,
    probes: SocketAddr,
    ready: bool,
}

impl Balancer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let backends = Arc::default();
        let tasks = [
            tokio::spawn(forward(listener, Arc::clone(&backends))).abort_handle(),
            tokio::spawn(watch(Arc::clone(&backends))).abort_handle(),
        ];
        Self { address, backends, tasks: tasks.into() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server gets connections while it is ready.
    pub(crate) fn add(&self, address: SocketAddr, probes: SocketAddr) {
        let backend = Backend { address, probes, ready: true };
        locked(&self.backends).push(backend);
    }

    /// Whether a server gets connections.
    pub(crate) fn reaches(&self, address: SocketAddr) -> bool {
        locked(&self.backends).iter().any(|known| known.address == address && known.ready)
    }

    /// The server has ended. Another process may get its ports.
    pub(crate) fn remove(&self, probes: SocketAddr) {
        locked(&self.backends).retain(|backend| backend.probes != probes);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

async fn forward(listener: TcpListener, backends: Arc<Mutex<Vec<Backend>>>) {
    let mut connections = JoinSet::new();
    for turn in 0_usize.. {
        let Ok((mut client, _)) = listener.accept().await else { return };
        let ready: Vec<SocketAddr> = locked(&backends)
            .iter()
            .filter(|backend| backend.ready)
            .map(|backend| backend.address)
            .collect();
        let Some(address) = ready.get(turn % ready.len().max(1)).copied() else { continue };
        connections.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(address).await {
                // The client and the server handle the end of a connection.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// As in a cluster, endpoints follow readiness late. The grace time of the server covers this.
async fn watch(backends: Arc<Mutex<Vec<Backend>>>) {
    loop {
        sleep(Duration::from_millis(500)).await;
        let seen = locked(&backends).clone();
        for backend in seen {
            let ready = is_ready(backend.probes).await;
            let mut backends = locked(&backends);
            let known = backends.iter_mut().find(|known| known.probes == backend.probes);
            if let Some(known) = known {
                known.ready = ready;
            }
        }
    }
}

fn locked(backends: &Mutex<Vec<Backend>>) -> std::sync::MutexGuard<'_, Vec<Backend>> {
    backends.lock().unwrap_or_else(PoisonError::into_inner)
}
