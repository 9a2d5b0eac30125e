//! What a status says, figure by figure: one form for whoever prints it or hands it on.

use antinoise_mechanism::Workload;
use serde::Serialize;

use crate::links::Growth;
use crate::status::Status;
use crate::{HORIZONS, Query, Result, Settings};

/// What a release promises and how far it is, in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusReport {
    /// None of a release without an end.
    pub periods: Option<usize>,
    /// Of a release without an end: the link of the period that is frozen next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkTold>,
    /// Periods that were frozen.
    pub frozen: usize,
    /// Periods of these that were published.
    pub published: usize,
    /// Whether all periods are published: nothing more can be, and the secret is wiped.
    pub complete: bool,
    /// What is counted.
    pub keys: Vec<String>,
    /// What is published, and its errors.
    pub queries: Vec<QueryTold>,
    /// Who or what is protected.
    pub unit: String,
    /// Periods in which a unit is counted at most.
    pub max_periods: usize,
    /// Rows of a unit that are counted in a period at most.
    pub max_rows: usize,
    /// Of all periods together.
    pub epsilon: f64,
    /// Of all periods together.
    pub delta: f64,
    /// The plan's.
    pub noise_multiplier: f64,
    /// The class of the plan's strategy.
    pub strategy: &'static str,
    /// The plan's, in words.
    pub statement: String,
}

/// A query and its errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryTold {
    /// As it is written.
    pub query: String,
    /// Its figures are A times the increments.
    pub workload: Workload,
    /// The largest standard deviation of its noise over all periods, in its unit; none of a release without an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_standard_deviation: Option<f64>,
    /// What deviations are of, where they are not of its figures.
    pub deviation_of: Option<&'static str>,
    /// Of a release without an end: the standard deviation after so many periods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

/// The error of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct After {
    /// Periods before and with it.
    pub periods: usize,
    /// In the query's unit.
    pub standard_deviation: f64,
}

/// A link of a release without an end, its periods counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkTold {
    /// From 1.
    pub number: usize,
    /// Its first period.
    pub first_period: usize,
    /// Its last period.
    pub last_period: usize,
    /// How lengths of links grow.
    pub growth: Growth,
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

impl Status {
    /// All of it in figures.
    ///
    /// # Errors
    /// When the errors of a query cannot be computed.
    pub fn report(&self) -> Result<StatusReport> {
        let Status { settings, plan, frozen, published, .. } = self;
        let Settings { periods, unit, max_periods, max_rows, .. } = settings;
        let mut queries = Vec::new();
        for (query, _) in &settings.queries {
            let (mut largest, mut after) = (None, Vec::new());
            if settings.links.is_some() {
                for periods in HORIZONS {
                    let standard_deviation = self.error(query, periods - 1)?;
                    after.push(After { periods, standard_deviation });
                }
            } else {
                largest = Some(self.errors(query)?.into_iter().fold(0.0, f64::max));
            }
            let (deviation_of, workload) = (deviation_of(query), query.workload());
            queries.push(QueryTold {
                query: query.to_string(),
                workload,
                largest_standard_deviation: largest,
                deviation_of,
                after,
            });
        }
        let link = self.link().zip(settings.links).map(|(link, links)| LinkTold {
            number: link.link + 1,
            first_period: link.start + 1,
            last_period: link.start + links.length(link.link),
            growth: links.growth,
        });
        Ok(StatusReport {
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
            epsilon: self.epsilon(),
            delta: plan.privacy.delta,
            noise_multiplier: plan.noise_multiplier,
            strategy: plan.strategy.class().name(),
            statement: self.statement().to_string(),
        })
    }
}
