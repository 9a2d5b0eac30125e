//! Norms of the decoder B = A C^-1: in general, for banded C, and for long runs in which its rows converge.

mod banded;
mod buffers;
mod norms;
pub(crate) mod steady_state;

pub(crate) use banded::BandedErrors;
pub(crate) use buffers::{BufferErrors, BufferGradient, Buffers};
pub use norms::ErrorNorms;
pub(crate) use norms::{
    error_of_matrix, error_of_toeplitz, finite, rows_by_columns, rows_of_inverse, rows_of_listed,
    rows_of_toeplitz, running_squares, sum_over_columns,
};
