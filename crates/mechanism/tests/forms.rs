//! Rules of coefficients, columns that are optimised at norm 1, and smooth and weighted trees.

mod sweeps;

use antinoise_input::BadInput;
use antinoise_mechanism::design::Objective::{self, Max, Rms};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::loss::Loss;
use antinoise_mechanism::rounded::{Precision, sensitivity_upper};
use antinoise_mechanism::strategy::ColumnNormalized;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Recursion, RowNorms, Workload};
use proptest::prelude::*;
use rayon::prelude::*;
use sweeps::is_whole;

fn problem(steps: usize, participation: &str, objective: Objective) -> Problem {
    let participation = participation.parse().unwrap();
    Problem { steps, workload: Workload::Prefix, participation, objective }
}

fn design(spec: &str, problem: &Problem) -> AnyStrategy {
    spec.parse::<StrategySpec>().unwrap().design(problem).unwrap().value
}

fn cost(strategy: &AnyStrategy, problem: &Problem) -> Loss {
    strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap()
}

fn rms(spec: &str, problem: &Problem) -> f64 {
    cost(&design(spec, problem), problem).rms_loss
}

/// BandMF, Appendix H: five participations, 400 steps apart as planned, 300 in truth.
#[test]
fn a_taper_pays_where_participations_come_closer_than_planned() {
    let (planned, truth) = (problem(2000, "min-sep:400,5", Rms), problem(2000, "min-sep:300,5", Rms));
    let untapered = cost(&design("banded-toeplitz:400", &planned), &truth).rms_loss;
    let blt = cost(&design("blt:4", &planned), &truth).rms_loss;
    let tapered = rms("banded-toeplitz:400+tapered:200", &truth);
    assert!((untapered - 8.668).abs() < 5e-4, "{untapered}");
    assert!((tapered - 8.369).abs() < 5e-4, "{tapered}");
    assert!(blt > tapered && (blt - 8.485).abs() < 0.02, "{blt}");
    // The same C, whatever separation it is measured at.
    assert_eq!(
        design("banded-toeplitz:400+tapered:200", &planned),
        design("banded-toeplitz:400+tapered:200", &truth)
    );
}

/// The mean over separations that `averaged` minimises.
fn mean_squared(spec: &str, problem: &Problem, from: usize, bands: usize) -> f64 {
    let strategy = design(spec, problem);
    let count = (bands - from + 1).min(33);
    let k = problem.participation.separation(problem.steps).max_participations;
    let of = |i: usize| {
        let min_sep = from + i * (bands - from) / (count - 1);
        let max_participations = k.min(problem.steps.div_ceil(min_sep));
        let participation = Participation::MinSep { min_sep, max_participations };
        let cost = cost(&strategy, &Problem { participation, ..problem.clone() });
        match problem.objective {
            Rms => cost.rms_loss.powi(2),
            Max => cost.max_loss.powi(2),
        }
    };
    (0..count).map(of).sum::<f64>() / count as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_averaged_design_has_the_least_mean(
        steps in 8usize..150, from in 1usize..8, more in 1usize..20, k in 2usize..6, max in any::<bool>(),
    ) {
        let bands = (from + more).min(steps);
        prop_assume!(from < bands && (k - 1) * bands < steps);
        let objective = if max { Max } else { Rms };
        let problem = problem(steps, &format!("min-sep:{bands},{k}"), objective);
        let mean = |form: &str| mean_squared(&format!("banded-toeplitz:{bands}{form}"), &problem, from, bands);
        let averaged = mean(&format!("+averaged:{from}"));
        for other in [String::new(), format!("+tapered:{from}"), "+square-root".into(), "+harmonic".into()] {
            let other = mean(&other);
            prop_assert!(averaged <= other * (1.0 + 1e-6), "{averaged} above {other}");
        }
    }
}

/// BandMF, Appendix J, figure 11.
#[test]
fn harmonic_coefficients_are_nearly_optimal() {
    for (steps, bands, ratio) in
        [(1024, 16, 1.0013), (16_384, 32, 1.0017), (65_536, 64, 1.0020), (2000, 400, 1.0502)]
    {
        let problem = problem(steps, "single", Rms);
        let (harmonic, best) = (
            rms(&format!("banded-toeplitz:{bands}+harmonic"), &problem),
            rms(&format!("banded-toeplitz:{bands}"), &problem),
        );
        assert!((harmonic / best - ratio).abs() < 6e-5, "n={steps}, {bands} bands: {}", harmonic / best);
    }
}

