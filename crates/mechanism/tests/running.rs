//! The rounded strategy: rounding coefficients never gives a unit more influence than the stated bound.

mod sweeps;

use antinoise_mechanism::design::{CoefficientRule, Objective, StrategySpec};
use antinoise_mechanism::rounded::{OUTPUT_ROUNDING, Precision, sensitivity_upper};
use antinoise_mechanism::{AnyStrategy, Class, Participation, Problem, Recursion, Separation, Workload};
use rayon::prelude::*;
use sweeps::is_whole;

/// A coefficient as a kernel holds it.
type Held = fn(f64) -> f64;

fn held(precision: Precision) -> Held {
    match precision {
        Precision::Single => |x| f64::from(x as f32),
        Precision::Double => |x| x,
    }
}

/// C~ x, from the coefficients that the kernels hold: the seeds that would give the noise x.
fn encode(recursion: &Recursion, held: Held, x: &[f64]) -> Vec<f64> {
    let n = x.len();
    // A row of C that is solved for its own step.
    let solved = |row: &[f64], t: usize| {
        let past = |tau: usize| held(-row[tau] / row[0]) * x[t - tau];
        (x[t] - (1..row.len().min(t + 1)).map(past).sum::<f64>()) / held(1.0 / row[0])
    };
    match recursion {
        Recursion::Independent => x.to_vec(),
        Recursion::AutoRegressive { taps } => (0..n).map(|t| solved(taps, t)).collect(),
        Recursion::Banded { bands, rows } => {
            (0..n).map(|t| solved(&rows[t * bands..][..*bands], t)).collect()
        }
        Recursion::MovingAverage { taps } => {
            let taps: Vec<f64> = taps.iter().map(|&tap| held(tap)).collect();
            let mut z: Vec<f64> = Vec::with_capacity(n);
            for &x in x {
                let past: f64 = taps[1..].iter().zip(z.iter().rev()).map(|(w, z)| w * z).sum();
                z.push((x - past) / taps[0]);
            }
            z
        }
        Recursion::Blt { scale, decay } => {
            let mut buffers = vec![0.0; scale.len()];
            let step = |&x: &f64| {
                let z = x + scale.iter().zip(&buffers).map(|(&a, m)| held(a) * m).sum::<f64>();
                buffers.iter_mut().zip(decay).for_each(|(m, lambda)| *m = *m - held(1.0 - lambda) * *m + x);
                z
            };
            x.iter().map(step).collect()
        }
        Recursion::VaryingBlt { decay, reads, writes } => {
            let mut buffers = vec![0.0; decay.len()];
            let step = |(t, &x): (usize, &f64)| {
                let at = t * decay.len()..(t + 1) * decay.len();
                let z = x + reads[at.clone()].iter().zip(&buffers).map(|(&u, m)| held(u) * m).sum::<f64>();
                let of_step = decay.iter().zip(&writes[at]);
                for (m, (lambda, &v)) in buffers.iter_mut().zip(of_step) {
                    *m = *m - held(1.0 - lambda) * *m + held(v) * x;
                }
                z
            };
            x.iter().enumerate().map(step).collect()
        }
        Recursion::Rational { gain, feedback } => {
            let mut sums = vec![0.0; gain.len()];
            let step = |&x: &f64| {
                let over = |weights: &[f64], sums: &[f64]| -> f64 {
                    weights.iter().zip(sums).map(|(&w, m)| held(w) * m).sum()
                };
                let z = x + over(gain, &sums);
                let change = x - over(feedback, &sums);
                (1..sums.len()).rev().for_each(|k| sums[k] += sums[k - 1]);
                sums.iter_mut().take(1).for_each(|first| *first += change);
                z
            };
            x.iter().map(step).collect()
        }
        // Lower triangular here, its weights as they are held.
        Recursion::SeedCombination { rows } => {
            let mut z = vec![0.0; n];
            for (t, row) in rows[..n].iter().enumerate() {
                let past: f64 = row.iter().filter(|(s, _)| *s < t).map(|&(s, w)| w * z[s]).sum();
                let fresh = row.iter().find(|(s, _)| *s == t).expect("each step has its seed").1;
                z[t] = (x[t] - past) / fresh;
            }
            z
        }
        Recursion::Circulant { .. } => unreachable!("only beyond the steps that are tried here"),
        Recursion::Scaled { inner, factors } => {
            let inner_x: Vec<f64> = x.iter().zip(factors).map(|(x, factor)| x / held(*factor)).collect();
            encode(inner, held, &inner_x)
        }
        Recursion::Restarted { inner, period } => {
            x.chunks(*period).flat_map(|run| encode(inner, held, run)).collect()
        }
    }
}

