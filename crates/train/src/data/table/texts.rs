//! Texts by user: a column of texts, with the user of each row.

use std::fmt::Arguments;
use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::tables::Role;

use super::row::{RowSink, refused, user_in};
use crate::Error;
use crate::data::file::bad;
use crate::data::users::Users;

/// The texts of users: the cells of a column, in the file's order. A missing cell is an empty text.
///
/// ```
/// use antinoise_train::data::{TableFile, TestPart};
/// let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
/// std::fs::write(&path, "who,line\nA,Oh!\nB,What?\nA,I.\n").unwrap();
/// let texts = TableFile::csv(&path, b',').with_users("who").texts("line")?;
/// assert_eq!(texts.users().names().collect::<Vec<_>>(), ["A", "B"]);
/// assert_eq!(texts.of(0).collect::<Vec<_>>(), ["Oh!", "I."]);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRows {
    users: Users,
    rows: Vec<String>,
}

impl TextRows {
    /// The users.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// The texts of user number `user`, in the file's order.
    ///
    /// # Panics
    /// Unless `user < self.users().len()`.
    pub fn of(&self, user: usize) -> impl Iterator<Item = &str> {
        self.users.of(user).iter().map(|&row| &*self.rows[row])
    }

    /// Number of rows of all users.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows for which `is_of_part` holds.
    pub(super) fn part(&self, is_of_part: impl Fn(usize) -> bool) -> Result<Self, InvalidParameter> {
        let (of, taken) = (self.users.numbers(), (0..self.len()).filter(|&row| is_of_part(row)));
        let taken: Vec<usize> = taken.collect();
        let users = Users::new(taken.iter().map(|&row| self.users.name(of[row])))?;
        Ok(Self { users, rows: taken.into_iter().map(|row| self.rows[row].clone()).collect() })
    }
}

/// The texts read so far.
pub(super) struct TextReader<'a> {
    path: &'a Path,
    user: &'a str,
    text: &'a str,
    users: Vec<String>,
    rows: Vec<String>,
}

impl<'a> TextReader<'a> {
    /// A reader of the columns `user` and `text`.
    pub(super) fn new(path: &'a Path, user: &'a str, text: &'a str) -> Result<Self, InvalidParameter> {
        if user == text {
            let must_be = "another column than that of the texts: names of users are not learned from";
            return Err(InvalidParameter::new("user", format!("{user:?}"), must_be));
        }
        Ok(Self { path, user, text, users: Vec::new(), rows: Vec::new() })
    }

    /// Returns all rows.
    pub(super) fn end(self) -> Result<TextRows, Error> {
        if self.rows.is_empty() {
            return Err(bad(self.path, "without rows", "a table with a row for each text"));
        }
        Ok(TextRows { users: Users::new(self.users.iter().map(String::as_str))?, rows: self.rows })
    }
}

impl<'a> RowSink<'a> for TextReader<'a> {
    fn columns(&self) -> Vec<(&'a str, Role)> {
        vec![(self.text, Role::Name), (self.user, Role::User)]
    }

    fn add<'c>(&mut self, place: Arguments<'_>, cell: impl Fn(usize) -> &'c [u8]) -> Result<(), Error> {
        let text = std::str::from_utf8(cell(0)).map_err(|_| {
            refused(self.path, (place, self.text), &String::from_utf8_lossy(cell(0)), "text in UTF-8")
        })?;
        self.users.push(user_in(self.path, (place, self.user), cell(1))?);
        self.rows.push(text.into());
        Ok(())
    }
}
