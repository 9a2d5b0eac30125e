//! How the increments of all queries are stacked in one vector a period, and how far one unit moves it.
//!
//! All increments are whole points of one grid of spacing s. A row of part q adds p_q points at most to a single cell: p_q = floor(w_q / s), w_q
//! the part's weight. So a row moves the stacked vector by at most s sqrt(sum of p_q^2) <= sqrt(sum of w_q^2) in l2 norm, and R rows,
//! by the triangle inequality, by R times that. The bound is attained: all R rows may lie in one cell of each part.

use antinoise_input::InvalidParameter;

use crate::query::Measure;
use crate::{Result, Settings};

/// Points that a row of unequal parts has at least in each, so that whole points are fine enough.
const LEAST_POINTS: f64 = 256.0;

/// The parts of a release: one for each measure, whatever number of queries share it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) keys: usize,
    pub(crate) parts: Vec<Part>,
}

/// The cells of one measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) measure: Measure,
    /// w.
    weight: f64,
    /// The first cell; key k's bucket j is `first + k buckets + j`.
    first: usize,
}

impl Layout {
    pub(crate) fn new(settings: &Settings) -> Self {
        let keys = settings.keys.len();
        let (mut parts, mut first) = (Vec::<Part>::new(), 0);
        for (query, weight) in &settings.queries {
            let measure = query.measure();
            if let Some(part) = parts.iter_mut().find(|part| part.measure == measure) {
                part.weight = part.weight.max(*weight);
                continue;
            }
            let buckets = measure.buckets();
            parts.push(Part { measure, weight: *weight, first });
            first += keys * buckets;
        }
        let largest = parts.iter().map(|part| part.weight).fold(0.0, f64::max);
        parts.iter_mut().for_each(|part| part.weight /= largest);
        Self { keys, parts }
    }

    /// Cells of the stacked vector.
    pub(crate) fn cells(&self) -> usize {
        self.parts.iter().map(|part| self.keys * part.measure.buckets()).sum()
    }

    /// The most that a unit of `rows` rows in a period moves the period's vector by in l2 norm: exact up to rounding, upwards.
    pub(crate) fn clip_norm(&self, rows: usize) -> f64 {
        let squares: f64 = self.parts.iter().map(|part| part.weight * part.weight).sum();
        let norm = if self.parts.len() == 1 { self.parts[0].weight } else { squares.sqrt() * (1.0 + 1e-12) };
        norm * rows as f64
    }

    /// The coarsest spacing on which every part still has the points that it needs.
    pub(crate) fn coarsest_spacing(&self) -> f64 {
        match &self.parts[..] {
            [Part { measure: Measure::Count | Measure::Histogram { .. }, weight, .. }] => *weight,
            parts => parts.iter().map(|part| part.weight).fold(f64::INFINITY, f64::min) / LEAST_POINTS,
        }
    }

    /// The part of a measure.
    pub(crate) fn part(&self, measure: &Measure) -> &Part {
        self.parts.iter().find(|part| part.measure == *measure).expect("every query has its part")
    }

    /// The points that a row adds, part by part: a cell and how many.
    pub(crate) fn row(
        &self,
        spacing: f64,
        key: usize,
        value: Option<f64>,
        mut add: impl FnMut(usize, i64),
    ) -> Result<()> {
        for part in &self.parts {
            let (bucket, points) = part.of_row(spacing, value)?;
            add(part.cell(key, bucket), points);
        }
        Ok(())
    }
}

impl Part {
    /// p: the most points that a row adds to a cell.
    pub(crate) fn points(&self, spacing: f64) -> i64 {
        (self.weight / spacing).floor() as i64
    }

    /// What one point stands for, in the unit of the query.
    pub(crate) fn unit(&self, spacing: f64) -> f64 {
        self.measure.most() / self.points(spacing) as f64
    }

    pub(crate) fn cell(&self, key: usize, bucket: usize) -> usize {
        self.first + key * self.measure.buckets() + bucket
    }

    fn of_row(&self, spacing: f64, value: Option<f64>) -> Result<(usize, i64)> {
        let points = self.points(spacing);
        if self.measure == Measure::Count {
            return Ok((0, points));
        }
        let value = value.filter(|value| !value.is_nan()).ok_or_else(|| {
            let got = value.map_or("absent".into(), |value| value.to_string());
            InvalidParameter::new("value of an event", got, "a number: the release has sums or histograms")
        })?;
        Ok(match &self.measure {
            Measure::Count => (0, points),
            Measure::Histogram { edges } => (edges.partition_point(|edge| *edge <= value), points),
            Measure::Sum { low, high } => {
                let share = value.clamp(*low, *high) / self.measure.most();
                (0, (share * points as f64).round_ties_even() as i64)
            }
        })
    }
}
