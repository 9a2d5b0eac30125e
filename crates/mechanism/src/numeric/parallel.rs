//! Parallel evaluation of tasks that are worth several threads.

use rayon::prelude::*;

/// Number of operations below which one thread is faster than several.
const SEQUENTIAL_BELOW_OPERATIONS: usize = 1 << 15;

/// Returns `f(0), ..., f(tasks - 1)`, computed in parallel if the estimated total number of `operations` is
/// large.
pub(crate) fn map<T: Send>(tasks: usize, operations: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if operations <= SEQUENTIAL_BELOW_OPERATIONS {
        (0..tasks).map(f).collect()
    } else {
        (0..tasks).into_par_iter().map(f).collect()
    }
}

/// Calls `f` with each item and its index, in parallel.
pub(crate) fn update<T: Send>(items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
    items.par_iter_mut().enumerate().for_each(|(at, item)| f(at, item));
}
