//! The operations implemented with faer, on views of the entries.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::lu::partial_pivoting::inverse::{inverse as inverse_of_factors, inverse_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, MatMut, MatRef, Par};

use crate::error::{Error, Result};
use crate::matrix::{Matrix, View};

/// Maximum number of rows for which one thread is faster than several.
const SEQUENTIAL_ROWS: usize = 96;

/// Returns the number of threads to use for matrices of `rows` rows.
fn threads(rows: usize) -> Par {
    if rows <= SEQUENTIAL_ROWS { Par::Seq } else { faer::get_global_parallelism() }
}

fn read(matrix: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(matrix.entries(), matrix.nrows(), matrix.ncols())
}

fn write(matrix: &mut Matrix) -> MatMut<'_, f64> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    MatMut::from_column_major_slice_mut(matrix.entries_mut(), rows, columns)
}

fn view(of: View<'_>) -> MatRef<'_, f64> {
    if of.transposed { read(of.matrix).transpose() } else { read(of.matrix) }
}

pub(crate) fn reverse_cholesky(x: &Matrix) -> Result<Matrix> {
    let (n, threads) = (x.nrows(), threads(x.nrows()));
    let mut l = Matrix::from_fn(n, n, |i, j| x[(n - 1 - i, n - 1 - j)]);
    let scratch = cholesky_in_place_scratch::<f64>(n, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    cholesky_in_place(write(&mut l), Default::default(), threads, MemStack::new(stack), Default::default())
        .map_err(|_| Error::NotPositiveDefinite(n))?;
    Ok(Matrix::from_fn(n, n, |i, j| if i >= j { l[(n - 1 - j, n - 1 - i)] } else { 0.0 }))
}

/// Replaces the upper triangle of X by the R of X = Q R, by blocked Householder reflections. Entries below
/// the diagonal are meaningless afterwards.
pub(crate) fn upper_factor(x: &mut Matrix) {
    let (rows, columns, threads) = (x.nrows(), x.ncols(), threads(x.nrows()));
    let block = recommended_block_size::<f64>(rows, columns);
    let mut reflections = Matrix::zeros(block, columns);
    let scratch = qr_in_place_scratch::<f64>(rows, columns, block, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    let stack = MemStack::new(stack);
    let found = qr_in_place(write(x), write(&mut reflections), threads, stack, Default::default());
    if found.rank < columns {
        // The factor is in echelon form: from the first dependent column on, its diagonal is 0.
        (found.rank..columns).for_each(|j| x[(j, j)] = 0.0);
    }
}

pub(crate) fn lower_inverse(c: &Matrix) -> Matrix {
    let mut inverse = Matrix::zeros(c.nrows(), c.ncols());
    invert_lower_triangular(write(&mut inverse), read(c), threads(c.nrows()));
    inverse
}

pub(crate) fn inverse(a: &Matrix) -> Matrix {
    let (n, threads) = (a.nrows(), threads(a.nrows()));
    let (mut factors, mut found) = (a.clone(), Matrix::zeros(n, n));
    let (mut forward, mut backward) = (vec![0usize; n], vec![0usize; n]);
    let scratch = lu_in_place_scratch::<usize, f64>(n, n, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch.or(inverse_scratch::<usize, f64>(n, threads)));
    let stack = MemStack::new(stack);
    let (_, rows) =
        lu_in_place(write(&mut factors), &mut forward, &mut backward, threads, stack, Default::default());
    inverse_of_factors(write(&mut found), read(&factors), read(&factors), rows, threads, stack);
    found
}

pub(crate) fn product(a: View<'_>, b: View<'_>) -> Matrix {
    let (a, b) = (view(a), view(b));
    let mut found = Matrix::zeros(a.nrows(), b.ncols());
    let rows = a.nrows().max(a.ncols()).max(b.ncols());
    matmul(write(&mut found), Accum::Replace, a, b, 1.0, threads(rows));
    found
}

pub(crate) fn symmetric_eigen(x: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let mut vectors = Matrix::zeros(x.nrows(), x.nrows());
    let values = eigenvalues(x, Some(write(&mut vectors)))?;
    Ok((values, vectors))
}

pub(crate) fn symmetric_eigenvalues(x: &Matrix) -> Result<Vec<f64>> {
    eigenvalues(x, None)
}

/// Calls faer's low-level function, which writes the vectors where the caller wants them: its wrapper would
/// force a copy as large as the matrix.
fn eigenvalues(x: &Matrix, vectors: Option<MatMut<'_, f64>>) -> Result<Vec<f64>> {
    let (n, threads) = (x.nrows(), threads(x.nrows()));
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut values = vec![0.0; n];
    let scratch = self_adjoint_evd_scratch::<f64>(n, wanted, threads, Default::default());
    self_adjoint_evd(
        read(x),
        DiagMut::from_slice_mut(&mut values),
        vectors,
        threads,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .map_err(|_| Error::NoConvergence(n))?;
    Ok(values)
}
