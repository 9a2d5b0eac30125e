//! The nodes of the tree.

use antinoise_linear::Matrix;

/// The tree over n steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    pub(crate) steps: usize,
    /// Height H of the root; leaves have height 0.
    pub(crate) height: u32,
}

/// A node, identified by its height and the end of the range of steps below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) height: u32,
    /// One past the last step below the node.
    pub(crate) end: usize,
}

impl Node {
    /// Returns the index of the node among the nodes of the same height, from the left.
    pub(crate) fn index(self) -> usize {
        (self.end - 1) >> self.height
    }

    /// Returns the first step below the node.
    pub(crate) fn start(self) -> usize {
        self.index() << self.height
    }
}

impl Tree {
    /// Creates the tree over `steps` >= 1 steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps, height: steps.next_power_of_two().trailing_zeros() }
    }

    /// Returns all nodes that have a step below them, in postorder.
    pub(crate) fn nodes(self) -> impl Iterator<Item = Node> {
        (1..=self.steps).flat_map(move |end| {
            // Nodes that extend past the last step count as complete at the last step.
            let highest = if end == self.steps { self.height } else { end.trailing_zeros() };
            (0..=highest).map(move |height| Node { height, end })
        })
    }

    /// Returns a weight of 1 for each height.
    pub(crate) fn equal_weights(self) -> Vec<f64> {
        vec![1.0; self.height as usize + 1]
    }

    /// Returns the height of the lowest node that is above both steps.
    pub(crate) fn meeting_height(t: usize, tau: usize) -> usize {
        (usize::BITS - (t ^ tau).leading_zeros()) as usize
    }

    /// Returns (C^T C)\[t, tau\] as a function of [`Tree::meeting_height`] of the steps: the sum of the
    /// squared weights of all nodes above both.
    pub(crate) fn squares_from(self, weights: &[f64]) -> Vec<f64> {
        let mut sums: Vec<f64> = weights.iter().map(|w| w * w).collect();
        for height in (1..sums.len()).rev() {
            sums[height - 1] += sums[height];
        }
        sums
    }

    /// Returns the matrix C_tree (r x n) for a weight per height.
    pub(crate) fn encoder(self, weights: &[f64]) -> Matrix {
        let nodes: Vec<Node> = self.nodes().collect();
        Matrix::from_fn(nodes.len(), self.steps, |row, step| {
            let node = nodes[row];
            if (node.start()..node.end).contains(&step) { weights[node.height as usize] } else { 0.0 }
        })
    }
}
