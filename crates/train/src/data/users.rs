//! The users whose examples a data set holds, and the examples of a user that a step uses: at most a given
//! number.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use antinoise_input::{InvalidParameter, tables};
use rand_core::Rng;
use sha2::{Digest, Sha256};

use super::draw::drawn;
use super::file::{bad, open};
use crate::Error;

/// The examples of each user. Users are numbered in the order of their first examples.
///
/// ```
/// use antinoise_train::data::Users;
/// let users = Users::new(["Ada", "7", "Ada", "7.0"])?;
/// assert_eq!((users.len(), users.name(1)), (2, "7"));
/// assert_eq!((users.of(0), users.of(1)), (&[0, 2][..], &[1, 3][..]));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users {
    names: Vec<String>,
    of: Vec<Vec<usize>>,
}

impl Users {
    /// The users of examples 0, 1, ..., by their names; spellings of one whole number are one user, as
    /// [`tables::user_name`] has it.
    ///
    /// # Errors
    /// When there is no example, or a name is empty, stands for a missing cell (NA, null) or is a number that
    /// is not whole.
    pub fn new<'a>(of_examples: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidParameter> {
        let (mut number, mut users) = (HashMap::new(), Self { names: Vec::new(), of: Vec::new() });
        for (example, name) in of_examples.into_iter().enumerate() {
            let name = tables::user_name("user of an example", name)?;
            let user = *number.entry(name).or_insert_with_key(|name| {
                users.names.push(name.to_string());
                users.of.push(Vec::new());
                users.of.len() - 1
            });
            users.of[user].push(example);
        }
        antinoise_input::at_least("number of users", users.len(), 1)?;
        Ok(users)
    }

    /// Number of users.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no user, which never holds.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Number of examples of all users.
    pub fn examples(&self) -> usize {
        self.of.iter().map(Vec::len).sum()
    }

    /// The name of user number `user`.
    ///
    /// # Panics
    /// Unless `user < self.len()`.
    pub fn name(&self, user: usize) -> &str {
        &self.names[user]
    }

    /// The names of all users.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The examples of user number `user`, in increasing order.
    ///
    /// # Panics
    /// Unless `user < self.len()`.
    pub fn of(&self, user: usize) -> &[usize] {
        &self.of[user]
    }

    /// At most `most` examples of user number `user`, in increasing order: all of them, or a random subset of
    /// that size, every subset with the same probability, from the generator that `rng` returns.
    ///
    /// ```
    /// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
    /// let users = antinoise_train::data::Users::new(["a", "b", "a", "a"])?;
    /// let rng = || KeyedRng::new(&Key::from_seed_insecure(1), &RunId::default(), Purpose::DataOrder, 1);
    /// assert_eq!((users.drawn(0, 2, rng).len(), users.drawn(0, 3, rng)), (2, vec![0, 2, 3]));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Panics
    /// Unless `user < self.len()`.
    pub fn drawn<R: Rng>(&self, user: usize, most: usize, rng: impl FnOnce() -> R) -> Vec<usize> {
        let of = &self.of[user];
        if of.len() <= most {
            return of.clone();
        }
        let is_drawn = drawn(of.len(), most, &mut rng());
        of.iter().zip(is_drawn).filter_map(|(&example, is_drawn)| is_drawn.then_some(example)).collect()
    }

    /// The number of the user of each example.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let mut numbers = vec![0; self.examples()];
        for (user, of) in self.of.iter().enumerate() {
            of.iter().for_each(|&example| numbers[example] = user);
        }
        numbers
    }

    /// The users of `examples` examples by the file at `path`, which has one name a line, in the order of the
    /// examples, plain or gzipped.
    ///
    /// ```
    /// use antinoise_train::data::Users;
    /// let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    /// std::fs::write(&path, "Ada\nGrace\nAda\n").unwrap();
    /// assert_eq!(Users::of_file(&path, 3)?.of(0), [0, 2]);
    /// assert!(Users::of_file(&path, 4).is_err());
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file is absent or has more or fewer lines than there are examples, or when a line is not
    /// UTF-8 or not a valid name of a user (see [`new`](Self::new)).
    pub fn of_file(path: &Path, examples: usize) -> Result<Self, Error> {
        if !path.is_file() {
            return Err(bad(path, "absent", "a text file with one name a line"));
        }
        let all = format!("{examples} lines, each with the name of one training example's user");
        let mut names: Vec<String> = Vec::new();
        for (at, line) in BufReader::new(open(path)?).split(b'\n').enumerate() {
            if at == examples {
                return Err(bad(path, format!("of more than {examples} lines"), all));
            }
            let line = line.map_err(Error::io(path))?;
            let refused = |got: &str, must_be: &str| bad(path, format!("{got} in line {}", at + 1), must_be);
            let text = std::str::from_utf8(&line).map_err(|_| refused("no text", "text in UTF-8"))?;
            let text = if at == 0 { text.trim_start_matches('\u{feff}') } else { text };
            let name = tables::user_name("user", text);
            names.push(name.map_err(|error| refused(&error.got, &error.must_be))?.into_owned());
        }
        if names.len() < examples {
            return Err(bad(path, format!("of {} lines", names.len()), all));
        }
        Ok(Self::new(names.iter().map(String::as_str))?)
    }

    /// SHA-256 of names and examples: checkpoints identify their users by it.
    ///
    /// ```
    /// use antinoise_train::data::Users;
    /// let [one, other] = [["a", "b", "a"], ["a", "b", "b"]].map(|of| Users::new(of).unwrap().sha256());
    /// assert_ne!(one, other);
    /// ```
    pub fn sha256(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let number = |x: usize| (x as u64).to_le_bytes();
        for (name, of) in self.names.iter().zip(&self.of) {
            digest.update(number(name.len()));
            digest.update(name);
            digest.update(number(of.len()));
            of.iter().for_each(|&example| digest.update(number(example)));
        }
        digest.finalize().into()
    }
}

/// Refuses test examples, of the file or folder at `path`, of users who are trained on.
pub(super) fn refuse_shared(
    path: &Path,
    trained: Option<&Users>,
    tested: Option<&Users>,
) -> Result<(), Error> {
    let (Some(trained), Some(tested)) = (trained, tested) else { return Ok(()) };
    let known: HashSet<&str> = trained.names().collect();
    match tested.names().find(|name| known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let must_be =
                "without rows of users that are trained on: no statement would cover their test rows";
            Err(bad(path, format!("with rows of the user {name:?}"), must_be))
        }
    }
}
