//! How far a long run is: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a run over a known or unknown number of objects, on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    total: Option<u64>,
    done: u64,
    start: Instant,
    told: Instant,
}

impl Progress {
    /// Begins. `total` where it is known.
    pub(super) fn new(what: &'static str, total: Option<u64>) -> Self {
        let bar = io::stderr().is_terminal().then(|| bar(what, total));
        let start = Instant::now();
        Self { what, bar, total, done: 0, start, told: start }
    }

    /// One more object.
    pub(super) fn advance(&mut self, by: u64) {
        self.done += by;
        if let Some(bar) = &self.bar {
            bar.inc(by);
        }
    }

    /// Says something where it is time to. `details` is asked for only then.
    pub(super) fn tick(&mut self, details: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.tick();
            return;
        }
        let now = Instant::now();
        if now - self.told < EVERY {
            return;
        }
        self.told = now;
        let line = line(self.what, self.done, self.total, now - self.start);
        // If stderr is gone, nobody wants to know.
        let _ = writeln!(io::stderr(), "{line}; {}", details());
    }

    /// Runs something that prints, without the bar in between.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{prefix} {bar:30} {human_pos}/{human_len} {per_sec} {eta} left",
        None => "{prefix} {spinner} {human_pos} {per_sec}",
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    // A template that is wrong is a bug of ours, and no reason not to go on.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_prefix(what)
}

fn line(what: &str, done: u64, total: Option<u64>, took: Duration) -> String {
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    let mut line = match total {
        Some(total) => format!("{what}: {done} of {total} objects, {rate:.0}/s"),
        None => format!("{what}: {done} objects, {rate:.0}/s"),
    };
    if let Some(left) = total.and_then(|total| total.checked_sub(done)).filter(|_| rate > 0.0) {
        line.push_str(&format!(", about {:.0} s left", left as f64 / rate));
    }
    line
}

/// Often enough to see that it moves, seldom enough for a log that is kept.
const EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long() {
        let took = Duration::from_secs(10);
        assert_eq!(
            line("backfill", 500, Some(2000), took),
            "backfill: 500 of 2000 objects, 50/s, about 30 s left"
        );
        assert_eq!(line("backfill", 500, None, took), "backfill: 500 objects, 50/s");
        assert_eq!(line("backfill", 0, Some(9), took), "backfill: 0 of 9 objects, 0/s");
    }
}
