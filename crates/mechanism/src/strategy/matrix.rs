//! Any C as a strategy: square or with more rows than columns, triangular or not.
//!
//! 1. The best decoder of A for C is B = A C^+, whose noise is A C^+ Z. C^+ Z has the covariance (C^T C)^-1.
//! 2. The lower-triangular C' with C'^T C' = C^T C therefore has the noise C'^-1 Z of the same law, the same
//!    errors, and the same sensitivity under every schema.
//! 3. Because C' is lower triangular, the claim holds for gradients that depend on earlier releases.
//!
//! Sensitivity, errors and noise are computed from C' itself, so that rounding of the decomposition moves
//! none of them apart.
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

/// Relative difference of entries of B C and A that counts as rounding: files may hold single precision.
const FACTOR_TOLERANCE: f64 = 1e-5;

impl AnyStrategy {
    /// Returns the strategy of a matrix C (r x n, r >= n) of full column rank: the lower-triangular C' with
    /// positive diagonal and C'^T C' = C^T C. A lower-triangular C is kept to the last bit, but for the
    /// signs of its rows.
    ///
    /// The class is the one of the least noise state that holds C' exactly: Toeplitz coefficients, bands, or
    /// every entry. O(r n^2) time for a C that is not lower triangular.
    ///
    /// # Errors
    /// When C has no column, more than 10^8 entries, or fewer rows than columns, an entry is not finite, or a
    /// column is a combination of later ones.
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
            let must_be = format!(
                "at least {n}, the number of columns: with fewer, some change of the gradients moves no row of \
                 C G, and no noise C^-1 Z exists"
            );
            return Err(InvalidParameter::new("rows of C", r, must_be).into());
        }
        let entries = (0..n).flat_map(|j| (0..r).map(move |i| (i, j)));
        if let Some((i, j)) = entries.clone().find(|&at| !c[at].is_finite()) {
            return Err(InvalidParameter::new(format!("C[{i}, {j}]"), c[(i, j)], "a finite number").into());
        }
        let is_lower = r == n && entries.into_iter().all(|(i, j)| i >= j || c[(i, j)] == 0.0);
        let found = if is_lower { with_positive_diagonal(c) } else { lower_factor(c) };
        of_lower(&found.map_err(|error| {
            let must_be = "of full column rank: else no noise C^-1 Z exists";
            InvalidParameter::new("C", format!("a matrix in which {error}"), must_be)
        })?)
    }

    /// Returns the strategy of any implementation of [`Strategy`], in a form that plans and files hold: by
    /// its coefficients if it is Toeplitz, by its bands if it is banded, else by its matrix, as
    /// [`AnyStrategy::of_matrix`]. Its noise follows from C alone.
    ///
    /// # Errors
    /// When it is not valid, or as [`AnyStrategy::of_matrix`].
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

/// The matrices of a factorisation A = B C, as other libraries give them. C is the strategy.
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
    /// B, one row for each query. It is only compared with A: queries are decoded by the best decoder A C^+,
    /// whose errors are at most those of B.
    pub b: Option<Matrix>,
    /// A, one row for each query.
    pub a: Option<Matrix>,
}

impl Factors {
    /// The strategy C alone.
    pub fn new(c: Matrix) -> Self {
        Self { c, b: None, a: None }
    }

    /// Returns the strategy of C, after a check that A and B C are the workload.
    ///
    /// # Errors
    /// As [`AnyStrategy::of_matrix`], and when A or B C has another shape than the workload, or an entry of
    /// it differs by more than 1e-5 of the magnitude of its terms.
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

/// Refuses a matrix `found` that is not the workload; `size` is the magnitude of the terms of an entry.
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
                let must_be = format!("{entry}, as the workload {workload} has it");
                return Err(InvalidParameter::new(format!("{name}[{i}, {j}]"), found[(i, j)], must_be).into());
            }
        }
    }
    Ok(())
}

/// Returns the matrix with the rows of negative diagonal times -1, which leaves C^T C as it is.
fn with_positive_diagonal(c: &Matrix) -> antinoise_linear::Result<Matrix> {
    let n = c.ncols();
    match (0..n).find(|&j| c[(j, j)] == 0.0) {
        Some(j) => Err(antinoise_linear::Error::Dependent(j)),
        None => Ok(Matrix::from_fn(n, n, |i, j| c[(i, j)] * c[(i, i)].signum())),
    }
}

/// Returns the class of the least noise state that holds a lower-triangular matrix exactly.
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
