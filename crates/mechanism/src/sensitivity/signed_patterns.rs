//! The worst pattern under min-sep and the worst signs of scalar contributions to its steps.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use antinoise_linear::Matrix;

use super::general::one_more;
use super::signs::Bounded;
use crate::Separation;

/// Differences of a value below this fraction count as rounding errors. The maximum is returned larger by
/// this much, so that what is left out because of them is covered.
const ROUNDING: f64 = 1e-12;
/// Operations that a candidate counts for, since it takes memory.
const PER_CANDIDATE: usize = 256;

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
/// 0, any two at least b apart. X (n x n) is positive semi-definite.
pub(super) struct PatternSearch<'a> {
    pub(super) x: &'a Matrix,
    pub(super) separation: Separation,
    /// For each number l of participations from 0 on, and each step t, 2 times an upper bound on the sum of
    /// |X\[t, tau\]| over the steps of l later participations.
    pub(super) reach: Vec<Vec<f64>>,
}

impl PatternSearch<'_> {
    /// Returns the maximum, larger by up to 1e-12 of it, or an upper bound after about `operations`
    /// operations: the candidate of the largest bound is continued by each possible step and sign, until no
    /// bound exceeds the largest value.
    pub(super) fn largest(&self, operations: usize) -> Bounded {
        let mut left = operations;
        let mut best = 0.0;
        let mut open = BinaryHeap::from([Candidate { bound: f64::INFINITY, value: 0.0, steps: Vec::new() }]);
        while let Some(candidate) = open.pop() {
            let reached = best * (1.0 + ROUNDING);
            if candidate.bound <= reached {
                break;
            }
            if left == 0 {
                return Bounded { value: candidate.bound, exact: false };
            }
            let mut used = self.x.nrows() * (self.separation.max_participations + 1);
            for next in self.continued(&candidate) {
                best = next.value.max(best);
                if next.bound > reached {
                    used += PER_CANDIDATE;
                    open.push(next);
                }
            }
            left = left.saturating_sub(used);
        }
        Bounded { value: best * (1.0 + ROUNDING), exact: true }
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
        let signs: &[f64] = if candidate.steps.is_empty() { &[1.0] } else { &[1.0, -1.0] };
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
