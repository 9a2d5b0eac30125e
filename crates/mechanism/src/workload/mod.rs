//! The workload A, whose rows are the linear queries on the gradients that are released.

mod checks;
mod definition;
mod last_iterate;
mod operator;
mod queries;
mod text;

pub use definition::Workload;
pub(crate) use last_iterate::{ConstantRate, LastIterate};
pub(crate) use operator::Operator;
