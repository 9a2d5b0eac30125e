//! The optimal decoder of C = C_tree: products with C^+ = X^-1 C^T for X = C^T C, without the matrix X.
//!
//! 1. For the steps below a node v, X_v = blockdiag(X_left, X_right) + 1 1^T.
//! 2. Let u_v = X_v^-1 1 and s_v = 1^T u_v. They are computed from the leaves up by the Sherman-Morrison
//!    formula: s_v = s / (1 + s) with s = s_left + s_right, and u_v is (u_left, u_right) divided by 1 + s.

use crate::decoder::sum_over_columns;
use crate::tree::{Node, Tree};
use crate::{Result, Workload};

/// The optimal decoder, represented by the s_v of every node: O(n) numbers.
pub(crate) struct LeastSquares {
    tree: Tree,
    /// The numbers s_v, as s\[height\]\[index\] of the node v.
    s: Vec<Vec<f64>>,
}

impl LeastSquares {
    pub(crate) fn new(tree: Tree) -> Self {
        let mut s = vec![vec![1.0; tree.steps]];
        for height in 1..=tree.height as usize {
            let pairs = s[height - 1].chunks(2).map(|pair| pair.iter().sum::<f64>());
            s.push(pairs.map(|s| s / (1.0 + s)).collect());
        }
        Self { tree, s }
    }

    /// Returns u\[height\]\[step\], the entry for the step of u_v, where v is the node of that height above
    /// the step: O(n log n) numbers.
    fn u(&self) -> Vec<Vec<f64>> {
        let mut u = vec![vec![1.0; self.tree.steps]];
        for (height, s) in self.s.iter().enumerate().skip(1) {
            // 1 / (1 + s_left + s_right) is 1 - s of the node.
            u.push(u[height - 1].iter().enumerate().map(|(t, u)| u * (1.0 - s[t >> height])).collect());
        }
        u
    }

    /// Returns the squared row norms of A_pre C^+: a^T X^-1 a for the indicators a of the prefixes. O(n log
    /// n).
    ///
    /// They are computed from the leaves up. Let p = 1^T X_v^-1 a and q = a^T X_v^-1 a, for a restricted to
    /// the steps below v. If the prefix ends in the right half, s_left is added to both; then q is reduced by
    /// p^2 / (1 + s), and p is divided by 1 + s.
    fn prefix_variances(&self) -> Vec<f64> {
        let mut p = vec![1.0; self.tree.steps];
        let mut q = p.clone();
        for height in 1..=self.tree.height as usize {
            let below = &self.s[height - 1];
            for t in 0..self.tree.steps {
                let child = t >> (height - 1);
                let left = if child % 2 == 1 { below[child - 1] } else { 0.0 };
                // 1 / (1 + s_left + s_right).
                let shrink = 1.0 - self.s[height][child / 2];
                let sum = p[t] + left;
                q[t] += left - sum * sum * shrink;
                p[t] = sum * shrink;
            }
        }
        q
    }

    /// Returns the column of C^+ for a node: X^-1 times the indicator of the steps below the node. O(n).
    fn column(&self, u: &[Vec<f64>], node: Node) -> Vec<f64> {
        let mut y = vec![0.0; self.tree.steps];
        let own = node.start()..node.end;
        y[own.clone()].copy_from_slice(&u[node.height as usize][own]);
        let mut sum = self.s[node.height as usize][node.index()];
        for height in node.height + 1..=self.tree.height {
            let index = (node.end - 1) >> height;
            let steps = index << height..((index + 1) << height).min(self.tree.steps);
            let u = &u[height as usize];
            for t in steps {
                y[t] -= sum * u[t];
            }
            sum -= sum * self.s[height as usize][index];
        }
        y
    }

    /// Returns the squared row norms of A C^+: O(n log n) for prefix sums, O(n^2) time and O(n log n) memory
    /// otherwise.
    pub(crate) fn rows(&self, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return Ok(self.prefix_variances());
        }
        let nodes: Vec<Node> = self.tree.nodes().collect();
        let u = self.u();
        sum_over_columns(nodes.len(), self.tree.steps, workload, |_, seed| self.column(&u, nodes[seed]))
    }
}
