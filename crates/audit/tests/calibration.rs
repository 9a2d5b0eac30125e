//! The audit rejects a correct mechanism as rarely as it says, and often enough to be a test.

mod common;

use antinoise_audit::{Claim, Real, Settings, audit};
use antinoise_mechanism::{Adjacency, Participation};
use antinoise_plan::ReleaseKind;
use common::design;

const STEPS: usize = 8;
const AUDITS: u64 = 1000;

/// How many of a thousand audits of correct mechanisms reject.
fn rejections(alpha: f64, seed: u64) -> usize {
    let schema = Participation::Cyclic { min_sep: 4, max_participations: 2 };
    let strategy = design("banded-toeplitz:6".parse().unwrap(), STEPS, &schema);
    let claim =
        Claim::of_strategy(strategy, schema, Adjacency::ZeroOut, 0.5, ReleaseKind::PlainFloatingPoint)
            .unwrap();
    let rejected = |i: u64| {
        let settings = Settings { alpha, runs: 4, units: 16, examples: 8, seed: i };
        let mut real = Real::new(claim.clone(), seed + i);
        !audit(&claim, &mut real, &settings).unwrap().accepted
    };
    (0..AUDITS).filter(|&i| rejected(i)).count()
}

/// At most 1000 alpha and three standard deviations; at alpha = 0.05 also not none: most tests are exact, those of lags,
/// of the distribution and of neighbours bound their error.
#[test]
fn correct_mechanisms_are_rejected_as_rarely_as_stated() {
    for (alpha, least) in [(0.05, 10), (1e-3, 0)] {
        let found = rejections(alpha, (alpha * 1e6) as u64 * 10_000);
        let expected = AUDITS as f64 * alpha;
        let most = expected + 3.0 * (expected * (1.0 - alpha)).sqrt();
        println!("alpha {alpha}: {found} of {AUDITS} rejected, at most {most:.1}");
        assert!((found as f64) <= most && found >= least, "alpha {alpha}: {found} rejected, at most {most}");
    }
}
