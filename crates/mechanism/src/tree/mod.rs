//! The binary tree over the steps: C_tree has one row a node, 1 on the steps below it.
//!
//! The tree is the complete one with 2^H leaves, H = ceil(log2 n); nodes without a step below them are left
//! out. Nodes are numbered in postorder, so that the first steps' nodes come first:
//! r = 2 (n - 1) - popcount(n - 1) + H + 1 of them, 2n - 1 when n is a power of two.

pub(crate) mod estimate;
pub(crate) mod least_squares;
mod nodes;
pub(crate) mod smooth;
pub(crate) mod weights;

pub(crate) use nodes::Tree;
