//! Every class, schema and kind of arithmetic satisfies its claim, and the audit proves nine tenths of the
//! stated mu.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use antinoise_audit::{BuiltinMechanism, Claim, Settings, audit};
use antinoise_linear::Matrix;
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class};
use antinoise_plan::ArithmeticKind;
use common::{design, schemas};
use rayon::prelude::*;

const STEPS: usize = 24;

/// All classes, as they are, with normalised columns and restarted, under four schemas, in both kinds of
/// arithmetic, at a false-alarm probability of 1e-3 each.
#[test]
fn every_class_is_accepted_and_its_mu_is_seen() {
    let lines = || Mutex::new(Vec::<String>::new());
    let (audited, unseen, rejected) = (AtomicUsize::new(0), lines(), lines());
    Class::ALL.par_iter().enumerate().for_each(|(i, &class)| {
        for (j, schema) in schemas(STEPS).into_iter().enumerate() {
            let base = StrategySpec::new(class);
            // The fourth schema is also used with strategies designed for another one.
            let spec = match (j, i % 2) {
                (3, 0) => StrategySpec { column_normalize: true, ..base },
                (3, _) => StrategySpec { restarts: Some(2), ..base },
                _ => base,
            };
            let strategy = design(spec, STEPS, &schema);
            for arithmetic in [ArithmeticKind::PlainFloatingPoint, ArithmeticKind::Grid] {
                let claim =
                    Claim::of_strategy(strategy.clone(), schema.clone(), Adjacency::ZeroOut, 1.0, arithmetic)
                        .unwrap();
                let settings = Settings { examples: 2000, ..Settings::new(1e-3, STEPS) };
                let mut real = BuiltinMechanism::new(claim.clone(), 1000 + (i * 4 + j) as u64);
                let report = audit(&claim, &mut real, &settings).unwrap();
                // For these, part of the noise that the stated sensitivity counts as known is never used,
                // or the sensitivity is an upper bound.
                let part = matches!(class, Class::Tree | Class::SmoothTree) || spec != base;
                let wanted =
                    if part { f64::min(report.mu_stated, report.mu_reachable) } else { report.mu_stated };
                let place = format!("{spec} {schema} {arithmetic:?}");
                if report.mu_lower < 0.9 * wanted {
                    let line = format!("{place}: {} of {}", report.mu_lower, report.mu_reachable);
                    unseen.lock().unwrap().push(line);
                }
                if !report.accepted {
                    rejected.lock().unwrap().push(format!("{place}: {report:#?}"));
                }
                audited.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (unseen, rejected) = (unseen.into_inner().unwrap(), rejected.into_inner().unwrap());
    assert!(rejected.is_empty(), "{} rejected: {}", rejected.len(), rejected.join("\n"));
    assert!(unseen.is_empty(), "{} unseen:\n{}", unseen.len(), unseen.join("\n"));
    assert_eq!(audited.into_inner(), Class::ALL.len() * 4 * 2);
}

/// A matrix that is not triangular and has more rows than columns, as a file may hold it.
#[test]
fn a_matrix_of_any_shape_is_accepted_and_its_mu_is_seen() {
    let entry = |i: usize, j: usize| ((7 * i + 3 * j) % 11) as f64 / 11.0 + 2.0 * f64::from(i == j);
    let strategy = AnyStrategy::of_matrix(&Matrix::from_fn(STEPS + 5, STEPS, entry)).unwrap();
    for (i, schema) in schemas(STEPS).into_iter().enumerate() {
        for release in [ArithmeticKind::PlainFloatingPoint, ArithmeticKind::Grid] {
            let claim =
                Claim::of_strategy(strategy.clone(), schema.clone(), Adjacency::ZeroOut, 1.0, release)
                    .unwrap();
            let settings = Settings { examples: 2000, ..Settings::new(1e-3, STEPS) };
            let report =
                audit(&claim, &mut BuiltinMechanism::new(claim.clone(), 2000 + i as u64), &settings).unwrap();
            assert!(report.accepted, "{schema} {release:?}: {report:#?}");
            assert!(
                report.mu_lower >= 0.9 * report.mu_stated.min(report.mu_reachable),
                "{schema} {release:?}"
            );
        }
    }
}
