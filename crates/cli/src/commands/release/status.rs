//! `antinoise release status`.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_mechanism::Workload;
use antinoise_release::{Growth, HORIZONS, Query, Settings, Status};
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
    /// None of a release without an end.
    periods: Option<usize>,
    /// Of a release without an end: the link of the period that is frozen next.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkTold>,
    frozen: usize,
    published: usize,
    /// Whether all periods are published: nothing more can be, and the secret is wiped.
    complete: bool,
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
    /// The largest standard deviation of its noise over all periods, in its unit; none of a release without an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_standard_deviation: Option<f64>,
    /// What deviations are of, where they are not of its figures.
    deviation_of: Option<&'static str>,
    /// Of a release without an end: the standard deviation after so many periods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<After>,
}

/// The error of a figure.
#[derive(Debug, Serialize)]
struct After {
    periods: usize,
    standard_deviation: f64,
}

/// A link of a release without an end, its periods counted from 1.
#[derive(Debug, Serialize)]
struct LinkTold {
    number: usize,
    first_period: usize,
    last_period: usize,
    growth: Growth,
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
        Query::Kmeans { .. } => Some("the rows of a cell"),
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
            let (mut largest, mut after) = (None, Vec::new());
            if settings.links.is_some() {
                for periods in HORIZONS {
                    let standard_deviation = status.error(query, periods - 1)?;
                    after.push(After { periods, standard_deviation });
                }
            } else {
                largest = Some(status.errors(query)?.into_iter().fold(0.0, f64::max));
            }
            let (deviation_of, workload) = (deviation_of(query), query.workload());
            queries.push(Told {
                query: query.to_string(),
                workload,
                largest_standard_deviation: largest,
                deviation_of,
                after,
            });
        }
        let link = status.link().zip(settings.links).map(|(link, links)| LinkTold {
            number: link.link + 1,
            first_period: link.start + 1,
            last_period: link.start + links.length(link.link),
            growth: links.growth,
        });
        Ok(Self {
            dir: dir.to_path_buf(),
            periods: settings.links.is_none().then_some(*periods),
            link,
            frozen: *frozen,
            published: *published,
            complete: settings.links.is_none() && published >= periods,
            keys: settings.keys.clone(),
            queries,
            unit: unit.to_string(),
            max_periods: *max_periods,
            max_rows: *max_rows,
            epsilon: status.epsilon(),
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
        let periods = self.periods.map_or("no end".into(), |periods| periods.to_string());
        writeln!(f, "periods           {periods}: {} frozen, {} published", self.frozen, self.published)?;
        if self.complete {
            writeln!(f, "complete          the secret is wiped")?;
        }
        if let Some(LinkTold { number, first_period, last_period, .. }) = &self.link {
            writeln!(f, "link              {number}: periods {first_period} to {last_period}")?;
        }
        writeln!(f, "keys              {}", self.keys.len())?;
        for Told { query, largest_standard_deviation, deviation_of, after, .. } in &self.queries {
            let told = match largest_standard_deviation {
                Some(largest) => format!("{} at most", short(*largest, 4)),
                None => {
                    let told = |after: &After| {
                        format!("{} after {}", short(after.standard_deviation, 4), after.periods)
                    };
                    format!("{} periods", after.iter().map(told).collect::<Vec<_>>().join(", "))
                }
            };
            let of = deviation_of.map_or(String::new(), |what| format!(" of {what}"));
            writeln!(f, "query             {query}: standard deviation{of} {told}")?;
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
