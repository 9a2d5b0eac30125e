//! The matrix C in the forms that strategies have, and the entries of C^T C that sensitivity needs.

mod dense;
mod form;
mod gram;

pub use form::Encoder;
