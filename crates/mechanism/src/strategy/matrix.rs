//! Strategies from any matrix C: square or with more rows than columns, triangular or not.
//!
//! 1. The optimal decoder of a workload A is B = A C^+, whose noise is A C^+ Z. C^+ Z has the covariance (C^T
//!    C)^-1 per coordinate.
//! 2. So the lower-triangular C' with C'^T C' = C^T C has noise C'^-1 Z of the same distribution, the same
//!    errors, and the same sensitivity under every schema.
//! 3. Because C' is lower triangular, the privacy claim also holds for gradients that depend on earlier
//!    releases.
//!
//! Sensitivity, errors and noise are all computed from C', so that rounding in its decomposition does not
//! make them disagree.
//!
//! # Source
//! Denisov et al. (2022), Theorem 2.1 and Proposition 2.2; monograph, Remarks 1.16 and 1.17.

use antinoise_input::{InvalidParameter, between};
use antinoise_linear::{Matrix, lower_factor, product};

use super::any::AnyStrategy;
use super::contract::Strategy;
use super::{Banded, BandedToeplitz, Dense, Toeplitz};
use crate::numeric::limits::MAX_MATERIALIZED;
use crate::numeric::vector::dot;
use crate::workload::Operator;
use crate::{Encoder, Result, Workload};

/// Relative difference between entries of B C and A that counts as rounding, since files may hold numbers in
/// single precision.
const FACTOR_TOLERANCE: f64 = 1e-5;

impl AnyStrategy {
    /// Returns the strategy of a matrix C (r x n, r >= n) of full column rank: the lower-triangular C' with
    /// positive diagonal and C'^T C' = C^T C. The entries of a lower-triangular C are not changed, except
    /// that rows with a negative diagonal are negated.
    ///
    /// The class is the one with the smallest noise state that represents C' exactly: Toeplitz, banded or
    /// dense. O(r n^2) time for a C that is not lower triangular.
    ///
    /// # Errors
    /// When C has no column, more than 10^8 entries, or fewer rows than columns, an entry or a column's norm
    /// is not finite, or a column is a linear combination of later columns.
    ///
    /// # Source
    /// Denisov et al. (2022), Proposition 2.2; monograph, Remark 1.17.
    ///
    /// ```
    /// use antinoise_linear::Matrix;
    /// use antinoise_mechanism::{AnyStrategy, Participation};
    /// // A binary tree over two steps: two leaves and their sum.
    /// let tree = Matrix::from_fn(3, 2, |i, j| if i == 2 || i == j { 1.0 } else { 0.0 });
    /// let strategy = AnyStrategy::of_matrix(&tree)?;
    /// let sensitivity = strategy.sensitivity(&Participation::Single)?;
    /// assert!((sensitivity.value - 2f64.sqrt()).abs() < 1e-15);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn of_matrix(c: &Matrix) -> Result<Self> {
        let (r, n) = (c.nrows(), c.ncols());
        between("columns of C", n, 1, MAX_MATERIALIZED, "the entries that can be held in memory")?;
        let most = "the entries that can be held in memory";
        between("entries of C", r.saturating_mul(n), 1, MAX_MATERIALIZED, most)?;
        if r < n {
            let must_be =
                format!("at least {n}, the number of columns, since otherwise no noise C^-1 Z exists");
            return Err(InvalidParameter::new("rows of C", r, must_be).into());
        }
        let entries = (0..n).flat_map(|j| (0..r).map(move |i| (i, j)));
        if let Some((i, j)) = entries.clone().find(|&at| !c[at].is_finite()) {
            return Err(InvalidParameter::new(format!("C[{i}, {j}]"), c[(i, j)], "a finite number").into());
        }
        let is_lower = r == n && entries.into_iter().all(|(i, j)| i >= j || c[(i, j)] == 0.0);
        let found = if is_lower { with_positive_diagonal(c) } else { lower_factor(c) };
        let lower = found.map_err(|error| {
            let must_be = "of full column rank, since otherwise no noise C^-1 Z exists";
            InvalidParameter::new("C", format!("a matrix in which {error}"), must_be)
        })?;
        if let Some(j) = (0..n).find(|&j| lower.column(j).iter().any(|x| !x.is_finite())) {
            let got = format!("a matrix in which the norm of column {j} is beyond double precision");
            return Err(InvalidParameter::new("C", got, "of smaller numbers").into());
        }
        of_lower(&lower)
    }

    /// Converts any implementation of [`Strategy`] to a form that plans and files can hold: its coefficients
    /// if C is Toeplitz, its bands if C is banded, or else the matrix, as in [`AnyStrategy::of_matrix`]. The
    /// noise is computed from C alone, not by `strategy.recursion()`.
    ///
    /// # Errors
    /// When the strategy is not valid, or for a reason of [`AnyStrategy::of_matrix`].
    ///
    /// ```
    /// use antinoise_mechanism::{AnyStrategy, Encoder, Recursion, Result, Strategy};
    /// struct Twice;
    /// impl Strategy for Twice {
    ///     fn steps(&self) -> usize { 3 }
    ///     fn check(&self) -> Result<()> { Ok(()) }
    ///     fn encoder(&self) -> Result<Encoder> {
    ///         Ok(Encoder::Toeplitz { steps: 3, coefficients: vec![2.0] })
    ///     }
    ///     fn recursion(&self) -> Result<Recursion> {
    ///         Ok(Recursion::MovingAverage { taps: vec![0.5] })
    ///     }
    /// }
    /// assert_eq!(AnyStrategy::of(&Twice)?.class().name(), "banded-toeplitz");
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn of(strategy: &dyn Strategy) -> Result<Self> {
        strategy.check()?;
        match strategy.encoder()? {
            Encoder::Toeplitz { steps, coefficients } if coefficients.first() > Some(&0.0) => {
                of_coefficients(steps, coefficients)
            }
            Encoder::Banded { bands, rows } if rows.iter().step_by(bands).all(|&x| x > 0.0) => {
                Ok(Self::Banded(Banded::new(bands, rows)?))
            }
            other => {
                let n = other.steps();
                let most = "the entries that can be held in memory";
                between("entries of C", n.saturating_mul(n), 1, MAX_MATERIALIZED, most)?;
                Self::of_matrix(&other.to_dense())
            }
        }
    }
}

