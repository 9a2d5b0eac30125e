//! The number of participations and the last step of each user, in memory.

use std::collections::HashMap;

/// The limits of one user: at most `most` steps, any two at least `min_sep` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) min_sep: usize,
    pub(crate) most: usize,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    count: usize,
    last: usize,
}

/// The participations of all users, and whether a user may take part again.
#[derive(Debug)]
pub(crate) struct Past {
    limits: Limits,
    of: HashMap<Box<str>, Taken>,
}

impl Past {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, of: HashMap::new() }
    }

    /// Whether this user may take part in `step`; steps must be given in order.
    pub(crate) fn may(&self, user: &str, step: usize) -> bool {
        let Limits { min_sep, most } = self.limits;
        self.of.get(user).is_none_or(|taken| taken.count < most && step - taken.last >= min_sep)
    }

    /// Counts a participation of a user in `step`; [`Self::may`] must allow it.
    pub(crate) fn add(&mut self, user: &str, step: usize) {
        if let Some(taken) = self.of.get_mut(user) {
            *taken = Taken { count: taken.count + 1, last: step };
        } else {
            self.of.insert(user.into(), Taken { count: 1, last: step });
        }
    }

    pub(crate) fn users(&self) -> usize {
        self.of.len()
    }
}
