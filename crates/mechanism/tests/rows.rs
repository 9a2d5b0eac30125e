//! Sensitivity to rows bounded in l1, and to scalars: brute force over all patterns and signs, and over all
//! extreme points of the rows.

#[expect(dead_code, reason = "the laws use the rest of it")]
mod oracle;

use antinoise_linear::Matrix;
use antinoise_mechanism::sensitivity::{Kind, RowNorm};
use antinoise_mechanism::{AnyStrategy, Participation};
use proptest::prelude::*;

/// Entries of either sign: a full matrix, a lower-triangular, a tall, a banded and a Toeplitz one.
fn rows(shape: usize, n: usize, numbers: &[f64]) -> oracle::Matrix {
    let number = |i: usize, j: usize| numbers[(i * 13 + j) % numbers.len()];
    let entry = |i: usize, j: usize| match shape {
        1 if j > i => 0.0,
        3 if j > i || i - j >= 3 => 0.0,
        4 if j > i => 0.0,
        4 => f64::from(i == j) + number(i - j, 0),
        _ => f64::from(i == j) + number(i, j),
    };
    let count = if shape == 2 { n + 3 } else { n };
    (0..count).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

fn strategy(rows: &oracle::Matrix) -> Option<AnyStrategy> {
    AnyStrategy::of_matrix(&Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])).ok()
}

fn schemas(n: usize) -> Vec<Participation> {
    let mut all = vec![Participation::Single, Participation::FullBatch];
    for min_sep in 1..=n {
        for max_participations in 2..=(n - 1) / min_sep + 1 {
            all.push(Participation::Cyclic { min_sep, max_participations });
            all.push(Participation::MinSep { min_sep, max_participations });
        }
    }
    let patterns = vec![(0..n).step_by(2).collect(), (n / 2..n).collect(), vec![0]];
    all.push(Participation::Patterns { patterns });
    all
}

/// max over all G whose rows are signed unit vectors of `dim` dimensions, at the steps of one pattern, of
/// ||C G||_F: the extreme points of the rows bounded in l1.
fn over_extreme_rows(c: &oracle::Matrix, pattern: &[usize], dim: usize) -> f64 {
    let points = 2 * dim;
    let squared = |choice: usize| -> f64 {
        let mut sums = vec![vec![0.0; dim]; c.len()];
        let mut rest = choice;
        for &t in pattern {
            let (at, sign) = (rest % points / 2, 1.0 - 2.0 * (rest % 2) as f64);
            rest /= points;
            c.iter().zip(&mut sums).for_each(|(row, sum)| sum[at] += sign * row[t]);
        }
        sums.iter().flatten().map(|x| x * x).sum()
    };
    (0..points.pow(pattern.len() as u32)).map(squared).fold(0.0, f64::max).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        rng_seed: prop::test_runner::RngSeed::Fixed(31),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn scalars_are_exact_and_at_most_vectors(
        shape in 0usize..5,
        n in 1usize..=7,
        numbers in prop::collection::vec(-1.0f64..1.0, 37),
    ) {
        let c = rows(shape, n, &numbers);
        let Some(strategy) = strategy(&c) else { return Ok(()) };
        for schema in schemas(n) {
            let of = |rows| strategy.sensitivity_of(&schema, rows).unwrap();
            let (scalar, vector) = (of(RowNorm::L1), of(RowNorm::L2));
            let brute = oracle::sensitivity(&c, &schema);
            prop_assert_eq!(scalar.kind, Kind::Exact, "{} {}", &schema, &scalar.source);
            let what = format!("{shape} {n} {schema}: {scalar:?} {vector:?} {brute}");
            prop_assert!((scalar.value / brute - 1.0).abs() < 1e-10, "{}", what);
            prop_assert!(scalar.value <= vector.value * (1.0 + 1e-12), "{}", what);
            prop_assert!(vector.kind == Kind::UpperBound || vector.value == scalar.value, "{}", what);
        }
    }

    /// No rows bounded in l1 exceed scalars, whatever their dimension.
    #[test]
    fn extreme_rows_are_no_worse_than_scalars(
        shape in 0usize..5,
        n in 2usize..=5,
        dim in 2usize..=3,
        numbers in prop::collection::vec(-1.0f64..1.0, 37),
    ) {
        let c = rows(shape, n, &numbers);
        let Some(strategy) = strategy(&c) else { return Ok(()) };
        let pattern: Vec<usize> = (0..n.min(4)).collect();
        let schema = Participation::Patterns { patterns: vec![pattern.clone()] };
        let found = strategy.sensitivity_of(&schema, RowNorm::L1).unwrap().value;
        let brute = over_extreme_rows(&c, &pattern, dim);
        prop_assert!((found / brute - 1.0).abs() < 1e-10, "{} {}", found, brute);
    }

    /// More patterns are never less sensitive.
    #[test]
    fn sensitivity_is_monotone_in_the_patterns(
        shape in 0usize..5,
        n in 4usize..=9,
        numbers in prop::collection::vec(-1.0f64..1.0, 37),
    ) {
        let Some(strategy) = strategy(&rows(shape, n, &numbers)) else { return Ok(()) };
        let of = |schema: &Participation| strategy.sensitivity_of(schema, RowNorm::L1).unwrap().value;
        for b in 1..=n {
            let most = (n - 1) / b + 1;
            let (mut cyclic, mut min_sep) = (0.0, 0.0);
            for max_participations in 1..=most {
                let free = of(&Participation::MinSep { min_sep: b, max_participations });
                prop_assert!(free >= min_sep * (1.0 - 1e-10));
                min_sep = free;
                if max_participations > 1 {
                    let next = of(&Participation::Cyclic { min_sep: b, max_participations });
                    prop_assert!(next >= cyclic * (1.0 - 1e-10));
                    prop_assert!(free >= next * (1.0 - 1e-10), "{} {}", free, next);
                    cyclic = next;
                }
                if b > 1 {
                    let closer = of(&Participation::MinSep { min_sep: b - 1, max_participations });
                    prop_assert!(closer >= free * (1.0 - 1e-10));
                }
            }
        }
    }
}

