//! A column of coordinates, whose public range is divided into cells.

/// A column of coordinates, whose public range \[LO, HI\] is divided into cells of equal length. Values
/// beyond the range count in the first or the last cell.
///
/// ```
/// use antinoise_release::{Axis, Query};
/// let minutes = Axis { column: "minutes".into(), low: 0.0, high: 60.0, cells: 12 };
/// let query = Query::Kmeans { centres: 3, axes: vec![minutes] };
/// assert_eq!(query.to_string(), "kmeans:3@minutes:0,60,12");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The name of the column.
    pub column: String,
    /// LO, the lower end of the range.
    pub low: f64,
    /// HI, the upper end of the range.
    pub high: f64,
    /// Number of cells.
    pub cells: usize,
}

/// Half of the length of \[low, high\], and its middle.
pub(crate) fn half_and_middle(low: f64, high: f64) -> (f64, f64) {
    (0.5 * high - 0.5 * low, 0.5 * low + 0.5 * high)
}

impl Axis {
    /// The lower edge of cell `j`; exact if LO, HI and the edge are whole numbers.
    fn edge(&self, j: usize) -> f64 {
        self.low + (self.high - self.low) * j as f64 / self.cells as f64
    }

    /// The number in \[LO, HI\] below which this fraction of the range lies.
    pub(crate) fn at(&self, share: f64) -> f64 {
        (self.low + (self.high - self.low) * share).clamp(self.low, self.high)
    }

    /// The fraction of the range below the middle of cell `j`.
    pub(crate) fn middle(&self, j: usize) -> f64 {
        (j as f64 + 0.5) / self.cells as f64
    }

    /// The cell of `value`: the number of inner edges that are at most `value`.
    pub(crate) fn cell(&self, value: f64) -> usize {
        let (mut from, mut to) = (0, self.cells - 1);
        while from < to {
            let half = (from + to) / 2;
            match self.edge(half + 1) <= value {
                true => from = half + 1,
                false => to = half,
            }
        }
        from
    }

    /// Whether the range is valid, and every cell has a positive length.
    pub(crate) fn is_cut(&self) -> bool {
        let length = self.high - self.low;
        let is_range = length > 0.0 && length.is_normal() && (length * self.cells as f64).is_finite();
        is_range && (0..self.cells).all(|j| self.edge(j) < self.edge(j + 1))
    }

    /// Whether the column's name is visible and can be written in a query.
    pub(crate) fn is_named(&self) -> bool {
        let name = &self.column;
        let is_short = (1..=64).contains(&name.len()) && name.trim() == name;
        is_short && !name.contains(|c: char| c == '@' || c.is_control())
    }
}

/// The index of a point's cell; the last axis varies fastest.
pub(crate) fn cell(axes: &[Axis], coordinates: impl Iterator<Item = f64>) -> usize {
    axes.iter().zip(coordinates).fold(0, |cell, (axis, x)| cell * axis.cells + axis.cell(x))
}

/// Number of cells of all axes together.
pub(crate) fn cells(axes: &[Axis]) -> usize {
    axes.iter().fold(1, |cells, axis| cells.saturating_mul(axis.cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(low: f64, high: f64, cells: usize) -> Axis {
        Axis { column: "x".into(), low, high, cells }
    }

    /// Every number is in the cell between whose edges it lies, compared with a search over all cells.
    #[test]
    fn the_cell_of_a_number_is_the_one_between_whose_edges_it_lies() {
        for (low, high, cells) in
            [(0.0, 1.0, 1), (0.0, 60.0, 7), (-3.0, -1.0, 10), (-1e307, 1e307, 8), (1e-300, 2e-300, 4)]
        {
            let axis = axis(low, high, cells);
            assert!(axis.is_cut(), "{axis:?}");
            let (half, middle) = half_and_middle(low, high);
            let edges = (0..=cells).map(|j| axis.edge(j));
            let inside = (-60..=60).map(|i| middle + half * (f64::from(i) / 40.0));
            for value in edges.chain(inside).chain([f64::INFINITY, f64::NEG_INFINITY, low, high]) {
                let below = (1..cells).filter(|j| axis.edge(*j) <= value).count();
                assert_eq!(axis.cell(value), below, "{value} {axis:?}");
            }
            for cell in 0..cells {
                assert_eq!(axis.cell(axis.at(axis.middle(cell))), cell);
            }
            assert_eq!(axis.edge(0), low);
            assert!((axis.edge(cells) / high - 1.0).abs() < 1e-15);
        }
    }

    /// A whole number at an edge is in the cell above it.
    #[test]
    fn edges_of_whole_numbers_are_whole() {
        for cells in 1..200 {
            let axis = axis(-7.0, -7.0 + 3.0 * cells as f64, cells);
            (0..=cells).for_each(|j| assert_eq!(axis.edge(j), -7.0 + 3.0 * j as f64));
        }
    }

    #[test]
    fn cells_without_a_length_are_seen() {
        for (low, high, cells) in [
            (1.0, 1.0, 1),
            (2.0, 1.0, 3),
            (f64::NAN, 1.0, 2),
            (0.0, f64::INFINITY, 2),
            (1.0, 1.0 + f64::EPSILON, 2),
            (0.0, 5e-324, 1),
            (-1.7e308, 1.7e308, 1),
            (0.0, 1e308, 2),
        ] {
            assert!(!axis(low, high, cells).is_cut(), "{low} {high} {cells}");
        }
    }
}
