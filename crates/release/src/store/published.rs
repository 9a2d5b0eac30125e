//! A published figure.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::Period;

/// A published figure.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Published {
    /// The period after which the figure holds.
    pub period: Period,
    /// The key; empty for queries of users, which are of all keys.
    pub key: String,
    /// The figure: a whole number of rows, or a real number.
    pub value: Figure,
    /// The lower end of the 95% interval.
    pub lower: Figure,
    /// The upper end of the 95% interval.
    pub upper: Figure,
    /// The query, as it was written.
    pub query: String,
    /// The place of the figure: a histogram's bucket, a cdf's edge (and whether the figure is a number or a
    /// share), a quantile's Q; empty for other queries.
    pub bucket: String,
}

/// A number: whole for counts, else real.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// A whole number, for counts.
    Whole(i64),
    /// A real number, for sums, means, fractions, quantiles and weighted counts.
    Real(f64),
}

impl Figure {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

impl ToSql for Figure {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Whole(number) => (*number).into(),
            Self::Real(number) => (*number).into(),
        })
    }
}

impl ToSql for Period {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}
