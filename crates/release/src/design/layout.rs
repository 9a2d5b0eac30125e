//! The layout of a release: the increments of all queries stacked in one vector per period, and the
//! sensitivity of this vector to one unit.
//!
//! All increments are whole points of one grid of spacing s. A row adds to part q at most p_q points in a
//! single cell or, for correlated buckets and marginals, a column of points of l2 norm at most p_q, where
//! p_q = floor(w_q / s) and w_q is the part's weight. So a row changes the stacked vector by at most s
//! sqrt(sum of p_q^2) <= sqrt(sum of w_q^2) in l2 norm, and R rows, by the triangle inequality, by at most R
//! times that. Without correlated buckets and marginals the bound is attained: all R rows may lie in one cell
//! of each part. With them, rounding down leaves the norm less than 1% below the bound.
//!
//! # Users
//!
//! Two measures count users, each in one cell for all keys. A user with more than R rows in a period adds
//! floor(R w / s) points to the cell of [`Measure::OverRows`], once in the period: this changes the period's
//! vector by at most R w, like R rows do in a measure of rows.
//!
//! A user is counted in at most K periods. Only in the K-th of them the user adds p = floor(sqrt(K) R w / s)
//! points to the cell of [`Measure::AtBound`]. With w for this cell, and m = R sqrt(sum of w_q^2) for all
//! others, the clip norm is c = sqrt(m^2 + R^2 w^2). Let S be the sensitivity of the strategy C to a vector
//! of norm 1 in each of any K periods, and S_1 to one in a single period, the largest norm of a column.
//! Different cells are different columns of C G, so that a user moves C G by at most the square root of
//!
//! ```text
//! m^2 S^2 + (s p)^2 S_1^2 <= m^2 S^2 + R^2 w^2 K S_1^2 <= c^2 S^2    if sqrt(K) S_1 <= S,
//! ```
//!
//! which is what the plan's noise covers. The condition is checked on the numbers of each plan
//! ([`Design::of`](crate::design::plan::Design::of)); it is an equality for independent noise, where C is the
//! identity. For segments, `design/chain.rs` has the proof.

use std::sync::Arc;

use antinoise_input::InvalidParameter;

use crate::queries::buckets::{Buckets, Code, LEAST_POINTS};
use crate::queries::marginals::Marginals;
use crate::queries::measure::{Measure, half_and_middle, number};
use crate::{Error, Query, Result, Settings};

/// The parts of a release: one per measure, shared by all queries of that measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) keys: usize,
    pub(crate) parts: Vec<Part>,
}

/// The cells of one measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) measure: Measure,
    /// The weight w.
    weight: f64,
    /// The maximum contribution of a row, or of a user, to a cell, as a multiple of the weight.
    scale: f64,
    /// Number of keys with cells of their own.
    pub(crate) keys: usize,
    /// The first cell; bucket j of key k is cell `first + k * buckets + j`.
    first: usize,
    /// The code of a histogram's buckets.
    code: Code,
    /// The tables of marginals.
    marginals: Option<Arc<Marginals>>,
}

impl Layout {
    pub(crate) fn new(settings: &Settings) -> Self {
        let keys = settings.keys.len();
        let (mut parts, mut first) = (Vec::<Part>::new(), 0);
        let asked = settings
            .queries
            .iter()
            .flat_map(|(query, weight)| query.measures().into_iter().map(move |measure| (measure, *weight)));
        for (measure, weight) in asked {
            if let Some(part) = parts.iter_mut().find(|part| part.measure == measure) {
                part.weight = part.weight.max(weight);
                continue;
            }
            let (keys, code) = (measure.keys(keys), code(&measure, settings));
            let (buckets, scale) = (measure.buckets(), scale(&measure, settings));
            let marginals = marginals(&measure);
            parts.push(Part { measure, weight, scale, keys, first, code, marginals });
            first += keys * buckets;
        }
        let largest = parts.iter().map(|part| part.weight).fold(0.0, f64::max);
        parts.iter_mut().for_each(|part| part.weight /= largest);
        Self { keys, parts }
    }

    /// Number of cells of the stacked vector.
    pub(crate) fn cells(&self) -> usize {
        self.parts.iter().map(|part| part.keys * part.measure.buckets()).sum()
    }

    /// L2 sensitivity of one period's vector to a unit with at most `rows` rows, rounded up.
    pub(crate) fn clip_norm(&self, rows: usize) -> f64 {
        let squares: f64 = self.parts.iter().map(|part| part.weight * part.weight).sum();
        let norm = if self.parts.len() == 1 { self.parts[0].weight } else { squares.sqrt() * (1.0 + 1e-12) };
        norm * rows as f64
    }