/// The matrices of a factorisation A = B C, as other libraries compute them.
///
/// ```
/// use antinoise_linear::Matrix;
/// use antinoise_mechanism::{Workload, strategy::Factors};
/// let ones = Matrix::from_fn(3, 3, |i, j| if i >= j { 1.0 } else { 0.0 });
/// let factors = Factors { b: Some(Matrix::identity(3, 3)), ..Factors::new(ones) };
/// assert!(factors.strategy(&Workload::Prefix).is_ok());
/// assert!(factors.strategy(&Workload::Decay { gamma: 0.5 }).is_err());
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// C (r x n, r >= n), of full column rank.
    pub c: Matrix,
    /// B, with one row for each query. It is only compared with A: results are decoded by the optimal decoder
    /// A C^+, whose errors are at most those of B.
    pub b: Option<Matrix>,
    /// A, with one row for each query.
    pub a: Option<Matrix>,
}

impl Factors {
    /// Creates the factors from C alone.
    pub fn new(c: Matrix) -> Self {
        Self { c, b: None, a: None }
    }

    /// Returns the strategy of C, if A and B C (where given) equal the workload.
    ///
    /// # Errors
    /// As [`AnyStrategy::of_matrix`], and when A or B C has another shape than the workload, or an entry
    /// differs from the workload's by more than 1e-5 times the magnitude of its terms.
    pub fn strategy(&self, workload: &Workload) -> Result<AnyStrategy> {
        let strategy = AnyStrategy::of_matrix(&self.c)?;
        if let Some(a) = &self.a {
            check_workload("A", a, workload, self.c.ncols(), |i, j| a[(i, j)].abs())?;
        }
        if let Some(b) = &self.b {
            if b.ncols() != self.c.nrows() {
                let must_be = format!("{}, the rows of C", self.c.nrows());
                return Err(InvalidParameter::new("columns of B", b.ncols(), must_be).into());
            }
            let rows = b.transpose().to_owned();
            let norm = |x: &[f64]| dot(x, x).sqrt();
            let size = |i: usize, j: usize| norm(rows.column(i)) * norm(self.c.column(j));
            check_workload("B C", &product(b, &self.c), workload, self.c.ncols(), size)?;
        }
        Ok(strategy)
    }
}

