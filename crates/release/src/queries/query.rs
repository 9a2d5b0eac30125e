//! Queries: the kinds of figures that are published of a key's events.

use std::fmt;

use antinoise_input::{InvalidParameter, at_least, below_one};
use antinoise_mechanism::Workload;
use serde::{Deserialize, Serialize};

use crate::queries::attribute::{self, Attribute};
use crate::queries::measure::{Measure, half_and_middle};

/// A query: the figures that are published of every key in every period.
///
/// ```
/// use antinoise_release::Query;
/// assert_eq!("window:7".parse::<Query>()?, Query::Window { width: 7 });
/// assert!("sum:5,1".parse::<Query>().unwrap_err().to_string().contains("LO below HI"));
/// let median: Query = "quantiles:0.5@0,10,20".parse()?;
/// assert_eq!(median, Query::Quantiles { ranks: vec![0.5], edges: vec![0.0, 10.0, 20.0] });
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Query {
    /// `counts`: the number of events since the first period.
    Counts,
    /// `sum:LO,HI`: the sum of the values since the first period, each clipped to \[LO, HI\].
    Sum {
        /// LO, the lower clipping bound.
        low: f64,
        /// HI, the upper clipping bound.
        high: f64,
    },
    /// `mean:LO,HI`: the mean of the values since the first period, each clipped to \[LO, HI\].
    Mean {
        /// LO, the lower clipping bound.
        low: f64,
        /// HI, the upper clipping bound.
        high: f64,
    },
    /// `window:W`: the number of events in the last W periods.
    Window {
        /// W, the number of periods.
        width: usize,
    },
    /// `decay:G`: the number of events, where those of s periods ago have weight G^s.
    Decay {
        /// G, in \[0, 1).
        factor: f64,
    },
    /// `histogram:E1,E2,...`: the number of events since the first period whose value is below E1, from E1 to
    /// below E2, and so on, and not below the last edge.
    Histogram {
        /// Edges, increasing.
        edges: Vec<f64>,
    },
    /// `cdf:E1,E2,...`: the number of events since the first period with a value below each edge, and its
    /// fraction of all events.
    Cdf {
        /// Edges, increasing; at most 1023.
        edges: Vec<f64>,
    },
    /// `quantiles:Q1,Q2,...@E1,E2,...`: quantiles of the values since the first period, each clipped to the
    /// first and last edge. The Q-quantile of n values is the ceil(Q n)-th in increasing order.
    Quantiles {
        /// Q1, Q2, ..., increasing, in (0, 1).
        ranks: Vec<f64>,
        /// Edges, increasing; 2 to 1023.
        edges: Vec<f64>,
    },
    /// `range:LO,HI@E1,E2,...`: the number of events since the first period whose value is from LO to below
    /// HI.
    Range {
        /// LO, the edge from which values are counted.
        low: f64,
        /// HI, the edge below which values are counted.
        high: f64,
        /// Edges, increasing; 2 to 1023.
        edges: Vec<f64>,
    },
    /// `marginals:COLUMN=A|B|...;COLUMN@E1,E2,...;ways=W1,W2,...`: the number of events since the first
    /// period in each combination of classes, for every choice of W1 columns, of W2 columns, and so on; of 0
    /// columns, all events. Sums of a table over a column are the cells of the table without it.
    Marginals {
        /// The columns and their classes.
        attributes: Vec<Attribute>,
        /// Numbers of columns of the published tables, increasing.
        ways: Vec<usize>,
    },
    /// `users-at-bound`: the number of users, of all keys, who were counted in `max_periods` periods: their
    /// later rows are in no figure.
    UsersAtBound,
    /// `users-over-rows`: the number of pairs of a user and a period with more than `max_rows` rows, of all
    /// keys, in periods in which the user was counted.
    UsersOverRows,
}

/// Properties of a query's figures that do not depend on the data; `is_sum`: whether the figures are sums
/// over rows.
struct Facts {
    is_whole: bool,
    is_sum: bool,
    needs_value: bool,
    is_of_users: bool,
}

/// Maximum number of edges for queries over runs of buckets: computing their errors takes time cubic in the
/// number of buckets.
const MOST_EDGES: usize = 1023;
/// Bound on numbers in queries, so that squares of sums of 2^63 of them, times their variance, are finite
/// doubles.
const LARGEST: f64 = 1e100;

