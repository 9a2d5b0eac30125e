//! Quantiles of bucketed values, from noisy numbers of rows below the edges.
//!
//! For n values, the Q-quantile x is the ceil(Q n)-th in increasing order. Let N_j be the number of values
//! below edge e_j. Then x >= e_j if N_j < Q n, and x < e_j otherwise; since N_j increases with j, there is a
//! first edge e_J above x. The interval's lower end is the last edge such that at this edge and all earlier
//! ones the noisy N_j - Q n is below -1.96 standard deviations. This exceeds x only if it happens at e_J,
//! where the true value is at least 0: with probability at most 2.5%, whatever happens at other edges. The
//! upper end is symmetric. So the interval contains x in at least 95% of releases, without a correction for
//! the number of edges, and more often if buckets hold many more rows than the noise.

use crate::queries::interval::{Interval, QUANTILE};

/// Noisy numbers of rows of a key.
pub(crate) struct Rows<'r> {
    /// The number of rows below each edge.
    pub(crate) below: &'r [f64],
    /// The number of all rows.
    pub(crate) all: f64,
    /// The standard deviation of `all`.
    pub(crate) deviation: f64,
}

/// The quantile of `rank` and its interval; `deviations`: standard deviations of the noisy N_j - Q n. Values
/// are clipped to the first and the last edge.
///
/// If the noisy number of all rows is less than 1.96 standard deviations above 0, the interval reaches from
/// the first edge to the last.
pub(crate) fn quantile(rank: f64, edges: &[f64], rows: &Rows<'_>, deviations: &[f64]) -> Interval {
    let (first, last) = (edges[0], edges[edges.len() - 1]);
    let (mut lower, mut upper) = (first, last);
    if rows.all > QUANTILE * rows.deviation {
        let score = |j: usize| (rows.below[j] - rank * rows.all, QUANTILE * deviations[j]);
        let surely_above = |j: &usize| score(*j).0 < -score(*j).1;
        let surely_below = |j: &usize| score(*j).0 > score(*j).1;
        lower = (0..edges.len()).take_while(surely_above).last().map_or(first, |j| edges[j]);
        upper = (0..edges.len()).rev().take_while(surely_below).last().map_or(last, |j| edges[j]);
    }
    // No edge is significantly above and significantly below the quantile at the same time.
    Interval { value: interpolated(rank, edges, rows).clamp(lower, upper), lower, upper }
}

/// The point at which the non-decreasing, non-negative sequence closest to the noisy one reaches the fraction
/// `rank` of all rows, by linear interpolation within a bucket.
fn interpolated(rank: f64, edges: &[f64], rows: &Rows<'_>) -> f64 {
    let noisy: Vec<f64> = rows.below.iter().copied().chain([rows.all]).collect();
    let numbers: Vec<f64> = isotonic(&noisy).into_iter().map(|number| number.max(0.0)).collect();
    let (all, below) = (numbers[edges.len()], &numbers[..edges.len()]);
    let wanted = rank * all;
    let reached = below.partition_point(|number| *number < wanted);
    match reached {
        0 => edges[0],
        j if j == edges.len() => edges[j - 1],
        j => {
            let share = (wanted - below[j - 1]) / (below[j] - below[j - 1]);
            edges[j - 1] + (edges[j] - edges[j - 1]) * share
        }
    }
}

