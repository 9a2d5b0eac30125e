//! Sensitivity where a unit takes part once in each epoch, at any step of it: brute force over all patterns
//! and signs, for matrices of every shape and every class, with and without restarts.

#[expect(dead_code, reason = "the laws use the rest of it")]
mod oracle;

use antinoise_linear::Matrix;
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::rounded::{Precision, sensitivity_upper};
use antinoise_mechanism::sensitivity::{Kind, RowNorm};
use antinoise_mechanism::strategy::{Restarted, Toeplitz};
use antinoise_mechanism::{AnyStrategy, Participation, Problem};

/// Pseudo-random numbers between -1 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn rows(strategy: &AnyStrategy) -> oracle::Matrix {
    let c = strategy.encoder().unwrap().to_dense();
    (0..c.nrows()).map(|i| (0..c.ncols()).map(|j| c[(i, j)]).collect()).collect()
}

/// Checks the bound, and equality where it is called exact; returns whether it is.
fn holds(strategy: &AnyStrategy, epoch_steps: usize) -> bool {
    let schema = Participation::EachEpoch { epoch_steps };
    let brute = oracle::sensitivity(&rows(strategy), &schema);
    let found = strategy.sensitivity(&schema).unwrap();
    let what = format!("{:?} n={} {schema}: {found:?} {brute}", strategy.class(), strategy.steps());
    assert!(found.value >= brute * (1.0 - 1e-10), "{what}");
    if found.kind == Kind::Exact {
        assert!(found.value <= brute * (1.0 + 1e-10), "{what}");
    }
    let free =
        Participation::MinSep { min_sep: 1, max_participations: strategy.steps().div_ceil(epoch_steps) };
    let most = strategy.sensitivity(&free).unwrap();
    assert!(found.value <= most.value * (1.0 + 1e-10), "{what}: {most:?}");
    let scalars = strategy.sensitivity_of(&schema, RowNorm::L1).unwrap();
    assert!(scalars.value >= brute * (1.0 - 1e-10) && scalars.value <= found.value, "{what}: {scalars:?}");
    if let Ok(run) = sensitivity_upper(&**strategy, &schema, Precision::Double) {
        assert!(run >= brute * (1.0 - 1e-10), "{what}: {run} as it is run");
        // Rounding alone: a BLT is run with the bound that is stated.
        let is_blt = matches!(strategy, AnyStrategy::Blt(_));
        assert!(!is_blt || run <= found.value * (1.0 + 1e-9), "{what}: {run} as it is run");
    }
    found.kind == Kind::Exact
}

#[test]
fn matrices_of_any_sign_are_bounded() {
    let mut numbers = Numbers(3);
    let (mut checked, mut exact) = (0, 0);
    for case in 0..400 {
        let n = 2 + case % 7;
        let bands = 1 + case % 4;
        let is_positive = case % 3 == 0;
        let entry = |i: usize, j: usize, x: f64| match i >= j && (case % 5 < 2 || i - j < bands) {
            true => f64::from(i == j) + if is_positive { x.abs() } else { x },
            false => 0.0,
        };
        let c = Matrix::from_fn(n, n, |i, j| {
            let x = numbers.next();
            entry(i, j, x)
        });
        let Ok(strategy) = AnyStrategy::of_matrix(&c) else { continue };
        let coefficients = (0..n).map(|t| entry(t, 0, numbers.next())).collect();
        let toeplitz = AnyStrategy::Toeplitz(Toeplitz::new(n, coefficients).unwrap());
        for epoch_steps in 1..=n {
            exact += usize::from(holds(&strategy, epoch_steps));
            exact += usize::from(holds(&toeplitz, epoch_steps));
            checked += 2;
        }
    }
    assert!(checked > 3000 && exact > 600 && exact < checked, "{exact} of {checked}");
}

#[test]
fn classes_are_bounded_and_restarts_in_each_epoch_are_exact() {
    let (mut checked, mut exact) = (0, 0);
    for name in [
        "identity",
        "workload",
        "toeplitz",
        "toeplitz+square-root",
        "banded-toeplitz:3",
        "banded-toeplitz:3+column-normalized",
        "banded:2",
        "blt:2",
        "dense",
        "tree",
        "honaker-full",
    ] {
        let spec: StrategySpec = name.parse().unwrap();
        for n in 1..=9 {
            for epoch_steps in 1..=n {
                let schema = Participation::EachEpoch { epoch_steps };
                let problem = Problem { participation: schema, ..Problem::prefix(n) };
                let Ok(found) = spec.design(&problem) else { continue };
                assert!(epoch_steps == n || found.gap.is_none(), "{name}: no certificate");
                holds(&found.value, epoch_steps);
                let Ok(run) = spec.design(&Problem::prefix(epoch_steps)) else { continue };
                let restarted = AnyStrategy::Restarted(Restarted::new(n, run.value).unwrap());
                assert!(holds(&restarted, epoch_steps), "{name} n={n} {epoch_steps}");
                exact += 1;
                checked += 2;
            }
        }
    }
    assert!(checked > 700 && exact > 300, "{exact} of {checked}");
}

/// Long runs: a bound in time, never below the same step in each epoch.
#[test]
fn long_runs_have_a_bound() {
    for (name, n, epoch_steps) in
        [("blt:3", 1_000_000, 1000), ("banded-toeplitz:64", 200_000, 5000), ("identity", 1 << 30, 1 << 20)]
    {
        let strategy = name.parse::<StrategySpec>().unwrap().design(&Problem::prefix(n)).unwrap().value;
        let found = strategy.sensitivity(&Participation::EachEpoch { epoch_steps }).unwrap();
        let (min_sep, max_participations) = (epoch_steps, n.div_ceil(epoch_steps));
        let cyclic = strategy.sensitivity(&Participation::Cyclic { min_sep, max_participations }).unwrap();
        let free = Participation::MinSep { min_sep: 1, max_participations };
        let free = strategy.sensitivity(&free).unwrap();
        assert!(
            cyclic.value <= found.value && found.value <= free.value * (1.0 + 1e-12),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn epochs_are_read_written_cut_and_refused() {
    let schema: Participation = "each-epoch:10".parse().unwrap();
    assert_eq!(schema, Participation::EachEpoch { epoch_steps: 10 });
    assert_eq!(schema.to_string(), "each-epoch:10");
    let many: Participation = "min-sep:1e3,1e6".parse().unwrap();
    assert_eq!(many, Participation::MinSep { min_sep: 1000, max_participations: 1_000_000 });
    assert_eq!(schema.truncated_to(10), Some(Participation::Single));
    assert_eq!(schema.truncated_to(11), Some(schema.clone()));
    assert!(schema.check(10).is_ok());
    for (wrong, steps) in [("each-epoch:0", 5), ("each-epoch:6", 5)] {
        let error = wrong.parse::<Participation>().unwrap().check(steps).unwrap_err().to_string();
        assert!(error.starts_with("epoch_steps is"), "{error}");
    }
    for wrong in
        ["each-epoch", "each-epoch:", "each-epoch:1,2", "each-epoch:x", "min-sep:1.5,2", "min-sep:-1e3,2"]
    {
        assert!(wrong.parse::<Participation>().is_err(), "{wrong}");
    }
}