/// c_t (1 - nu)^t are the coefficients of the square root of sums that decay by 1 - nu.
#[test]
fn damping_is_the_square_root_of_a_decay() {
    let prefix = problem(200, "cyclic:20,10", Rms);
    for damping in [1e-9, 0.01, 0.3, 0.99] {
        let decay = Problem { workload: Workload::Decay { gamma: 1.0 - damping }, ..prefix.clone() };
        let damped = design(&format!("toeplitz+damped:{damping}"), &prefix);
        let root = design("toeplitz+square-root", &decay);
        let columns = |strategy: &AnyStrategy| strategy.encoder().unwrap().column(0);
        for (t, (x, y)) in columns(&damped).iter().zip(columns(&root)).enumerate() {
            assert!((x - y).abs() <= 1e-12 * y.abs() + 1e-15, "{damping} at {t}: {x} against {y}");
        }
    }
}

#[test]
fn forms_are_refused_by_name() {
    let problem = problem(20, "min-sep:5,3", Rms);
    for (spec, named) in [
        ("toeplitz+damped:0", "damped"),
        ("toeplitz+damped:1", "damped"),
        ("toeplitz+damped:NaN", "damped"),
        ("toeplitz+tapered:3", "coefficient rule"),
        ("toeplitz+averaged:3", "coefficient rule"),
        ("banded-toeplitz:5+tapered:0", "tapered"),
        ("banded-toeplitz:5+tapered:5", "tapered"),
        ("banded-toeplitz:1+averaged:1", "averaged"),
        ("blt:2+harmonic", "coefficient rule"),
        ("identity+damped:0.1", "coefficient rule"),
        ("banded:3+harmonic", "coefficient rule"),
        ("dense+square-root", "coefficient rule"),
        ("weighted-tree:3", "bands"),
    ] {
        let refused = spec.parse::<StrategySpec>().unwrap().design(&problem).unwrap_err();
        assert!(refused.is_bad_input() && refused.to_string().starts_with(named), "{spec}: {refused}");
    }
}

/// Whether optimising columns of norm 1 gains over scaling them afterwards, or `None` if `participation` does
/// not fit. BandMF, Appendix K: it never loses, costs no less than free columns, and of RMS loss of prefix
/// sums at most 2% more.
fn is_gained(
    steps: usize,
    bands: usize,
    participation: &str,
    objective: Objective,
    workload: &str,
) -> Option<bool> {
    let mut problem = problem(steps, participation, objective);
    problem.workload = workload.parse().unwrap();
    problem.check().ok()?;
    let of = |strategy: &AnyStrategy| {
        let cost = cost(strategy, &problem);
        if objective == Rms { cost.rms_loss } else { cost.max_loss }
    };
    let plain = design(&format!("banded-toeplitz:{bands}"), &problem);
    let scaled = of(&AnyStrategy::ColumnNormalized(ColumnNormalized::new(plain).unwrap()));
    let found = of(&design(&format!("banded-toeplitz:{bands}+column-normalized"), &problem));
    let free = of(&design(&format!("banded:{bands}"), &problem));
    let case = format!("n={steps}, {bands} bands, {workload}, {participation}, {objective}");
    assert!(found <= scaled * (1.0 + 1e-9), "{case}: {found} above {scaled}");
    assert!(found >= free * (1.0 - 1e-6), "{case}: {found} below {free}");
    if workload == "prefix" && objective == Rms {
        assert!(found <= 1.02 * free, "{case}: {found} against {free}");
    }
    Some(found < scaled * (1.0 - 1e-6))
}

/// 256 bands of 256 steps take minutes, and are left to whole sweeps.
#[test]
fn columns_of_norm_1_are_optimised_as_such() {
    let mut sizes = vec![(1, 1), (2, 2), (9, 3), (16, 16), (64, 8), (100, 40), (256, 16)];
    sizes.extend(is_whole().then_some((256, 256)));
    let of_size = |&(steps, bands): &(usize, usize)| {
        let mut found = Vec::new();
        for participation in ["single", &format!("min-sep:{bands},2"), &format!("cyclic:{bands},2")] {
            for (objective, workload) in
                [(Rms, "prefix"), (Max, "prefix"), (Rms, "momentum:0.9"), (Max, "cooldown:0,0.1")]
            {
                found.extend(is_gained(steps, bands, participation, objective, workload));
            }
        }
        found
    };
    let gained: Vec<bool> = sizes.par_iter().flat_map_iter(of_size).collect();
    let count = gained.iter().filter(|&&gained| gained).count();
    assert!(count >= 10 && gained.len() == if is_whole() { 64 } else { 60 }, "{count} of {}", gained.len());
}

/// The smooth tree's max loss is sqrt(ones zeros): never above the plain tree's, and half of it in the long
/// run.
#[test]
fn the_smooth_tree_halves_the_loss_of_the_tree() {
    for steps in (1..300).chain([1000, 4096, 50_000]) {
        let problem = problem(steps, "single", Max);
        let of = |spec: &str| cost(&design(spec, &problem), &problem).max_loss;
        let (smooth, plain) = (of("smooth-tree"), of("tree"));
        assert!(smooth <= plain * (1.0 + 1e-12), "n={steps}: {smooth} against {plain}");
        assert!(smooth.powi(2).fract().abs().min(1.0 - smooth.powi(2).fract()) < 1e-9, "n={steps}: {smooth}");
        if steps == 50_000 {
            assert!(smooth < 0.6 * plain, "{smooth} against {plain}");
        }
    }
}

