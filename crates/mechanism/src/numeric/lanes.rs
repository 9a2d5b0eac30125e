//! Groups of eight columns or terms, which vector instructions process together.

use super::parallel;
pub(crate) use super::vector::LANES;
use super::vector::add;

/// Number of parallel tasks, to which groups of columns are assigned in turn. It is fixed so that rounding
/// does not depend on the number of threads.
const TASKS: usize = 16;

/// One number for each lane.
pub(crate) type Lanes = [f64; LANES];

/// Returns the sum of a vector of `length` numbers over all groups of `LANES` columns, in a fixed order.
/// `add_group(first, sum)` adds the vector of the group that begins at column `first`. `operations` is an
/// estimate of the total number of operations.
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
