//! The worst pattern under min-sep, with the worst signs of contributions to its steps or without signs.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use antinoise_input::larger;
use antinoise_linear::Matrix;

use crate::Separation;

/// Differences of a value below this fraction count as rounding errors. The maximum is returned larger by
/// this much, so that what is left out because of them is covered.
const ROUNDING: f64 = 1e-12;
/// Operations that a candidate counts for, since it takes memory.
const PER_CANDIDATE: usize = 256;

/// Returns M\[t\] = max(w_t + `fewer`\[t + b\], M\[t + 1\]), the largest effect of participations from step t
/// on, if the first one adds w_t and the others have the effect `fewer`. Both are 0 for steps past the end.
pub(super) fn one_more(fewer: &[f64], b: usize, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut best = vec![0.0; fewer.len()];
    for t in (0..fewer.len() - b).rev() {
        best[t] = larger(weight(t) + fewer[t + b], best[t + 1]);
    }
    best
}

/// The first steps of a pattern with their signs, the squared effect u^T X u of these, and an upper bound on
/// that of all patterns that continue them.
#[derive(Debug, Clone)]
struct Candidate {
    bound: f64,
    value: f64,
    steps: Vec<(usize, f64)>,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        // Among equal bounds, the longest first.
        self.bound.total_cmp(&other.bound).then(self.steps.len().cmp(&other.steps.len()))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// The search for the maximum of u^T X u over vectors u with entries -1, 0 and 1, of which at most k are not
/// 0, any two at least b apart. X (n x n) is symmetric.
pub(crate) struct PatternSearch<'a> {
    x: Cow<'a, Matrix>,
    separation: Separation,
    /// Whether u has entries of -1. The maximum has none if no entry of X is negative.
    signed: bool,
    /// For each number l of participations from 0 on, and each step t, 2 times an upper bound on the sum of
    /// |X\[t, tau\]| over the steps of l later participations.
    reach: Vec<Vec<f64>>,
}

/// A maximum, or an upper bound on it.
pub(crate) struct Worst {
    /// The maximum, larger by up to 1e-12 of it, or an upper bound.
    pub(crate) value: f64,
    pub(crate) exact: bool,
    /// The steps of the largest value that was found; empty if none is above the floor.
    pub(crate) steps: Vec<usize>,
    /// The number of operations that were used.
    pub(crate) operations: usize,
}

impl<'a> PatternSearch<'a> {
    /// The search over patterns and signs.
    pub(crate) fn signed(x: &'a Matrix, separation: Separation) -> Self {
        Self { x: Cow::Borrowed(x), separation, signed: true, reach: reach(x, separation) }
    }

    /// The search over patterns for the largest sum of |X\[t, tau\]|.
    pub(crate) fn of_magnitudes(x: &Matrix, separation: Separation) -> Self {
        let magnitudes = Matrix::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)].abs());
        Self { x: Cow::Owned(magnitudes), separation, signed: false, reach: reach(x, separation) }
    }

    /// Returns the maximum over all patterns, or an upper bound after about `operations` operations.
    pub(crate) fn largest(&self, operations: usize) -> Worst {
        let none = Candidate { bound: f64::INFINITY, value: 0.0, steps: Vec::new() };
        self.search(none, 0.0, operations)
    }

    /// Returns the maximum over patterns with this first step, or an upper bound after about `operations`
    /// operations. Values up to `floor` count as equal to it.
    pub(crate) fn largest_from(&self, first: usize, floor: f64, operations: usize) -> Worst {
        let value = self.x[(first, first)];
        let alone = Candidate { bound: f64::INFINITY, value, steps: vec![(first, 1.0)] };
        self.search(alone, floor, operations)
    }

    /// The candidate of the largest bound is continued by each possible step and sign, until no bound exceeds
    /// the largest value.
    fn search(&self, start: Candidate, floor: f64, operations: usize) -> Worst {
        let (mut left, mut best, mut steps) = (operations, floor, Vec::new());
        if start.value > best {
            (best, steps) = (start.value, start.steps.clone());
        }
        let mut open = BinaryHeap::from([start]);
        let unsigned = |steps: Vec<(usize, f64)>| steps.into_iter().map(|(t, _)| t).collect();
        while let Some(candidate) = open.pop() {
            let reached = best * (1.0 + ROUNDING);
            if candidate.bound <= reached {
                break;
            }
            if left == 0 {
                return Worst { value: candidate.bound, exact: false, steps: unsigned(steps), operations };
            }
            let mut used = self.x.nrows() * (self.separation.max_participations + 1);
            for next in self.continued(&candidate) {
                if next.value > best {
                    (best, steps) = (next.value, next.steps.clone());
                }
                if next.bound > reached {
                    used += PER_CANDIDATE;
                    open.push(next);
                }
            }
            left = left.saturating_sub(used);
        }
        let (value, operations) = (best * (1.0 + ROUNDING), operations - left);
        Worst { value, exact: true, steps: unsigned(steps), operations }
    }

    /// Returns the candidates with one more step. With g_t the sum over steps s of u_s X\[s, t\], a step t
    /// with sign u adds X\[t, t\] + 2 u g_t, and every later one at most X\[t, t\] + 2 |g_t| + its reach.
    fn continued(&self, candidate: &Candidate) -> Vec<Candidate> {
        let Separation { min_sep: b, max_participations } = self.separation;
        let (n, k) = (self.x.nrows(), max_participations - candidate.steps.len());
        let start = candidate.steps.last().map_or(0, |(last, _)| last + b);
        if k == 0 || start >= n {
            return Vec::new();
        }
        let g = |t: usize| candidate.steps.iter().map(|&(s, u)| u * self.x[(s, t)]).sum();
        let g: Vec<f64> = (start..n).map(g).collect();
        let added = |t: usize| self.x[(start + t, start + t)] + 2.0 * g[t].abs();
        let mut fewer = vec![0.0; n - start + b];
        for l in 0..k - 1 {
            fewer = one_more(&fewer, b, |t| added(t) + self.reach[l][start + t]);
        }
        let signs: &[f64] = if self.signed && !candidate.steps.is_empty() { &[1.0, -1.0] } else { &[1.0] };
        let with = |t: usize, sign: f64| {
            let value = candidate.value + self.x[(start + t, start + t)] + 2.0 * sign * g[t];
            let bound = (value + self.reach[k - 1][start + t] + fewer[t + b]).min(candidate.bound);
            let steps = candidate.steps.iter().copied().chain([(start + t, sign)]).collect();
            Candidate { bound, value, steps }
        };
        (0..n - start)
            .flat_map(|t| signs.iter().map(move |&sign| (t, sign)))
            .map(|(t, u)| with(t, u))
            .collect()
    }
}

/// Twice the sum of the largest |X\[t, tau\]| of l later participations, the j-th at least j b steps after t:
/// at index \[l\]\[t\].
fn reach(x: &Matrix, Separation { min_sep: b, max_participations: k }: Separation) -> Vec<Vec<f64>> {
    let n = x.nrows();
    let mut reach = vec![vec![0.0; n]; k];
    for t in 0..n {
        let mut largest = 0.0;
        let mut of_later = vec![0.0; k];
        for tau in (t + b..n).rev() {
            largest = larger(largest, x[(tau, t)].abs());
            if (tau - t).is_multiple_of(b) && (tau - t) / b < k {
                of_later[(tau - t) / b] = largest;
            }
        }
        let mut sum = 0.0;
        for (reach, largest) in reach.iter_mut().zip(of_later) {
            sum += 2.0 * largest;
            reach[t] = sum;
        }
    }
    reach
}
