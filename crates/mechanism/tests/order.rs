//! One law over all classes: more bands or buffers never lose, and no optimised class loses to what it
//! contains.
//!
//! Problems are drawn at random, with small sizes and bands beyond the separation as likely as any; every
//! class is designed for each. `ANTINOISE_ORDER_DESIGNS` sets how many designs are made (default 5,000),
//! `ANTINOISE_ORDER_STEPS` the most steps (default 24) and `ANTINOISE_ORDER_SEED` the seed; `scripts/order`
//! runs 50,000.

use antinoise_mechanism::design::{CoefficientRule, Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Class, Participation, Problem, Separation, Workload};
use rayon::prelude::*;

/// A design may cost this much more, relatively, than one that its class contains.
const TOLERANCE: f64 = 1e-6;
const DESIGNS: usize = 5_000;
const MAX_STEPS: usize = 24;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// low..=high.
    fn whole(&mut self, low: usize, high: usize) -> usize {
        low + (self.unit() * (high - low + 1) as f64) as usize
    }
}

fn workload(random: &mut Random, n: usize) -> Workload {
    let rate = |random: &mut Random| [0.1, 0.5, 0.9, 0.95, 0.99][random.whole(0, 4)];
    match random.whole(0, 9) {
        0..=2 => Workload::Prefix,
        3 => Workload::Momentum { momentum: rate(random), weight_decay: 0.0 },
        4 => Workload::Momentum { momentum: rate(random), weight_decay: 0.05 },
        5 => Workload::Nesterov { momentum: rate(random) },
        6 => Workload::Decay { gamma: rate(random) },
        7 => Workload::Window { width: random.whole(1, n + 1) },
        8 => Workload::Cooldown { start: random.whole(0, n - 1), last: 0.05 + random.unit() },
        _ => Workload::Toeplitz {
            coefficients: (0..3).map(|t| if t == 0 { 1.0 } else { random.unit() }).collect(),
        },
    }
}

fn participation(random: &mut Random, n: usize) -> Participation {
    let min_sep = random.whole(1, n);
    let max_participations = random.whole(1, (n - 1) / min_sep + 1);
    match random.whole(0, 5) {
        0 => Participation::Single,
        1 => Participation::FullBatch,
        2..=3 => Participation::Cyclic { min_sep, max_participations },
        _ => Participation::MinSep { min_sep, max_participations },
    }
}

fn problem(seed: u64, most: usize) -> Problem {
    let random = &mut Random(seed);
    let steps = if random.whole(0, 2) == 0 { random.whole(1, 5) } else { random.whole(1, most) };
    Problem {
        steps,
        workload: workload(random, steps),
        participation: participation(random, steps),
        objective: if random.whole(0, 1) == 0 { Objective::Max } else { Objective::Rms },
    }
}

/// What is designed for a problem: sizes of every class, and what classes contain.
fn specs(problem: &Problem) -> Vec<StrategySpec> {
    let n = problem.steps;
    let Separation { min_sep: b, max_participations: k } = problem.participation.separation(n);
    let mut sizes = vec![1, 2, 3, b.min(n), (b + 1).min(n), n.div_ceil(2), n];
    sizes.retain(|&size| size <= n);
    sizes.sort_unstable();
    sizes.dedup();
    let banded = |class| {
        let of = move |bands| StrategySpec { bands: Some(bands), ..StrategySpec::new(class) };
        sizes.clone().into_iter().flat_map(move |bands| {
            [of(bands), StrategySpec { rule: CoefficientRule::SquareRoot, ..of(bands) }]
        })
    };
    let mut all: Vec<StrategySpec> =
        vec![StrategySpec::new(Class::Identity), StrategySpec::new(Class::OutputPerturbation)];
    all.extend([
        StrategySpec::new(Class::Toeplitz),
        StrategySpec { rule: CoefficientRule::SquareRoot, ..StrategySpec::new(Class::Toeplitz) },
    ]);
    all.extend(banded(Class::BandedToeplitz));
    all.extend(banded(Class::BandedInverse));
    all.extend(banded(Class::Banded).filter(|spec| k == 1 || spec.bands.is_some_and(|bands| bands <= b)));
    for class in [Class::Blt, Class::VaryingBlt, Class::Rational] {
        all.extend([1, 2, 4].map(|order| StrategySpec { order: Some(order), ..StrategySpec::new(class) }));
    }
    let normalized = StrategySpec { column_normalize: true, ..StrategySpec::new(Class::Toeplitz) };
    all.extend([StrategySpec::new(Class::Dense), normalized]);
    all.extend([Class::HonakerOnline, Class::SmoothTree, Class::WeightedTree].map(StrategySpec::new));
    for bands in sizes.into_iter().filter(|&bands| bands > 1) {
        let of = |form| StrategySpec {
            bands: Some(bands),
            rule: form,
            ..StrategySpec::new(Class::BandedToeplitz)
        };
        let from = bands.div_ceil(2);
        let forms = [
            CoefficientRule::Harmonic,
            CoefficientRule::Damped { damping: 0.1 },
            CoefficientRule::Tapered { from },
            CoefficientRule::Averaged { from },
        ];
        all.extend(forms.map(|form| if from < bands { of(form) } else { of(CoefficientRule::Harmonic) }));
        all.push(StrategySpec { column_normalize: true, ..of(CoefficientRule::Optimized) });
    }
    all
}

