//! `antinoise release publish`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use antinoise_input::short;
use antinoise_release::{Figure, Published, Release};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;
use crate::output;

/// Publish every frozen period: the figures of each key, with their 95% intervals.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  printf 'time,user,shop\\n2026-03-01,ada,north\\n' > day.csv
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release freeze shops 2026-03-01 --events day.csv \\
      --time time --user user --key shop
  antinoise release publish shops

A period's figures are computed once: if a publication is killed, the next one gives the
same figures. They are added to the table published of DIR/release.db. After the last
period, the secret is overwritten and deleted.")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
}

/// Output of `antinoise release publish`.
#[derive(Debug, Serialize)]
pub struct PublishedPeriods {
    published: Vec<Published>,
    /// The rows to which figures and their intervals refer, for queries of rows.
    intervals: String,
    /// The users to which queries of users refer, by query.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    intervals_of_users: BTreeMap<String, String>,
    /// Whether all periods are published, and the secret is wiped.
    complete: bool,
}

/// Number of rows up to which rows of several periods are printed as text.
const MOST_PRINTED: usize = 60;

/// Publishes all frozen periods.
pub fn run(arguments: &Arguments) -> Result<PublishedPeriods> {
    let mut release = Release::open(&arguments.dir)?;
    let published = release.publish()?;
    let settings = release.settings();
    let of_users = settings.queries.iter().filter(|(query, _)| query.is_of_users());
    let intervals_of_users = of_users.map(|(query, _)| (query.to_string(), settings.about(query))).collect();
    let (intervals, complete) = (settings.rows_counted(), release.is_complete());
    Ok(PublishedPeriods { published, intervals, intervals_of_users, complete })
}

/// A figure as text.
pub fn written(figure: Figure) -> String {
    match figure {
        Figure::Whole(number) => number.to_string(),
        Figure::Real(number) => short(number, 6),
    }
}

/// Figures as a table.
pub fn table(published: &[Published]) -> String {
    let rows: Vec<Vec<String>> = published
        .iter()
        .map(|row| {
            let query = format!("{} {}", row.query, row.bucket);
            let figures = [row.value, row.lower, row.upper].map(written);
            let key = if row.key.is_empty() { "(all keys)" } else { &row.key };
            let mut cells = vec![row.period.to_string(), key.into(), query.trim().to_string()];
            cells.extend(figures);
            cells
        })
        .collect();
    output::table(&["period", "key", "query", "value", "lower", "upper"], &rows)
}

impl PublishedPeriods {
    /// The rows to print: all, or those of the last period if there are more than [`MOST_PRINTED`].
    fn shown(&self) -> &[Published] {
        let last = self.published.last().map(|row| &row.period);
        let first = self.published.iter().position(|row| Some(&row.period) == last).unwrap_or(0);
        if self.published.len() > MOST_PRINTED { &self.published[first..] } else { &self.published }
    }
}

impl fmt::Display for PublishedPeriods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.published.is_empty() {
            writeln!(f, "nothing was frozen since the last publication")?;
        } else {
            let shown = self.shown();
            write!(f, "{}", table(shown))?;
            if shown.len() < self.published.len() {
                let earlier = self.published.len() - shown.len();
                writeln!(
                    f,
                    "{earlier} rows of earlier periods are in the table published of DIR/release.db"
                )?;
            }
            writeln!(f, "\n95% intervals {}", self.intervals)?;
            self.intervals_of_users
                .iter()
                .try_for_each(|(query, about)| writeln!(f, "{query}: 95% intervals {about}"))?;
        }
        match self.complete {
            true => writeln!(
                f,
                "all periods are published: the secret is wiped, and nothing more can be published"
            ),
            false => Ok(()),
        }
    }
}
