//! Waiting: for a condition, never for a time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long anything may take on a machine whose few cores are busy with a compiler. Nothing here
/// takes a tenth of it on an idle one, and only a failure ever waits for its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long until {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
