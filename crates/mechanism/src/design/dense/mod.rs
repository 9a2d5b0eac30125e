//! Minimise ||A C^-1|| sens(C, Pi) over all C, with a certified lower bound.
//!
//! 1. In X = C^T C the problem is convex.
//! 2. Its dual has few variables, is smooth if multipliers are written as squares, and each of its values is
//!    a lower bound on the squared loss.
//! 3. Each design ascends the dual by L-BFGS, maps the multipliers to a feasible X, and stops at a small
//!    relative gap between the two. O(n^3) time an iteration and about ten n x n matrices of memory.
//!
//! | file | schemas |
//! |---|---|
//! | `disjoint` | single and cyclic, any workload, RMS or max |
//! | `newton` | the same for the RMS loss, where L-BFGS is slow: momentum with schedules |
//! | `mirrored` | single, max loss, Toeplitz workloads: half the work |
//! | `one_pattern` | full batch |
//! | `overlapping` | listed patterns that share steps, small n |
//! | `primal` | single and cyclic, if the dual is flat: over C itself, with the bounds of its multipliers |
//! | `separated` | min-sep: over C itself, with an upper bound on the sensitivity |
//! | `cuts` | min-sep, up to 256 steps: lists of patterns that grow, with a lower bound |

mod blocks;
mod certified;
mod class;
mod cuts;
mod disjoint;
mod mirrored;
mod newton;
mod one_pattern;
mod overlapping;
mod primal;
mod queries;
#[cfg(test)]
mod schedules;
mod separated;
mod settings;
mod solve;
mod spectrum;
#[cfg(test)]
mod tests;
