//! The events of a study, on stderr.

use std::cell::RefCell;

use antinoise_study::Event;

use crate::progress::Progress;

/// The progress of a study, shown until it is dropped.
#[derive(Default)]
pub struct Shown(RefCell<Option<Progress>>);

impl Shown {
    /// Shows an event.
    pub fn show(&self, event: Event<'_>) {
        let mut shown = self.0.borrow_mut();
        match (event, &*shown) {
            (Event::Began(what), _) => *shown = Some(Progress::endless(what)),
            (Event::Training { steps }, _) => *shown = Some(Progress::new("train", "steps", steps)),
            (Event::Ended, _) => *shown = None,
            (Event::Warning(warning), _) => eprintln!("warning: {warning}"),
            (Event::Added { steps }, Some(progress)) => progress.expect(steps),
            (Event::Skipped { steps }, Some(progress)) => progress.skip(steps),
            (Event::Stepped, Some(progress)) => progress.advance(1),
            (Event::Running { run, accuracy: None }, Some(progress)) => progress.say(run.into()),
            (Event::Running { run, accuracy: Some(accuracy) }, Some(progress)) => {
                progress.say(format!("{run} {:.1}%", 100.0 * accuracy));
            }
            _ => {}
        }
    }
}
