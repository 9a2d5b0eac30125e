//! Norms of the decoder B = A C^-1.

use antinoise_input::largest;
use antinoise_linear::Matrix;
use serde::{Deserialize, Serialize};

use crate::numeric::limits::{norm_in_range, out_of_range};
use crate::numeric::parallel;
use crate::problem::Objective;
use crate::recursion::columns::Columns;
use crate::toeplitz::{correlate, divide, divide_transposed};
use crate::workload::Operator;
use crate::{Error, Recursion, Result, Workload};

/// Norms of the decoder B = A C^-1. For seed noise of standard deviation 1, they are the largest standard
/// deviation of a query's noise, and the root mean square of these standard deviations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorNorms {
    /// The largest row norm ||B||_row.
    pub max: f64,
    /// The Frobenius norm ||B||_F over the square root of the number of queries.
    pub rms: f64,
}

impl ErrorNorms {
    /// Returns the norm that `objective` minimises.
    pub fn of(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Max => self.max,
            Objective::Rms => self.rms,
        }
    }

    /// Computes the norms from the squared norms of B's rows.
    ///
    /// # Errors
    /// As [`ErrorNorms::new`].
    pub(crate) fn of_rows(squared: &[f64]) -> Result<Self> {
        let mean = squared.iter().sum::<f64>() / squared.len() as f64;
        Self::new(largest(squared.iter().copied()).sqrt(), mean.sqrt())
    }

    /// Checks and returns the two norms.
    ///
    /// # Errors
    /// When one of them is not a number above 0, or its square is outside the range of double precision.
    pub(crate) fn new(max: f64, rms: f64) -> Result<Self> {
        if [max, rms].into_iter().all(norm_in_range) {
            return Ok(Self { max, rms });
        }
        Err(out_of_range(&format!("the error is {max:e} (max) and {rms:e} (rms)")))
    }
}

/// Returns the norms of B for Toeplitz C with first column `c`. For Toeplitz A with first column a, the first
/// column of B is w = C^-1 a. O(n log n), or O(n) for a few bands.
pub(crate) fn error_of_toeplitz(
    c: &[f64],
    steps: usize,
    workload: &Workload,
    recursion: &Recursion,
) -> Result<ErrorNorms> {
    ErrorNorms::of_rows(&rows_of_toeplitz(c, steps, workload, recursion)?)
}

/// Returns the squared norms of B's rows for Toeplitz C with first column `c`: that of row i is the sum of
/// w_t^2 over t <= i.
pub(crate) fn rows_of_toeplitz(
    c: &[f64],
    steps: usize,
    workload: &Workload,
    recursion: &Recursion,
) -> Result<Vec<f64>> {
    let prefix = || rows_of_toeplitz(c, steps, &Workload::Prefix, recursion);
    if let Some(rows) = rows_of_listed(workload, steps, prefix, |u| divide_transposed(u, c))? {
        return Ok(rows);
    }
    match workload.coefficients(steps)? {
        Some(a) => finite(running_squares(divide(&a, c, steps))),
        None => rows_by_columns(recursion, steps, workload),
    }
}

/// Returns the squared norms of B's rows for a workload whose rows are listed, a batch of queries or the last
/// iterate; `None` for other workloads. `row(u)` is C^-T u, the row of B for the row u of A, and `prefix`
/// returns the squared norms for prefix sums.
///
/// # Errors
/// When the workload does not have `steps` steps, or a squared norm is not finite.
pub(crate) fn rows_of_listed(
    workload: &Workload,
    steps: usize,
    prefix: impl FnOnce() -> Result<Vec<f64>>,
    row: impl Fn(&[f64]) -> Vec<f64> + Sync,
) -> Result<Option<Vec<f64>>> {
    let one_by_one = |listed: &[Vec<f64>]| {
        let operations = listed.iter().map(Vec::len).sum();
        let squared = |i: usize| row(&listed[i]).iter().map(|x| x * x).sum::<f64>();
        parallel::map(listed.len(), operations, squared)
    };
    if let Workload::Queries { rows } = workload {
        workload.check_steps(steps)?;
        return finite(one_by_one(rows)).map(Some);
    }
    let Some(last) = workload.last_iterate_rows(steps)? else { return Ok(None) };
    let mut rows = one_by_one(&last.responses);
    rows.extend(prefix()?.iter().map(|x| x * last.prefix_factor.powi(2)));
    finite(rows).map(Some)
}

