//! What all fuzz targets need: a limit of CPU time, and panics that statusgate catches itself.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;

/// The limit for an input of up to 64 KiB, with few optimizations and all checks. The slowest of the corpus
/// extends the largest built-in convention: 13 s, and 15 s beside other work, for its proofs and its page.
const LIMIT: Duration = Duration::from_secs(32);

/// The slowest input is reported if it takes longer than this, in milliseconds.
const REMARKABLE: u64 = 200;

/// The last panic in a crate whose panics statusgate catches.
static CAUGHT: Mutex<String> = Mutex::new(String::new());

/// Does not abort on panics in the `cel` crate and its parser, because statusgate catches them.
pub fn catch_panics() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if file.contains("/cel-") || file.contains("/antlr4rust-") {
            *CAUGHT.lock().unwrap() = panic.to_string();
        } else {
            abort(panic);
        }
    }));
}

/// Runs a target on one input. Panics if it takes longer than [`LIMIT`].
pub fn run(input: &[u8], target: impl FnOnce()) {
    // CPU time: other processes do not count.
    let start = ThreadTime::now();
    if panic::catch_unwind(AssertUnwindSafe(target)).is_err() {
        panic!("not caught: {}", CAUGHT.lock().unwrap());
    }
    let taken = start.elapsed();
    static SLOWEST: AtomicU64 = AtomicU64::new(REMARKABLE);
    let milliseconds = taken.as_millis() as u64;
    if SLOWEST.fetch_max(milliseconds, Ordering::Relaxed) < milliseconds {
        eprintln!("slowest: {milliseconds} ms for {} bytes", input.len());
    }
    assert!(taken < LIMIT, "{milliseconds} ms for {} bytes", input.len());
}
