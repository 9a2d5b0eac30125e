//! The number of participations and the last step of each user, in memory.

use std::borrow::Cow;
use std::collections::HashMap;

use antinoise_input::tables::user_name;

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
    /// Names that are whole numbers written in another way than by their digits, such as 7.0, by the digits.
    spellings: HashMap<Box<str>, Box<str>>,
}

/// The form in which names of one user agree: a whole number's digits, and no spaces around a name.
pub(crate) fn form(user: &str) -> Cow<'_, str> {
    user_name("name of a user", user).unwrap_or(Cow::Borrowed(user.trim()))
}

impl Past {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, of: HashMap::new(), spellings: HashMap::new() }
    }

    /// Another spelling of this user's name under which the user took part: 7 for 7.0.
    pub(crate) fn other_spelling(&self, user: &str) -> Option<&str> {
        let form = form(user);
        let spelled = self.spellings.get(form.as_ref()).map(Box::as_ref);
        if form == user {
            return spelled;
        }
        let own = || self.of.get_key_value(form.as_ref()).map(|(name, _)| name.as_ref());
        spelled.or_else(own).filter(|&other| other != user)
    }

    /// Whether this user may take part in `step`, by this name; steps must be given in order.
    pub(crate) fn may(&self, user: &str, step: usize) -> bool {
        let Limits { min_sep, most } = self.limits;
        self.of.get(user).is_none_or(|taken| taken.count < most && step - taken.last >= min_sep)
            && self.other_spelling(user).is_none()
    }

    /// Counts a participation of a user in `step`; [`Self::may`] must allow it.
    pub(crate) fn add(&mut self, user: &str, step: usize) {
        if let Some(taken) = self.of.get_mut(user) {
            *taken = Taken { count: taken.count + 1, last: step };
        } else {
            let form = form(user);
            if form != user {
                self.spellings.insert(form.into(), user.into());
            }
            self.of.insert(user.into(), Taken { count: 1, last: step });
        }
    }

    pub(crate) fn users(&self) -> usize {
        self.of.len()
    }
}
