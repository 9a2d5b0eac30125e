//! Every class, schema and kind of release is what it claims to be.

mod common;

use antinoise_audit::{Claim, Real, Settings, audit};
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, Class};
use antinoise_plan::ReleaseKind;
use common::{design, schemas};

const STEPS: usize = 24;

/// 13 classes, alone, with normalised columns and restarted, under four schemas, in both kinds of release, at a false
/// alarm of 1e-3 each.
#[test]
fn every_class_is_accepted() {
    let (mut audited, mut least, mut rejected) = (0, f64::INFINITY, Vec::new());
    for (i, &class) in Class::ALL.iter().enumerate() {
        for (j, schema) in schemas(STEPS).into_iter().enumerate() {
            let base = StrategySpec::new(class);
            // The fourth schema also meets strategies made of another one.
            let spec = match (j, i % 2) {
                (3, 0) => StrategySpec { column_normalize: true, ..base },
                (3, _) => StrategySpec { restarts: Some(2), ..base },
                _ => base,
            };
            let strategy = design(spec, STEPS, &schema);
            for release in [ReleaseKind::PlainFloatingPoint, ReleaseKind::Grid] {
                let claim =
                    Claim::of_strategy(strategy.clone(), schema.clone(), Adjacency::ZeroOut, 0.2, release)
                        .unwrap();
                let settings = Settings { examples: 2000, units: 64, ..Settings::new(1e-3, STEPS) };
                let mut real = Real::new(claim.clone(), 1000 + (i * 4 + j) as u64);
                let report = audit(&claim, &mut real, &settings).unwrap();
                least = least.min(report.mu_lower / report.mu_stated);
                if !report.accepted {
                    rejected.push(format!("{spec} {schema} {release:?}: {report:#?}"));
                }
                audited += 1;
            }
        }
    }
    assert!(rejected.is_empty(), "{} rejected: {}", rejected.len(), rejected.join("\n"));
    println!("{audited} audited; mu seen: {least:.3} of mu stated or more");
    assert!(least > 0.3, "an audit that sees nothing: {least}");
    assert_eq!(audited, Class::ALL.len() * 4 * 2);
}
