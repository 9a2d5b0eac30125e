//! What the noisy sums of a tree let anyone see, computed densely from their law alone: the audit's search
//! misses nothing of it.

mod common;

use std::ops::RangeInclusive;

use antinoise_audit::{BuiltinMechanism, Claim, Settings, audit};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Class, Participation};
use antinoise_plan::ArithmeticKind;
use common::design;

const STEPS: usize = 64;

/// (N N^T)^-1 of the noise N Z in the noisy sums, from the recursion that makes it: seed by seed, and Gauss
/// and Jordan.
fn precision(strategy: &antinoise_mechanism::AnyStrategy) -> Vec<Vec<f64>> {
    let recursion = strategy.recursion().unwrap();
    let seeds = recursion.seeds(STEPS);
    let columns: Vec<Vec<f64>> = (0..seeds)
        .map(|seed| {
            recursion.apply(STEPS, &(0..seeds).map(|s| f64::from(u8::from(s == seed))).collect::<Vec<_>>())
        })
        .collect();
    let covariance = |i: usize, j: usize| columns.iter().map(|column| column[i] * column[j]).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = (0..STEPS)
        .map(|i| {
            (0..2 * STEPS)
                .map(|j| if j < STEPS { covariance(i, j) } else { f64::from(u8::from(j - STEPS == i)) })
                .collect()
        })
        .collect();
    for pivot in 0..STEPS {
        let scale = 1.0 / rows[pivot][pivot];
        rows[pivot].iter_mut().for_each(|x| *x *= scale);
        let of_pivot = rows[pivot].clone();
        for (i, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != pivot) {
            let factor = row[pivot];
            assert!(factor.is_finite(), "row {i}");
            row.iter_mut().zip(&of_pivot).for_each(|(x, y)| *x -= factor * y);
        }
    }
    rows.into_iter().map(|row| row[STEPS..].to_vec()).collect()
}

/// All sets of steps at which a unit may take part, none of which is a part of another one.
fn patterns(schema: &Participation) -> Vec<Vec<usize>> {
    match *schema {
        Participation::Single => (0..STEPS).map(|t| vec![t]).collect(),
        Participation::FullBatch => vec![(0..STEPS).collect()],
        Participation::Cyclic { min_sep, .. } => {
            (0..min_sep).map(|first| (first..STEPS).step_by(min_sep).collect()).collect()
        }
        Participation::MinSep { min_sep, max_participations } => {
            let mut found = vec![Vec::new()];
            for _ in 0..max_participations {
                let longer = found.iter().flat_map(|pattern: &Vec<usize>| {
                    let from = pattern.last().map_or(0, |last| last + min_sep);
                    (from..STEPS).map(move |t| [&pattern[..], &[t]].concat())
                });
                found.extend(longer.collect::<Vec<_>>());
                found.sort();
                found.dedup();
            }
            found
        }
        _ => unreachable!("no such schema here"),
    }
}

/// Between which numbers the largest distance of two neighbours in the noisy sums lies, in standard
/// deviations of the seed noise: the square is g^T (N N^T)^-1 g of contributions g_t, of length 1 at most, at
/// the steps of a pattern. With equal signs it is one of these; none is above the sum of magnitudes.
fn farthest(schema: &Participation, precision: &[Vec<f64>]) -> (RangeInclusive<f64>, usize) {
    let (mut low, mut high) = (0f64, 0f64);
    let patterns = patterns(schema);
    for pattern in &patterns {
        let entries = || pattern.iter().flat_map(|&i| pattern.iter().map(move |&j| precision[i][j]));
        low = low.max(entries().sum());
        high = high.max(entries().map(f64::abs).sum());
    }
    (low.sqrt()..=high.sqrt(), patterns.len())
}

#[test]
fn no_unit_is_farther_from_its_neighbour_than_the_audit_says_can_be_seen() {
    let min_sep = STEPS / 4;
    let schemas = [
        (Participation::Single, 64),
        (Participation::FullBatch, 1),
        (Participation::Cyclic { min_sep, max_participations: 4 }, 16),
        (Participation::MinSep { min_sep, max_participations: 4 }, 0),
    ];
    let (mut short, mut cases) = (0, 0);
    for class in [Class::Tree, Class::SmoothTree, Class::HonakerOnline, Class::WeightedTree] {
        for (schema, count) in &schemas {
            let strategy = design(StrategySpec::new(class), STEPS, schema);
            let sensitivity = strategy.sensitivity(schema).unwrap().value;
            let (farthest, patterns) = farthest(schema, &precision(&strategy));
            assert!(patterns == *count || *count == 0 && patterns > 3876, "{patterns}");
            let claim = Claim::of_strategy(
                strategy.clone(),
                schema.clone(),
                Adjacency::ZeroOut,
                1.0,
                ArithmeticKind::PlainFloatingPoint,
            );
            let claim = claim.unwrap();
            let settings = Settings { most_numbers: 0, examples: 100, ..Settings::new(1e-3, STEPS) };
            let report = audit(&claim, &mut BuiltinMechanism::new(claim.clone(), 1), &settings).unwrap();
            let (low, high) = (farthest.start() / sensitivity, farthest.end() / sensitivity);
            println!(
                "{} {schema}: {low:.4} of the stated mu, the audit finds {:.4}",
                class.name(),
                report.mu_reachable
            );
            // The two bounds meet, so that the distance is known. What noise and clip norm add for rounding
            // is within a part of 1e-5.
            assert!(high <= low * (1.0 + 1e-9), "{class:?} {schema}: from {low} to {high}");
            let ratio = report.mu_reachable / low;
            assert!(
                (1.0 - 1e-5..=1.0 + 1e-9).contains(&ratio),
                "{class:?} {schema}: {ratio} of what can be seen"
            );
            cases += 1;
            short += usize::from(report.mu_reachable < 0.9);
        }
    }
    assert_eq!((short, cases), (4, 4 * 4));
}
