//! The status of a release as numbers, in one form for printing and for programs.

use antinoise_mechanism::Workload;
use serde::Serialize;

use crate::segments::Growth;
use crate::status::Status;
use crate::{Query, Result, Settings};

/// Numbers of periods at which the errors of an open-ended release are reported.
const HORIZONS: [usize; 5] = [100, 365, 1000, 10_000, 1_000_000];

/// The promises and the progress of a release, as numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StatusReport {
    /// The number of periods; `None` for an open-ended release.
    pub periods: Option<usize>,
    /// For an open-ended release: the segment of the next period to be frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<SegmentStatus>,
    /// Number of frozen periods.
    pub frozen: usize,
    /// Number of published periods.
    pub published: usize,
    /// Whether all periods are published, so that nothing more can be published and the secret is wiped.
    pub complete: bool,
    /// The keys.
    pub keys: Vec<String>,
    /// The queries, with their errors.
    pub queries: Vec<QueryStatus>,
    /// The unit of privacy.
    pub unit: String,
    /// Maximum number of periods in which a unit is counted.
    pub max_periods: usize,
    /// Maximum number of rows of a unit that are counted in a period.
    pub max_rows: usize,
    /// The rows to which figures and their intervals refer.
    pub intervals: String,
    /// The epsilon of all periods together.
    pub epsilon: f64,
    /// The delta of all periods together.
    pub delta: f64,
    /// The noise multiplier of the plan.
    pub noise_multiplier: f64,
    /// The class of the plan's strategy.
    pub strategy: &'static str,
    /// The privacy statement.
    pub statement: String,
}

/// A query and its errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QueryStatus {
    /// The query as written, such as `sum:0,180`.
    pub query: String,
    /// The linear map A from increments to the query's figures.
    pub workload: Workload,
    /// The largest standard deviation of the noise over all periods, in the query's unit; `None` for an
    /// open-ended release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_standard_deviation: Option<f64>,
    /// The rows or users to which figures and their intervals refer.
    pub intervals: String,
    /// Whether these are all rows or users, and not only those within the bounds of users.
    pub of_all: bool,
    /// The quantity to which standard deviations refer, if it is not the figures.
    pub deviation_of: Option<&'static str>,
    /// For marginals: the published tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableStatus>,
    /// For an open-ended release: standard deviations at several numbers of periods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

/// A table of marginals; all of its cells have one standard deviation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableStatus {
    /// The columns, as `city,age`; `all` for the number of all events.
    pub columns: String,
    /// The standard deviation of a cell, divided by the query's largest, which is the same in every period.
    pub relative_deviation: f64,
}

/// The standard deviation of a query's noise after a number of periods.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct After {
    /// Number of periods, this one included.
    pub periods: usize,
    /// The standard deviation in the query's unit.
    pub standard_deviation: f64,
}

/// A segment of an open-ended release, with periods counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SegmentStatus {
    /// The number of the segment, from 1.
    pub number: usize,
    /// The segment's first period.
    pub first_period: usize,
    /// The segment's last period.
    pub last_period: usize,
    /// How lengths of segments grow.
    pub growth: Growth,
}

/// The quantity to which the standard deviation of a query refers, if that of its figures is not known in
/// advance.
fn deviation_of(query: &Query) -> Option<&'static str> {
    match query {
        Query::Mean { .. } => Some("the mean times the number of rows"),
        Query::Cdf { .. } => Some("the numbers of rows"),
        Query::Quantiles { .. } => Some("ranks, in rows,"),
        _ => None,
    }
}

impl Status {
    /// Status in numbers, as `antinoise release status --json` prints it.
    ///
    /// # Errors
    /// If the errors of a query cannot be computed.
    pub fn report(&self) -> Result<StatusReport> {
        let Status { settings, plan, frozen, published, .. } = self;
        let Settings { periods, unit, max_periods, max_rows, .. } = settings;
        let mut queries = Vec::new();
        for (query, _) in &settings.queries {
            let (mut largest, mut after) = (None, Vec::new());
            if settings.segments.is_some() {
                for periods in HORIZONS {
                    let standard_deviation = self.error(query, periods - 1)?;
                    after.push(After { periods, standard_deviation });
                }
            } else {
                largest = Some(self.errors(query)?.into_iter().fold(0.0, f64::max));
            }
            let tables = self.tables(query).into_iter();
            let tables = tables
                .map(|(columns, relative_deviation)| TableStatus { columns, relative_deviation })
                .collect();
            let (deviation_of, workload) = (deviation_of(query), query.workload());
            queries.push(QueryStatus {
                query: query.to_string(),
                workload,
                intervals: settings.about(query),
                of_all: settings.is_of_all(query),
                largest_standard_deviation: largest,
                deviation_of,
                tables,
                after,
            });
        }
        let segment = self.segment().zip(settings.segments).map(|(segment, segments)| SegmentStatus {
            number: segment.segment + 1,
            first_period: segment.start + 1,
            last_period: segment.start + segments.length(segment.segment),
            growth: segments.growth,
        });
        Ok(StatusReport {
            periods: settings.segments.is_none().then_some(*periods),
            segment,
            frozen: *frozen,
            published: *published,
            complete: settings.segments.is_none() && published >= periods,
            keys: settings.keys.clone(),
            queries,
            unit: unit.to_string(),
            max_periods: *max_periods,
            max_rows: *max_rows,
            intervals: settings.rows_counted(),
            epsilon: self.epsilon(),
            delta: plan.privacy.delta,
            noise_multiplier: plan.noise_multiplier,
            strategy: plan.strategy.class().name(),
            statement: self.statement().to_string(),
        })
    }
}
