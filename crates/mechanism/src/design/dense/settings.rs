//! Stopping rules of dense designs.

use crate::Participation;
use crate::problem::{Objective, Problem};

/// Number of steps up to which an iteration takes only seconds.
const SHORT_RUN: usize = 4096;
/// Maximum of n^3 times iterations: 49 iterations for 8192 steps, each of which takes 45 seconds on two
/// cores.
const MAX_WORK: u64 = 27_000_000_000_000;
/// Minimum of `max_iterations`: enough for a gap of a few percent.
const MIN_ITERATIONS: u64 = 10;

/// Gap above which a second solver continues where the first one ended. Below it, most of the gap is
/// rounding: condition numbers of A up to 1e7, as of momentum 0.95 on 512 steps, are squared.
const WORTH_MORE: f64 = 1e-6;

/// The stopping rules of a dense design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DenseSettings {
    /// Relative gap of the squared loss, (value - bound) / bound, at which the design stops. Default 1e-8 for
    /// RMS loss with a single participation (1e-7 over more than 4096 steps, where each digit takes minutes),
    /// else 1e-5.
    pub(crate) gap: f64,
    /// Maximum number of iterations. Default 300, and fewer above 4481 steps: about an hour on two cores.
    pub(crate) max_iterations: usize,
}

impl DenseSettings {
    /// Returns the defaults for a problem.
    pub(crate) fn of(problem: &Problem) -> Self {
        let easy = problem.objective == Objective::Rms && problem.participation == Participation::Single;
        let gap = match easy {
            true if problem.steps <= SHORT_RUN => 1e-8,
            true => 1e-7,
            false => 1e-5,
        };
        let cubed = (problem.steps as u64).saturating_pow(3).max(1);
        Self { gap, max_iterations: (MAX_WORK / cubed).clamp(MIN_ITERATIONS, 300) as usize }
    }
    /// Returns the gap at which no other solver is tried.
    pub(crate) fn enough(&self) -> f64 {
        self.gap.max(WORTH_MORE)
    }
}
