//! A character-level LSTM for users, with handwritten forward and backward passes.
//!
//! Designed for one small model on many small users: parameters are one flat vector, a user's sequences are
//! processed together, every product is small and runs on one thread, and the memory of a pass is allocated
//! once per thread. Threads share users, not products.

mod cells;
mod pass;
mod product;
mod saved;
mod scalar;
mod shape;
#[cfg(test)]
mod tests;
mod users;

pub use pass::Workspace;
pub use saved::SavedLstm;
pub use shape::Lstm;
pub use users::{TextEvaluation, UserTexts};
