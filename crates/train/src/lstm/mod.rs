//! A character model for users: an LSTM, forward and backward by hand.
//!
//! It is written for one small model on many small users: parameters are one flat vector, a user's sequences go through it
//! side by side, every product is a small one on one thread, and what a pass needs is allocated once a thread. Threads share
//! users, not products.

mod cells;
mod pass;
mod product;
mod scalar;
mod shape;
#[cfg(test)]
mod tests;
mod users;

pub use pass::Memory;
pub use shape::Lstm;
pub use users::{Foretold, Writers};