/// The non-decreasing sequence closest to `values` in least squares: decreasing neighbours are replaced by
/// their mean.
fn isotonic(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        let (mut sum, mut count) = (value, 1);
        while let Some(&(before, of)) = blocks.last()
            && before / of as f64 > sum / count as f64
        {
            blocks.pop();
            (sum, count) = (sum + before, count + of);
        }
        blocks.push((sum, count));
    }
    blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::buckets::{Buckets, Code};

    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The max-min formula: the maximum over beginnings of the minimum over ends of the means of blocks.
    #[test]
    fn isotonic_is_the_formula_of_means() {
        let mut state = 1;
        for round in 0..2000 {
            let values: Vec<f64> =
                (0..round % 12).map(|_| (random(&mut state) * 8.0).floor() - 3.0).collect();
            let found = isotonic(&values);
            let mean =
                |from: usize, to: usize| values[from..=to].iter().sum::<f64>() / (to - from + 1) as f64;
            for (at, found) in found.iter().enumerate() {
                let smallest =
                    |from| (at..values.len()).map(|to| mean(from, to)).fold(f64::INFINITY, f64::min);
                let wanted = (0..=at).map(smallest).fold(f64::NEG_INFINITY, f64::max);
                assert!((found - wanted).abs() < 1e-12, "{values:?}: {found} {wanted}");
            }
        }
    }

    /// Without noise the interval is the bucket of the order statistic, clipped, and contains the value.
    #[test]
    fn without_noise_a_quantile_is_in_the_bucket_of_its_order_statistic() {
        let (mut state, mut tested) = (2, 0);
        for _ in 0..5000 {
            let mut edges: Vec<f64> =
                (0..2 + (random(&mut state) * 6.0) as usize).map(|e| e as f64).collect();
            edges[0] -= random(&mut state);
            let count = 1 + (random(&mut state) * 30.0) as usize;
            let mut values: Vec<f64> = (0..count).map(|_| random(&mut state) * 9.0 - 2.0).collect();
            values.sort_by(f64::total_cmp);
            let below: Vec<f64> =
                edges.iter().map(|edge| values.partition_point(|value| value < edge) as f64).collect();
            let rows = Rows { below: &below, all: count as f64, deviation: 0.0 };
            let rank = random(&mut state).clamp(0.01, 0.99);
            // N_j - Q n is 0 only where Q n is whole.
            let at = (rank * count as f64).ceil();
            if at == rank * count as f64 {
                continue;
            }
            let (first, last) = (edges[0], edges[edges.len() - 1]);
            let truth = values[at as usize - 1].clamp(first, last);
            let told = quantile(rank, &edges, &rows, &vec![0.0; edges.len()]);
            assert!(told.lower <= truth && truth <= told.upper, "{edges:?} {values:?} {rank} {told:?}");
            assert!(told.lower <= told.value && told.value <= told.upper, "{told:?}");
            let buckets = edges.iter().filter(|edge| told.lower <= **edge && **edge <= told.upper).count();
            assert!(buckets <= 2, "{edges:?} {values:?} {rank} {told:?}");
            tested += 1;
        }
        assert!(tested > 4900, "{tested} of 5000 ranks have one order statistic");
    }

    /// For any noisy numbers: no NaN, a value in its interval, and values and both ends ordered as the ranks
    /// are.
    #[test]
    fn quantiles_are_ordered_as_their_ranks() {
        let (mut state, ranks) = (3, [0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999]);
        for _ in 0..5000 {
            let mut next = || random(&mut state);
            let count = 2 + (next() * 7.0) as usize;
            let edges: Vec<f64> = (0..count).map(|e| e as f64 * 3.0 - 5.0).collect();
            let code = if next() < 0.5 { Code::Flat } else { Code::Correlated };
            let buckets = Buckets::new(code, count + 1, 256);
            let (noise, size) = (256.0 * next() * 10.0, 10f64.powf(next() * 3.0));
            let cells = (0..=count).map(|_| ((next() * size - 2.0 + 20.0 * (next() - 0.5)) * 256.0) as i64);
            let below = buckets.below(&cells.collect::<Vec<_>>());
            let deviation = noise * buckets.deviation((0, count + 1));
            let rows = Rows { below: &below[..count], all: below[count], deviation };
            let told = ranks.map(|rank| {
                let of_edge = |edge| noise * buckets.rank_deviation(edge, rank, count + 1);
                quantile(rank, &edges, &rows, &(1..=count).map(of_edge).collect::<Vec<_>>())
            });
            for Interval { value, lower, upper } in told {
                assert!(edges[0] <= lower && lower <= value && value <= upper, "{told:?}");
                assert!(upper <= edges[count - 1], "{told:?}");
            }
            for pair in told.windows(2) {
                assert!(pair[0].lower <= pair[1].lower && pair[0].value <= pair[1].value, "{told:?}");
                assert!(pair[0].upper <= pair[1].upper, "{told:?}");
            }
        }
    }
}
