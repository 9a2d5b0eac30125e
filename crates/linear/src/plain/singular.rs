//! Singular values by rotations of pairs of columns until all are orthogonal (Hestenes 1958; Golub and Van Loan,
//! Matrix Computations, Section 8.6.3).

use super::vector::{NOTHING, add_scaled, dot, rotate, two_columns};
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Most rounds through all pairs; ten are usual.
const MOST_ROUNDS: usize = 60;

pub(crate) fn singular_values(a: &Matrix) -> Result<(Matrix, Vec<f64>, Matrix)> {
    let (n, m) = (a.nrows(), a.ncols());
    let found = if n < m {
        of_tall(a.transpose().to_owned()).map(|(v, values, u)| (u, values, v))
    } else {
        of_tall(a.clone())
    };
    found.ok_or(Error::NoConvergence(n, m))
}

/// U, the singular values and V of a matrix with no fewer rows than columns: columns of A V are those of U diag(s).
fn of_tall(mut a: Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    let (n, m) = (a.nrows(), a.ncols());
    let mut v = Matrix::identity(m, m);
    (0..MOST_ROUNDS).find(|_| !round(&mut a, &mut v))?;
    let length =
        |j: usize| Some(dot(a.column(j), a.column(j))).filter(|x| *x > NOTHING).map_or(0.0, f64::sqrt);
    let lengths: Vec<f64> = (0..m).map(length).collect();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let values: Vec<f64> = order.iter().map(|&j| lengths[j]).collect();
    let mut u = Matrix::from_fn(n, m, |i, j| a[(i, order[j])] / values[j]);
    (0..m).filter(|&j| values[j] == 0.0).for_each(|j| fill_in(&mut u, j));
    let sorted = Matrix::from_fn(m, m, |i, j| v[(i, order[j])]);
    Some((u, values, sorted))
}

/// Makes each pair of columns of A V orthogonal, one after the other; false where all were.
fn round(a: &mut Matrix, v: &mut Matrix) -> bool {
    // As far as their product's rounding errors tell.
    let rounding = a.nrows() as f64 * f64::EPSILON;
    let mut rotated = false;
    for (i, j) in (0..a.ncols()).flat_map(|j| (0..j).map(move |i| (i, j))) {
        let (x, y) = two_columns(a, i, j);
        let (xx, yy, xy) = (dot(x, x), dot(y, y), dot(x, y));
        if xx.min(yy) <= NOTHING || xy.abs() <= rounding * xx.sqrt() * yy.sqrt() {
            continue;
        }
        rotated = true;
        let cotangent = (xx - yy) / (2.0 * xy); // of twice the angle
        let tangent = 1.0f64.copysign(cotangent) / (cotangent.abs() + cotangent.hypot(1.0));
        let cos = 1.0 / tangent.hypot(1.0);
        rotate(x, y, (cos, cos * tangent));
        let (x, y) = two_columns(v, i, j);
        rotate(x, y, (cos, cos * tangent));
    }
    rotated
}

/// Column j is made a unit vector that is orthogonal to the columns before it: what they leave of one of the axes.
fn fill_in(u: &mut Matrix, j: usize) {
    let n = u.nrows();
    let left = |axis: usize| {
        let mut left: Vec<f64> = (0..n).map(|i| if i == axis { 1.0 } else { 0.0 }).collect();
        for k in 0..j {
            let along = dot(u.column(k), &left);
            add_scaled(&mut left, -along, u.column(k));
        }
        let length = dot(&left, &left).sqrt();
        left.iter_mut().for_each(|x| *x /= length);
        (left, length)
    };
    // One of n axes leaves no less than the mean, the square root of (n - j) / n: enough for its rounding errors to stay small.
    let enough = 0.9 / (n as f64).sqrt();
    let (found, _) =
        (0..n).map(left).find(|(_, length)| *length > enough).expect("j columns do not span n > j rows");
    u.column_mut(j).copy_from_slice(&found);
}