    /// The coarsest spacing at which every part has the points that it needs.
    pub(crate) fn coarsest_spacing(&self) -> f64 {
        match &self.parts[..] {
            [
                Part {
                    measure: Measure::Count | Measure::Histogram { .. }, weight, code: Code::Flat, ..
                },
            ] => *weight,
            parts => parts.iter().map(|part| part.weight / part.least_points()).fold(f64::INFINITY, f64::min),
        }
    }

    /// The part of a measure.
    pub(crate) fn part(&self, measure: &Measure) -> &Part {
        self.part_if_any(measure).expect("every query has its part")
    }

    /// The part of a measure, if a query needs it.
    pub(crate) fn part_if_any(&self, measure: &Measure) -> Option<&Part> {
        self.parts.iter().find(|part| part.measure == *measure)
    }

    /// The part from which `query` is answered; for a mean, the first part, which counts rows.
    pub(crate) fn part_of(&self, query: &Query) -> &Part {
        self.part(&query.measures()[0])
    }

    /// Whether every row adds points to every part, and to every table that marginals need.
    pub(crate) fn are_counted(&self, spacing: f64) -> bool {
        self.parts.iter().all(|part| {
            let points = part.points(spacing);
            points >= 1 && part.marginals().is_none_or(|marginals| marginals.are_observed(points))
        })
    }

    /// Calls `add` for each part but marginals with the cell of a row and its points or, for correlated
    /// buckets, its number of rows, which [`Self::encode`] converts to points.
    pub(crate) fn row(
        &self,
        spacing: f64,
        key: usize,
        value: Option<f64>,
        mut add: impl FnMut(usize, i64),
    ) -> Result<()> {
        let is_of_one_cell = |part: &&Part| !part.measure.is_of_users() && part.marginals.is_none();
        for part in self.parts.iter().filter(is_of_one_cell) {
            let (bucket, points) = part.of_row(spacing, value)?;
            add(part.cell(key, bucket), points);
        }
        Ok(())
    }

    /// Converts the rows of correlated buckets and marginals to points.
    pub(crate) fn encode(&self, spacing: f64, cells: &mut [i64]) -> Result<()> {
        for part in self.parts.iter().filter(|part| part.code == Code::Correlated) {
            let buckets = part.buckets(spacing);
            for key in 0..self.keys {
                buckets.encode(&mut cells[part.cells_of(key)]).ok_or_else(too_many)?;
            }
        }
        for part in &self.parts {
            let Some(marginals) = part.marginals() else { continue };
            let codes = marginals.codes(part.points(spacing));
            for key in 0..self.keys {
                marginals.encode(&codes, &mut cells[part.cells_of(key)]).ok_or_else(too_many)?;
            }
        }
        Ok(())
    }

    /// A text that identifies the parts with correlated buckets and their matrices, and those of marginals
    /// and the points of their tables; empty if there are none.
    pub(crate) fn codes(&self, spacing: f64) -> String {
        let described = self.parts.iter().map(|part| match part.marginals() {
            Some(marginals) => {
                let codes = marginals.codes(part.points(spacing));
                format!("{} marginals {codes:?}\n", part.first)
            }
            None if part.code == Code::Correlated => {
                format!("{} {:?}\n", part.first, part.buckets(spacing).matrix())
            }
            None => String::new(),
        });
        described.collect()
    }
}

/// Leaves room for the rounding of a plan's strategy: sqrt(K) (1 - 2^-20) S_1 <= S is checked.
const ROUNDED: f64 = 1.0 - 1.0 / (1u64 << 20) as f64;

/// [`Part::scale`]: 1 for rows, R for users of a period, about sqrt(K) R for users of the whole release.
fn scale(measure: &Measure, settings: &Settings) -> f64 {
    match measure {
        Measure::AtBound => once_per_user(settings.max_periods) * settings.max_rows as f64,
        Measure::OverRows => settings.max_rows as f64,
        Measure::Count
        | Measure::Sum { .. }
        | Measure::Deviation { .. }
        | Measure::Histogram { .. }
        | Measure::Marginals { .. } => 1.0,
    }
}

/// sqrt(K), rounded down, for K = `max_periods`: a user who adds in a single period may add this many times
/// as much as a user who adds in K periods.
pub(crate) fn once_per_user(max_periods: usize) -> f64 {
    (max_periods as f64).sqrt() * ROUNDED
}

/// The code of a measure's buckets, chosen for all queries that share them.
fn code(measure: &Measure, settings: &Settings) -> Code {
    if !matches!(measure, Measure::Histogram { .. }) {
        return Code::Flat;
    }
    let sharing = settings.queries.iter().map(|(query, _)| query);
    let sharing = sharing.filter(|query| query.measures().contains(measure));
    let runs: Vec<(usize, usize)> = sharing.flat_map(Query::runs).collect();
    Code::of_least_error(measure.buckets(), &runs)
}

