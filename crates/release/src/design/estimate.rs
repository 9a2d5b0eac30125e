//! The figures of a query, with their intervals, from the noisy points of a key's cells.

use crate::Query;
use crate::design::layout::{Layout, Part};
use crate::queries::buckets::Buckets;
use crate::queries::interval::{Interval, Ratio};
use crate::queries::marginals::LeastSquares;
use crate::queries::measure::{Measure, half_and_middle};
use crate::queries::quantile::{Rows, quantile};

/// A query, and the numbers from which its figures are computed.
pub(crate) struct Estimator<'q> {
    pub(crate) query: &'q Query,
    /// The part of the vector from which the query is answered; for a mean, the part that counts rows.
    pub(crate) part: &'q Part,
    /// The names of a key's figures in the published table.
    pub(crate) names: Vec<String>,
    method: Method<'q>,
}

enum Method<'q> {
    /// The number of points in a cell, times `unit`.
    Cell { unit: f64 },
    /// Buckets, each separately.
    Histogram { buckets: Buckets },
    /// Rows below edges, and their fraction of all rows.
    Cdf { buckets: Buckets, edges: usize },
    /// Rows in a run of buckets.
    Run { buckets: Buckets, run: (usize, usize) },
    /// The middle of the range, plus the sum of deviations from it divided by the number of rows.
    Mean { low: f64, high: f64, deviations: &'q Part, deviation: f64, row: f64 },
    /// Tables of counts. `deviations`: for each published table, the standard deviation of its cells, for
    /// noise of variance 1.
    Marginals { squares: LeastSquares<'q>, deviations: Vec<f64> },
    /// Quantiles. `deviations`: for each Q, the standard deviation of the noisy rank at each edge, for cells
    /// with noise of variance 1.
    Quantiles { buckets: Buckets, ranks: &'q [f64], edges: &'q [f64], deviations: Vec<Vec<f64>> },
}

/// A figure of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) interval: Interval,
    pub(crate) is_whole: bool,
    /// Whether the true figure cannot be negative.
    pub(crate) is_non_negative: bool,
    /// Whether the true figure cannot decrease from a period to the next.
    pub(crate) is_monotone: bool,
}

impl<'q> Estimator<'q> {
    pub(crate) fn new(query: &'q Query, layout: &'q Layout, spacing: f64) -> Self {
        let part = layout.part_of(query);
        let unit = part.unit(spacing);
        let method = match query {
            Query::Counts
            | Query::Sum { .. }
            | Query::Window { .. }
            | Query::Decay { .. }
            | Query::UsersAtBound
            | Query::UsersOverRows => Method::Cell { unit },
            Query::Mean { low, high } => {
                let measure = Measure::Deviation { low: *low, high: *high };
                let deviations = layout.part(&measure);
                let deviation = deviations.unit(spacing);
                Method::Mean { low: *low, high: *high, deviations, deviation, row: unit }
            }
            Query::Histogram { .. } => Method::Histogram { buckets: part.buckets(spacing) },
            Query::Cdf { edges } => Method::Cdf { buckets: part.buckets(spacing), edges: edges.len() },
            Query::Range { .. } => Method::Run { buckets: part.buckets(spacing), run: query.runs()[0] },
            Query::Marginals { .. } => {
                let marginals = part.marginals().expect("the part of marginals has tables");
                let squares = LeastSquares::new(marginals, part.points(spacing));
                let deviations = squares.asked().map(|table| squares.deviation(table)).collect();
                Method::Marginals { squares, deviations }
            }
            Query::Quantiles { ranks, edges } => {
                let buckets = part.buckets(spacing);
                let all = edges.len() + 1;
                let of_rank =
                    |rank: &f64| (1..all).map(|edge| buckets.rank_deviation(edge, *rank, all)).collect();
                let deviations = ranks.iter().map(of_rank).collect();
                Method::Quantiles { buckets, ranks, edges, deviations }
            }
        };
        let names = match &method {
            Method::Marginals { squares, .. } => squares.names(query.attributes()),
            _ => names(query, &part.measure),
        };
        Self { query, part, names, method }
    }

    /// The largest standard deviation of a figure, for cells with noise of variance 1: for a mean, that of
    /// the mean times the number of rows; for quantiles, of their ranks.
    pub(crate) fn largest_deviation(&self) -> f64 {
        let largest = |deviations: &mut dyn Iterator<Item = f64>| deviations.fold(0.0, f64::max);
        match &self.method {
            Method::Cell { unit } => *unit,
            Method::Histogram { buckets: Buckets::Flat { unit } } => *unit,
            Method::Histogram { buckets } | Method::Cdf { buckets, .. } | Method::Run { buckets, .. } => {
                largest(&mut self.query.runs().into_iter().map(|run| buckets.deviation(run)))
            }
            Method::Mean { low, high, deviation, row, .. } => {
                deviation.hypot(half_and_middle(*low, *high).0 * row)
            }
            Method::Marginals { deviations, .. } => largest(&mut deviations.iter().copied()),
            Method::Quantiles { deviations, .. } => largest(&mut deviations.iter().flatten().copied()),
        }
    }

    /// For marginals, the columns of each published table and the standard deviation of its cells, relative
    /// to the largest; empty for other queries.
    pub(crate) fn tables(&self) -> Vec<(String, f64)> {
        let Method::Marginals { squares, deviations } = &self.method else { return Vec::new() };
        let largest = self.largest_deviation();
        let named = squares.asked().zip(deviations);
        let table = |(table, deviation): (usize, &f64)| {
            (squares.columns(table, self.query.attributes()), deviation / largest)
        };
        named.map(table).collect()
    }

