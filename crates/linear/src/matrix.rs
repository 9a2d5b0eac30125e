//! Matrices that own their numbers, and views of them.

use std::fmt;
use std::ops::{Index, IndexMut};

use faer::{Mat, MatRef};

/// A matrix of double-precision numbers, column after column.
///
/// ```
/// use antinoise_linear::Matrix;
/// let c = Matrix::from_fn(2, 3, |i, j| (10 * i + j) as f64);
/// assert_eq!((c[(1, 2)], c.column(1)), (12.0, &[1.0, 11.0][..]));
/// ```
#[derive(Clone, PartialEq)]
pub struct Matrix(pub(crate) Mat<f64>);

/// A matrix, or its transpose, that is only read.
#[derive(Clone, Copy)]
pub struct View<'a>(pub(crate) MatRef<'a, f64>);

impl Matrix {
    /// The rows x columns matrix with these entries.
    pub fn from_fn(rows: usize, columns: usize, entry: impl FnMut(usize, usize) -> f64) -> Self {
        Self(Mat::from_fn(rows, columns, entry))
    }

    /// Zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self(Mat::zeros(rows, columns))
    }

    /// Ones on the diagonal.
    pub fn identity(rows: usize, columns: usize) -> Self {
        Self(Mat::identity(rows, columns))
    }

    /// How many rows.
    pub fn nrows(&self) -> usize {
        self.0.nrows()
    }

    /// How many columns.
    pub fn ncols(&self) -> usize {
        self.0.ncols()
    }

    /// The transpose.
    pub fn transpose(&self) -> View<'_> {
        View(self.0.transpose())
    }

    /// Column j.
    pub fn column(&self, j: usize) -> &[f64] {
        self.0.col(j).try_as_col_major().expect("a matrix that is owned has contiguous columns").as_slice()
    }

    /// Column j, to be written.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        self.0
            .col_mut(j)
            .try_as_col_major_mut()
            .expect("a matrix that is owned has contiguous columns")
            .as_slice_mut()
    }

    /// The first `count` columns.
    pub fn leading_columns(&self, count: usize) -> Self {
        Self(self.0.subcols(0, count).to_owned())
    }
}

impl View<'_> {
    /// A matrix of its own.
    pub fn to_owned(self) -> Matrix {
        Matrix(self.0.to_owned())
    }
}

impl<'a> From<&'a Matrix> for View<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        Self(matrix.0.as_ref())
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, at: (usize, usize)) -> &f64 {
        &self.0[at]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, at: (usize, usize)) -> &mut f64 {
        &mut self.0[at]
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
