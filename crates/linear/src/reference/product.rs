//! Products of matrices.

use std::borrow::Cow;

use super::vector::add_scaled;
use crate::matrix::{Matrix, View};

/// Number of columns of A that stay in cache while all columns of B are multiplied by them.
const CACHED_COLUMNS: usize = 64;

/// Returns A B. Each of its columns is a sum of columns of A, weighted by a column of B.
pub(crate) fn product(a: View<'_>, b: View<'_>) -> Matrix {
    let (a, b) = (materialized(a), materialized(b));
    assert_eq!(a.ncols(), b.nrows(), "columns of A and rows of B");
    let mut found = Matrix::zeros(a.nrows(), b.ncols());
    for first in (0..a.ncols()).step_by(CACHED_COLUMNS) {
        for j in 0..b.ncols() {
            let sum = found.column_mut(j);
            for k in first..a.ncols().min(first + CACHED_COLUMNS) {
                add_scaled(sum, b[(k, j)], a.column(k));
            }
        }
    }
    found
}

fn materialized(view: View<'_>) -> Cow<'_, Matrix> {
    if view.transposed { Cow::Owned(view.to_owned()) } else { Cow::Borrowed(view.matrix) }
}
