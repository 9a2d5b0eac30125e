//! Progress on stderr: a bar on a terminal, a line every half minute elsewhere.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Time between two lines where stderr is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Progress of a computation; the bar disappears on drop.
pub struct Progress {
    bar: ProgressBar,
    /// Ends the thread that writes lines.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
    /// Parts that an earlier process did, which the estimate of the remaining time ignores.
    #[cfg(feature = "train")]
    skipped: Arc<AtomicU64>,
}

impl Progress {
    /// Progress of `what`, which has `total` parts called `unit`.
    pub fn new(what: &str, unit: &str, total: u64) -> Self {
        let template = format!("{{prefix}} {{wide_bar}} {{pos}}/{{len}} {unit}{{left}} {{msg}}");
        // The time left is unknown until a part is done.
        let left = |state: &ProgressState, text: &mut dyn Write| {
            if state.pos() > 0 {
                let _ = write!(text, ", {} left", time(state.eta()));
            }
        };
        let style =
            ProgressStyle::with_template(&template).expect("the template is valid").with_key("left", left);
        let bar = bar(Some(total)).with_style(style).with_prefix(what.to_string());
        let (start, unit, what) = (Instant::now(), unit.to_string(), what.to_string());
        let line = move |bar: &ProgressBar, skipped: u64| {
            let total = bar.length().unwrap_or(total);
            let (at, so_far) = (bar.position(), start.elapsed());
            let done = at.saturating_sub(skipped);
            let left = so_far.mul_f64(total.saturating_sub(at) as f64 / done.max(1) as f64);
            let left = if done > 0 { format!(", about {} left", time(left)) } else { String::new() };
            format!("{what}: {at} of {total} {unit} after {}{left} {}", time(so_far), bar.message())
        };
        Self::with_lines(bar, line)
    }

    /// Work of unknown length.
    pub fn endless(what: &str) -> Self {
        let bar = bar(None).with_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(120));
        let start = Instant::now();
        Self::with_lines(bar, move |bar, _| format!("{}: {} so far", bar.message(), time(start.elapsed())))
    }

    /// Progress in percent of work whose amount becomes known on the way.
    pub fn percent(what: &str) -> Self {
        let progress = Self::new(what, "%", 100);
        progress.bar.enable_steady_tick(Duration::from_millis(120));
        progress
    }

    /// Shows that `done` of the `expected` work is done.
    pub fn done(&self, done: f64, expected: f64) {
        if self.bar.position() == 0 {
            // The time before the first work says nothing about the remaining time.
            self.bar.reset_eta();
        }
        self.bar.set_position((100.0 * done / expected.max(f64::MIN_POSITIVE)) as u64);
    }

    fn with_lines(bar: ProgressBar, line: impl Fn(&ProgressBar, u64) -> String + Send + 'static) -> Self {
        let skipped = Arc::new(AtomicU64::new(0));
        let skips = Arc::clone(&skipped);
        let progress = |bar, lines| Self {
            bar,
            lines,
            #[cfg(feature = "train")]
            skipped,
        };
        if std::io::stderr().is_terminal() {
            return progress(bar, None);
        }
        let (end, ended) = channel();
        let seen = bar.clone();
        let writer = std::thread::spawn(move || {
            while ended.recv_timeout(BETWEEN_LINES) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}", line(&seen, skips.load(Ordering::Relaxed)).trim_end());
            }
        });
        progress(bar, Some((end, writer)))
    }

    /// Counts `parts` more parts as done.
    pub fn advance(&self, parts: u64) {
        self.bar.inc(parts);
    }

    /// Counts `parts` parts as done earlier.
    #[cfg(feature = "train")]
    pub fn skip(&self, parts: u64) {
        self.skipped.fetch_add(parts, Ordering::Relaxed);
        self.bar.inc(parts);
        self.bar.reset_eta();
    }

    /// Adds `parts` to the expected total.
    #[cfg(feature = "train")]
    pub fn expect(&self, parts: u64) {
        self.bar.inc_length(parts);
    }

    /// Shows a message next to the bar.
    #[cfg(feature = "train")]
    pub fn say(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((end, writer)) = self.lines.take() {
            drop(end);
            // If the thread panicked, only a line of progress is missing.
            let _ = writer.join();
        }
    }
}

/// A bar that is drawn on a terminal and counts everywhere.
fn bar(total: Option<u64>) -> ProgressBar {
    ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
}

/// A duration as text, in seconds, minutes or hours.
fn time(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..=99 => format!("{seconds} s"),
        seconds @ ..=5999 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_the_unit_that_fits() {
        let say = |seconds| time(Duration::from_secs(seconds));
        assert_eq!((say(42), say(100), say(7200)), ("42 s".into(), "2 min".into(), "2.0 h".into()));
    }

    #[test]
    fn work_is_shown_in_percent() {
        let progress = Progress::percent("sampling");
        progress.done(3000.0, 8000.0);
        assert_eq!((progress.bar.position(), progress.bar.length()), (37, Some(100)));
    }

    #[test]
    fn work_ends_at_once_when_it_is_dropped() {
        let start = Instant::now();
        let progress = Progress::new("noise", "rows", 10);
        progress.advance(3);
        drop(progress);
        drop(Progress::endless("planning"));
        // A thread that slept until its next line would hold this one up for 30 seconds.
        assert!(start.elapsed() < BETWEEN_LINES / 2);
    }
}
