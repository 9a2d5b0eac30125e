//! The users of a period, and the number of rows of each.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Length of names stored in the hash table itself: a look-up then accesses memory at one place, which is
/// most of its time.
const SHORT: usize = 22;

/// A user's name.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Self {
        if name.len() > SHORT {
            return Self::Long(name.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..name.len()].copy_from_slice(name);
        Self::Short { length: name.len() as u8, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

/// The number of rows of each user in a period. The hash function is keyed, so that nobody can choose names
/// that collide.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// The number of rows of each user, up to one more than the maximum that is counted.
    rows: HashMap<Name, u32>,
    /// Users who may be counted in one more period.
    one_left: HashSet<Name>,
}

const SPENT: u32 = u32::MAX;

/// Whether a row of a user is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// The row is counted.
    Counted,
    /// The user already has the maximum number of rows.
    BeyondRows,
    /// The user is not counted any more.
    Spent,
}

impl Users {
    /// Records a user who is not counted any more.
    pub(crate) fn spend(&mut self, user: &[u8]) {
        self.rows.insert(Name::new(user), SPENT);
    }

    /// Records a user who may be counted in one more period, perhaps this one.
    pub(crate) fn leave_one(&mut self, user: &[u8]) {
        self.one_left.insert(Name::new(user));
    }

    /// Number of users with more than `most` rows.
    pub(crate) fn over_rows(&self, most: u32) -> usize {
        self.rows.values().filter(|rows| **rows != SPENT && **rows > most).count()
    }

    /// Number of users who could be counted in only one more period, and are counted in this one.
    pub(crate) fn at_bound(&self) -> usize {
        self.names().filter(|name| self.one_left.contains(*name)).count()
    }

    /// Adds a row of `user`, of whom at most `most` rows are counted.
    pub(crate) fn add(&mut self, user: &[u8], most: u32) -> May {
        let Some(rows) = self.rows.get_mut(user) else {
            self.rows.insert(Name::new(user), 1);
            return May::Counted;
        };
        if *rows == SPENT {
            return May::Spent;
        }
        let is_counted = *rows < most;
        *rows += u32::from(*rows <= most);
        if is_counted { May::Counted } else { May::BeyondRows }
    }

    /// The users counted so far, in any order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.rows.iter().filter(|(_, rows)| **rows != SPENT).map(|(name, _)| name)
    }

    /// Number of rows of `user` so far.
    pub(crate) fn rows(&self, user: &[u8]) -> u32 {
        self.rows.get(user).copied().filter(|rows| *rows != SPENT).unwrap_or(0)
    }

    /// The counted users with their numbers of rows, in the order of their names' bytes.
    pub(crate) fn counted(self) -> Vec<(Name, u32)> {
        let mut counted: Vec<(Name, u32)> =
            self.rows.into_iter().filter(|(_, rows)| *rows != SPENT).collect();
        counted.sort_unstable_by(|(x, _), (y, _)| x.bytes().cmp(y.bytes()));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_keep_apart_and_in_order() {
        assert_eq!(std::mem::size_of::<(Name, u32)>(), 32);
        let names: Vec<Vec<u8>> = (0..60).map(|length| vec![b'a'; length]).collect();
        let mut users = Users::default();
        for name in names.iter().rev() {
            assert_eq!(users.add(name, 2), May::Counted);
        }
        // A zero byte does not end a name.
        assert_eq!(users.add(b"aa\0", 2), May::Counted);
        users.spend(b"gone");
        assert_eq!(users.add(b"gone", 2), May::Spent);
        assert_eq!([users.add(&names[30], 2), users.add(&names[30], 2)], [May::Counted, May::BeyondRows]);
        users.leave_one(b"absent");
        users.leave_one(&names[30]);
        users.leave_one(b"gone");
        assert_eq!([users.at_bound(), users.over_rows(2), users.over_rows(1)], [1, 1, 1]);
        let counted = users.counted();
        assert_eq!(counted.len(), 61);
        assert!(counted.windows(2).all(|pair| pair[0].0.bytes() < pair[1].0.bytes()));
        let rows = |name: &[u8]| counted.iter().find(|(found, _)| found.bytes() == name).unwrap().1;
        assert_eq!([rows(&names[30]), rows(&names[31]), rows(b"aa\0")], [3, 1, 1]);
    }
}
