//! What is published of a key's events.

use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, at_least, below_one};
use antinoise_mechanism::Workload;
use serde::{Deserialize, Serialize};

/// What is published of a key in every period.
///
/// ```
/// use antinoise_release::Query;
/// assert_eq!("window:7".parse::<Query>()?, Query::Window { width: 7 });
/// assert!("sum:5,1".parse::<Query>().unwrap_err().to_string().contains("LO below HI"));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Query {
    /// `counts`: the number of events since the first period.
    Counts,
    /// `sum:LO,HI`: the sum of the values since the first period, each clipped to \[LO, HI\].
    Sum {
        /// LO.
        low: f64,
        /// HI.
        high: f64,
    },
    /// `window:W`: the number of events in the last W periods.
    Window {
        /// W.
        width: usize,
    },
    /// `decay:G`: the number of events, those of s periods ago weighted by G^s.
    Decay {
        /// G, in \[0, 1).
        factor: f64,
    },
    /// `histogram:E1,E2,...`: the number of events since the first period whose value is below E1, from E1 to below E2, and
    /// so on, and not below the last edge.
    Histogram {
        /// Edges, increasing.
        edges: Vec<f64>,
    },
}

/// What a row of events adds to: queries of one measure are answered from the same noisy increments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Measure {
    /// 1 a row.
    Count,
    /// The clipped value.
    Sum { low: f64, high: f64 },
    /// 1 to the value's bucket.
    Histogram { edges: Vec<f64> },
}

impl Query {
    pub(crate) fn measure(&self) -> Measure {
        match self {
            Self::Counts | Self::Window { .. } | Self::Decay { .. } => Measure::Count,
            Self::Sum { low, high } => Measure::Sum { low: *low, high: *high },
            Self::Histogram { edges } => Measure::Histogram { edges: edges.clone() },
        }
    }

    /// A: the linear map from a key's increments to what is published of it.
    pub fn workload(&self) -> Workload {
        match self {
            Self::Counts | Self::Sum { .. } | Self::Histogram { .. } => Workload::Prefix,
            Self::Window { width } => Workload::Window { width: *width },
            Self::Decay { factor } => Workload::Decay { gamma: *factor },
        }
    }

    /// Whether the truth is a whole number.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Counts | Self::Window { .. } | Self::Histogram { .. })
    }

    /// Whether the truth cannot be negative.
    pub(crate) fn is_non_negative(&self) -> bool {
        !matches!(self, Self::Sum { low, .. } if *low < 0.0)
    }

    /// Whether the truth cannot fall from a period to the next.
    pub(crate) fn is_monotone(&self) -> bool {
        self.workload() == Workload::Prefix && self.is_non_negative()
    }

    /// Whether a row must have a value.
    pub fn needs_value(&self) -> bool {
        matches!(self, Self::Sum { .. } | Self::Histogram { .. })
    }

    pub(crate) fn check(&self) -> Result<(), InvalidParameter> {
        match self {
            Self::Counts => {}
            Self::Sum { low, high } => {
                let holds = low.is_finite() && high.is_finite() && low < high;
                if !holds {
                    return Err(refused(self, "sum:LO,HI with finite LO below HI"));
                }
            }
            Self::Window { width } => {
                at_least("window of the query", *width, 1)?;
            }
            Self::Decay { factor } => {
                below_one("decay of the query", *factor)?;
            }
            Self::Histogram { edges } => {
                let increasing = edges.windows(2).all(|pair| pair[0] < pair[1]);
                if edges.is_empty() || !edges.iter().all(|edge| edge.is_finite()) || !increasing {
                    return Err(refused(self, "histogram:E1,E2,... with finite, increasing edges"));
                }
            }
        }
        Ok(())
    }
}

impl Measure {
    /// Cells of a key.
    pub(crate) fn buckets(&self) -> usize {
        match self {
            Self::Count | Self::Sum { .. } => 1,
            Self::Histogram { edges } => edges.len() + 1,
        }
    }

    /// The most that a row adds to a cell, in the query's own unit.
    pub(crate) fn most(&self) -> f64 {
        match self {
            Self::Count | Self::Histogram { .. } => 1.0,
            Self::Sum { low, high } => low.abs().max(high.abs()),
        }
    }

    /// What a bucket is called; nothing where there is one.
    pub(crate) fn bucket_name(&self, bucket: usize) -> String {
        let Self::Histogram { edges } = self else { return String::new() };
        match (bucket.checked_sub(1).map(|below| edges[below]), edges.get(bucket)) {
            (None, Some(edge)) => format!("below {edge}"),
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("{low} or above"),
            (None, None) => String::new(),
        }
    }
}

fn refused(got: impl fmt::Display, must_be: &str) -> InvalidParameter {
    InvalidParameter::new("query", got, must_be)
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts => write!(f, "counts"),
            Self::Sum { low, high } => write!(f, "sum:{low},{high}"),
            Self::Window { width } => write!(f, "window:{width}"),
            Self::Decay { factor } => write!(f, "decay:{factor}"),
            Self::Histogram { edges } => {
                let edges: Vec<String> = edges.iter().map(f64::to_string).collect();
                write!(f, "histogram:{}", edges.join(","))
            }
        }
    }
}

impl FromStr for Query {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> Result<Self, InvalidParameter> {
        let must_be = "counts, sum:LO,HI, window:W, decay:G or histogram:E1,E2,...";
        let unknown = || refused(format!("{text:?}"), must_be);
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let numbers =
            || -> Option<Vec<f64>> { rest.split(',').map(|word| word.trim().parse().ok()).collect() };
        let query = match name {
            "counts" if rest.is_empty() => Self::Counts,
            "window" => Self::Window { width: rest.parse().map_err(|_| unknown())? },
            "decay" => Self::Decay { factor: rest.parse().map_err(|_| unknown())? },
            "sum" => match numbers().as_deref() {
                Some(&[low, high]) => Self::Sum { low, high },
                _ => return Err(unknown()),
            },
            "histogram" => Self::Histogram { edges: numbers().ok_or_else(unknown)? },
            _ => return Err(unknown()),
        };
        query.check()?;
        Ok(query)
    }
}

impl TryFrom<String> for Query {
    type Error = InvalidParameter;

    fn try_from(text: String) -> Result<Self, InvalidParameter> {
        text.parse()
    }
}

impl From<Query> for String {
    fn from(query: Query) -> Self {
        query.to_string()
    }
}
