//! Events that a study reports while it works.

/// An event of a study, for a progress bar or a log; `&|_| ()` ignores all.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Work of unknown length began, such as planning.
    Began(&'a str),
    /// Trainings began, including those that an earlier process completed.
    Training {
        /// Steps of all runs.
        steps: u64,
    },
    /// The search for a learning rate added steps.
    Added {
        /// The number of these steps.
        steps: u64,
    },
    /// Steps were skipped: an earlier process computed them, or the search left them out.
    Skipped {
        /// The number of these steps.
        steps: u64,
    },
    /// A step was computed.
    Stepped,
    /// A run is being trained.
    Running {
        /// The name of the run.
        run: &'a str,
        /// Its last test accuracy.
        accuracy: Option<f64>,
    },
    /// The work that began last is done.
    Ended,
    /// A warning for the owner of the data.
    Warning(&'a str),
}

/// Receives the events of a study.
pub type OnEvent<'a> = &'a dyn Fn(Event<'_>);

/// Reports that `what` began, does the work, and reports its end.
pub(crate) fn during<T>(what: &str, on_event: OnEvent<'_>, work: impl FnOnce() -> T) -> T {
    on_event(Event::Began(what));
    let done = work();
    on_event(Event::Ended);
    done
}
