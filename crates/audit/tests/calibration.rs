//! The audit rejects correct mechanisms as rarely as stated, and often enough to be a sharp test.

mod common;

use antinoise_audit::{
    BuiltinMechanism, BuiltinTraining, Claim, Settings, TrainingInputs, audit, audit_with_training,
};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Class, Participation};
use antinoise_plan::{ArithmeticKind, Length, MaxBatchSize, Request, Setting, VerifiedPlan, choose};
use common::{design, schemas};
use rayon::prelude::*;

const STEPS: usize = 8;

/// `whole` with `ANTINOISE_SWEEPS=whole`, which `scripts/long.sh sweeps` sets; otherwise a quarter of it.
fn swept(whole: u64) -> u64 {
    let is_whole = std::env::var_os("ANTINOISE_SWEEPS").is_some_and(|sweeps| sweeps == "whole");
    if is_whole { whole } else { whole / 4 }
}

/// How many of `audits` of correct mechanisms reject.
fn rejections(alpha: f64, seed: u64, audits: u64) -> usize {
    let schema = Participation::Cyclic { min_sep: 4, max_participations: 2 };
    let strategy = design("banded-toeplitz:6".parse().unwrap(), STEPS, &schema);
    let claim =
        Claim::of_strategy(strategy, schema, Adjacency::ZeroOut, 0.5, ArithmeticKind::PlainFloatingPoint)
            .unwrap();
    let rejected = |i: u64| {
        let settings = Settings { alpha, runs: 4, most_numbers: 0, units: 16, examples: 8, seed: i };
        let mut real = BuiltinMechanism::new(claim.clone(), seed + i);
        !audit(&claim, &mut real, &settings).unwrap().accepted
    };
    (0..audits).into_par_iter().filter(|&i| rejected(i)).count()
}

/// Of a thousand audits, or of a quarter of them, at most the share alpha plus three standard deviations; at
/// alpha = 0.05 also not none: most tests are exact, while those of lags, of the distribution and of
/// neighbours bound their error.
#[test]
fn correct_mechanisms_are_rejected_as_rarely_as_stated() {
    let audits = swept(1000);
    for (alpha, least) in [(0.05, audits as usize / 100), (1e-3, 0)] {
        let found = rejections(alpha, (alpha * 1e6) as u64 * 10_000, audits);
        let expected = audits as f64 * alpha;
        let most = expected + 3.0 * (expected * (1.0 - alpha)).sqrt();
        println!("alpha {alpha}: {found} of {audits} rejected, at most {most:.1}");
        assert!((found as f64) <= most && found >= least, "alpha {alpha}: {found} rejected, at most {most}");
    }
}

/// Number of audits of mechanisms of all classes and schemas, and of trainings of all samplers.
const MIXED: u64 = 300;
/// One in this many of them is of a plan, with its training.
const TRAINED: u64 = 4;
/// Probability that this test itself fails for a correct audit.
const BY_CHANCE: f64 = 1e-6;

fn plans() -> Vec<VerifiedPlan> {
    let settings = [
        (Setting::Cyclic, "banded-toeplitz:4", false),
        (Setting::Shuffled, "blt:2", false),
        (Setting::Poisson, "identity", false),
        (Setting::Poisson, "identity", true),
        (Setting::Poisson, "banded-toeplitz:4", false),
        (Setting::Poisson, "blt:2", false),
        (Setting::BMinSep, "banded-toeplitz:4", false),
    ];
    let plan = |(setting, strategy, is_cut): (Setting, &str, bool)| {
        let mut request = Request::new(400, 20, Length::Epochs(2), setting);
        request.max_batch_size = is_cut.then_some(MaxBatchSize::Auto);
        (request.epsilon, request.delta) = (4.0, 1e-4);
        request.specs = Some(vec![strategy.parse().unwrap()]);
        choose(&request).unwrap().plan
    };
    settings.map(plan).into()
}

/// P(X >= k), X ~ Binomial(n, p).
fn tail(n: u64, k: u64, p: f64) -> f64 {
    let (mut term, mut below) = ((1.0 - p).powi(n as i32), 0.0);
    for j in 0..k {
        below += term;
        term *= (n - j) as f64 / (j + 1) as f64 * p / (1.0 - p);
    }
    1.0 - below
}

/// Of 300 correct mechanisms and trainings, or of a quarter of them, few enough are rejected to be consistent
/// with the stated rate, at both alphas.
#[test]
fn correct_mechanisms_of_every_kind_are_rejected_as_rarely_as_stated() {
    let mut strategies = Vec::new();
    for &class in Class::ALL {
        for schema in schemas(24) {
            strategies.push((design(StrategySpec::new(class), 24, &schema), schema));
        }
    }
    let (plans, mixed) = (plans(), swept(MIXED));
    for alpha in [0.05, 1e-3] {
        let rejection = |i: u64| {
            let settings = |steps| Settings {
                most_numbers: 400_000,
                units: 32,
                examples: 8,
                seed: i,
                ..Settings::new(alpha, steps)
            };
            let seed = i + (alpha * 1e7) as u64;
            let report = if i.is_multiple_of(TRAINED) {
                let plan = &plans[(i / TRAINED) as usize % plans.len()];
                let claim = Claim::of_plan(plan).unwrap();
                let ground = TrainingInputs::new(plan.clone()).unwrap();
                let (mut real, mut training) =
                    (BuiltinMechanism::new(claim.clone(), seed), BuiltinTraining::new(&ground, seed));
                audit_with_training(&claim, &mut real, &settings(plan.steps), &mut training, &mut |_, _| ())
            } else {
                let (strategy, schema) = &strategies[(7 * i) as usize % strategies.len()];
                let arithmetic = if i.is_multiple_of(2) {
                    ArithmeticKind::Grid
                } else {
                    ArithmeticKind::PlainFloatingPoint
                };
                let adjacency = if i.is_multiple_of(3) { Adjacency::ReplaceOne } else { Adjacency::ZeroOut };
                let claim =
                    Claim::of_strategy(strategy.clone(), schema.clone(), adjacency, 1.0, arithmetic).unwrap();
                audit(&claim, &mut BuiltinMechanism::new(claim.clone(), seed), &settings(24))
            };
            let report = report.unwrap();
            let reason = || report.tests.iter().find(|test| test.rejected).map(|test| test.name.clone());
            (!report.accepted).then(|| (i, reason()))
        };
        let rejected: Vec<_> = (0..mixed).into_par_iter().filter_map(rejection).collect();
        let found = rejected.len() as u64;
        println!("alpha {alpha}: {found} of {mixed} rejected: {rejected:?}");
        assert!(tail(mixed, found, alpha) > BY_CHANCE, "alpha {alpha}: {rejected:#?}");
    }
}
