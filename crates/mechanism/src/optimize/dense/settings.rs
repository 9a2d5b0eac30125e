//! When a dense design stops.

use crate::Participation;
use crate::problem::{Objective, Problem};

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The largest relative gap of the squared loss, (value - bound) / bound. Default 1e-8 for RMS loss with a
    /// single participation, else 1e-5.
    pub gap: f64,
    /// Most iterations. Default 300.
    pub max_iterations: usize,
}

impl Settings {
    /// The defaults for a problem.
    pub fn of(problem: &Problem) -> Self {
        let easy = problem.objective == Objective::Rms && problem.participation == Participation::Single;
        Self { gap: if easy { 1e-8 } else { 1e-5 }, max_iterations: 300 }
    }
}
