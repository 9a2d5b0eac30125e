//! `antinoise release query`.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::Result;
use crate::output;

/// Run a SELECT on the table published(period, key, value, lower, upper, query, bucket).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  printf 'time,user,shop\\n2026-03-01,ada,north\\n' > day.csv
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release freeze shops 2026-03-01 --events day.csv \\
      --time time --user user --key shop
  antinoise release publish shops
  antinoise release query shops \\
      'SELECT key, value FROM published ORDER BY value DESC'

It runs on a copy of that table in memory, and cannot read anything else in
DIR/release.db.")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
    /// One SELECT.
    sql: String,
}

/// Output of `antinoise release query`.
#[derive(Debug, Serialize)]
pub struct QueryRows {
    columns: Vec<String>,
    rows: Vec<Map<String, Value>>,
}

/// Runs the SELECT.
pub fn run(arguments: &Arguments) -> Result<QueryRows> {
    let answer = antinoise_release::query(&arguments.dir, &arguments.sql)?;
    let named = |row: Vec<Value>| answer.columns.iter().cloned().zip(row).collect();
    Ok(QueryRows { rows: answer.rows.into_iter().map(named).collect(), columns: answer.columns })
}

impl fmt::Display for QueryRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |value: &Value| match value {
            Value::String(text) => antinoise_input::printable(text),
            other => other.to_string(),
        };
        let cells =
            |row: &Map<String, Value>| self.columns.iter().map(|column| written(&row[column])).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        let header: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        write!(f, "{}", output::table(&header, &rows))
    }
}
