//! Sums of seeds N Z, rewritten with one fresh seed per step. N Z has the same distribution as L Z, for the
//! lower-triangular L with L L^T = N N^T.
//!
//! 1. If all later rows of N use the seeds that are new at step t together and in the same proportions as row
//!    t, these seeds can be merged into one. Then L is as sparse as N (trees).
//! 2. Otherwise L is the dense Cholesky factor of N N^T.

use std::collections::{BTreeMap, BTreeSet};

use antinoise_input::{InvalidParameter, at_least, between};

use crate::Recursion;
use crate::circulant::circulant_entry;
use crate::numeric::limits::MAX_STORED_DENSE;
use crate::numeric::vector::dot;

type Row = Vec<(usize, f64)>;

/// A row is treated as a linear combination of earlier rows if its noise, given that of earlier rows, has
/// less than this fraction of its variance.
const DEPENDENT_BELOW: f64 = 1e-12;

impl Recursion {
    /// Returns a recursion whose noise over `steps` steps has the same distribution, and in which step t is
    /// the first to use seed t, with a non-zero weight. A sum of seeds N Z becomes L Z, where L L^T = N N^T
    /// and L is lower triangular. Recursions that are not sums of seeds are returned unchanged.
    ///
    /// If N C = I, then C' = L^-1 has sens(C', Pi) <= sens(C, Pi): N N^T - (C^T C)^-1 is positive
    /// semi-definite, so that ||C' G|| <= ||C G|| for every G.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// let two_at_once = Recursion::SeedCombination { rows: vec![vec![(0, 3.0), (1, 4.0)], vec![(2, 1.0)]] };
    /// let rows = vec![vec![(0, 5.0)], vec![(1, 1.0)]];
    /// assert_eq!(two_at_once.with_one_seed_per_step(2)?, Recursion::SeedCombination { rows });
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer rows than steps, a row is a linear combination of earlier rows, or L is dense and
    /// has too many steps.
    pub fn with_one_seed_per_step(&self, steps: usize) -> crate::Result<Self> {
        Ok(match self {
            Self::SeedCombination { rows } => Self::SeedCombination { rows: lower_triangular(rows, steps)? },
            Self::Circulant { root } => {
                between("steps", steps, 1, MAX_STORED_DENSE, MAX_FACTORED)?;
                let row =
                    |t: usize| (0..root.len()).map(|seed| (seed, circulant_entry(root, t, seed))).collect();
                Self::SeedCombination {
                    rows: lower_triangular(&(0..steps).map(row).collect::<Vec<Row>>(), steps)?,
                }
            }
            Self::Scaled { inner, factors } => Self::Scaled {
                inner: Box::new(inner.with_one_seed_per_step(steps)?),
                factors: factors.clone(),
            },
            Self::Restarted { inner, period } => {
                let run = steps.min(at_least("period", *period, 1)?);
                Self::Restarted { inner: Box::new(inner.with_one_seed_per_step(run)?), period: *period }
            }
            Self::Independent
            | Self::MovingAverage { .. }
            | Self::AutoRegressive { .. }
            | Self::Blt { .. }
            | Self::VaryingBlt { .. }
            | Self::Rational { .. }
            | Self::Banded { .. } => self.clone(),
        })
    }
}

/// Returns whether the form with one seed per step needs a Cholesky factor of N N^T; otherwise seeds are
/// merged.
pub(crate) fn is_factored(recursion: &Recursion, steps: usize) -> bool {
    match recursion {
        Recursion::SeedCombination { rows } => {
            grouped(&rows[..steps].iter().map(|row| merged(row)).collect::<Vec<_>>()).is_none()
        }
        Recursion::Circulant { .. } => true,
        Recursion::Scaled { inner, .. } => is_factored(inner, steps),
        Recursion::Restarted { inner, period } => is_factored(inner, steps.min(*period)),
        Recursion::Independent
        | Recursion::MovingAverage { .. }
        | Recursion::AutoRegressive { .. }
        | Recursion::Blt { .. }
        | Recursion::VaryingBlt { .. }
        | Recursion::Rational { .. }
        | Recursion::Banded { .. } => false,
    }
}

