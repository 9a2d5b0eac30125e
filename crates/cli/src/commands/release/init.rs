//! `antinoise release init`.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_release::{Keep, Query, Release, Settings, Unit};
use clap::Args;
use serde::Serialize;

use super::advice::{AdvisedBounds, GuessArguments};
use super::status::ReleaseStatus;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::progress::Progress;

/// Begin a release: choose its mechanism, draw a secret key, and write both into a new folder.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release init delays --keys EWR,JFK --periods 52 --epsilon 1 \\
      --delta 1e-6 --unit user --max-periods 4 --max-rows 3 \\
      --query counts --query sum:0,180 --query histogram:0,15,60
  antinoise release init waits --keys EWR,JFK --periods 52 --epsilon 1 \\
      --delta 1e-6 --unit user --max-periods 4 --query mean:0,180 \\
      --query quantiles:0.5,0.9@0,5,10,20,40,80,180 \\
      --query cdf:0,5,10,20,40,80,180
  antinoise release init tables --keys all --periods 52 --epsilon 1 \\
      --delta 1e-6 --unit user --max-periods 4 \\
      --query 'marginals:city=Rome|Oslo|other;age@18,65;ways=1,2'
  antinoise release init week --keys all --periods 1000 --epsilon 1 \\
      --delta 1e-6 --unit event --query window:7
  antinoise release init ever --keys north,south --periods open \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release init guess --keys north,south --periods 60 --epsilon 2 \\
      --delta 1e-6 --users 900 --periods-per-user 4,12 --plot bounds.svg

Keys are public: they must not depend on the data. With --unit user, at most MAX_ROWS
rows of a user are counted in a period (--keep says which), and a user is counted in at
most MAX_PERIODS periods; (epsilon, delta) protects all of these rows together. With
--unit event, it protects each row. With --periods-per-user, a public guess, nothing is
made: several bounds are compared by the rows that they leave out and by their noise.

Marginals count the combinations of the categories or buckets of every W1 columns, every
W2 columns and so on (of 0 columns: all rows). Their tables add up, and share one part of
the budget such that the sum of the variances of their cells, one cell of each table, is
the smallest possible.

Some queries share their noise, at no further cost: counts, window, decay and the number
that a mean divides by; histogram, cdf, quantiles and range of the same edges. Each
further group of queries takes a share of the budget: with Q groups of equal weight,
each has sqrt(Q) times the noise of a release with only that group. A mean belongs to
two groups: counts, and its own.

With --unit user, the release also publishes how much the bounds leave out, unless
--no-left-out is given: users-at-bound, the users who were counted in MAX_PERIODS periods
(each once), and users-over-rows, the users with more than MAX_ROWS rows (once for each of
their periods). Each takes the share of a group with a quarter of the largest weight: all
other noise grows by 6%, for one group."
)]
pub struct Arguments {
    /// Folder of the release, which is made if it does not exist. One release needs one of its own.
    dir: PathBuf,
    /// Public categories that figures are published for: a file with one per line, or a list separated by
    /// commas.
    #[arg(long, value_name = "FILE|LIST")]
    keys: String,
    /// Maximum number of periods that will be published; or open, for a release without an end, whose first
    /// figures are less accurate.
    #[arg(long, value_name = "N|open", value_parser = periods)]
    periods: Periods,
    /// Target epsilon of all periods and queries together.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: f64,
    /// Target delta of all periods and queries together.
    #[arg(long, value_name = "D", value_parser = real)]
    delta: f64,
    /// Privacy unit: user (all counted rows of a user are protected together) or event (each row).
    #[arg(long, default_value = "user")]
    unit: Unit,
    /// Maximum number of periods in which a user is counted [default: 1 for events].
    #[arg(long, value_name = "K", value_parser = count)]
    max_periods: Option<usize>,
    /// Maximum number of rows of a user that are counted in a period [default: 1].
    #[arg(long, value_name = "R", value_parser = count)]
    max_rows: Option<usize>,
    /// Which rows of a user to count if a period has more than MAX_ROWS: first, or sample (a random sample).
    #[arg(long, value_name = "WHICH", default_value = "first")]
    keep: Keep,
    /// Query that is published for each key; may be repeated: counts, sum:LO,HI, mean:LO,HI, window:W,
    /// decay:G, histogram:E1,E2,..., cdf:E1,E2,..., quantiles:Q1,Q2,...@E1,E2,..., range:LO,HI@E1,E2,... or
    /// marginals:COL=A|B|...;COL@E1,E2,...;ways=W1,W2,... [default: counts]. Queries of users, of all keys
    /// together: users-at-bound, users-over-rows.
    #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
    query: Vec<Query>,
    /// Weights of the queries, in their order: twice the weight gives half the noise [default: 1 each].
    #[arg(long, value_name = "W,W,...", value_delimiter = ',', value_parser = real)]
    weights: Vec<f64>,
    /// Replace negative figures of quantities that cannot be negative by 0. For a true count of 0, this adds
    /// 0.4 standard deviations on average.
    #[arg(long)]
    non_negative: bool,
    /// Replace figures of running counts by their running maximum, so that they never fall. They are then
    /// above the truth on average, by up to a few standard deviations after many periods without events.
    #[arg(long)]
    monotone: bool,
    /// Do not publish users-at-bound and users-over-rows, which take a small share of the budget.
    #[arg(long)]
    no_left_out: bool,
    #[command(flatten)]
    guess: GuessArguments,
}

