//! `antinoise release status`.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_mechanism::Workload;
use antinoise_release::{Query, Settings, Status};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::{short, short_up};

/// Print what a release promises and how far it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release status shops")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
}

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    dir: PathBuf,
    periods: usize,
    frozen: usize,
    published: usize,
    keys: Vec<String>,
    queries: Vec<Told>,
    unit: String,
    max_periods: usize,
    max_rows: usize,
    epsilon: f64,
    delta: f64,
    noise_multiplier: f64,
    strategy: &'static str,
    /// The plan's, in words.
    statement: String,
}

/// A query and its errors.
#[derive(Debug, Serialize)]
struct Told {
    query: String,
    /// Its figures are A times the increments.
    workload: Workload,
    /// The largest standard deviation of its noise over all periods, in its unit.
    largest_standard_deviation: f64,
    /// What that is of, where it is not of its figures.
    deviation_of: Option<&'static str>,
}

/// Reads the release.
pub fn run(arguments: &Arguments) -> Result<Report> {
    Report::of(&arguments.dir)
}

/// What the standard deviation of a query is of, where its figures have none that is known in advance.
fn deviation_of(query: &Query) -> Option<&'static str> {
    match query {
        Query::Mean { .. } => Some("the mean times the number of rows"),
        Query::Cdf { .. } => Some("the numbers of rows"),
        Query::Quantiles { .. } => Some("ranks, in rows,"),
        _ => None,
    }
}

impl Report {
    /// What the release in `dir` says of itself.
    pub fn of(dir: &Path) -> Result<Self> {
        let status = Status::of(dir)?;
        let Status { settings, plan, frozen, published, .. } = &status;
        let Settings { periods, unit, max_periods, max_rows, .. } = settings;
        let mut queries = Vec::new();
        for (query, _) in &settings.queries {
            let largest = status.errors(query)?.into_iter().fold(0.0, f64::max);
            let (deviation_of, workload) = (deviation_of(query), query.workload());
            queries.push(Told {
                query: query.to_string(),
                workload,
                largest_standard_deviation: largest,
                deviation_of,
            });
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            periods: *periods,
            frozen: *frozen,
            published: *published,
            keys: settings.keys.clone(),
            queries,
            unit: unit.to_string(),
            max_periods: *max_periods,
            max_rows: *max_rows,
            epsilon: plan.privacy.epsilon,
            delta: plan.privacy.delta,
            noise_multiplier: plan.noise_multiplier,
            strategy: plan.strategy.class().name(),
            statement: status.statement().to_string(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "folder            {}", self.dir.display())?;
        writeln!(
            f,
            "periods           {}: {} frozen, {} published",
            self.periods, self.frozen, self.published
        )?;
        writeln!(f, "keys              {}", self.keys.len())?;
        for Told { query, largest_standard_deviation, deviation_of, .. } in &self.queries {
            let of = deviation_of.map_or(String::new(), |what| format!(" of {what}"));
            writeln!(
                f,
                "query             {query}: standard deviation{of} {} at most",
                short(*largest_standard_deviation, 4)
            )?;
        }
        let bound = match self.unit.as_str() {
            "user" => format!(", {} rows in each of {} periods at most", self.max_rows, self.max_periods),
            _ => String::new(),
        };
        writeln!(f, "unit              {}{bound}", self.unit)?;
        writeln!(f, "privacy           epsilon {}, delta {:e}", short_up(self.epsilon, 6), self.delta)?;
        writeln!(f, "mechanism         {}\n", self.strategy)?;
        write!(f, "{}", self.statement)
    }
}
