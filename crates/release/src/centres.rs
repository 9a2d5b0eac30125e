//! k-means centres from noisy counts of rows in cells: each centre's coordinates and the rows of its region.
//!
//! Coordinates are fractions of their axes' ranges: distances are Euclidean after scaling every axis to
//! length 1. A row counts at the middle of its cell, at most half a cell's diagonal from its place; so for n
//! rows and any centres, the square root of the cost, a norm, changes by at most sqrt(n) times that.
//!
//! An empty cell with noise of standard deviation s is above 0 half of the time, and there are many such
//! cells. So centres are computed from the part of each cell above 2 s; if fewer than K cells remain, from
//! the part above s, or above 0. The figures of a region are then sums over all of its cells: for any region
//! chosen independently of the noise, their noise is normal with mean 0.

use antinoise_input::non_negative;

use crate::axis::{Axis, cells};
use crate::clusters::{Point, clustered, nearest};
use crate::interval::{Interval, Ratio};
use crate::{Error, Query, Result};

/// Thresholds in standard deviations; the first one that leaves at least as many cells as centres is used.
const LEVELS: [f64; 3] = [2.0, 1.0, 0.0];

/// The cells of a query.
pub(crate) struct Cells<'q> {
    axes: &'q [Axis],
    middles: Vec<Point>,
}

/// The figures of a centre.
pub(crate) struct Centre {
    /// For each axis: the centre, and an interval for the mean of the rows of its region.
    pub(crate) coordinates: Vec<Interval>,
    /// The rows of the region.
    pub(crate) rows: Interval,
}

/// Sums over a region.
#[derive(Clone, Copy, Default)]
struct Region {
    cells: f64,
    rows: f64,
    axes: [OfAxis; 3],
}

/// Sums over a region along one axis, of deviations from the middle of the axis.
#[derive(Clone, Copy, Default)]
struct OfAxis {
    of_rows: f64,
    of_cells: f64,
    squares: f64,
}

/// The centres that a release with the query `kmeans:CENTRES@AXES` publishes for noisy counts `rows` of
/// standard deviation `deviation` in its cells, with the last axis varying fastest: for noisy cells of
/// another origin, and for simulations. It adds no noise: the centres are as private as `rows`.
///
/// ```
/// use antinoise_release::{Axis, kmeans};
/// let axis = |column: &str| Axis { column: column.into(), low: 0.0, high: 4.0, cells: 4 };
/// let mut rows = [0.0; 16];
/// (rows[0], rows[1], rows[15]) = (30.0, 10.0, 50.0);
/// let centres = kmeans(2, &[axis("x"), axis("y")], &rows, 0.0)?;
/// assert_eq!(centres, [[0.5, 0.75], [3.5, 3.5]]);
/// # Ok::<(), antinoise_release::Error>(())
/// ```
///
/// # Errors
/// If the query is invalid, the number of counts differs from the number of cells, a count is not finite, or
/// the deviation is negative.
pub fn kmeans(centres: usize, axes: &[Axis], rows: &[f64], deviation: f64) -> Result<Vec<Vec<f64>>> {
    Query::Kmeans { centres, axes: axes.to_vec() }.check()?;
    if rows.len() != cells(axes) || rows.iter().any(|rows| !rows.is_finite()) {
        let must_be = format!("one finite number for each of {} cells", cells(axes));
        return Err(Error::invalid("rows", format!("{} numbers", rows.len()), must_be));
    }
    non_negative("deviation", deviation)?;
    let found = Cells::new(axes).centres(centres, rows, deviation);
    let scaled = |centre: &Point| axes.iter().zip(centre).map(|(axis, x)| axis.at(*x)).collect();
    Ok(found.iter().map(scaled).collect())
}

impl<'q> Cells<'q> {
    pub(crate) fn new(axes: &'q [Axis]) -> Self {
        let middle = |cell: usize| {
            let (mut point, mut rest) = ([0.0; 3], cell);
            for (x, axis) in point.iter_mut().zip(axes).rev() {
                *x = axis.middle(rest % axis.cells);
                rest /= axis.cells;
            }
            point
        };
        Self { axes, middles: (0..cells(axes)).map(middle).collect() }
    }

    /// `count` centres from the noisy rows of each cell, sorted by their coordinates; `deviation`: standard
    /// deviation of a cell.
    pub(crate) fn centres(&self, count: usize, rows: &[f64], deviation: f64) -> Vec<Point> {
        let above = |level: f64| -> Vec<(Point, f64)> {
            let left = rows.iter().map(|rows| rows - level * deviation);
            self.middles.iter().copied().zip(left).filter(|(_, left)| *left > 0.0).collect()
        };
        let enough = LEVELS.into_iter().map(above).find(|points| points.len() >= count);
        let points = enough.unwrap_or_else(|| self.middles.iter().map(|middle| (*middle, 1.0)).collect());
        let mut centres = clustered(count, &points);
        let order = |p: &Point, q: &Point| {
            let axes = p.iter().zip(q).map(|(x, y)| x.total_cmp(y));
            axes.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        centres.sort_by(order);
        centres
    }

    /// As [`Self::centres`], with the figures of their regions and 95% intervals.
    pub(crate) fn told(&self, count: usize, rows: &[f64], deviation: f64) -> Vec<Centre> {
        let centres = self.centres(count, rows, deviation);
        let mut regions = vec![Region::default(); count];
        for (middle, rows) in self.middles.iter().zip(rows) {
            let region = &mut regions[nearest(&centres, middle)];
            region.cells += 1.0;
            region.rows += rows;
            for (sums, x) in region.axes.iter_mut().zip(middle) {
                let x = x - 0.5;
                sums.of_rows += rows * x;
                sums.of_cells += x;
                sums.squares += x * x;
            }
        }
        let told = |(centre, region): (&Point, &Region)| {
            let of_axes = self.axes.iter().zip(&region.axes).zip(centre);
            Centre {
                coordinates: of_axes
                    .map(|((axis, sums), x)| coordinate(axis, *x, region, sums, deviation))
                    .collect(),
                rows: Interval::new(region.rows, deviation * region.cells.sqrt(), true),
            }
        };
        centres.iter().zip(&regions).map(told).collect()
    }
}

/// A coordinate of a centre, with an interval for the mean of its region's rows at their own places, not at
/// the middles of cells.
fn coordinate(axis: &Axis, centre: f64, region: &Region, sums: &OfAxis, deviation: f64) -> Interval {
    let variance = deviation * deviation;
    let ratio = Ratio {
        above: sums.of_rows,
        below: region.rows,
        above_variance: variance * sums.squares,
        covariance: variance * sums.of_cells,
        below_variance: variance * region.cells,
        slack: 0.5 / axis.cells as f64,
    };
    // The region is empty if other centres are nearer to all cells.
    let is_empty = region.cells == 0.0;
    let mean = (!is_empty).then(|| Interval::of_ratio(ratio, -0.5, 0.5));
    let end = |end: Option<f64>, all: f64| end.map_or(all, |end| axis.at(end + 0.5));
    let value = axis.at(centre);
    Interval {
        value,
        lower: end(mean.map(|mean| mean.lower), axis.low).min(value),
        upper: end(mean.map(|mean| mean.upper), axis.high).max(value),
    }
}
