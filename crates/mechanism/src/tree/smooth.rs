//! The smooth binary tree. The steps are those leaves of a larger tree whose labels (their binary numbers)
//! have a fixed number of ones, so that every prefix reads the same number of nodes.
//!
//! 1. The prefix sum that ends before a label y reads one node for every 1 in y: the left sibling of the node
//!    above y at that height. So it reads as many nodes as y has ones.
//! 2. A step whose label has z zeros is below z of the nodes that prefix sums read.
//! 3. In the plain tree both numbers can be log2 n. Here every label has o ones and z zeros, so that the max
//!    loss is sqrt(o z), half of that of the plain tree for large n.
//! 4. The steps have the n smallest labels, in increasing order; the last prefix ends before the next label.
//!
//! # Source
//! Andersson and Pagh, A smooth binary mechanism for efficient private continual observation, 2023
//! (monograph, Section 2.12).

use std::collections::HashMap;

use antinoise_linear::Matrix;

use super::nested::Nested;
use crate::Recursion;

/// The labels of the steps, each with `ones` ones and `zeros` zeros.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmoothLabels {
    steps: usize,
    ones: u32,
    zeros: u32,
}

/// A node that prefix sums read: its height, and its index (always even) among the nodes of that height.
type SmoothNode = (u32, u64);

impl SmoothLabels {
    /// Chooses the numbers of ones and of zeros with the smallest product that give enough labels for `steps`
    /// >= 1 steps.
    pub(crate) fn new(steps: usize) -> Self {
        let enough = |&(ones, zeros): &(u32, u32)| choose(ones + zeros, ones) > steps as u64;
        let pairs = (1..64u32).flat_map(|ones| (1..64 - ones).map(move |zeros| (ones, zeros)));
        let (ones, zeros) = pairs
            .filter(enough)
            .min_by_key(|&(ones, zeros)| (ones * zeros, ones.abs_diff(zeros), ones))
            .expect("63 digits are enough for the labels of every number of steps");
        Self { steps, ones, zeros }
    }

    /// Returns the number of nodes that every prefix sum reads.
    pub(crate) fn ones(self) -> u32 {
        self.ones
    }

    /// Returns the maximum number of nodes above a step.
    pub(crate) fn most_above(self) -> u32 {
        self.zeros
    }

    /// Returns the labels of the steps and the next one.
    fn labels(self) -> Vec<u64> {
        let mut label = (1u64 << self.ones) - 1;
        let mut all = Vec::with_capacity(self.steps + 1);
        for _ in 0..=self.steps {
            all.push(label);
            // The next larger number with the same number of ones (Gosper's algorithm).
            let lowest = label & label.wrapping_neg();
            let carried = label + lowest;
            label = carried | ((label ^ carried) / lowest) >> 2;
        }
        all
    }

    /// Returns the nodes that the prefix sum before `label` reads, from the highest down.
    fn read_by(label: u64) -> impl Iterator<Item = SmoothNode> {
        let heights = (0..u64::BITS).rev().filter(move |&height| label >> height & 1 == 1);
        heights.map(move |height| (height, (label >> height) - 1))
    }

    /// Returns whether a prefix sum that ends before some label up to `last` reads the node: whether the
    /// first label past the node is at most `last`.
    fn is_read(self, (height, place): SmoothNode, last: u64) -> bool {
        let high = place + 1;
        let Some(low_ones) = self.ones.checked_sub(high.count_ones()) else { return false };
        low_ones <= height && high << height | ((1u64 << low_ones) - 1) <= last
    }

    /// Returns the nodes above the step with this label that some prefix sum reads, from the highest down.
    fn above(self, label: u64, last: u64) -> impl Iterator<Item = SmoothNode> {
        let heights = (0..self.ones + self.zeros).rev().filter(move |&height| label >> height & 1 == 0);
        heights.map(move |height| (height, label >> height)).filter(move |&node| self.is_read(node, last))
    }

    /// Returns (C^T C)\[t, t + lag\]: the number of nodes above both steps.
    pub(crate) fn common_nodes(self, lag: usize) -> Vec<f64> {
        let labels = self.labels();
        let last = labels[self.steps];
        let of = |t: usize| {
            let (x, y) = (labels[t], labels[t + lag]);
            self.above(x, last).filter(|&(height, place)| y >> height == place).count() as f64
        };
        (0..self.steps.saturating_sub(lag)).map(of).collect()
    }

    /// The index of each node's seed: nodes are numbered in the order of their first use in a prefix sum.
    fn seeds(labels: &[u64]) -> HashMap<SmoothNode, usize> {
        let mut seeds = HashMap::new();
        for &label in &labels[1..] {
            for node in Self::read_by(label) {
                let next = seeds.len();
                seeds.entry(node).or_insert(next);
            }
        }
        seeds
    }

