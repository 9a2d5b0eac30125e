//! The best of several starts and of the results of solvers from them.

use crate::solution::{Solution, Status};

/// Relative difference of costs below which two values count as the same optimum.
const SAME_OPTIMUM: f64 = 1e-7;
/// Relative decrease of the cost from which on a value counts as an improvement.
const IMPROVED: f64 = 1e-12;

/// The value of least cost so far. Strategies of the classes that a class contains are considered before and
/// after every solver, so that no class loses to a class that it contains.
pub(crate) struct Best<T> {
    value: T,
    cost: f64,
    start_cost: f64,
    status: Status,
    iterations: usize,
}

impl<T> Best<T> {
    /// Creates the record with the initial value of the class and its cost.
    pub(crate) fn new(start: T, cost: f64) -> Self {
        Self { value: start, cost, start_cost: cost, status: Status::Stalled, iterations: 0 }
    }

    /// Keeps `value`, which comes from no solver, if it costs less.
    pub(crate) fn consider(&mut self, value: T, cost: f64) {
        if cost < self.cost || !self.cost.is_finite() && cost.is_finite() {
            if cost < self.cost * (1.0 - SAME_OPTIMUM) {
                self.status = Status::Stalled;
            }
            (self.value, self.cost) = (value, cost);
        }
    }

    /// Keeps `found` if it costs less. Its status is kept only if it ends at the best known cost (within
    /// `SAME_OPTIMUM`).
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

    /// The least cost so far.
    pub(crate) fn cost(&self) -> f64 {
        self.cost
    }

    /// The value with the least cost so far.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// The solution, without a certificate.
    pub(crate) fn finished(self) -> Solution<T> {
        let improved = self.cost < self.start_cost * (1.0 - IMPROVED);
        Solution { value: self.value, status: self.status, gap: None, iterations: self.iterations, improved }
    }
}
