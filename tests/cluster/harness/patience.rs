//! Tests wait for a condition, never for a fixed time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The limit on a machine that is busy with a compiler. Only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats a question until it gets an answer.
pub(crate) async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, ask).await
}

/// The same for what takes long on any machine.
pub(crate) async fn until_within<T>(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long until {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
