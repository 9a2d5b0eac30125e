//! Measures: the contributions of a row of events, or of a user. Queries of one measure are answered from the
//! same noisy increments.

use antinoise_input::InvalidParameter;

use crate::queries::marginals::tables;

/// A part of the stacked vector: the contribution of a row to its cells, or of a user to a single cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Measure {
    /// 1 for each row.
    Count,
    /// The clipped value.
    Sum { low: f64, high: f64 },
    /// The clipped value minus the middle of its range.
    Deviation { low: f64, high: f64 },
    /// 1 in the cell of the bucket that contains the value.
    Histogram { edges: Vec<f64> },
    /// 1 in one cell of each table of a query for marginals.
    Marginals { sizes: Vec<usize>, columns: Vec<String>, ways: Vec<usize> },
    /// 1 for each user, in the last period in which the user is counted.
    AtBound,
    /// 1 for each user with more rows in a period than are counted.
    OverRows,
}

/// Half of the length of \[low, high\], and its middle.
pub(crate) fn half_and_middle(low: f64, high: f64) -> (f64, f64) {
    (0.5 * high - 0.5 * low, 0.5 * low + 0.5 * high)
}

/// The value of a row; an error if it is absent or NaN.
pub(crate) fn number(value: Option<f64>) -> Result<f64, InvalidParameter> {
    value.filter(|value| !value.is_nan()).ok_or_else(|| {
        let got = value.map_or("absent".into(), |value| value.to_string());
        InvalidParameter::new("value of an event", got, "a number: the release has queries about values")
    })
}

impl Measure {
    /// Whether users contribute instead of rows: each user to one cell for all keys.
    pub(crate) fn is_of_users(&self) -> bool {
        matches!(self, Self::AtBound | Self::OverRows)
    }

    /// Number of keys with cells of their own, in a release of `keys` keys.
    pub(crate) fn keys(&self, keys: usize) -> usize {
        if self.is_of_users() { 1 } else { keys }
    }

    /// Cells per key.
    pub(crate) fn buckets(&self) -> usize {
        match self {
            Self::Count | Self::Sum { .. } | Self::Deviation { .. } | Self::AtBound | Self::OverRows => 1,
            Self::Histogram { edges } => edges.len() + 1,
            Self::Marginals { sizes, ways, .. } => tables::cells(sizes, most_ways(ways)),
        }
    }

    /// The maximum contribution of a row to a cell, in the query's own unit.
    pub(crate) fn most(&self) -> f64 {
        match self {
            Self::Count
            | Self::Histogram { .. }
            | Self::Marginals { .. }
            | Self::AtBound
            | Self::OverRows => 1.0,
            Self::Sum { low, high } => low.abs().max(high.abs()),
            Self::Deviation { low, high } => half_and_middle(*low, *high).0,
        }
    }

    /// The name of a bucket; empty if there is only one.
    pub(crate) fn bucket_name(&self, bucket: usize) -> String {
        let Self::Histogram { edges } = self else { return String::new() };
        bucket_name(edges, bucket)
    }
}

/// The name of the bucket `bucket` between `edges`.
pub(crate) fn bucket_name(edges: &[f64], bucket: usize) -> String {
    match (bucket.checked_sub(1).map(|below| edges[below]), edges.get(bucket)) {
        (None, Some(edge)) => format!("below {edge}"),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} or above"),
        (None, None) => String::new(),
    }
}

/// The largest number of attributes of a table.
pub(crate) fn most_ways(ways: &[usize]) -> usize {
    ways.iter().copied().max().unwrap_or(0)
}
