//! Figures of the literature, and of our own optimisers, that must come out again.

use antinoise_mechanism::design::Objective::{self, Max, Rms};
use antinoise_mechanism::design::{CoefficientRule, StrategySpec};
use antinoise_mechanism::loss::Loss;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Problem, Workload};

fn cost(spec: &str, steps: usize, participation: &str, objective: Objective) -> Loss {
    let problem = Problem {
        steps,
        workload: Workload::Prefix,
        participation: participation.parse().unwrap(),
        objective,
    };
    let strategy = spec.parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
    strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap()
}

/// Monograph, Table 2.2: identity, workload, toeplitz and blt:4, max loss.
const MAX_LOSS: [(usize, f64, f64, f64, f64); 11] = [
    (8, 2.828, 2.828, 1.718, 1.723),
    (16, 4.0, 4.0, 1.944, 1.944),
    (32, 5.657, 5.657, 2.167, 2.168),
    (64, 8.0, 8.0, 2.389, 2.391),
    (128, 11.314, 11.314, 2.61, 2.61),
    (256, 16.0, 16.0, 2.831, 2.832),
    (512, 22.627, 22.627, 3.052, 3.054),
    (1024, 32.0, 32.0, 3.273, 3.273),
    (2048, 45.255, 45.255, 3.493, 3.494),
    (4096, 64.0, 64.0, 3.714, 3.716),
    (8192, 90.51, 90.51, 3.935, 3.939),
];

/// The printed digits, and nothing beyond them.
fn printed(got: f64, want: f64) -> bool {
    (got - want).abs() <= 0.000_500_1
}

#[test]
fn max_loss_table() {
    for (n, identity, workload, toeplitz, blt) in MAX_LOSS {
        let found = |spec| cost(spec, n, "single", Max).max_loss;
        assert!(printed(found("identity"), identity), "n={n}");
        assert!(printed(found("workload"), workload), "n={n}");
        assert!(printed(found("toeplitz"), toeplitz), "n={n}: {}", found("toeplitz"));
        // The published BLTs are up to 0.005 above what four buffers can do at small n: a BLT may be better
        // than printed, but never better than the best Toeplitz matrix.
        let blt_found = found("blt:4");
        assert!(blt_found <= blt + 0.000_500_1 && blt_found >= blt - 0.0055, "n={n}: {blt_found}");
        assert!(blt_found >= found("toeplitz") * (1.0 - 1e-9), "n={n}: {blt_found}");
    }
}

/// Monograph, Table 2.3: identity, workload, blt:4 and toeplitz, RMS loss.
const RMS_LOSS: [(usize, f64, f64, f64, f64); 11] = [
    (8, 2.121, 2.828, 1.544, 1.544),
    (16, 2.915, 4.0, 1.751, 1.75),
    (32, 4.062, 5.657, 1.964, 1.963),
    (64, 5.701, 8.0, 2.18, 2.179),
    (128, 8.031, 11.314, 2.398, 2.397),
    (256, 11.336, 16.0, 2.617, 2.616),
    (512, 16.016, 22.627, 2.837, 2.836),
    (1024, 22.638, 32.0, 3.057, 3.057),
    (2048, 32.008, 45.255, 3.278, 3.277),
    (4096, 45.26, 64.0, 3.499, 3.498),
    (8192, 64.004, 90.51, 3.72, 3.718),
];

#[test]
fn rms_loss_table() {
    for (n, identity, workload, blt, toeplitz) in RMS_LOSS {
        for (spec, want) in
            [("identity", identity), ("workload", workload), ("blt:4", blt), ("toeplitz", toeplitz)]
        {
            let found = cost(spec, n, "single", Rms).rms_loss;
            assert!(printed(found, want), "{spec} n={n}: {found} against {want}");
        }
    }
}

/// Monograph, Table 2.3: honaker-online ("Streaming H2") and honaker-full, RMS loss.
const TREE_RMS_LOSS: [(usize, f64, f64); 11] = [
    (8, 2.178, 1.656),
    (16, 2.663, 1.938),
    (32, 3.156, 2.227),
    (64, 3.652, 2.518),
    (128, 4.151, 2.81),
    (256, 4.65, 3.102),
    (512, 5.15, 3.394),
    (1024, 5.65, 3.686),
    (2048, 6.15, 3.978),
    (4096, 6.65, 4.269),
    (8192, 7.15, 4.56),
];

