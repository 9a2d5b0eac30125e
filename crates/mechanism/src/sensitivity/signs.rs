//! The worst signs of scalar contributions to the steps of one pattern.

use antinoise_linear::Matrix;

/// Differences of a value below this fraction for each sign count as rounding errors. Values are larger by
/// this much, so that what is left out because of them is covered.
const ROUNDING: f64 = 1e-13;

/// Maximum number k of steps for which signs are searched, one level of recursion each.
const MAX_STEPS: usize = 1024;

/// A maximum, or an upper bound on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounded {
    pub(super) value: f64,
    pub(super) exact: bool,
}

/// The search for the maximum of u^T X u over u in {-1, 1}^k, for a positive semi-definite X (k x k): branch
/// and bound.
///
/// The problem is solved for the last step alone, then for the last two, and so on. If the signs of steps i
/// to j - 1 are chosen, and g_t is the sum over these steps s of u_s X\[s, t\], then no choice of the others
/// gives more than the value of the chosen ones, plus 2 |g_t| for each other step t, plus the maximum for
/// steps j to k - 1, which has been solved before.
pub(super) struct SignSearch<'a> {
    x: &'a Matrix,
    /// For each j, an upper bound on the maximum for steps j to k - 1.
    rest: Vec<f64>,
    best: f64,
    left: usize,
}

impl<'a> SignSearch<'a> {
    /// Creates the search, which ends with an upper bound after about `operations` operations.
    pub(super) fn new(x: &'a Matrix, operations: usize) -> Self {
        Self { x, rest: vec![0.0; x.nrows() + 1], best: 0.0, left: operations }
    }

    /// Returns how many operations have not been used.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Returns the maximum, larger by up to k 1e-13 of it, or an upper bound.
    pub(super) fn largest(&mut self) -> Bounded {
        let k = self.x.nrows();
        if k > MAX_STEPS {
            return Bounded { value: f64::INFINITY, exact: false };
        }
        for first in (0..k).rev() {
            let row = &self.x.column(first)[first + 1..];
            self.best = 0.0;
            // The sign of the first step is +, since -u gives the same.
            self.extend(first, first + 1, self.x[(first, first)], row);
            self.rest[first] = match self.left {
                0 => self.bound(first + 1, self.x[(first, first)], row),
                _ => self.best * (1.0 + self.rounding(first)),
            };
        }
        Bounded { value: self.rest[0], exact: self.left > 0 }
    }

    fn rounding(&self, first: usize) -> f64 {
        ROUNDING * (self.x.nrows() - first) as f64
    }

    /// Returns the bound for chosen signs of the steps before `next`, which have this value and this g.
    fn bound(&self, next: usize, value: f64, g: &[f64]) -> f64 {
        value + 2.0 * g.iter().map(|g| g.abs()).sum::<f64>() + self.rest[next]
    }

    /// Tries all signs of step `next` and later ones, in the problem of steps `first` and later.
    fn extend(&mut self, first: usize, next: usize, value: f64, g: &[f64]) {
        let Some((&here, later)) = g.split_first() else {
            self.best = self.best.max(value);
            return;
        };
        self.left = self.left.saturating_sub(g.len());
        if self.left == 0 || self.bound(next, value, g) <= self.best * (1.0 + self.rounding(first)) {
            return;
        }
        for sign in [1f64.copysign(here), -1f64.copysign(here)] {
            let row = &self.x.column(next)[next + 1..];
            let moved: Vec<f64> = later.iter().zip(row).map(|(g, x)| g + sign * x).collect();
            self.extend(first, next + 1, value + self.x[(next, next)] + 2.0 * sign * here, &moved);
        }
    }
}
