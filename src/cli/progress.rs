//! The progress of a long run: a bar on a terminal, otherwise a line every few seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;

/// Progress on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    /// Hidden without a terminal.
    bar: ProgressBar,
    printed: Instant,
}

impl Progress {
    /// Starts. `total` is the number of objects, if known.
    pub(super) fn new(what: &'static str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{prefix} {bar:30} {human_pos}/{human_len} {per_sec} {eta} left",
            None => "{prefix} {spinner} {human_pos} {per_sec}",
        };
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        // An invalid template is a bug, but must not end the run.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { what, bar: bar.with_prefix(what), printed: Instant::now() }
    }

    /// Counts processed objects.
    pub(super) fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Prints a line if one is due. Calls `details` only then.
    pub(super) fn tick(&mut self, details: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.tick();
        } else if self.printed.elapsed() >= EVERY {
            self.printed = Instant::now();
            let (done, total) = (self.bar.position(), self.bar.length());
            let line = line(self.what, done, total, self.bar.elapsed());
            say(format_args!("{line}; {}", details()));
        }
    }

    /// Runs a function that prints, with the bar hidden.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
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

/// Frequent enough for a person, rare enough for a stored log.
const EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_count_rate_and_remaining_time() {
        let took = Duration::from_secs(10);
        assert_eq!(
            line("backfill", 500, Some(2000), took),
            "backfill: 500 of 2000 objects, 50/s, about 30 s left"
        );
        assert_eq!(line("backfill", 500, None, took), "backfill: 500 objects, 50/s");
        assert_eq!(line("backfill", 0, Some(9), took), "backfill: 0 of 9 objects, 0/s");
    }
}