/// Length of the release.
#[derive(Debug, Clone, Copy)]
enum Periods {
    Most(usize),
    Open,
}

fn periods(text: &str) -> std::result::Result<Periods, String> {
    match text {
        "open" => Ok(Periods::Open),
        _ => count(text).map(Periods::Most).map_err(|error| format!("{error}; or open")),
    }
}

/// Begins the release, or advises bounds.
pub fn run(arguments: &Arguments) -> Result<Begun> {
    if arguments.guess.is_given() {
        let progress = Progress::percent("comparing bounds");
        let done = |done, expected| progress.done(done, expected);
        let advice = arguments.guess.advice(&arguments.bounded(1)?, arguments.max_rows, &done)?;
        return Ok(Begun::Advised(advice));
    }
    let settings = arguments.settings()?;
    let progress = Progress::percent("designing the mechanism");
    let done = |done, expected| progress.done(done, expected);
    drop(Release::create_with(&arguments.dir, &settings, &done)?);
    drop(progress);
    Ok(Begun::Release(Box::new(ReleaseStatus::of(&arguments.dir)?)))
}

/// Output of `antinoise release init`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Begun {
    /// The new release.
    Release(Box<ReleaseStatus>),
    /// Bounds to choose from; no release was begun.
    Advised(AdvisedBounds),
}

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(status) => status.fmt(f),
            Self::Advised(advice) => advice.fmt(f),
        }
    }
}

impl Arguments {
    /// The settings of the release.
    fn settings(&self) -> Result<Settings> {
        if self.unit == Unit::User && self.max_periods.is_none() {
            let must_be = "given where users are protected: a user is counted in at most that many periods, and later rows of the \
                           user are in no figure. A larger number leaves out fewer rows and adds more noise. Guess from what is \
                           public, not from the data: --users N --periods-per-user MEDIAN,HEAVY compares bounds";
            return Err(InvalidParameter::new("max-periods", "absent", must_be).into());
        }
        self.bounded(self.max_periods.unwrap_or(1))
    }

    /// The settings with this bound on the periods of a user.
    fn bounded(&self, max_periods: usize) -> Result<Settings> {
        let queries = if self.query.is_empty() { vec![Query::Counts] } else { self.query.clone() };
        if !self.weights.is_empty() && self.weights.len() != queries.len() {
            let must_be = format!("one for each of {} queries", queries.len());
            return Err(InvalidParameter::new("weights", self.weights.len(), must_be).into());
        }
        let weight = |i: usize| self.weights.get(i).copied().unwrap_or(1.0);
        let most = match self.periods {
            Periods::Most(most) => most,
            Periods::Open => max_periods,
        };
        let settings = Settings {
            epsilon: self.epsilon,
            delta: self.delta,
            max_periods,
            max_rows: self.max_rows.unwrap_or(1),
            keep: self.keep,
            queries: queries.into_iter().enumerate().map(|(i, query)| (query, weight(i))).collect(),
            non_negative: self.non_negative,
            monotone: self.monotone,
            ..Settings::new(keys(&self.keys)?, most, self.unit)
        };
        let settings = match self.periods {
            Periods::Most(_) => settings,
            Periods::Open => settings.open_ended(),
        };
        Ok(if self.no_left_out { settings } else { settings.with_left_out() })
    }
}

/// Keys: the lines of the file `given` if it exists, else a list separated by commas.
fn keys(given: &str) -> Result<Vec<String>> {
    let path = Path::new(given);
    let named = |words: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        words.map(str::trim).filter(|word| !word.is_empty()).map(String::from).collect()
    };
    if !path.is_file() {
        return Ok(named(&mut given.split(',')));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        InvalidParameter::new("keys", path.display(), format!("a file that can be read: {error}"))
    })?;
    Ok(named(&mut text.lines()))
}
