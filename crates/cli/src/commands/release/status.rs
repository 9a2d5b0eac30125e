//! `antinoise release status`.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_accounting::three_digits_up;
use antinoise_input::short;
use antinoise_release::{After, QueryStatus, SegmentStatus, Status, StatusReport, TableStatus, quantity};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;

/// Print the progress of a release, its errors and its privacy statement.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release status shops")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
}

/// Output of `antinoise release status`.
#[derive(Debug, Serialize)]
pub struct ReleaseStatus {
    dir: PathBuf,
    #[serde(flatten)]
    status: StatusReport,
}

/// Reads the release.
pub fn run(arguments: &Arguments) -> Result<ReleaseStatus> {
    ReleaseStatus::of(&arguments.dir)
}

impl ReleaseStatus {
    /// Status of the release in `dir`.
    pub fn of(dir: &Path) -> Result<Self> {
        Ok(Self { dir: dir.to_path_buf(), status: Status::of(dir)?.report()? })
    }
}

impl fmt::Display for ReleaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.status;
        writeln!(f, "folder            {}", self.dir.display())?;
        let periods = status.periods.map_or("no end".into(), |periods| periods.to_string());
        writeln!(f, "periods           {periods}: {} frozen, {} published", status.frozen, status.published)?;
        if status.complete {
            writeln!(f, "complete          the secret is wiped")?;
        }
        if let Some(SegmentStatus { number, first_period, last_period, .. }) = &status.segment {
            writeln!(f, "segment           {number}: periods {first_period} to {last_period}")?;
        }
        writeln!(f, "keys              {}", status.keys.len())?;
        for QueryStatus { query, largest_standard_deviation, deviation_of, tables, after, .. } in
            &status.queries
        {
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
            for TableStatus { columns, relative_deviation, .. } in tables {
                writeln!(f, "                  {columns}: {} times that", short(*relative_deviation, 4))?;
            }
        }
        let bound = match status.unit.as_str() {
            "user" => {
                let rows = quantity(status.max_rows as u64, "row");
                format!(", {rows} in each of {} at most", quantity(status.max_periods as u64, "period"))
            }
            _ => String::new(),
        };
        writeln!(f, "unit              {}{bound}", status.unit)?;
        writeln!(f, "intervals         95%, {}", status.intervals)?;
        for of_users in status.queries.iter().filter(|query| query.intervals != status.intervals) {
            writeln!(f, "                  {}: {}", of_users.query, of_users.intervals)?;
        }
        writeln!(
            f,
            "privacy           epsilon {}, delta {}",
            three_digits_up(status.epsilon),
            three_digits_up(status.delta)
        )?;
        writeln!(f, "mechanism         {}\n", status.strategy)?;
        write!(f, "{}", status.statement)
    }
}
