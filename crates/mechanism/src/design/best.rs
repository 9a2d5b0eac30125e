//! Keeps the best of several candidate values and solver results.

use crate::solution::{Solution, Status};

/// Two values whose costs differ relatively by less than this count as the same optimum.
const SAME_OPTIMUM: f64 = 1e-7;
/// Minimum relative decrease of the cost that counts as an improvement.
const IMPROVED: f64 = 1e-12;

/// The value of least cost so far. Strategies of smaller classes, which the class contains, are considered
/// along with the solvers' results, so that no class does worse than a class that it contains.
pub(crate) struct Best<T> {
    value: T,
    cost: f64,
    start_cost: f64,
    status: Status,
    iterations: usize,
}

impl<T> Best<T> {
    /// Starts with a first value and its cost.
    pub(crate) fn new(start: T, cost: f64) -> Self {
        Self { value: start, cost, start_cost: cost, status: Status::Stalled, iterations: 0 }
    }

    /// Keeps `value`, which was not found by a solver, if it costs less.
    pub(crate) fn consider(&mut self, value: T, cost: f64) {
        if cost < self.cost || !self.cost.is_finite() && cost.is_finite() {
            if cost < self.cost * (1.0 - SAME_OPTIMUM) {
                self.status = Status::Stalled;
            }
            (self.value, self.cost) = (value, cost);
        }
    }

    /// Keeps `found` if it costs less, and its status if its cost is the best known, within `SAME_OPTIMUM`.
    pub(crate) fn offer(&mut self, found: Solution<T>, cost: f64) {
        self.iterations += found.iterations;
        let ends_here = cost <= self.cost * (1.0 + SAME_OPTIMUM);
        self.consider(found.value, cost);
        if ends_here && self.status != Status::Converged {
            self.status = found.status;
        }
    }

    /// Restores an earlier value that is preferred although its cost is higher.
    pub(crate) fn restore(&mut self, value: T, cost: f64) {
        (self.value, self.cost) = (value, cost);
    }

    /// Returns the least cost so far.
    pub(crate) fn cost(&self) -> f64 {
        self.cost
    }

    /// Returns the value of least cost so far.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Returns the best value as a solution without a certificate.
    pub(crate) fn finished(self) -> Solution<T> {
        let improved = self.cost < self.start_cost * (1.0 - IMPROVED);
        Solution { value: self.value, status: self.status, gap: None, iterations: self.iterations, improved }
    }
}