#[test]
fn trees() {
    for (n, online, full) in TREE_RMS_LOSS {
        for (spec, want) in [("honaker-online", online), ("honaker-full", full)] {
            let found = cost(spec, n, "single", Rms).rms_loss;
            assert!(printed(found, want), "{spec} n={n}: {found} against {want}");
        }
        // Monograph, Theorem 2.20; the worst prefix has every binary digit but the highest.
        let levels = n.ilog2() as f64;
        let found = cost("tree", n, "single", Max).max_loss;
        assert!((found / (levels * (1.0 + levels)).sqrt() - 1.0).abs() < 1e-12, "n={n}: {found}");
    }
    assert!(printed(cost("honaker-full", 8, "single", Max).max_loss, 2.010));
    assert!(printed(cost("honaker-full", 16, "single", Max).max_loss, 2.369));
}

/// Multi-epoch paper, Table 1: prefix sums over 2000 steps, 20 participations 100 steps apart; restarts, then
/// the total loss of honaker-online, honaker-full, fourier and fourier-optimal, the last two by the spectral
/// bound alone.
const MULTI_EPOCH_TOTAL_LOSS: [(usize, [f64; 4]); 5] = [
    (1, [5.774e6, 2.431e6, 2.344e6, 2.243e6]),
    (2, [3.267e6, 1.551e6, 1.791e6, 1.452e6]),
    (5, [2.077e6, 1.225e6, 1.629e6, 1.133e6]),
    (10, [1.954e6, 1.388e6, 1.859e6, 1.241e6]),
    (20, [2.130e6, 1.753e6, 2.515e6, 1.700e6]),
];

/// The explicit factorization of the group algebra (Henzinger and Upadhyay 2025): B C = A for prefix sums,
/// where B and C are the first rows and columns of one circulant, the matrix of an element of the algebra of
/// the cyclic group of 2n elements. All rows of B and all columns of C have the same norm, and its square,
/// the max loss, is Mathias's upper bound on the least of all factorizations (monograph, Section 2.12).
#[test]
fn the_fourier_mechanism_attains_the_bound_of_mathias() {
    for n in [1, 2, 3, 5, 8, 33, 100, 512] {
        let strategy = "fourier".parse::<StrategySpec>().unwrap().design(&Problem::prefix(n)).unwrap().value;
        let c = strategy.encoder().unwrap().to_dense();
        let root: Vec<f64> = c.column(0).to_vec();
        let b = |i: usize, s: usize| root[(2 * n + i - s) % (2 * n)];
        for j in 0..n {
            let column = c.column(j);
            for i in 0..n {
                let product: f64 = (0..2 * n).map(|s| b(i, s) * column[s]).sum();
                assert!((product - f64::from(i >= j)).abs() < 1e-12, "n={n} [{i}, {j}]: {product}");
            }
        }
        let csc = |t: usize| 1.0 / ((2 * t - 1) as f64 * std::f64::consts::PI / (2 * n) as f64).sin();
        let bound = 0.5 + (1..=n).map(csc).sum::<f64>() / (2 * n) as f64;
        let norms = [strategy.row_errors(&Workload::Prefix).unwrap(), strategy_norms(&c)].concat();
        for norm in norms {
            assert!((norm * norm / bound - 1.0).abs() < 1e-12, "n={n}: {norm}, {bound}");
        }
        let found = cost("fourier", n, "single", Objective::Max);
        assert!(
            (found.max_loss / bound - 1.0).abs() < 1e-12
                && bound < 1.0 + (n as f64).ln() / std::f64::consts::PI + 1e-9
        );
    }
}

fn strategy_norms(c: &antinoise_linear::Matrix) -> Vec<f64> {
    (0..c.ncols()).map(|j| c.column(j).iter().map(|x| x * x).sum::<f64>().sqrt()).collect()
}

/// 20 times the largest eigenvalue of C^T C between the steps 0, 100, 200, ..., by the power method.
fn spectral_squared(strategy: &AnyStrategy) -> f64 {
    let encoder = strategy.encoder().unwrap();
    let lags: Vec<Vec<f64>> = (0..20).map(|lag| encoder.gram_lag(100 * lag)).collect();
    let entry = |i: usize, j: usize| lags[i.abs_diff(j)][100 * i.min(j)];
    let (mut x, mut norm) = (vec![1.0; 20], 0.0);
    for _ in 0..10_000 {
        let y: Vec<f64> = (0..20).map(|i| (0..20).map(|j| entry(i, j) * x[j]).sum()).collect();
        norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
        x = y.iter().map(|y| y / norm).collect();
    }
    20.0 * norm
}

