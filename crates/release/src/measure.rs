//! Measures: the contributions of a row of events. Queries of one measure are answered from the same noisy
//! increments.

use antinoise_input::InvalidParameter;

use crate::axis::{Axis, cells, half_and_middle};

/// A part of the stacked vector: the contribution of a row to its cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Measure {
    /// 1 a row.
    Count,
    /// The clipped value.
    Sum { low: f64, high: f64 },
    /// The clipped value minus the middle of its range.
    Deviation { low: f64, high: f64 },
    /// 1 in the value's bucket.
    Histogram { edges: Vec<f64> },
    /// 1 in the point's cell.
    Cells { axes: Vec<Axis> },
}

/// The numbers of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'v> {
    pub(crate) value: Option<f64>,
    /// The coordinates for k-means, in the order of [`Settings::columns`](crate::Settings::columns).
    pub(crate) coordinates: &'v [f64],
}

impl Values<'_> {
    pub(crate) fn value(&self) -> Result<f64, InvalidParameter> {
        self.value.filter(|value| !value.is_nan()).ok_or_else(|| {
            let got = self.value.map_or("absent".into(), |value| value.to_string());
            InvalidParameter::new("value of an event", got, "a number: the release has queries about values")
        })
    }

    /// Checks that there is one number for each of `columns`.
    pub(crate) fn check_coordinates(&self, columns: &[String]) -> Result<(), InvalidParameter> {
        if self.coordinates.len() != columns.len() {
            let must_be = format!("{} numbers, of the columns of the release: {columns:?}", columns.len());
            return Err(InvalidParameter::new("coordinates of an event", self.coordinates.len(), must_be));
        }
        match columns.iter().zip(self.coordinates).find(|(_, x)| x.is_nan()) {
            None => Ok(()),
            Some((column, x)) => Err(InvalidParameter::new(of_event(column), x, "a number")),
        }
    }
}

/// The name of a number in `column`, for error messages.
pub(crate) fn of_event(column: &str) -> String {
    format!("column {column:?} of an event")
}

impl Measure {
    /// Cells per key.
    pub(crate) fn buckets(&self) -> usize {
        match self {
            Self::Count | Self::Sum { .. } | Self::Deviation { .. } => 1,
            Self::Histogram { edges } => edges.len() + 1,
            Self::Cells { axes } => cells(axes),
        }
    }

    /// The maximum contribution of a row to a cell, in the query's own unit.
    pub(crate) fn most(&self) -> f64 {
        match self {
            Self::Count | Self::Histogram { .. } | Self::Cells { .. } => 1.0,
            Self::Sum { low, high } => low.abs().max(high.abs()),
            Self::Deviation { low, high } => half_and_middle(*low, *high).0,
        }
    }

    /// The name of a bucket; empty if there is only one.
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