/// Weights never cost more than none, and help most where units take part often.
#[test]
fn weighted_trees_cost_no_more_than_plain_ones() {
    let mut tested = 0;
    for steps in [1, 2, 3, 5, 8, 13, 64, 100, 1000] {
        for participation in
            ["single", "full-batch", "cyclic:2,2", "cyclic:10,10", "min-sep:10,10", "min-sep:30,3"]
        {
            for (objective, workload) in [(Rms, "prefix"), (Max, "prefix"), (Rms, "momentum:0.9")] {
                let mut problem = problem(steps, participation, objective);
                problem.workload = workload.parse().unwrap();
                if problem.check().is_err() {
                    continue;
                }
                tested += 1;
                let of = |spec: &str| {
                    let cost = cost(&design(spec, &problem), &problem);
                    if objective == Rms { cost.rms_loss } else { cost.max_loss }
                };
                let (weighted, plain) = (of("weighted-tree"), of("honaker-online"));
                assert!(
                    weighted <= plain * (1.0 + 1e-9),
                    "{steps} {participation} {workload}: {weighted} {plain}"
                );
                if steps == 1000 && workload == "prefix" {
                    assert!(weighted < 0.97 * plain, "{participation} {objective}: {weighted} {plain}");
                }
            }
        }
    }
    assert_eq!(tested, 96, "problems whose schema fits their steps");
}

/// The noise of all steps by transforms is that of the rows that the decoder's definition lists, for every
/// length.
#[test]
fn transforms_make_the_noise_of_the_rows() {
    for seeds in [1usize, 2, 3, 5, 8, 30, 97, 128] {
        let root: Vec<f64> = (0..seeds).map(|i| 1.0 / (1.0 + i as f64).sqrt() - 0.1).collect();
        let z: Vec<f64> = (0..seeds).map(|i| (1.3 * (i * i) as f64).sin()).collect();
        let sum = |t: usize| (0..seeds).map(|s| root[(seeds + t - s) % seeds] * z[s]).sum::<f64>();
        for steps in [1, seeds.div_ceil(2), seeds] {
            let recursion = Recursion::Circulant { root: root.clone() };
            let found = recursion.apply(steps, &z);
            for (t, found) in found.iter().enumerate() {
                let want = sum(t) - if t > 0 { sum(t - 1) } else { 0.0 };
                assert!((found - want).abs() < 1e-12, "{seeds} seeds, step {t}: {found} against {want}");
            }
            // The form with one seed a step has the same covariance.
            let RowNorms { inner, .. } = RowNorms::new(&recursion, steps);
            let rows: Vec<f64> = (0..steps)
                .map(|t| {
                    let unit = |s: usize| (0..seeds).map(|i| f64::from(u8::from(i == s))).collect::<Vec<_>>();
                    (0..seeds).map(|s| recursion.apply(steps, &unit(s))[t].powi(2)).sum::<f64>().sqrt()
                })
                .collect();
            let (least, most) = rows.iter().fold((f64::INFINITY, 0.0f64), |(l, m), x| (l.min(*x), m.max(*x)));
            assert!((inner.0 - least).abs() < 1e-12 && (inner.1 - most).abs() < 1e-12, "{seeds} {steps}");
        }
    }
}

/// Beyond the steps whose rows are stored, the mechanism's recursion is the circulant itself, and it runs
/// with the sensitivity that is stated, but for a part in 10^6.
#[test]
fn long_fourier_noise_is_made_by_transforms() {
    let problem = problem(10_000, "single", Rms);
    let strategy = design("fourier", &problem);
    let mechanism = &*strategy;
    assert!(matches!(mechanism.recursion().unwrap(), Recursion::Circulant { root } if root.len() == 20_000));
    let stated = mechanism.sensitivity(&problem.participation).unwrap().value;
    let runs = sensitivity_upper(mechanism, &problem.participation, Precision::Single).unwrap();
    assert!(runs >= stated && runs <= stated * (1.0 + 1e-6), "{runs} {stated}");
    let refused = sensitivity_upper(mechanism, &problem.participation, Precision::Double).unwrap_err();
    assert!(refused.to_string().starts_with("steps is 10000"), "{refused}");
}

/// Beyond the steps whose noise is stored, losses are still computed: the best decoder has less loss than
/// that of the circulant.
#[test]
fn fourier_losses_at_twenty_thousand_steps() {
    let problem = problem(20_000, "single", Rms);
    let (plain, best) = (rms("fourier", &problem), rms("fourier-optimal", &problem));
    let bound = 1.0 + 20_000f64.ln() / std::f64::consts::PI;
    assert!(best < plain && plain < 1.01 * bound && best > 0.95 * bound, "{best} {plain} {bound}");
}
