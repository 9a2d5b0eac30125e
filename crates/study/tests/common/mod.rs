//! Studies that are stopped, warn or are refused.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use antinoise_study::{Error, Event, Outcome, Settings, StudyRun};

/// Begins the study in `out`, or resumes the one there, and stops it after `stop_after` steps.
pub fn trained(settings: &Settings, out: &Path, stop_after: usize) -> Result<Outcome, Error> {
    let (stop, stepped) = (AtomicBool::new(false), AtomicUsize::new(1));
    let on_event = |event: Event<'_>| {
        if event == Event::Stepped && stepped.fetch_add(1, Ordering::Relaxed) == stop_after {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let run = match out.exists() {
        true => StudyRun::resumed(out, None, None)?,
        false => StudyRun::new(settings, out, None, &|_| ())?,
    };
    run.train(&stop, &on_event)
}

/// Whether a new study in `out` warns of something in these words.
pub fn warns(settings: &Settings, out: &Path, words: &str) -> bool {
    let said = AtomicBool::new(false);
    StudyRun::new(settings, out, None, &|event| {
        if matches!(event, Event::Warning(text) if text.contains(words)) {
            said.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    said.into_inner()
}

/// Checks that a study is refused in these words, and leaves nothing behind.
pub fn check_refused(settings: &Settings, out: &Path, words: &str) {
    let error = StudyRun::new(settings, out, None, &|_| ()).err().expect(words).to_string();
    assert!(error.contains(words), "{words}: {error}");
    assert!(!out.exists());
}
