//! Inverses of square matrices.

use super::vector::add_scaled;
use crate::matrix::Matrix;

/// Solves L U y = P e_j for each column j.
pub(crate) fn inverse(a: &Matrix) -> Matrix {
    let n = a.nrows();
    let (factors, order) = eliminated(a);
    let mut found = Matrix::zeros(n, n);
    for (row, &j) in order.iter().enumerate() {
        let y = found.column_mut(j);
        y[row] = 1.0;
        for k in row..n {
            let (above, below) = y.split_at_mut(k + 1);
            add_scaled(below, -above[k], &factors.column(k)[k + 1..]);
        }
        for k in (0..n).rev() {
            let (above, at) = y.split_at_mut(k);
            at[0] /= factors[(k, k)];
            add_scaled(above, -at[0], &factors.column(k)[..k]);
        }
    }
    found
}

/// Returns L and U of P A = L U in one matrix (L, without its unit diagonal, below the diagonal; U on and
/// above it), and the permutation P: for each row of P A, the index of that row in A. The pivot of a column
/// is its largest remaining entry.
fn eliminated(a: &Matrix) -> (Matrix, Vec<usize>) {
    let n = a.nrows();
    let (mut factors, mut order) = (a.clone(), (0..n).collect::<Vec<_>>());
    for k in 0..n {
        let column = factors.column(k);
        let pivot = (k..n).fold(k, |best, i| if column[i].abs() > column[best].abs() { i } else { best });
        order.swap(k, pivot);
        (0..n).for_each(|j| factors.column_mut(j).swap(k, pivot));
        let divisor = factors[(k, k)];
        let multipliers = &mut factors.column_mut(k)[k + 1..];
        multipliers.iter_mut().for_each(|x| *x /= divisor);
        let multipliers = multipliers.to_vec();
        for j in k + 1..n {
            let (above, below) = factors.column_mut(j).split_at_mut(k + 1);
            add_scaled(below, -above[k], &multipliers);
        }
    }
    (factors, order)
}