/// Sums of seeds as the kernels hold them, with a seed for each step.
fn as_held(recursion: &Recursion, held: Held) -> Recursion {
    match recursion {
        Recursion::SeedCombination { rows } => {
            let row = |row: &Vec<(usize, f64)>| row.iter().map(|&(seed, w)| (seed, held(w))).collect();
            Recursion::SeedCombination { rows: rows.iter().map(row).collect() }
        }
        Recursion::Scaled { inner, factors } => {
            Recursion::Scaled { inner: Box::new(as_held(inner, held)), factors: factors.clone() }
        }
        Recursion::Restarted { inner, period } => {
            Recursion::Restarted { inner: Box::new(as_held(inner, held)), period: *period }
        }
        other => other.clone(),
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Steps in which one unit may take part: dense patterns at several phases.
fn patterns(participation: &Participation, n: usize) -> Vec<Vec<usize>> {
    if let Participation::Patterns { patterns } = participation {
        return patterns.clone();
    }
    let Separation { min_sep: b, max_participations: k } = participation.separation(n);
    // A cyclic unit has its first turn within the first cycle.
    let last = if matches!(participation, Participation::MinSep { .. }) { n - 1 } else { b - 1 };
    let phases = [0, 1, b / 2, b - 1, n / 2, n - 1].map(|phase| phase.min(last));
    phases.iter().map(|&phase| (phase..n).step_by(b).take(k).collect()).collect()
}

/// The effect of contributions of 1 at the steps of a pattern on the rounded strategy: a lower bound on its
/// sensitivity.
fn moved(recursion: &Recursion, precision: Precision, participation: &Participation, n: usize) -> f64 {
    let recursion = as_held(recursion, held(precision)).with_one_seed_per_step(n).unwrap();
    let of = |pattern: Vec<usize>| {
        let mut x = vec![0.0; n];
        pattern.into_iter().for_each(|t| x[t] = 1.0);
        norm(&encode(&recursion, held(precision), &x))
    };
    patterns(participation, n).into_iter().map(of).fold(0.0, f64::max)
}

fn schemas(n: usize) -> Vec<Participation> {
    let mut all = vec![Participation::Single, Participation::FullBatch];
    for (min_sep, max_participations) in [(n.div_ceil(3), 3), (2, 2)] {
        all.push(Participation::Cyclic { min_sep, max_participations });
        all.push(Participation::MinSep { min_sep, max_participations });
    }
    all.push(Participation::Patterns { patterns: vec![(0..n).step_by(2).take(4).collect()] });
    all.retain(|schema| schema.check(n).is_ok());
    all
}

fn momentum(momentum: f64) -> Workload {
    Workload::Momentum { momentum, weight_decay: 0.0 }
}

fn workloads(n: usize) -> Vec<Workload> {
    vec![
        Workload::Prefix,
        momentum(0.95),
        Workload::Momentum { momentum: 0.5, weight_decay: 0.1 },
        Workload::Nesterov { momentum: 0.9 },
        Workload::Decay { gamma: 0.8 },
        Workload::Window { width: 3 },
        Workload::Cooldown { start: n / 2, last: 0.2 },
        Workload::Toeplitz { coefficients: vec![2.0, -0.5, 1.0] },
        Workload::Matrix {
            rows: (0..n).map(|i| (0..=i).map(|j| 1.0 + ((i * j) % 3) as f64).collect()).collect(),
        },
    ]
}

fn law(name: &str, strategy: &AnyStrategy, participation: &Participation) -> f64 {
    let mechanism = &**strategy;
    let (n, recursion) = (mechanism.steps(), mechanism.recursion().unwrap());
    let stated = mechanism.sensitivity(participation).unwrap().value;
    let mut part: f64 = 0.0;
    for precision in [Precision::Single, Precision::Double] {
        let bound = sensitivity_upper(mechanism, participation, precision).unwrap();
        let moved = moved(&recursion, precision, participation, n);
        // The check itself rounds.
        assert!(
            moved <= bound * (1.0 + 1e-11),
            "{name} {participation} {precision:?}: {moved} above {bound}"
        );
        let most = if precision == Precision::Single { 0.15 } else { 1e-6 };
        assert!(bound <= stated * (1.0 + most), "{name} {participation} {precision:?}: {bound} for {stated}");
        part = part.max(bound / stated - 1.0);
    }
    part
}

fn design(
    spec: &StrategySpec,
    workload: &Workload,
    participation: &Participation,
    steps: usize,
) -> AnyStrategy {
    let problem = Problem {
        steps,
        workload: workload.clone(),
        participation: participation.clone(),
        objective: Objective::Rms,
    };
    spec.design(&problem).unwrap_or_else(|error| panic!("{spec:?} {workload} {steps}: {error}")).value
}

#[test]
fn no_class_counts_for_more_than_is_stated() {
    for n in [1, 2, 7, 33] {
        Class::ALL.par_iter().for_each(|&class| {
            let base = StrategySpec::new(class);
            let others = [
                StrategySpec { column_normalize: true, ..base },
                StrategySpec { restarts: Some(2.min(n)), ..base },
                StrategySpec { restarts: Some(n.div_ceil(3)), column_normalize: true, ..base },
            ];
            for (i, workload) in workloads(n).into_iter().enumerate() {
                // Of 33 steps, each workload with a third of the schemas, unless sweeps are whole.
                let (first, share) = if n < 33 || is_whole() { (0, 1) } else { (i % 3, 3) };
                for participation in schemas(n).into_iter().skip(first).step_by(share) {
                    let name = format!("{} {workload} n={n}", class.name());
                    law(&name, &design(&base, &workload, &participation, n), &participation);
                }
                for spec in others {
                    let participation = schemas(n).pop().unwrap();
                    let name = format!("{spec:?} {workload}");
                    law(&name, &design(&spec, &workload, &participation, n), &participation);
                }
            }
        });
    }
}

#[test]
fn no_class_counts_for_more_over_480_steps() {
    let workloads = [Workload::Prefix, momentum(0.95)];
    for &class in Class::ALL {
        for workload in workloads.iter().take(if is_whole() { 2 } else { 1 }) {
            for participation in [
                Participation::Single,
                Participation::Cyclic { min_sep: 120, max_participations: 4 },
                Participation::MinSep { min_sep: 120, max_participations: 4 },
            ] {
                // The best dense strategy of several participations takes long to find.
                if class == Class::Dense && participation != Participation::Single {
                    continue;
                }
                let strategy = design(&StrategySpec::new(class), workload, &participation, 480);
                let name = format!("{} {workload} n=480", class.name());
                println!("{name} {participation}: {:.1e}", law(&name, &strategy, &participation));
            }
        }
    }
}

/// The classes with a closed form or a few bands, over long runs.
#[test]
fn no_class_counts_for_more_over_long_runs() {
    let of =
        |class, bands| StrategySpec { bands, rule: CoefficientRule::SquareRoot, ..StrategySpec::new(class) };
    let specs = [
        of(Class::Identity, None),
        of(Class::OutputPerturbation, None),
        of(Class::BandedToeplitz, Some(8)),
        of(Class::BandedInverse, Some(8)),
        of(Class::Toeplitz, None),
        StrategySpec { order: Some(4), ..StrategySpec::new(Class::Blt) },
    ];
    for steps in [10_000, 100_000] {
        for spec in specs {
            // All taps of C^-1: as many operations as the square of the steps.
            if spec.class == Class::Toeplitz && steps > 10_000 {
                continue;
            }
            for workload in [Workload::Prefix, momentum(0.95)] {
                // Found without the workload's coefficients.
                let designed = if spec.class == Class::Blt { &Workload::Prefix } else { &workload };
                for participation in [
                    Participation::Single,
                    Participation::MinSep { min_sep: steps / 4, max_participations: 4 },
                ] {
                    let strategy = design(&spec, designed, &participation, steps);
                    let name = format!("{} {workload} n={steps}", spec.class.name());
                    println!("{name} {participation}: {:.1e}", law(&name, &strategy, &participation));
                }
            }
        }
    }
}

/// Two roots of the denominator near 1: the taps of C^-1 in single precision make another C, by percents.
#[test]
fn momentum_as_the_strategy_counts_for_more_as_rounded() {
    for (steps, least, most) in [(480, 2e-4, 3e-4), (10_000, 5e-3, 7e-3), (100_000, 0.05, 0.07)] {
        let strategy = design(
            &StrategySpec::new(Class::OutputPerturbation),
            &momentum(0.95),
            &Participation::Single,
            steps,
        );
        let mechanism = &*strategy;
        let stated = mechanism.sensitivity(&Participation::Single).unwrap().value;
        let recursion = mechanism.recursion().unwrap();
        let runs = moved(&recursion, Precision::Single, &Participation::Single, steps) / stated - 1.0;
        assert!((least..most).contains(&runs), "{steps}: {runs:e}");
        let of = |precision| {
            sensitivity_upper(mechanism, &Participation::Single, precision).unwrap() / stated - 1.0
        };
        let found = of(Precision::Single);
        assert!(
            runs <= found && found < runs * 1.01 + 2.0 * OUTPUT_ROUNDING,
            "{steps}: {found:e} for {runs:e}"
        );
        let double = of(Precision::Double);
        println!("{steps}: single {found:.2e}, double {double:.1e}");
        assert!(double < 2e-8, "{steps}: {double:e}");
    }
}