/// Multi-epoch paper, Appendix H.2: vectors of two dimensions are worse than scalars.
#[test]
fn the_counterexample_separates_scalars_from_vectors() {
    let c = [[2.0, 1.0, 1.0], [1.0, 2.0, -1.0], [1.0, -1.0, 2.0]].map(|row| row.map(|x| x / 24f64.sqrt()));
    let g = [[2.0, 1.0], [2.0, -1.0], [1.0, 2.0]].map(|row| row.map(|x| x / 5f64.sqrt()));
    let moved: f64 = c
        .iter()
        .flat_map(|row| (0..2).map(move |d| (0..3).map(|t| row[t] * g[t][d]).sum::<f64>().powi(2)))
        .sum();
    // C is singular; smaller rows below it change nothing but that.
    let below = (0..3).map(|i| (0..3).map(|j| if i == j { 1e-7 } else { 0.0 }).collect());
    let strategy = strategy(&c.into_iter().map(Vec::from).chain(below).collect()).unwrap();
    for schema in ["full-batch", "cyclic:1,3", "min-sep:1,3"] {
        let of = |rows| strategy.sensitivity_of(&schema.parse().unwrap(), rows).unwrap();
        assert!((of(RowNorm::L1).value - 1.0).abs() < 1e-11, "{schema}");
        assert!((moved - 1.1).abs() < 1e-12 && of(RowNorm::L2).value >= moved.sqrt(), "{schema}");
    }
}

/// Searches that end early state an upper bound: the parity of many signs that no bound foresees.
#[test]
fn a_long_search_ends_with_an_upper_bound() {
    let n = 96;
    let mut state = 1u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    };
    let c: oracle::Matrix = (0..n)
        .map(|i| (0..n).map(|j| if j <= i { number() } else { 0.0 } + f64::from(i == j)).collect())
        .collect();
    let strategy = strategy(&c).unwrap();
    for schema in [Participation::FullBatch, Participation::MinSep { min_sep: 5, max_participations: 12 }] {
        let of = |rows| strategy.sensitivity_of(&schema, rows).unwrap();
        let (scalar, vector) = (of(RowNorm::L1), of(RowNorm::L2));
        assert_eq!(scalar.kind, Kind::UpperBound, "{schema}");
        assert!(scalar.value <= vector.value, "{schema}");
        // Signs chosen one after another are no more than the maximum.
        let pattern: Vec<usize> =
            oracle::patterns(&Participation::Cyclic { min_sep: 5, max_participations: 12 }, n)[0].clone();
        let mut sum = vec![0.0; n];
        for t in pattern {
            let dot: f64 = c.iter().zip(&sum).map(|(row, s)| row[t] * s).sum();
            c.iter().zip(&mut sum).for_each(|(row, s)| *s += row[t] * 1f64.copysign(dot));
        }
        assert!(sum.iter().map(|x| x * x).sum::<f64>().sqrt() <= scalar.value, "{schema}");
    }
}
