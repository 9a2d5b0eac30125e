//! Tasks on all threads, if there is enough to do.

use rayon::prelude::*;

/// Number of operations that one thread finishes before other threads would have been woken.
const SEQUENTIAL_BELOW_OPERATIONS: usize = 1 << 15;

/// Maps `f` over `0..tasks`, in order; in parallel if the estimated total of `operations` is worth it.
pub(crate) fn map<T: Send>(tasks: usize, operations: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if operations <= SEQUENTIAL_BELOW_OPERATIONS {
        (0..tasks).map(f).collect()
    } else {
        (0..tasks).into_par_iter().map(f).collect()
    }
}