/// Whether `larger` contains every strategy of `smaller`, or one that costs no more.
fn contains(larger: &StrategySpec, smaller: &StrategySpec, problem: &Problem) -> bool {
    use Class::{
        Banded, BandedInverse, BandedToeplitz, Blt, Dense, Identity, Rational, Toeplitz, VaryingBlt,
    };
    if larger.rule != CoefficientRule::Optimized || larger.column_normalize || larger == smaller {
        return false;
    }
    let fewer = larger.bands >= smaller.bands;
    let plain = !smaller.column_normalize;
    match (larger.class, smaller.class) {
        (Dense, _) => true,
        (Toeplitz, Identity | Toeplitz | BandedToeplitz | BandedInverse | Blt) => plain,
        (Toeplitz, Class::OutputPerturbation) => problem.workload.is_toeplitz(),
        (BandedToeplitz | BandedInverse | Blt | VaryingBlt | Rational | Banded, Identity) => true,
        (BandedToeplitz, BandedToeplitz) => fewer && plain,
        (BandedInverse, BandedInverse) | (Banded, Banded) => fewer,
        (Blt | VaryingBlt | Rational, Blt) | (Rational, Rational) => larger.order >= smaller.order,
        (Rational, BandedToeplitz) => plain && smaller.bands <= larger.order.map(|order| order + 1),
        // Columns of norm 1 cost nothing where the densest pattern has them all.
        (Banded, BandedToeplitz) => {
            fewer
                && (smaller.column_normalize
                    || problem.participation.separation(problem.steps).max_participations == 1)
        }
        _ => false,
    }
}

fn objective_loss(spec: &StrategySpec, problem: &Problem) -> Option<f64> {
    // A workload without an inverse is no strategy.
    let found = spec.design(problem).ok()?;
    let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).ok()?;
    Some(match problem.objective {
        Objective::Max => cost.max_loss,
        Objective::Rms => cost.rms_loss,
    })
}

/// How many designs a problem took, and the pairs that are out of order.
fn check(problem: &Problem) -> (usize, Vec<String>) {
    let designs: Vec<(StrategySpec, f64)> =
        specs(problem).into_iter().filter_map(|spec| Some((spec, objective_loss(&spec, problem)?))).collect();
    let mut failures = Vec::new();
    for (larger, loss) in &designs {
        for (smaller, least) in designs.iter().filter(|(smaller, _)| contains(larger, smaller, problem)) {
            if *loss > least * (1.0 + TOLERANCE) {
                failures.push(format!(
                    "{larger} {loss} above {smaller} {least} by {:.1e}: n={} {} {} {}",
                    loss / least - 1.0,
                    problem.steps,
                    problem.workload,
                    problem.participation,
                    problem.objective
                ));
            }
        }
    }
    (designs.len(), failures)
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

#[test]
fn no_class_loses_to_what_it_contains() {
    let (wanted, most) =
        (setting("ANTINOISE_ORDER_DESIGNS", DESIGNS), setting("ANTINOISE_ORDER_STEPS", MAX_STEPS));
    let seed = setting("ANTINOISE_ORDER_SEED", 1) as u64;
    let (mut designs, mut failures, mut next) = (0, Vec::new(), 0u64);
    while designs < wanted {
        let batch: Vec<u64> = (next..next + 16).collect();
        next += 16;
        let found: Vec<(usize, Vec<String>)> =
            batch.into_par_iter().map(|i| check(&problem(seed.wrapping_mul(1 << 32) + i, most))).collect();
        for (count, mut out_of_order) in found {
            designs += count;
            failures.append(&mut out_of_order);
        }
    }
    assert!(failures.is_empty(), "{} of {designs} designs:\n{}", failures.len(), failures.join("\n"));
}
