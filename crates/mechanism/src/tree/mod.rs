//! The binary tree over the steps: C_tree has one row a node, 1 on the steps below it.
//!
//! The tree is the complete one with 2^H leaves, H = ceil(log2 n); nodes without a step below them are left
//! out. Nodes are numbered in postorder, so that the first steps' nodes come first:
//! r = 2 (n - 1) - popcount(n - 1) + H + 1 of them, 2n - 1 when n is a power of two.

pub(crate) mod estimate;
pub(crate) mod least_squares;

use antinoise_linear::Mat;

/// The tree over n steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    pub(crate) steps: usize,
    /// H: the root's height; leaves have height 0.
    pub(crate) height: u32,
}

/// A node, by its height and the end of the steps below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) height: u32,
    /// One past the last step below it.
    pub(crate) end: usize,
}

impl Node {
    /// Its place among the nodes of its height, from the left.
    pub(crate) fn index(self) -> usize {
        (self.end - 1) >> self.height
    }

    /// The first step below it.
    pub(crate) fn start(self) -> usize {
        self.index() << self.height
    }
}

impl Tree {
    /// The tree over `steps` >= 1 steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps, height: steps.next_power_of_two().trailing_zeros() }
    }

    /// Every node that has a step below it, in postorder.
    pub(crate) fn nodes(self) -> impl Iterator<Item = Node> {
        (1..=self.steps).flat_map(move |end| {
            // Nodes that reach past the last step are complete with it.
            let highest = if end == self.steps { self.height } else { end.trailing_zeros() };
            (0..=highest).map(move |height| Node { height, end })
        })
    }

    /// (C^T C)\[t, tau\]: the number of nodes above both steps.
    pub(crate) fn common_nodes(self, t: usize, tau: usize) -> u32 {
        self.height + 1 - (usize::BITS - (t ^ tau).leading_zeros())
    }

    /// C_tree (r x n) written out.
    pub(crate) fn encoder(self) -> Mat<f64> {
        let nodes: Vec<Node> = self.nodes().collect();
        Mat::from_fn(nodes.len(), self.steps, |row, step| {
            f64::from((nodes[row].start()..nodes[row].end).contains(&step))
        })
    }
}
