//! Tasks on all threads, where there is enough to do.

use rayon::prelude::*;

/// Operations that are done sooner than other threads are woken.
const SEQUENTIAL_BELOW_OPERATIONS: usize = 1 << 15;

/// What `of` makes of each task 0..`tasks`, in order, where all tasks together take about `operations`.
pub(crate) fn map<T: Send>(tasks: usize, operations: usize, of: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if operations <= SEQUENTIAL_BELOW_OPERATIONS {
        (0..tasks).map(of).collect()
    } else {
        (0..tasks).into_par_iter().map(of).collect()
    }
}
