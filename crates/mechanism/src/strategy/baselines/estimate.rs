//! Estimates of prefix sums from the complete nodes of a binary tree: decoders B with B C_tree = A_pre, and
//! the noise N Z for N = A_pre^-1 B.
//!
//! 1. A prefix of m steps is the sum of one subtree per binary digit of m. Each subtree is estimated from its
//!    own nodes, with weights that depend only on their depth.
//! 2. So each column of B is constant over O(log n) intervals of steps, and the column of N, its differences,
//!    has O(log n) entries.
//! 3. The last step releases the prefix m >= n of least variance in the complete tree (tree completion);
//!    nodes below which there are only steps past the last are left out.

use super::weights::Factors;
use crate::decoder::rows_by_columns;
use crate::tree::{Node, Tree};
use crate::{Recursion, Result, Workload};

/// How the sum of the steps below a node is estimated from the node and its descendants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Estimator<'a> {
    /// From the node alone.
    Dyadic,
    /// The weighted average of the subtree's levels that has the smallest variance: for a node of height h,
    /// the nodes j levels down have weight 2^-j / sum over i <= h of 2^-i, and the variance is 1 / (2 -
    /// 2^-h).
    FromBelow,
    /// The same for a tree whose heights have different weights.
    Weighted(&'a Factors),
}

impl Estimator<'_> {
    /// Returns the factor on the seed noise of a node `depth` levels below a node of height `height`.
    pub(super) fn weight(self, height: u32, depth: u32) -> f64 {
        match self {
            Self::Dyadic => f64::from(depth == 0),
            Self::Weighted(factors) => factors.at(height, depth),
            Self::FromBelow => 0.5f64.powi(depth as i32) / (2.0 - 0.5f64.powi(height as i32)),
        }
    }

    /// Returns the variance of a node's estimate. Nodes without a step below them add no noise.
    fn variance(self, node: Node) -> f64 {
        let steps = node.end - node.start();
        (0..=node.height)
            .map(|depth| {
                let nodes = steps.div_ceil(1 << (node.height - depth));
                nodes as f64 * self.weight(node.height, depth).powi(2)
            })
            .sum()
    }

    /// Returns the variance of the estimate of the prefix of `m` <= n steps: the sum over its subtrees.
    fn prefix_variance(self, m: usize) -> f64 {
        (0..usize::BITS)
            .filter(|height| m >> height & 1 == 1)
            .map(|height| self.variance(Node { height, end: 1 << height }))
            .sum()
    }

    /// Returns the prefix m >= n of least variance, which the last step releases, and its variance. It ends
    /// with a subtree that contains the last step.
    fn completion(self, tree: Tree) -> (usize, f64) {
        let variance = |node: Node| self.prefix_variance(node.start()) + self.variance(node);
        (0..=tree.height)
            .map(|height| Node { height, end: tree.steps })
            .filter(|node| node.index() % 2 == 0)
            .map(|node| ((node.index() + 1) << node.height, variance(node)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("the root's index is 0")
    }

    /// Returns the squared row norms of B. O(n log n).
    fn variances(self, tree: Tree) -> Vec<f64> {
        let whole: Vec<f64> =
            (0..=tree.height).map(|height| self.variance(Node { height, end: 1 << height })).collect();
        let of_prefix = |m: usize| -> f64 {
            whole.iter().enumerate().filter(|(height, _)| m >> height & 1 == 1).map(|(_, v)| v).sum()
        };
        let last = self.completion(tree).1;
        (1..tree.steps).map(of_prefix).chain([last]).collect()
    }

    /// Returns the column of N for a node: its (step, entry) pairs in the order of steps. `last_prefix` is
    /// the prefix that the last step releases.
    fn column(self, tree: Tree, last_prefix: usize, node: Node) -> Vec<(usize, f64)> {
        let n = tree.steps;
        // For each step, the heights of the subtrees whose estimate ends or begins to use the node; at most
        // one of either.
        let mut changes: Vec<(usize, [Option<u32>; 2])> = Vec::new();
        let mut add = |step: usize, height: u32, goes: bool| {
            if changes.last().is_none_or(|last| last.0 != step) {
                changes.push((step, [None; 2]));
            }
            let last = changes.last_mut().expect("there is one now");
            last.1[usize::from(goes)] = Some(height);
        };
        for height in node.height..=tree.height {
            let weight = self.weight(height, height - node.height);
            let above = (node.end - 1) >> height;
            if weight == 0.0 || above % 2 == 1 {
                continue;
            }
            // The prefixes that contain the ancestor at this height as a subtree.
            let prefixes = (above + 1) << height..(above + 2) << height;
            if prefixes.start < n {
                add(prefixes.start - 1, height, false);
                add(prefixes.end.min(n) - 1, height, true);
            }
            if prefixes.contains(&last_prefix) {
                add(n - 1, height, false);
            }
        }
        let entry = |[comes, goes]: [Option<u32>; 2]| match (comes, goes) {
            (Some(above), Some(below)) => self.step_up(below, above, below - node.height),
            (Some(height), None) => self.weight(height, height - node.height),
            (None, Some(height)) => -self.weight(height, height - node.height),
            (None, None) => 0.0,
        };
        let entries = changes.into_iter().map(|(step, heights)| (step, entry(heights)));
        entries.filter(|&(_, entry)| entry != 0.0).collect()
    }

    /// Returns the change of a node's weight when the estimate of a subtree of height `above` replaces that
    /// of a subtree of height `below`, whose root is `depth` levels above the node. It is computed without
    /// subtracting nearly equal weights.
    fn step_up(self, below: u32, above: u32, depth: u32) -> f64 {
        let before = self.weight(below, depth);
        match self {
            Self::Weighted(factors) => -before * factors.lost(below, above),
            _ => self.weight(above, depth + above - below) - before,
        }
    }

    /// Returns the recursion of the noise N Z, with O(n log n) terms in total.
    pub(crate) fn recursion(self, tree: Tree) -> Recursion {
        let last_prefix = self.completion(tree).0;
        let mut rows = vec![Vec::new(); tree.steps];
        for (seed, node) in tree.nodes().enumerate() {
            for (step, entry) in self.column(tree, last_prefix, node) {
                rows[step].push((seed, entry));
            }
        }
        // The last node counts as a seed even if no prefix uses it, since restarted runs have as many seeds
        // as nodes.
        let last = tree.nodes().count() - 1;
        if !rows.iter().flatten().any(|&(seed, _)| seed == last) {
            rows[tree.steps - 1].push((last, 0.0));
        }
        Recursion::SeedCombination { rows }
    }

    /// Returns the squared row norms of A N: O(n log n) for prefix sums, O(n^2) for other workloads.
    pub(crate) fn rows(self, tree: Tree, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return Ok(self.variances(tree));
        }
        rows_by_columns(&self.recursion(tree), tree.steps, workload)
    }
}