impl Query {
    /// The measures that answer the query.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        match self {
            Self::Counts | Self::Window { .. } | Self::Decay { .. } => vec![Measure::Count],
            Self::Sum { low, high } => vec![Measure::Sum { low: *low, high: *high }],
            Self::Mean { low, high } => {
                vec![Measure::Count, Measure::Deviation { low: *low, high: *high }]
            }
            Self::Histogram { edges }
            | Self::Cdf { edges }
            | Self::Quantiles { edges, .. }
            | Self::Range { edges, .. } => vec![Measure::Histogram { edges: edges.clone() }],
            Self::Marginals { attributes, ways } => vec![Measure::Marginals {
                sizes: attributes.iter().map(Attribute::count).collect(),
                columns: attributes.iter().map(|attribute| attribute.column.clone()).collect(),
                ways: ways.clone(),
            }],
            Self::UsersAtBound => vec![Measure::AtBound],
            Self::UsersOverRows => vec![Measure::OverRows],
        }
    }

    /// Whether the query counts users at or beyond their bounds, over all keys together, instead of rows.
    ///
    /// ```
    /// use antinoise_release::Query;
    /// assert!(Query::UsersAtBound.is_of_users() && !Query::Counts.is_of_users());
    /// ```
    pub fn is_of_users(&self) -> bool {
        self.facts().is_of_users
    }

    /// The properties of the query's figures.
    fn facts(&self) -> Facts {
        let (is_whole, is_sum, needs_value, is_of_users) = match self {
            Self::Counts | Self::Window { .. } => (true, true, false, false),
            Self::Decay { .. } => (false, true, false, false),
            Self::Sum { .. } => (false, true, true, false),
            Self::Mean { .. } | Self::Quantiles { .. } => (false, false, true, false),
            Self::Histogram { .. } | Self::Cdf { .. } | Self::Range { .. } => (true, true, true, false),
            // Values are not rounded: rounded ones would not add up.
            Self::Marginals { .. } => (false, true, false, false),
            Self::UsersAtBound | Self::UsersOverRows => (true, true, false, true),
        };
        Facts { is_whole, is_sum, needs_value, is_of_users }
    }

    /// The runs of buckets (first, last + 1) that the query counts; for quantiles, the runs from which they
    /// are computed.
    pub(crate) fn runs(&self) -> Vec<(usize, usize)> {
        match self {
            Self::Histogram { edges } => (0..=edges.len()).map(|bucket| (bucket, bucket + 1)).collect(),
            Self::Cdf { edges } | Self::Quantiles { edges, .. } => {
                (1..=edges.len()).map(|edge| (0, edge)).collect()
            }
            Self::Range { low, high, edges } => {
                let bucket_from = |edge: f64| edges.partition_point(|other| *other <= edge);
                vec![(bucket_from(*low), bucket_from(*high))]
            }
            Self::Counts
            | Self::Sum { .. }
            | Self::Mean { .. }
            | Self::Window { .. }
            | Self::Decay { .. }
            | Self::Marginals { .. }
            | Self::UsersAtBound
            | Self::UsersOverRows => Vec::new(),
        }
    }

    /// A: the linear map from a key's increments to the published figures, or to the sums from which these
    /// are computed.
    pub fn workload(&self) -> Workload {
        match self {
            Self::Counts
            | Self::Sum { .. }
            | Self::Mean { .. }
            | Self::Histogram { .. }
            | Self::Cdf { .. }
            | Self::Quantiles { .. }
            | Self::Range { .. }
            | Self::Marginals { .. }
            | Self::UsersAtBound
            | Self::UsersOverRows => Workload::Prefix,
            Self::Window { width } => Workload::Window { width: *width },
            Self::Decay { factor } => Workload::Decay { gamma: *factor },
        }
    }

    /// Whether the true figures are whole numbers; for cdf, those that count rows.
    pub fn is_whole(&self) -> bool {
        self.facts().is_whole
    }

    /// The name of the query in the published table: as it is written, but for marginals only the columns.
    ///
    /// ```
    /// use antinoise_release::Query;
    /// let marginals: Query = "marginals:city=a|b;age@18,65;ways=1,2".parse()?;
    /// assert_eq!(marginals.published_name(), "marginals:city,age");
    /// assert_eq!(Query::Counts.published_name(), "counts");
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn published_name(&self) -> String {
        let Self::Marginals { attributes, .. } = self else { return self.to_string() };
        let columns: Vec<&str> = attributes.iter().map(|attribute| attribute.column.as_str()).collect();
        format!("marginals:{}", columns.join(","))
    }

    /// The columns whose combinations the query counts, with their classes; empty if it is not for marginals.
    pub fn attributes(&self) -> &[Attribute] {
        if let Self::Marginals { attributes, .. } = self { attributes } else { &[] }
    }

    /// Whether the true figures cannot be negative, so that a setting may raise the noisy ones. Marginals are
    /// never raised: they would not add up.
    pub(crate) fn is_non_negative(&self) -> bool {
        match self {
            Self::Sum { low, .. } | Self::Mean { low, .. } => *low >= 0.0,
            Self::Quantiles { edges, .. } => edges[0] >= 0.0,
            Self::Marginals { .. } => false,
            Self::Counts
            | Self::Window { .. }
            | Self::Decay { .. }
            | Self::Histogram { .. }
            | Self::Cdf { .. }
            | Self::Range { .. }
            | Self::UsersAtBound
            | Self::UsersOverRows => true,
        }
    }

    /// Whether the true figures cannot decrease from a period to the next.
    pub(crate) fn is_monotone(&self) -> bool {
        self.facts().is_sum && self.workload() == Workload::Prefix && self.is_non_negative()
    }

    /// Whether a row must have a value.
    pub fn needs_value(&self) -> bool {
        self.facts().needs_value
    }

    /// Refuses a query if, for some data, figures or their squares would leave the range of doubles.
    pub(crate) fn check(&self) -> Result<(), InvalidParameter> {
        self.check_form()?;
        let (numbers, scale) = match self {
            Self::Sum { low, high } => (vec![*low, *high], self.measures()[0].most()),
            Self::Mean { low, high } => (vec![*low, *high], self.measures()[1].most()),
            Self::Histogram { edges }
            | Self::Cdf { edges }
            | Self::Quantiles { edges, .. }
            | Self::Range { edges, .. } => (edges.clone(), 1.0),
            Self::Counts
            | Self::Window { .. }
            | Self::Decay { .. }
            | Self::Marginals { .. }
            | Self::UsersAtBound
            | Self::UsersOverRows => (Vec::new(), 1.0),
        };
        if numbers.iter().any(|number| number.abs() > LARGEST) || scale < 1.0 / LARGEST {
            let must_be = "of numbers from -1e100 to 1e100, where LO and HI of a sum or mean are not both within 1e-100 of 0 or of each other: \
                           figures and their intervals could not be computed. Choose another unit";
            return Err(refused(self, must_be));
        }
        Ok(())
    }

    fn check_form(&self) -> Result<(), InvalidParameter> {
        match self {
            Self::Counts | Self::UsersAtBound | Self::UsersOverRows => {}
            Self::Sum { low, high } => {
                let holds = low.is_finite() && high.is_finite() && low < high;
                if !holds {
                    return Err(refused(self, "sum:LO,HI with finite LO below HI"));
                }
            }
            Self::Mean { low, high } => {
                let (half, middle) = half_and_middle(*low, *high);
                // `half` is also not normal if an end is not finite, or if no double lies between the ends.
                let holds = low < high && half.is_normal() && *low < middle && middle < *high;
                if !holds {
                    return Err(refused(
                        self,
                        "mean:LO,HI with finite LO below HI, and a double-precision number between them",
                    ));
                }
            }
            Self::Marginals { attributes, ways } => attribute::check(attributes, ways)?,
            Self::Window { width } => {
                at_least("window of the query", *width, 1)?;
            }
            Self::Decay { factor } => {
                below_one("decay of the query", *factor)?;
            }
            Self::Histogram { edges } => {
                if edges.is_empty() || !are_increasing(edges) {
                    return Err(refused(self, "histogram:E1,E2,... with finite, increasing edges"));
                }
            }
            Self::Cdf { edges } => {
                if edges.is_empty() || edges.len() > MOST_EDGES || !are_increasing(edges) {
                    return Err(refused(self, "cdf:E1,E2,... with 1 to 1023 finite, increasing edges"));
                }
            }
            Self::Quantiles { ranks, edges } => {
                let inside = ranks.iter().all(|rank| 0.0 < *rank && *rank < 1.0);
                if ranks.is_empty() || !inside || !are_increasing(ranks) || !are_edges_of_runs(edges) {
                    let must_be = "quantiles:Q1,Q2,...@E1,E2,... with increasing Q above 0 and below 1, and 2 to 1023 finite, \
                                   increasing edges";
                    return Err(refused(self, must_be));
                }
            }
            Self::Range { low, high, edges } => {
                let among = edges.contains(low) && edges.contains(high) && low < high;
                if !among || !are_edges_of_runs(edges) {
                    let must_be = "range:LO,HI@E1,E2,... with 2 to 1023 finite, increasing edges, of which LO and HI above LO are two";
                    return Err(refused(self, must_be));
                }
            }
        }
        Ok(())
    }
}

fn are_increasing(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| number.is_finite()) && numbers.windows(2).all(|pair| pair[0] < pair[1])
}

fn are_edges_of_runs(edges: &[f64]) -> bool {
    (2..=MOST_EDGES).contains(&edges.len()) && are_increasing(edges)
}

pub(crate) fn refused(got: impl fmt::Display, must_be: &str) -> InvalidParameter {
    InvalidParameter::new("query", got, must_be)
}