/// Returns the squared norms of B's rows for Toeplitz C^-1 with first column `p`; w = A p is the first column
/// of B.
pub(crate) fn rows_of_inverse(p: &[f64], steps: usize, workload: &Workload) -> Result<Vec<f64>> {
    let prefix = || rows_of_inverse(p, steps, &Workload::Prefix);
    if let Some(rows) = rows_of_listed(workload, steps, prefix, |u| correlate(u, p, steps))? {
        return Ok(rows);
    }
    if !workload.is_toeplitz() {
        return rows_by_columns(&Recursion::MovingAverage { taps: p.to_vec() }, steps, workload);
    }
    let mut column = p.to_vec();
    column.resize(steps, 0.0);
    finite(running_squares(Operator::new(workload, steps)?.apply(&column)))
}

/// Replaces each w_t by the sum of w_s^2 over s <= t.
pub(crate) fn running_squares(mut w: Vec<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    for w in &mut w {
        sum += *w * *w;
        *w = sum;
    }
    w
}

/// Number of columns that one parallel task sums. It is fixed so that rounding does not depend on the number
/// of threads.
const COLUMNS_PER_TASK: usize = 64;

/// Returns the squared norms of B's rows for any C, by applying A to each column of C^-1. O(n) memory per
/// task; O(n^2) time in addition to the time of computing the columns.
pub(crate) fn rows_by_columns(recursion: &Recursion, steps: usize, workload: &Workload) -> Result<Vec<f64>> {
    let columns = Columns::new(recursion, steps);
    sum_over_columns(recursion.seeds(steps), steps, workload, |space, seed| {
        let mut column = vec![0.0; steps];
        columns.write(seed, space, &mut column);
        column
    })
}

/// Returns the norms of A N for a matrix N (n x r) that maps seeds to noise, such as C^-1.
pub(crate) fn error_of_matrix(noise: &Matrix, workload: &Workload) -> Result<ErrorNorms> {
    let column = |_: &mut Vec<f64>, j: usize| noise.column(j).to_vec();
    ErrorNorms::of_rows(&sum_over_columns(noise.ncols(), noise.nrows(), workload, column)?)
}

/// Returns the squared norms of the rows of A N from the columns of N: `column(space, j)` computes column j
/// and may use `space` as work space.
pub(crate) fn sum_over_columns(
    columns: usize,
    steps: usize,
    workload: &Workload,
    column: impl Fn(&mut Vec<f64>, usize) -> Vec<f64> + Sync,
) -> Result<Vec<f64>> {
    let a = Operator::new(workload, steps)?;
    let of_task = |task: usize| {
        let (mut squared, mut space) = (vec![0.0; a.queries(steps)], Vec::new());
        let first = task * COLUMNS_PER_TASK;
        for j in first..(first + COLUMNS_PER_TASK).min(columns) {
            let image = a.apply(&column(&mut space, j));
            squared.iter_mut().zip(image).for_each(|(sum, x)| *sum += x * x);
        }
        squared
    };
    let partial = parallel::map(columns.div_ceil(COLUMNS_PER_TASK), columns * steps, of_task);
    let mut squared = vec![0.0; a.queries(steps)];
    for part in partial {
        squared.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    finite(squared)
}

/// Returns an error if a squared norm is not finite.
pub(crate) fn finite(squared: Vec<f64>) -> Result<Vec<f64>> {
    match squared.iter().position(|x| !x.is_finite()) {
        Some(row) => {
            let got = squared[row];
            Err(Error::Numerical(format!("the squared error of query {row} is {got} in double precision")))
        }
        None => Ok(squared),
    }
}
