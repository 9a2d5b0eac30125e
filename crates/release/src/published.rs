//! A figure as it is published.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::Period;

/// A published figure.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Published {
    /// The period after which it is so.
    pub period: Period,
    /// The key.
    pub key: String,
    /// The figure: a whole number of rows, or any number.
    pub value: Figure,
    /// The 95% interval's lower end.
    pub lower: Figure,
    /// Its upper end.
    pub upper: Figure,
    /// What is published, as it was asked for.
    pub query: String,
    /// The bucket of a histogram, which number or share of a cdf, the Q of a quantile; empty for other queries.
    pub bucket: String,
}

/// A number that is whole where it counts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// Of a count.
    Whole(i64),
    /// Of a sum, a mean, a share, a quantile or of weighted counts.
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
