//! Encoding of rows, for all file formats.

use std::fmt::Arguments;
use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::tables::{Role, user_name};

use super::column::{Refused, Values, one_of};
use super::schema::{Missing, Schema};
use crate::Error;
use crate::data::examples::Examples;
use crate::data::file::bad;
use crate::data::users::Users;

/// Whether the column of labels is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Every row has a class.
    Required,
    /// Labels are not read, and the column may be absent: every label is 0.
    Ignored,
}

/// The columns that are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) schema: &'a Schema,
    pub(super) labels: Labels,
    /// The column of users, if there is one.
    pub(super) user: Option<&'a str>,
}

/// A reader of a file's rows, whatever the file's format.
pub(super) trait RowSink<'a> {
    /// The names of the columns that are read, with their roles.
    fn columns(&self) -> Vec<(&'a str, Role)>;

    /// Adds the row at `place`, which error messages name. `cell(i)` is the cell of the i-th of the columns.
    fn add<'c>(&mut self, place: Arguments<'_>, cell: impl Fn(usize) -> &'c [u8]) -> Result<(), Error>;
}

/// The text of a cell without spaces around it; an error for one that is not UTF-8.
pub(super) fn trimmed<'c>(
    path: &Path,
    (place, column): (Arguments<'_>, &str),
    cell: &'c [u8],
) -> Result<&'c str, Error> {
    std::str::from_utf8(cell)
        .map(str::trim)
        .map_err(|_| refused(path, (place, column), &String::from_utf8_lossy(cell), "text in UTF-8"))
}

/// The error of a cell.
pub(super) fn refused(
    path: &Path,
    (place, column): (Arguments<'_>, &str),
    cell: &str,
    must_be: impl Into<String>,
) -> Error {
    bad(path, format!("{cell:?} in {place}, column {column:?}"), must_be)
}

/// The user that a cell names.
pub(super) fn user_in(path: &Path, at: (Arguments<'_>, &str), cell: &[u8]) -> Result<String, Error> {
    let cell = trimmed(path, at, cell)?;
    let name = user_name("user", cell).map_err(|error| refused(path, at, cell, error.must_be))?;
    Ok(name.into_owned())
}

impl Wanted<'_> {
    /// Refuses a column of users that is also a label or a feature.
    pub(super) fn check(self) -> Result<(), Error> {
        self.schema.check()?;
        let used = self.schema.columns.iter().map(|column| &column.name).chain([&self.schema.label]);
        match used.into_iter().find(|&name| Some(&**name) == self.user) {
            None => Ok(()),
            Some(name) => {
                let must_be =
                    "a column that is neither the label nor a feature: names of users are not learned from";
                Err(InvalidParameter::new("user", format!("{name:?}"), must_be).into())
            }
        }
    }
}

/// Encoded rows, with their users if these were read.
pub(super) struct Rows {
    pub(super) examples: Examples,
    pub(super) users: Option<Users>,
}

/// The examples encoded so far.
pub(super) struct RowReader<'a> {
    path: &'a Path,
    wanted: Wanted<'a>,
    features: Vec<f32>,
    labels: Vec<u32>,
    users: Vec<String>,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(path: &'a Path, wanted: Wanted<'a>) -> Self {
        Self { path, wanted, features: Vec::new(), labels: Vec::new(), users: Vec::new() }
    }

    /// Returns all rows.
    pub(super) fn end(self) -> Result<Rows, Error> {
        if self.labels.is_empty() {
            return Err(bad(self.path, "without rows", "a table with a row for each example"));
        }
        let Wanted { schema, user, .. } = self.wanted;
        let users = user.map(|_| Users::new(self.users.iter().map(String::as_str))).transpose()?;
        Ok(Rows { examples: Examples::new(self.features, self.labels, schema.features())?, users })
    }
}

impl<'a> RowSink<'a> for RowReader<'a> {
    /// The columns of the schema, the label, the user.
    fn columns(&self) -> Vec<(&'a str, Role)> {
        let Wanted { schema, labels, user } = self.wanted;
        let features = schema.columns.iter().map(|column| match column.values {
            Values::Range(..) => (&*column.name, Role::Value),
            Values::Categories(_) | Values::Text(_) => (&*column.name, Role::Name),
        });
        let label = (labels == Labels::Required).then_some((&*schema.label, Role::Name));
        features.chain(label).chain(user.map(|user| (user, Role::User))).collect()
    }

    fn add<'c>(&mut self, place: Arguments<'_>, cell: impl Fn(usize) -> &'c [u8]) -> Result<(), Error> {
        let (start, Wanted { schema, labels, user }) = (self.features.len(), self.wanted);
        self.features.resize(start + schema.features(), 0.0);
        let mut features = &mut self.features[start..];
        let refused =
            |column, cell: &str, must_be: String| refused(self.path, (place, column), cell, must_be);
        let text = |i, column| trimmed(self.path, (place, column), cell(i));
        for (i, column) in schema.columns.iter().enumerate() {
            let (own, rest) = features.split_at_mut(column.width());
            features = rest;
            let cell = text(i, &column.name)?;
            match column.fill(cell, own) {
                Ok(()) => {}
                Err(Refused::Missing) if schema.missing == Missing::Zero => {}
                Err(Refused::Missing) => {
                    let must_be = "present, as a finite number or a word, unless missing cells count as 0";
                    return Err(refused(&column.name, cell, must_be.into()));
                }
                Err(Refused::MustBe(what)) => return Err(refused(&column.name, cell, what)),
            }
        }
        let mut next = schema.columns.len();
        self.labels.push(match labels {
            Labels::Ignored => 0,
            Labels::Required => {
                let cell = text(next, &schema.label)?;
                next += 1;
                let class = schema.classes.iter().position(|class| class == cell);
                class.ok_or_else(|| refused(&schema.label, cell, one_of(&schema.classes)))? as u32
            }
        });
        if let Some(user) = user {
            self.users.push(user_in(self.path, (place, user), cell(next))?);
        }
        Ok(())
    }
}
