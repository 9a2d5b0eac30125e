//! Eight columns or terms at a time: processors work on them with one instruction.

use super::parallel;
pub(crate) use super::vector::LANES;
use super::vector::add;

/// Number of tasks, among which groups of columns are distributed in turn: fixed, so that sums do not depend
/// on the number of threads.
const TASKS: usize = 16;

/// One number for each lane.
pub(crate) type Lanes = [f64; LANES];

/// The sum over all groups of `LANES` columns of a vector of `length` numbers, in a fixed order:
/// `add_group(first, sum)` adds the group that begins at column `first`. `operations` is an estimate of the
/// operations of all groups together.
pub(crate) fn sum_over_groups(
    columns: usize,
    length: usize,
    operations: usize,
    add_group: impl Fn(usize, &mut [f64]) + Sync,
) -> Vec<f64> {
    let part = |task: usize| {
        let mut sum = vec![0.0; length];
        for first in (task * LANES..columns).step_by(TASKS * LANES) {
            add_group(first, &mut sum);
        }
        sum
    };
    let tasks = TASKS.min(columns.div_ceil(LANES));
    let mut parts = parallel::map(tasks, operations, part).into_iter();
    let mut total = parts.next().unwrap_or_else(|| vec![0.0; length]);
    parts.for_each(|part| add(&mut total, &part));
    total
}
