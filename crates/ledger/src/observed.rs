//! The participations of a run, without the names of users.

use std::collections::BTreeSet;

/// The participations in finished steps.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// Number of finished steps; participations in later steps do not count.
    pub steps: usize,
    /// Number of users who took part in a finished step.
    pub users: usize,
    /// Number of participations.
    pub participations: usize,
    /// The distinct sets of steps of all users.
    pub patterns: Vec<Vec<usize>>,
}

/// An [`Observed`] while it is computed: participations are added user by user, in the order of steps.
pub(crate) struct Observing {
    steps: usize,
    users: usize,
    participations: usize,
    patterns: BTreeSet<Vec<usize>>,
    user: String,
    pattern: Vec<usize>,
}

impl Observed {
    pub(crate) fn of_steps(steps: usize) -> Observing {
        Observing {
            steps,
            users: 0,
            participations: 0,
            patterns: BTreeSet::new(),
            user: String::new(),
            pattern: Vec::new(),
        }
    }
}

impl Observing {
    pub(crate) fn add(&mut self, user: &str, step: usize) {
        if step >= self.steps {
            return;
        }
        if self.user != user {
            self.end_user();
            self.user = user.to_string();
        }
        self.pattern.push(step);
        self.participations += 1;
    }

    fn end_user(&mut self) {
        let pattern = std::mem::take(&mut self.pattern);
        if !pattern.is_empty() {
            self.users += 1;
            self.patterns.insert(pattern);
        }
    }

    pub(crate) fn done(mut self) -> Observed {
        self.end_user();
        let Self { steps, users, participations, patterns, .. } = self;
        Observed { steps, users, participations, patterns: patterns.into_iter().collect() }
    }
}