#[test]
fn multi_epoch_total_loss() {
    let problem = Problem {
        steps: 2000,
        workload: Workload::Prefix,
        participation: "cyclic:100,20".parse().unwrap(),
        objective: Rms,
    };
    let specs = ["honaker-online", "honaker-full", "fourier", "fourier-optimal"];
    for (restarts, published) in MULTI_EPOCH_TOTAL_LOSS {
        for (spec, want) in specs.iter().zip(published) {
            let spec: StrategySpec = spec.parse().unwrap();
            let spec = StrategySpec { restarts: (restarts > 1).then_some(restarts), ..spec };
            let strategy = spec.design(&problem).unwrap().value;
            let found = strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut);
            let found = found.unwrap();
            let mut total = found.total_loss;
            if matches!(spec.class, Class::Fourier | Class::FourierOptimal) {
                let bound = spectral_squared(&strategy);
                assert!(found.sensitivity.value.powi(2) <= bound * (1.0 + 1e-12), "{spec}");
                total *= bound / found.sensitivity.value.powi(2);
            }
            assert!((total / want - 1.0).abs() < 1e-3, "{spec}: {total} against {want}");
        }
    }
}

#[test]
fn banded_toeplitz_optima() {
    let optima = [
        (1024, 16, 6.34279),
        (16384, 16, 23.09245),
        (16384, 32, 16.69789),
        (65536, 64, 23.45413),
        (100_000, 16, 56.25084),
        (2000, 400, 3.51022),
    ];
    for (n, bands, want) in optima {
        let found = cost(&format!("banded-toeplitz:{bands}"), n, "single", Rms).rms_loss;
        assert!((found / want - 1.0).abs() < 1e-5, "n={n}, {bands} bands: {found} against {want}");
    }
}

#[test]
fn the_truncated_square_root_against_the_optimum() {
    for (n, want) in [(1024, 1.138), (16384, 1.222), (100_000, 1.238)] {
        let problem = Problem::prefix(n);
        let spec: StrategySpec = "banded-toeplitz:16".parse().unwrap();
        let rms = |spec: StrategySpec| {
            let strategy = spec.design(&problem).unwrap().value;
            strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap().rms_loss
        };
        let ratio = rms(StrategySpec { rule: CoefficientRule::SquareRoot, ..spec }) / rms(spec);
        assert!(printed(ratio, want), "n={n}: {ratio} against {want}");
    }
}

#[test]
fn blt_optima() {
    for (order, most) in [(2, 12.8492), (3, 12.2740), (4, 12.2095), (5, 12.2034)] {
        let found = cost(&format!("blt:{order}"), 2048, "single", Max).max_loss.powi(2);
        assert!(found <= most, "order {order}: {found}");
    }
    assert!(cost("blt:4", 2048, "min-sep:128,16", Max).max_loss.powi(2) <= 506.47);
    assert!(cost("blt:4", 2048, "min-sep:128,16", Rms).rms_loss.powi(2) < 327.63);
}

/// No mechanism at all is below ln(2n + 1) / pi, the best one is at most 1 + ln(n) / pi, and a few buffers
/// come close, for any number of steps.
#[test]
fn blt_max_loss_at_ten_billion_steps() {
    let n = 10_000_000_000usize;
    let bound = 1.0 + (n as f64).ln() / std::f64::consts::PI;
    for (order, most) in [(5, 1.065), (8, 1.0135)] {
        let found = cost(&format!("blt:{order}"), n, "single", Max).max_loss;
        assert!(found <= most * bound, "order {order}: {}", found / bound);
    }
}

#[test]
fn blts_are_finite_for_any_order_and_any_number_of_steps() {
    let mut steps = vec![2usize, 3, 4, 5, 7, 10, 17];
    steps.extend((2..=10).flat_map(|digits| [10usize.pow(digits) - 1, 10usize.pow(digits)]));
    for n in steps {
        for order in 1..=8 {
            for objective in [Max, Rms] {
                let found = cost(&format!("blt:{order}"), n, "single", objective);
                let lower = (2.0 * n as f64 + 1.0).ln() / std::f64::consts::PI;
                assert!(
                    found.max_loss.is_finite() && found.max_loss >= lower,
                    "n={n} order {order}: {found:?}"
                );
                assert!(found.rms_loss <= found.max_loss * (1.0 + 1e-12), "n={n} order {order}: {found:?}");
            }
        }
    }
}

/// Monograph, Tables 2.2 and 2.3: the dense optimum.
#[test]
fn dense_columns_of_the_streaming_tables() {
    let table = [
        (8, 1.51, 1.494),
        (16, 1.704, 1.689),
        (32, 1.905, 1.892),
        (64, 2.111, 2.1),
        (128, 2.32, 2.311),
        (256, 2.532, 2.524),
    ];
    for (n, max, rms) in table {
        let found = [cost("dense", n, "single", Max).max_loss, cost("dense", n, "single", Rms).rms_loss];
        assert!((found[0] - max).abs() <= 0.001 && printed(found[1], rms), "n={n}: {found:?}");
    }
}