fn lower_triangular(rows: &[Row], steps: usize) -> Result<Vec<Row>, InvalidParameter> {
    at_least("rows", rows.len(), steps)?;
    let rows: Vec<Row> = rows[..steps].iter().map(|row| merged(row)).collect();
    if let Some(weight) = rows.iter().flatten().map(|&(_, weight)| weight).find(|w| !w.is_finite()) {
        return Err(InvalidParameter::new("rows", weight, "finite numbers"));
    }
    match grouped(&rows) {
        Some(rows) => Ok(rows),
        None => factored(&rows),
    }
}

/// Adds the weights of repeated seeds; the result is sorted by seed and has no zeros.
fn merged(row: &[(usize, f64)]) -> Row {
    let mut sums = BTreeMap::new();
    row.iter().for_each(|&(seed, weight)| *sums.entry(seed).or_insert(0.0) += weight);
    sums.into_iter().filter(|&(_, weight)| weight != 0.0).collect()
}

/// Returns L if the seeds that are new at a step are always used together in fixed proportions, or else
/// `None`.
fn grouped(rows: &[Row]) -> Option<Vec<Row>> {
    /// The seeds that are new at a step, merged into one seed with this weight.
    struct Group {
        size: usize,
        weight: f64,
    }
    let mut groups: Vec<Group> = Vec::with_capacity(rows.len());
    let mut first_use: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    let mut lower = Vec::with_capacity(rows.len());
    for (t, row) in rows.iter().enumerate() {
        let mut fresh = Vec::new();
        // For each earlier step: how many of its new seeds this row uses, and the ratio of their weights in
        // this row and in their first.
        let mut earlier: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
        for &(seed, weight) in row {
            let Some(&(step, first)) = first_use.get(&seed) else {
                fresh.push((seed, weight));
                continue;
            };
            let (size, part) = earlier.entry(step).or_insert((0, weight / first));
            *size += 1;
            // Weights are rounded products, so that small differences are tolerated.
            if (*part - weight / first).abs() > SAME_PART * part.abs() {
                return None;
            }
        }
        let mut lower_row = Vec::with_capacity(earlier.len() + 1);
        for (step, (size, part)) in earlier {
            if size != groups[step].size {
                return None;
            }
            lower_row.push((step, part * groups[step].weight));
        }
        let weight = match fresh[..] {
            [] => return None,
            [(_, weight)] => weight,
            _ => fresh.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt(),
        };
        lower_row.push((t, weight));
        groups.push(Group { size: fresh.len(), weight });
        first_use.extend(fresh.into_iter().map(|(seed, weight)| (seed, (t, weight))));
        lower.push(lower_row);
    }
    Some(lower)
}

/// How messages describe the maximum number of steps of a dense Cholesky factor.
const MAX_FACTORED: &str = "the maximum for which a sum of seeds is rewritten with one seed per step";

/// Relative difference below which two ratios of weights count as equal. The bound on the rounding of weights
/// covers it.
const SAME_PART: f64 = 64.0 * f64::EPSILON;

