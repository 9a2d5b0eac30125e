//! Advice of `antinoise release init`: bounds of users from a public guess of how often they come.

use std::fmt;
use std::path::PathBuf;

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_input::{InvalidParameter, short};
use antinoise_release::{Advice, Guess, Settings, Unit};
use clap::Args;
use serde::Serialize;

use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::{output, plot};

/// A public guess of how often users come.
#[derive(Debug, Args)]
pub struct GuessArguments {
    /// Guess of the number of users, to compare bounds.
    #[arg(long, value_name = "N", value_parser = count, requires = "periods_per_user")]
    users: Option<usize>,
    /// Compare bounds instead of beginning a release, by a guess of the number of periods in which a user
    /// comes: for a median user and for a heavy user (whom 5% of users exceed). The guess must not be
    /// computed from the data.
    #[arg(long, value_name = "MEDIAN,HEAVY", value_delimiter = ',', value_parser = real,
        requires = "users", conflicts_with = "max_periods")]
    periods_per_user: Vec<f64>,
    /// Guess of the number of rows in such a period: for a median user and for a heavy user [default: 1,1].
    #[arg(long, value_name = "MEDIAN,HEAVY", value_delimiter = ',', value_parser = real,
        requires = "periods_per_user")]
    rows_per_user: Vec<f64>,
    /// Also draw bias and noise against the bound of periods, as SVG.
    #[arg(long, value_name = "FILE.svg", requires = "periods_per_user")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Bounds to choose from.
#[derive(Debug, Serialize)]
pub struct AdvisedBounds {
    bounds: Vec<Advice>,
    /// The bound on a user's periods with the smallest error.
    advised_max_periods: usize,
    /// The bound on a user's rows in a period, for that bound on periods.
    advised_max_rows: usize,
    /// Number of periods after which bias and noise are compared.
    periods_until: usize,
}

/// Number of periods after which an open-ended release is judged.
const HORIZON: usize = 365;

impl GuessArguments {
    /// Whether a guess is given.
    pub fn is_given(&self) -> bool {
        self.users.is_some()
    }

    /// Bounds for a release of these settings, and their figure; `max_rows`: the bound on rows, if given.
    /// `progress` is called with the work done and expected so far.
    pub fn advice(
        &self,
        settings: &Settings,
        max_rows: Option<usize>,
        progress: &(dyn Fn(f64, f64) + Sync),
    ) -> Result<AdvisedBounds> {
        if settings.unit == Unit::Event {
            let must_be = "left out for --unit event: events have no bounds";
            return Err(InvalidParameter::new("periods-per-user", "given", must_be).into());
        }
        let plot = self.overwriting.figure("plot", &self.plot)?;
        let periods_until = if settings.segments.is_some() { HORIZON } else { settings.periods };
        let rows = if self.rows_per_user.is_empty() {
            [1.0; 2]
        } else {
            pair("rows-per-user", &self.rows_per_user)?
        };
        let guess = Guess {
            users: self.users.unwrap_or(1),
            periods: pair("periods-per-user", &self.periods_per_user)?,
            rows,
            periods_until,
        };
        let bounds = guess.advise_with(settings, max_rows, progress)?;
        let best = bounds.iter().min_by(|one, other| one.error.total_cmp(&other.error));
        let (advised_max_periods, advised_max_rows) =
            best.map_or((1, 1), |best| (best.max_periods, best.max_rows));
        let advised = AdvisedBounds { bounds, advised_max_periods, advised_max_rows, periods_until };
        if let Some(plot) = &plot {
            plot.write(plot::file(vec![vec![advised.chart().into()]])?.as_bytes())?;
        }
        Ok(advised)
    }
}

impl AdvisedBounds {
    /// Bias, noise and error against the bound of periods.
    fn chart(&self) -> Chart {
        let line = |name: &str, style, of: fn(&Advice) -> f64| {
            let points = self.bounds.iter().map(|advice| (advice.max_periods as f64, of(advice)));
            Series::new(name, style, points)
        };
        let least = self.bounds.iter().filter(|advice| advice.max_periods == self.advised_max_periods);
        let least = least.map(|least| (least.max_periods as f64, least.error));
        let name = format!("smallest error: max-periods {}", self.advised_max_periods);
        Chart {
            title: format!("Bounds of periods: running counts of a key after {} periods", self.periods_until),
            x: Axis::linear("maximum number of periods in which a user is counted (max-periods)").whole(),
            y: Axis::logarithmic("error of a running count (rows)"),
            series: vec![
                line("bias (rows left out)", LineStyle::Marked, |advice| advice.bias),
                line("noise (standard deviation)", LineStyle::Marked, |advice| advice.noise),
                line("error (root of the sum of squares)", LineStyle::Dashed, |advice| advice.error),
                Series::new(name, LineStyle::Points, least),
            ],
        }
    }
}

fn pair(name: &str, numbers: &[f64]) -> Result<[f64; 2]> {
    let refused = |_| InvalidParameter::new(name, format!("{} numbers", numbers.len()), "two: MEDIAN,HEAVY");
    Ok(numbers.try_into().map_err(refused)?)
}

impl fmt::Display for AdvisedBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |advice: &Advice| {
            let is_best = advice.max_periods == self.advised_max_periods;
            vec![
                advice.max_periods.to_string(),
                advice.max_rows.to_string(),
                format!("{:.1}%", 100.0 * advice.left_out),
                short(advice.bias, 3),
                short(advice.noise, 3),
                short(advice.error, 3),
                if is_best { "<- smallest error".into() } else { String::new() },
            ]
        };
        let rows: Vec<Vec<String>> = self.bounds.iter().map(row).collect();
        let names = ["max-periods", "max-rows", "left out", "bias", "noise", "error", ""];
        write!(f, "{}", output::table(&names, &rows))?;
        writeln!(
            f,
            "\nRunning counts of a key after {} periods, in rows. Bias: the rows left out, according to the guess. Noise: a \
             standard deviation.\nNo release was made. Make one with --max-periods {} --max-rows {}, or bounds of your own.",
            self.periods_until, self.advised_max_periods, self.advised_max_rows
        )
    }
}