    /// The figure of a query with one cell per key, whose sum is `points`.
    pub(crate) fn cell(&self, points: f64, noise: f64) -> Estimate {
        let unit = self.largest_deviation();
        self.estimate_of(Interval::new(points * unit, noise * unit, self.query.is_whole()))
    }

    /// The figures of a key from the sums of all cells; `noise`: standard deviation of a cell in points.
    pub(crate) fn figures(&self, key: usize, sum: &[i64], noise: f64) -> Vec<Estimate> {
        let cells = &sum[self.part.cells_of(key)];
        let of_run = |buckets: &Buckets, rows: f64, run: (usize, usize)| {
            self.estimate_of(Interval::new(rows, noise * buckets.deviation(run), true))
        };
        match &self.method {
            Method::Cell { .. } => vec![self.cell(cells[0] as f64, noise)],
            Method::Histogram { buckets: Buckets::Flat { unit } } => {
                let estimate =
                    |points: &i64| self.estimate_of(Interval::new(*points as f64 * unit, noise * unit, true));
                cells.iter().map(estimate).collect()
            }
            Method::Histogram { buckets } => {
                let below = buckets.below(cells);
                let rows = |at: usize| below[at] - at.checked_sub(1).map_or(0.0, |before| below[before]);
                (0..cells.len()).map(|at| of_run(buckets, rows(at), (at, at + 1))).collect()
            }
            Method::Run { buckets, run: (from, to) } => {
                let below = buckets.below(cells);
                let rows = below[to - 1] - below[from - 1];
                vec![of_run(buckets, rows, (*from, *to))]
            }
            Method::Cdf { buckets, edges } => {
                let below = buckets.below(cells);
                let numbers = (0..*edges).map(|at| of_run(buckets, below[at], (0, at + 1)));
                let shares = (0..*edges).map(|at| self.share(buckets, &below, at, noise));
                numbers.chain(shares).collect()
            }
            Method::Mean { low, high, deviations, deviation, row } => {
                let (half, middle) = half_and_middle(*low, *high);
                let ratio = Ratio {
                    above: sum[deviations.cell(key, 0)] as f64 * deviation,
                    below: cells[0] as f64 * row,
                    above_variance: (noise * deviation).powi(2),
                    covariance: 0.0,
                    below_variance: (noise * row).powi(2),
                    // Each row's deviation was rounded to whole points.
                    slack: 0.5 * deviation,
                };
                vec![self.estimate_of(Interval::of_ratio(ratio, -half, half).moved(middle, *low, *high))]
            }
            Method::Marginals { squares, deviations } => {
                let of_table = |(counts, deviation): (Vec<f64>, &f64)| {
                    let deviation = noise * deviation;
                    let interval = move |count| Interval::new(count, deviation, false);
                    counts.into_iter().map(move |count| self.estimate_of(interval(count)))
                };
                squares.counts(cells).into_iter().zip(deviations).flat_map(of_table).collect()
            }
            Method::Quantiles { buckets, ranks, edges, deviations } => {
                let below = buckets.below(cells);
                let all = below[edges.len()];
                let deviation = noise * buckets.deviation((0, below.len()));
                let rows = Rows { below: &below[..edges.len()], all, deviation };
                let estimate = |(rank, deviations): (&f64, &Vec<f64>)| {
                    let deviations: Vec<f64> = deviations.iter().map(|deviation| deviation * noise).collect();
                    self.estimate_of(quantile(*rank, edges, &rows, &deviations))
                };
                ranks.iter().zip(deviations).map(estimate).collect()
            }
        }
    }

    fn estimate_of(&self, interval: Interval) -> Estimate {
        let is_non_negative = self.query.is_non_negative();
        Estimate {
            interval,
            is_whole: self.query.is_whole(),
            is_non_negative,
            is_monotone: self.query.is_monotone(),
        }
    }

    /// The fraction of all rows below an edge.
    fn share(&self, buckets: &Buckets, below: &[f64], at: usize, noise: f64) -> Estimate {
        let (edge, all, variance) = (at + 1, below.len(), noise * noise);
        let ratio = Ratio {
            above: below[at],
            below: below[all - 1],
            above_variance: variance * buckets.covariance(edge, edge),
            covariance: variance * buckets.covariance(edge, all),
            below_variance: variance * buckets.covariance(all, all),
            slack: 0.0,
        };
        within_range(Interval::of_ratio(ratio, 0.0, 1.0))
    }
}

/// A figure that is never raised: it may decrease, and it already lies in its range.
fn within_range(interval: Interval) -> Estimate {
    Estimate { interval, is_whole: false, is_non_negative: false, is_monotone: false }
}

fn names(query: &Query, measure: &Measure) -> Vec<String> {
    match query {
        Query::Histogram { .. } => (0..measure.buckets()).map(|bucket| measure.bucket_name(bucket)).collect(),
        Query::Cdf { edges } => {
            let named = |what: &'static str| edges.iter().map(move |edge| format!("{what} {edge}"));
            named("below").chain(named("share below")).collect()
        }
        Query::Quantiles { ranks, .. } => ranks.iter().map(f64::to_string).collect(),
        Query::Counts
        | Query::Sum { .. }
        | Query::Mean { .. }
        | Query::Window { .. }
        | Query::Decay { .. }
        | Query::Range { .. }
        | Query::Marginals { .. }
        | Query::UsersAtBound
        | Query::UsersOverRows => vec![String::new()],
    }
}