/// Computes the Cholesky factor of N N^T in a fixed order of operations: its bits are the same on every
/// machine.
fn factored(rows: &[Row]) -> Result<Vec<Row>, InvalidParameter> {
    between("steps", rows.len(), 1, MAX_STORED_DENSE, MAX_FACTORED)?;
    let seeds: BTreeMap<usize, usize> = {
        let used: BTreeSet<usize> = rows.iter().flatten().map(|&(seed, _)| seed).collect();
        used.into_iter().enumerate().map(|(at, seed)| (seed, at)).collect()
    };
    let written_out = |row: &Row| {
        let mut out = vec![0.0; seeds.len()];
        row.iter().for_each(|(seed, weight)| out[seeds[seed]] = *weight);
        out
    };
    let noise: Vec<Vec<f64>> = rows.iter().map(written_out).collect();
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(rows.len());
    for (t, row) in noise.iter().enumerate() {
        let mut factor: Vec<f64> = Vec::with_capacity(t + 1);
        for (earlier, of_earlier) in noise[..t].iter().zip(&lower) {
            let s = factor.len();
            factor.push((dot(row, earlier) - dot(&factor, &of_earlier[..s])) / of_earlier[s]);
        }
        let norm = dot(row, row);
        let innovation = norm - dot(&factor, &factor);
        // A comparison with NaN is false.
        if innovation.is_nan() || innovation <= DEPENDENT_BELOW * norm {
            let got = format!("a linear combination of earlier rows at step {t}");
            return Err(InvalidParameter::new("rows", got, "linearly independent"));
        }
        factor.push(innovation.sqrt());
        lower.push(factor);
    }
    let listed = |row: Vec<f64>| row.into_iter().enumerate().filter(|&(_, weight)| weight != 0.0).collect();
    Ok(lower.into_iter().map(listed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Problem, design::StrategySpec};

    fn gram(recursion: &Recursion, steps: usize) -> Vec<Vec<f64>> {
        let columns: Vec<Vec<f64>> = (0..recursion.seeds(steps))
            .map(|seed| {
                let mut unit = vec![0.0; recursion.seeds(steps)];
                unit[seed] = 1.0;
                recursion.apply(steps, &unit)
            })
            .collect();
        let entry = |i: usize, j: usize| columns.iter().map(|column| column[i] * column[j]).sum();
        (0..steps).map(|i| (0..steps).map(|j| entry(i, j)).collect()).collect()
    }

    #[test]
    fn the_law_is_the_same_and_each_step_reads_one_fresh_seed() {
        let mut tested = 0;
        for name in
            ["tree", "honaker-online", "honaker-full", "fourier", "fourier-optimal", "dense", "tree+x3"]
        {
            for steps in [1, 2, 3, 7, 8, 13, 33] {
                let problem = Problem::prefix(steps);
                let designed = name.parse::<StrategySpec>().unwrap().design(&problem);
                if name == "tree+x3" && steps < 3 {
                    assert!(designed.is_err(), "three runs of {steps} steps");
                    continue;
                }
                let strategy = designed.unwrap();
                tested += 1;
                let recursion = strategy.value.recursion().unwrap();
                let lower = recursion.with_one_seed_per_step(steps).unwrap();
                assert_eq!(lower.seeds(steps), steps, "{name} {steps}");
                let (expected, found) = (gram(&recursion, steps), gram(&lower, steps));
                for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
                    for (j, (x, y)) in expected.iter().zip(found).enumerate() {
                        assert!((x - y).abs() < 1e-13, "{name} {steps} [{i}, {j}]: {x} against {y}");
                    }
                }
            }
        }
        assert_eq!(tested, 7 * 7 - 2);
    }

    /// A dyadic tree stores few seeds; an estimate from below uses all seeds of a subtree when it is
    /// complete.
    #[test]
    fn trees_stay_sparse() {
        let cases = [("tree", 10, 3000), ("honaker-online", 999, 12_000), ("weighted-tree", 999, 12_000)];
        for (name, awaited, terms) in cases {
            let steps = 1000;
            let problem = Problem::prefix(steps);
            let tree = name.parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
            let lower = tree.recursion().unwrap().with_one_seed_per_step(steps).unwrap();
            assert!(lower.state_vectors() <= awaited, "{name}: {}", lower.state_vectors());
            let Recursion::SeedCombination { rows } = lower else { panic!("{name} is no sum of seeds") };
            let found: usize = rows.iter().map(Vec::len).sum();
            assert!(found <= terms, "{name}: {found} terms");
        }
    }

    #[test]
    fn rows_that_follow_from_others_are_refused() {
        let of = |rows: Vec<Row>| {
            Recursion::SeedCombination { rows }.with_one_seed_per_step(2).unwrap_err().to_string()
        };
        assert!(of(vec![vec![(0, 1.0)]]).starts_with("rows is 1"));
        assert!(
            of(vec![vec![(0, 1.0), (1, 2.0)], vec![(0, 2.0), (1, 4.0)]])
                .starts_with("rows is a linear combination of earlier rows at step 1")
        );
        assert!(
            of(vec![vec![(0, 1.0)], vec![]])
                .starts_with("rows is a linear combination of earlier rows at step 1")
        );
        assert!(of(vec![vec![(0, f64::NAN)], vec![(1, 1.0)]]).starts_with("rows is NaN"));
    }
}
