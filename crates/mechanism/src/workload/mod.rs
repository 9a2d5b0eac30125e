//! The workload A, whose rows are the linear queries on the gradients that are released.

mod checks;
mod definition;
mod operator;
mod queries;
mod text;

pub use definition::Workload;
pub(crate) use operator::Operator;
