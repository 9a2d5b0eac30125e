//! Encoding of rows, for all file formats.

use std::fmt::Arguments;
use std::path::Path;

use super::column::{Refused, one_of};
use super::schema::{Missing, Schema};
use crate::Error;
use crate::data::examples::Examples;
use crate::data::file::bad;

/// Whether the column of labels is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Every row has a class.
    Required,
    /// Labels are not read, and the column may be absent: every label is 0.
    Ignored,
}

/// The examples encoded so far.
pub(super) struct RowReader<'a> {
    path: &'a Path,
    schema: &'a Schema,
    reads: Labels,
    features: Vec<f32>,
    labels: Vec<u32>,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(path: &'a Path, schema: &'a Schema, reads: Labels) -> Self {
        Self { path, schema, reads, features: Vec::new(), labels: Vec::new() }
    }

    /// Adds the row at `place`, which error messages name. `cell(i)` is the cell of the schema's i-th column;
    /// the label, if labels are read, comes after the last column.
    pub(super) fn add<'c>(
        &mut self,
        place: Arguments<'_>,
        cell: impl Fn(usize) -> &'c [u8],
    ) -> Result<(), Error> {
        let start = self.features.len();
        self.features.resize(start + self.schema.features(), 0.0);
        let mut features = &mut self.features[start..];
        let refused = |column: &str, cell: &str, must_be: String| {
            bad(self.path, format!("{cell:?} in {place}, column {column:?}"), must_be)
        };
        let text = |i: usize, column: &str| {
            let cell = cell(i);
            let text = std::str::from_utf8(cell).map(str::trim);
            text.map_err(|_| refused(column, &String::from_utf8_lossy(cell), "text in UTF-8".into()))
        };
        for (i, column) in self.schema.columns.iter().enumerate() {
            let (own, rest) = features.split_at_mut(column.width());
            features = rest;
            let cell = text(i, &column.name)?;
            match column.fill(cell, own) {
                Ok(()) => {}
                Err(Refused::Missing) if self.schema.missing == Missing::Zero => {}
                Err(Refused::Missing) => {
                    let must_be =
                        "there, as a finite number or a word (or declared to count as 0: missing = zero)";
                    return Err(refused(&column.name, cell, must_be.into()));
                }
                Err(Refused::MustBe(what)) => return Err(refused(&column.name, cell, what)),
            }
        }
        if self.reads == Labels::Ignored {
            self.labels.push(0);
            return Ok(());
        }
        let cell = text(self.schema.columns.len(), &self.schema.label)?;
        let class = self.schema.classes.iter().position(|class| class == cell);
        let class = class.ok_or_else(|| refused(&self.schema.label, cell, one_of(&self.schema.classes)))?;
        self.labels.push(class as u32);
        Ok(())
    }

    /// All examples.
    pub(super) fn end(self) -> Result<Examples, Error> {
        if self.labels.is_empty() {
            return Err(bad(self.path, "without rows", "a table with a row for each example"));
        }
        Ok(Examples::new(self.features, self.labels, self.schema.features())?)
    }
}