/// The tables of a measure, if it is of marginals.
fn marginals(measure: &Measure) -> Option<Arc<Marginals>> {
    let Measure::Marginals { sizes, ways, .. } = measure else { return None };
    Some(Arc::new(Marginals::new(sizes.clone(), ways)))
}

/// The error for a period with more rows than 64 bits can count.
pub(crate) fn too_many() -> Error {
    InvalidParameter::new("number of rows of a period", "beyond 64 bits", "smaller").into()
}

impl Part {
    /// p: the maximum number of points that a row, or a user, adds to a cell.
    pub(crate) fn points(&self, spacing: f64) -> i64 {
        (self.weight * self.scale / spacing).floor() as i64
    }

    /// The value of one point, in the unit of the query.
    pub(crate) fn unit(&self, spacing: f64) -> f64 {
        self.measure.most() / self.points(spacing) as f64
    }

    pub(crate) fn cell(&self, key: usize, bucket: usize) -> usize {
        self.first + key * self.measure.buckets() + bucket
    }

    /// The cells of a key.
    pub(crate) fn cells_of(&self, key: usize) -> std::ops::Range<usize> {
        self.cell(key, 0)..self.cell(key + 1, 0)
    }

    /// The buckets of a histogram.
    pub(crate) fn buckets(&self, spacing: f64) -> Buckets {
        Buckets::new(self.code, self.measure.buckets(), self.points(spacing))
    }

    /// The tables, if the part is of marginals.
    pub(crate) fn marginals(&self) -> Option<&Marginals> {
        self.marginals.as_deref()
    }

    /// The smallest number of points of a row that keeps the loss from rounding below 1%.
    fn least_points(&self) -> f64 {
        self.marginals().map_or(LEAST_POINTS as f64, Marginals::least_points)
    }

    fn of_row(&self, spacing: f64, value: Option<f64>) -> Result<(usize, i64)> {
        let points = self.points(spacing);
        Ok(match &self.measure {
            // Rows are added to the tables of marginals by their reader.
            Measure::Count | Measure::AtBound | Measure::OverRows | Measure::Marginals { .. } => (0, points),
            Measure::Histogram { edges } => {
                let (value, added) = (number(value)?, if self.code == Code::Flat { points } else { 1 });
                (edges.partition_point(|edge| *edge <= value), added)
            }
            Measure::Sum { low, high } => {
                let share = number(value)?.clamp(*low, *high) / self.measure.most();
                (0, (share * points as f64).round_ties_even() as i64)
            }
            Measure::Deviation { low, high } => {
                let (half, middle) = half_and_middle(*low, *high);
                let share = ((number(value)?.clamp(*low, *high) - middle) / half).clamp(-1.0, 1.0);
                (0, (share * points as f64).round_ties_even() as i64)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Any rows of a unit, random or in one place, stay within the clip norm, for any queries, weights and
    /// spacings.
    #[test]
    fn the_rows_of_a_unit_are_within_the_clip_norm() {
        let pool = "users-over-rows counts window:3 sum:-4,9 mean:-4,9 mean:0,1 histogram:0,1,2 cdf:0,1,2 cdf:-3,-1,0,1,4,5,8 \
                    quantiles:0.2,0.9@0,1,2 range:0,5@-3,-1,0,1,4,5,8 histogram:1";
        let mut state = 1;
        for round in 0..4000 {
            let mut next = || random(&mut state);
            let mut settings = Settings::new(vec!["a".into(), "b".into()], 3, Unit::User);
            let drawn: Vec<&str> = pool.split_whitespace().filter(|_| next() < 0.3).collect();
            if !drawn.is_empty() {
                settings.queries =
                    drawn.iter().map(|query| (query.parse().unwrap(), 4f64.powf(next() - 0.5))).collect();
            }
            let rows = 1 + (next() * 4.0) as usize;
            settings.max_rows = rows;
            let layout = Layout::new(&settings);
            let spacing = layout.coarsest_spacing() / (1 + (next() * 40.0) as usize) as f64;
            let mut cells = vec![0i64; layout.cells()];
            let mut event = || (usize::from(next() < 0.5), next() * 14.0 - 5.0);
            let events: Vec<(usize, f64)> = (0..rows).map(|_| event()).collect();
            let alone = round % 2 == 0;
            for event in &events {
                let (key, value) = if alone { (0, events[0].1) } else { *event };
                layout.row(spacing, key, Some(value), |cell, added| cells[cell] += added).unwrap();
            }
            layout.encode(spacing, &mut cells).unwrap();
            if let Some(part) = layout.part_if_any(&Measure::OverRows) {
                cells[part.cell(0, 0)] += part.points(spacing);
            }
            let norm = spacing * cells.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt();
            // Tolerance for the rounding of this sum; points have none.
            assert!(norm <= layout.clip_norm(rows) * (1.0 + 1e-14), "{round}: {norm} {drawn:?}");
        }
    }
}