/// Without gradients: theta_i = 1 / i + c (from 1), the best c >= 0, against the optimum.
#[test]
fn the_best_shifted_harmonic_coefficients() {
    use antinoise_mechanism::{AnyStrategy, strategy::Toeplitz};
    for (n, bands, want) in
        [(1024, 16, 1.0013), (16384, 32, 1.0017), (65536, 64, 1.0020), (2000, 400, 1.0502)]
    {
        let rms = |shift: f64| {
            let coefficients = (1..=bands).map(|i| 1.0 / i as f64 + shift).collect();
            let strategy = AnyStrategy::Toeplitz(Toeplitz::new(n, coefficients).unwrap());
            let single = "single".parse().unwrap();
            strategy.loss(&Workload::Prefix, &single, Adjacency::ZeroOut).unwrap().rms_loss
        };
        // A golden-section search: the loss has one minimum in c.
        let (mut low, mut high) = (0.0, 4.0);
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        for _ in 0..40 {
            let (x, y) = (high - ratio * (high - low), low + ratio * (high - low));
            if rms(x) < rms(y) { high = y } else { low = x }
        }
        let optimum = cost(&format!("banded-toeplitz:{bands}"), n, "single", Rms).rms_loss;
        let found = rms(0.5 * (low + high)) / optimum;
        assert!((found - want).abs() < 6e-5, "n={n}, {bands} bands: {found} against {want}");
    }
}

#[test]
fn the_best_three_bands_of_nine_steps() {
    let lower_band = [
        &[0.740][..],
        &[0.500, 0.822],
        &[0.450, 0.492, 0.876],
        &[0.286, 0.395, 0.821],
        &[0.278, 0.462, 0.855],
        &[0.335, 0.442, 0.882],
        &[0.272, 0.403, 0.892],
        &[0.243, 0.409, 0.936],
        &[0.194, 0.353, 1.000],
    ];
    let problem = Problem::prefix(9);
    let strategy = "banded:3".parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
    let c = strategy.encoder().unwrap().to_dense();
    for (t, row) in lower_band.iter().enumerate() {
        for (i, want) in row.iter().enumerate() {
            let found = c[(t, t + 1 - row.len() + i)];
            assert!(printed(found, *want), "row {t}: {found} against {want}");
        }
    }
    let total = cost("banded:3", 9, "single", Rms).total_loss;
    assert!((total - 24.880865).abs() < 1e-6, "{total}");
}

/// Beyond ten million steps the tail is stationary: the same optimum as on either side of the border.
#[test]
fn banded_toeplitz_has_no_longest_run() {
    let at = |n: usize| cost("banded-toeplitz:8", n, "cyclic:1000,4", Rms).rms_loss / (n as f64).sqrt();
    let (below, above, far) = (at(10_000_000), at(10_000_001), at(1_000_000_000));
    assert!((above / below - 1.0).abs() < 1e-6, "{below} {above}");
    assert!(far < below && far > 0.99 * below, "{below} {far}");
}

#[test]
fn an_automatic_blt_has_as_many_buffers_as_pay() {
    let cost_of = |spec| cost(spec, 2048, "single", Max).max_loss;
    assert_eq!(cost_of("blt"), cost_of("blt:4"));
    assert!(cost_of("blt:4") < 0.999 * cost_of("blt:3") && cost_of("blt:5") > 0.999 * cost_of("blt:4"));
}

/// A second route to the dense optimum: L-BFGS on the primal, over all lower-triangular C with unit columns.
#[test]
fn the_dense_optimum_by_its_primal() {
    for n in [2usize, 5, 12, 24] {
        let (dual, primal) =
            (cost("dense", n, "single", Rms), cost(&format!("banded:{n}"), n, "single", Rms));
        assert!((primal.rms_loss / dual.rms_loss - 1.0).abs() < 1e-6, "n={n}: {primal:?} {dual:?}");
    }
}

/// Runs that share no step compose like independent Gaussian mechanisms: mu^2 adds up, and so does sens^2.
#[test]
fn restarts_compose() {
    let spec = "blt:2+x3";
    let whole = cost(spec, 60, "cyclic:10,6", Rms);
    let run = cost("blt:2", 20, "cyclic:10,2", Rms);
    let (whole, run) = (whole.sensitivity.value, run.sensitivity.value);
    assert!((whole * whole - 3.0 * run * run).abs() < 1e-9 * whole * whole, "{whole} {run}");
}