/// Refuses a matrix `found` that is not the workload. `size(i, j)` is the magnitude of the terms that are
/// summed in entry (i, j).
fn check_workload(
    name: &str,
    found: &Matrix,
    workload: &Workload,
    steps: usize,
    size: impl Fn(usize, usize) -> f64,
) -> Result<()> {
    let operator = Operator::new(workload, steps)?;
    let shape = (operator.queries(steps), steps);
    if (found.nrows(), found.ncols()) != shape {
        let got = format!("{} x {}", found.nrows(), found.ncols());
        let must_be = format!("{} x {}, the shape of the workload {workload}", shape.0, shape.1);
        return Err(InvalidParameter::new(format!("shape of {name}"), got, must_be).into());
    }
    for j in 0..steps {
        let unit: Vec<f64> = (0..steps).map(|i| f64::from(i == j)).collect();
        for (i, &entry) in operator.apply(&unit).iter().enumerate() {
            let is_near = (found[(i, j)] - entry).abs() <= FACTOR_TOLERANCE * size(i, j).max(entry.abs());
            if !is_near {
                let must_be = format!("{entry}, as in the workload {workload}");
                return Err(InvalidParameter::new(format!("{name}[{i}, {j}]"), found[(i, j)], must_be).into());
            }
        }
    }
    Ok(())
}

/// Returns the matrix with the rows of negative diagonal negated, which does not change C^T C.
fn with_positive_diagonal(c: &Matrix) -> antinoise_linear::Result<Matrix> {
    let n = c.ncols();
    match (0..n).find(|&j| c[(j, j)] == 0.0) {
        Some(j) => Err(antinoise_linear::Error::Dependent(j)),
        None => Ok(Matrix::from_fn(n, n, |i, j| c[(i, j)] * c[(i, i)].signum())),
    }
}

/// Returns a lower-triangular matrix in the class with the smallest noise state that represents it exactly.
fn of_lower(c: &Matrix) -> Result<AnyStrategy> {
    let n = c.ncols();
    let lowest = |j: usize| c.column(j).iter().rposition(|&x| x != 0.0).unwrap_or(j);
    let bands = (0..n).map(|j| lowest(j) - j + 1).max().unwrap_or(1);
    let is_toeplitz = (1..n).all(|j| c.column(j)[j..] == c.column(j - 1)[j - 1..n - 1]);
    if is_toeplitz {
        return of_coefficients(n, c.column(0)[..bands].to_vec());
    }
    if 2 * bands > n {
        return Ok(AnyStrategy::Dense(Dense::of_matrix(c)?));
    }
    let row = |t: usize| (0..bands).map(move |tau| if tau <= t { c[(t, t - tau)] } else { 0.0 });
    Ok(AnyStrategy::Banded(Banded::new(bands, (0..n).flat_map(row).collect())?))
}

fn of_coefficients(steps: usize, coefficients: Vec<f64>) -> Result<AnyStrategy> {
    Ok(match coefficients.len() < steps {
        true => AnyStrategy::BandedToeplitz(BandedToeplitz::new(steps, coefficients)?),
        false => AnyStrategy::Toeplitz(Toeplitz::new(steps, coefficients)?),
    })
}
