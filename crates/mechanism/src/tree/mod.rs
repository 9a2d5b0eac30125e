//! The binary tree over n steps. C_tree has one row for each node, with 1 for the steps below the node.
//!
//! It is the complete tree with 2^H leaves, H = ceil(log2 n), without the nodes that have no step below them.
//! Nodes are numbered in postorder, so that nodes of earlier steps come first. There are 2 (n - 1) -
//! popcount(n - 1) + H + 1 nodes, which is 2n - 1 if n is a power of two.

mod nested;
mod nodes;
pub(crate) mod smooth;

pub(crate) use nested::{Nested, Range};
pub(crate) use nodes::{Node, Tree};
