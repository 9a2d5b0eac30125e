//! Matrices and their transposed views.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A matrix of double-precision numbers, stored column by column.
///
/// ```
/// use antinoise_linear::Matrix;
/// let c = Matrix::from_fn(2, 3, |i, j| (10 * i + j) as f64);
/// assert_eq!((c[(1, 2)], c.column(1)), (12.0, &[1.0, 11.0][..]));
/// ```
#[derive(Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

/// A read-only view of a matrix or of its transpose.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) matrix: &'a Matrix,
    pub(crate) transposed: bool,
}

impl Matrix {
    /// Builds the `rows` x `columns` matrix with the entries `entry(i, j)`.
    pub fn from_fn(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut found = Self::zeros(rows, columns);
        for j in 0..columns {
            found.column_mut(j).iter_mut().enumerate().for_each(|(i, x)| *x = entry(i, j));
        }
        found
    }

    /// Returns a matrix of zeros.
    ///
    /// # Panics
    /// If `rows * columns` exceeds a usize.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        let size = rows.checked_mul(columns).expect("a matrix fits into memory");
        Self { rows, columns, entries: vec![0.0; size] }
    }

    /// Returns a matrix with ones on the diagonal and zeros elsewhere.
    pub fn identity(rows: usize, columns: usize) -> Self {
        let mut found = Self::zeros(rows, columns);
        (0..rows.min(columns)).for_each(|i| found[(i, i)] = 1.0);
        found
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.columns
    }

    /// The transpose.
    pub fn transpose(&self) -> View<'_> {
        View { matrix: self, transposed: true }
    }

    /// Column j.
    ///
    /// # Panics
    /// If there is no column j.
    pub fn column(&self, j: usize) -> &[f64] {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        &self.entries[j * self.rows..(j + 1) * self.rows]
    }

    /// Column j, mutable.
    ///
    /// # Panics
    /// If there is no column j.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        &mut self.entries[j * self.rows..(j + 1) * self.rows]
    }

    /// The first `count` columns.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn leading_columns(&self, count: usize) -> Self {
        assert!(count <= self.columns, "{count} columns of {}", self.columns);
        Self { rows: self.rows, columns: count, entries: self.entries[..count * self.rows].to_vec() }
    }

    /// All entries, column by column.
    #[cfg(any(test, feature = "faer"))]
    pub(crate) fn entries(&self) -> &[f64] {
        &self.entries
    }

    /// All entries, mutable.
    pub(crate) fn entries_mut(&mut self) -> &mut [f64] {
        &mut self.entries
    }
}

impl View<'_> {
    /// Copies the view into a matrix.
    pub fn to_owned(self) -> Matrix {
        if self.transposed {
            let Matrix { rows, columns, .. } = *self.matrix;
            Matrix::from_fn(columns, rows, |i, j| self.matrix[(j, i)])
        } else {
            self.matrix.clone()
        }
    }
}

impl<'a> From<&'a Matrix> for View<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        Self { matrix, transposed: false }
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        assert!(i < self.rows && j < self.columns, "entry ({i}, {j}) of {} x {}", self.rows, self.columns);
        &self.entries[i + j * self.rows]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        assert!(i < self.rows && j < self.columns, "entry ({i}, {j}) of {} x {}", self.rows, self.columns);
        &mut self.entries[i + j * self.rows]
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |i: usize| (0..self.columns).map(move |j| self[(i, j)]).collect::<Vec<f64>>();
        f.debug_list().entries((0..self.rows).map(row)).finish()
    }
}