    /// Returns the matrix C, with one row for each node that some prefix sum reads.
    pub(crate) fn encoder(self) -> Matrix {
        let labels = self.labels();
        let seeds = Self::seeds(&labels);
        let mut c = Matrix::zeros(seeds.len(), self.steps);
        for (t, &label) in labels[..self.steps].iter().enumerate() {
            self.above(label, labels[self.steps]).for_each(|node| c[(seeds[&node], t)] = 1.0);
        }
        c
    }

    /// Returns the nodes that some prefix sum reads as nested ranges of steps, with weight 1.
    pub(crate) fn nested(self) -> Nested {
        let mut builder = NestedLabels::default();
        // The label after the last step decides which nodes are read.
        builder.add(self.ones + self.zeros, self.ones, self.steps as u64 + 1);
        builder.nested.leading(self.steps)
    }

    /// Returns the recursion of the noise N Z: the seeds of the nodes that enter the partition of the prefix
    /// at a step, minus those that leave it. That is two seeds a step on average, one of them new.
    pub(crate) fn recursion(self) -> Recursion {
        let labels = self.labels();
        let seeds = Self::seeds(&labels);
        let row = |t: usize| {
            let (now, before) = (labels[t + 1], labels[t]);
            // Nodes for digits above the highest changed digit stay in the partition. At the first step all
            // nodes enter.
            let changed = if t == 0 { u64::BITS } else { u64::BITS - (now ^ before).leading_zeros() };
            let fresh = |&(height, _): &SmoothNode| height < changed;
            let gone =
                Self::read_by(before).filter(|node| t > 0 && fresh(node)).map(|node| (seeds[&node], -1.0));
            let come = Self::read_by(now).filter(fresh).map(|node| (seeds[&node], 1.0));
            gone.chain(come).collect()
        };
        Recursion::SeedCombination { rows: (0..self.steps).map(row).collect() }
    }
}

/// The nested ranges of labels, with those that hold all labels of a height and a number of ones.
#[derive(Default)]
struct NestedLabels {
    nested: Nested,
    complete: HashMap<(u32, u32), usize>,
}

impl NestedLabels {
    /// Adds the range of the `labels` >= 1 smallest labels of `height` digits with this number of ones, and
    /// returns its index.
    fn add(&mut self, height: u32, ones: u32, labels: u64) -> usize {
        let whole = labels == choose(height, ones);
        if let Some(&known) = self.complete.get(&(height, ones)).filter(|_| whole) {
            return known;
        }
        let added = self.split(height, ones, labels);
        if whole {
            self.complete.insert((height, ones), added);
        }
        added
    }

    /// As [`NestedLabels::add`]: joins the labels whose highest digit is 0 and those where it is 1. A prefix
    /// sum that ends before one of the latter reads the node over the former.
    fn split(&mut self, height: u32, ones: u32, labels: u64) -> usize {
        let Some(below) = height.checked_sub(1) else { return self.nested.step(0.0) };
        let low = labels.min(choose(below, ones));
        let mut parts = Vec::new();
        if low > 0 {
            let range = self.add(below, ones, low);
            parts.push(if low < labels { self.nested.join(1.0, vec![range]) } else { range });
        }
        if low < labels {
            parts.push(self.add(below, ones - 1, labels - low));
        }
        self.nested.join(0.0, parts)
    }
}

/// Returns the binomial coefficient of n < 64 over k.
fn choose(n: u32, k: u32) -> u64 {
    let Some(others) = n.checked_sub(k) else { return 0 };
    let product = |product: u128, i: u32| product * u128::from(n - i) / u128::from(i + 1);
    u64::try_from((0..k.min(others)).fold(1, product)).expect("fewer than 2^64 labels of 63 digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every prefix sum is the sum of the nodes that it reads, and all labels have the same number of ones.
    #[test]
    fn prefixes_are_sums_of_nodes() {
        for steps in 1..=140 {
            let tree = SmoothLabels::new(steps);
            let labels = tree.labels();
            assert!(labels.is_sorted() && labels.iter().all(|x| x.count_ones() == tree.ones), "{steps}");
            assert!(labels[steps] < 1 << (tree.ones + tree.zeros), "{steps}");
            for t in 0..steps {
                let read: Vec<SmoothNode> = SmoothLabels::read_by(labels[t + 1]).collect();
                for (tau, label) in labels.iter().enumerate() {
                    let times = read.iter().filter(|(height, place)| label >> height == *place).count();
                    assert_eq!(times, usize::from(tau <= t), "n={steps}: step {tau} in prefix {t}");
                }
            }
        }
    }

    #[test]
    fn labels_are_enough_and_no_more() {
        let of = |steps| (SmoothLabels::new(steps).ones, SmoothLabels::new(steps).zeros);
        assert_eq!([of(1), of(2), of(5), of(6), of(19), of(20)].map(|(o, z)| o * z), [1, 2, 4, 6, 9, 10]);
        let tree = SmoothLabels::new(usize::MAX >> 6);
        assert!(tree.ones + tree.zeros < 64);
    }
}
