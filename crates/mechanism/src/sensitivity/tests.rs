//! What is exact is said to be exact, and is the largest over all patterns.

use antinoise_linear::Matrix;

use super::{Kind, of_encoder, of_toeplitz};
use crate::testing::min_sep_patterns;
use crate::{Encoder, Participation};

/// The norm of the sum of these columns of a lower-triangular Toeplitz matrix, with these signs.
fn norm_of_sum(c: &[f64], steps: usize, columns: &[(usize, f64)]) -> f64 {
    let row = |i: usize| -> f64 {
        let entry =
            |&(j, sign): &(usize, f64)| sign * i.checked_sub(j).and_then(|lag| c.get(lag)).unwrap_or(&0.0);
        columns.iter().map(entry).sum()
    };
    (0..steps).map(|i| row(i).powi(2)).sum::<f64>().sqrt()
}

/// Non-negative taps that increase somewhere: under a cyclic schema the densest pattern is the worst.
#[test]
fn non_negative_toeplitz_columns_are_exact_under_a_cyclic_schema() {
    let (c, steps) = ([0.5, 1.0, 0.25, 0.75, 0.5, 0.125], 11);
    let schema = Participation::Cyclic { min_sep: 3, max_participations: 3 };
    let found = of_toeplitz(&c, steps, &schema).unwrap();
    let of_phase = |phase: usize| {
        let columns: Vec<(usize, f64)> = (phase..steps).step_by(3).take(3).map(|j| (j, 1.0)).collect();
        norm_of_sum(&c, steps, &columns)
    };
    let largest = (0..3).map(of_phase).fold(0.0, f64::max);
    assert_eq!(found.kind, Kind::Exact, "{}", found.source);
    assert!((found.value - largest).abs() < 1e-12, "{} and {largest}", found.value);
    let signed = c.map(|x| if x == 0.75 { -x } else { x });
    assert_eq!(of_toeplitz(&signed, steps, &schema).unwrap().kind, Kind::UpperBound);
}

/// Columns that overlap beyond the separation, with inner products of either sign.
#[test]
fn two_participations_any_distance_apart_are_exact() {
    let (c, steps) = ([1.0, -0.75, 0.5, -0.25, 0.5], 9);
    let dense = Matrix::from_fn(steps, steps, |i, j| {
        i.checked_sub(j).and_then(|lag| c.get(lag)).copied().unwrap_or(0.0)
    });
    let schema = Participation::MinSep { min_sep: 2, max_participations: 2 };
    let found = of_encoder(&Encoder::Dense(dense), &schema).unwrap();
    let mut largest: f64 = norm_of_sum(&c, steps, &[(0, 1.0)]);
    for first in 0..steps {
        for second in first + 2..steps {
            for sign in [-1.0, 1.0] {
                largest = largest.max(norm_of_sum(&c, steps, &[(first, 1.0), (second, sign)]));
            }
        }
    }
    assert_eq!(found.kind, Kind::Exact, "{}", found.source);
    assert!((found.value - largest).abs() < 1e-12, "{} and {largest}", found.value);
}

/// Without negative inner products the worst pattern is exact; with them, what scalars attain is at most the
/// value, and the sum of magnitudes at least.
#[test]
fn the_worst_pattern_under_min_sep_is_found() {
    let mut random = 1_u64;
    let mut unit = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let (mut exact, mut bounds) = (0, 0);
    for case in 0..600 {
        let n = 3 + case % 8;
        let negative = if case % 2 == 0 { 0.0 } else { 0.3 };
        let c = Matrix::from_fn(n, n, |i, j| {
            let size = 1.0 / (1.0 + i.abs_diff(j) as f64);
            if i < j {
                0.0
            } else if unit() < negative {
                -size * unit()
            } else {
                size * (0.2 + unit())
            }
        });
        let x = antinoise_linear::product(c.transpose(), &c);
        let b = 1 + case / 8 % 3;
        let k = (3 + case / 24 % 3).min((n - 1) / b + 1);
        let schema = Participation::MinSep { min_sep: b, max_participations: k };
        let found = of_encoder(&Encoder::Dense(c), &schema).unwrap();
        let over = |of: &dyn Fn(usize, usize) -> f64| {
            let sum = |p: &Vec<usize>| p.iter().flat_map(|&s| p.iter().map(move |&t| of(s, t))).sum::<f64>();
            min_sep_patterns(0, n, b, k).iter().map(sum).fold(0.0, f64::max)
        };
        let (attained, magnitudes) = (over(&|s, t| x[(s, t)]), over(&|s, t| x[(s, t)].abs()));
        let squared = found.value * found.value;
        assert!(attained <= squared * (1.0 + 1e-12), "case {case}: {attained} and {squared}");
        assert!(squared <= magnitudes * (1.0 + 1e-10), "case {case}: {squared} and {magnitudes}");
        match found.kind {
            // Two participations attain the sum of magnitudes, with opposite signs.
            Kind::Exact => {
                let attained = if k <= 2 { magnitudes } else { attained };
                assert!(squared <= attained * (1.0 + 1e-10), "case {case}: {squared} and {attained}");
                exact += 1;
            }
            Kind::UpperBound => bounds += 1,
        }
    }
    assert!(exact >= 300 && bounds >= 100, "{exact} exact, {bounds} bounds");
}
