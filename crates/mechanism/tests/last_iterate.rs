//! The workload of the last iterate: its errors against its rows written out, and its designs.

use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Problem, Workload};

/// The rows, by the definition: SGD with momentum on h x^2 / 2 is run for a unit of noise at each step, for
/// curvatures h with ln h on an even grid. The learning rate is constant, or `rates` times a factor; squares
/// of responses have `weights`, or all the same.
fn rows(
    steps: usize,
    (momentum, decay): (f64, f64),
    share: f64,
    rates: &[f64],
    weights: &[f64],
) -> Vec<Vec<f64>> {
    let n = steps as f64;
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let rate = |step: usize| rates.get(step).map_or(1.0, |rate| rate / largest);
    let last = ((3.0 * n).ln() / 2f64.ln()).ceil();
    let response = |i: usize| -> Vec<f64> {
        let curvature = (-(3.0 * n).ln() * i as f64 / last).exp();
        let factor = weights.get(i).map_or(1.0, |weight| weight.sqrt());
        let moved_by = |noisy: usize| {
            let (mut velocity, mut x) = (0.0, 0.0);
            for step in 0..steps {
                velocity = momentum * velocity + curvature * x - f64::from(step == noisy);
                x = (1.0 - decay * rate(step)) * x - (1.0 - momentum) * rate(step) * velocity;
            }
            factor * x
        };
        (0..steps).map(moved_by).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..=last as usize).map(response).collect();
    let prefix: Vec<Vec<f64>> = (0..steps).map(|t| (0..steps).map(|s| f64::from(s <= t)).collect()).collect();
    let squared = |rows: &[Vec<f64>]| rows.iter().flatten().map(|x| x * x).sum::<f64>();
    // Independent noise has the mean squared error (n + 1) / 2 over all rows, of which prefix sums have
    // `share` times that of the responses.
    let total = (rows.len() + steps) as f64 * 0.5 * (n + 1.0);
    let factors = [total / (1.0 + share) / squared(&rows), total * share / (1.0 + share) / squared(&prefix)];
    rows.iter_mut().flatten().for_each(|x| *x *= factors[0].sqrt());
    rows.extend(prefix.iter().map(|row| row.iter().map(|x| x * factors[1].sqrt()).collect()));
    rows
}

fn design(spec: &str, problem: &Problem) -> AnyStrategy {
    spec.parse::<StrategySpec>().unwrap().design(problem).unwrap().value
}

fn rms_loss(strategy: &AnyStrategy, problem: &Problem) -> f64 {
    strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap().rms_loss
}

#[test]
fn errors_are_those_of_the_rows_for_every_class() {
    let mut compared = 0;
    let cases = [(1, 0.0, 0.05), (2, 0.9, 1.0), (13, 0.5, 0.2), (40, 0.9, 0.05)];
    let falls = |steps: usize| (0..steps).map(|t| 1.0 - t as f64 / steps as f64).collect();
    let cases =
        cases.iter().flat_map(|&(n, beta, share)| [(n, beta, share, vec![]), (n, beta, share, falls(n))]);
    for (steps, momentum, prefix_share, rates) in cases {
        let written = Workload::Queries { rows: rows(steps, (momentum, 0.0), prefix_share, &rates, &[]) };
        let workload =
            Workload::LastIterate { momentum, prefix_share, rates, weights: vec![], weight_decay: 0.0 };
        for class in Class::ALL.iter().filter(|&&class| class != Class::OutputPerturbation) {
            for problem in [Problem::prefix(steps), Problem::prefix(steps).with_workload(workload.clone())] {
                let strategy = design(class.name(), &problem);
                let (found, known) = (strategy.error(&workload).unwrap(), strategy.error(&written).unwrap());
                let off = (found.rms / known.rms - 1.0).abs().max((found.max / known.max - 1.0).abs());
                assert!(off < 1e-9, "{} of {steps}: {found:?} {known:?}", class.name());
                compared += 1;
            }
        }
    }
    assert!(compared >= 200, "{compared}");
}

/// Random steps, momenta, shares, schedules, weights and weight decays, up to their limits.
#[test]
fn errors_are_those_of_the_rows_in_the_whole_space_of_parameters() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let specs =
        ["identity", "toeplitz+square-root", "blt:2", "banded:3+square-root", "tree", "banded-inverse:2"];
    let mut compared = 0;
    for case in 0..200 {
        let steps = 4 + (draw() * 50.0) as usize;
        let momentum = [0.0, 0.999_999, 1.0 - draw().powi(4), draw()][case % 4];
        let share = [1e-4, 1e4, 10f64.powf(8.0 * draw() - 4.0)][case % 3];
        let momentum = f64::min(momentum, 0.999_999);
        let constant = Workload::LastIterate {
            momentum,
            prefix_share: share,
            rates: vec![],
            weights: vec![],
            weight_decay: 0.0,
        };
        let rates = match case % 5 {
            0 | 1 => vec![],
            2 => (0..steps).map(|_| draw()).collect(),
            3 => (0..steps).map(|t| f64::from(t == steps / 2)).collect(),
            _ => (0..steps).map(|t| 1e-9 * f64::from((t % 3) as u8)).collect(),
        };
        let decay = [0.0, 0.3 * draw()][case % 2];
        let count = constant.responses(steps).unwrap().len();
        let weights = match case % 3 {
            0 => vec![],
            1 => (0..count).map(|_| draw()).collect(),
            _ => (0..count).map(|i| 1e6 * f64::from(i == count / 2)).collect(),
        };
        let written = Workload::Queries { rows: rows(steps, (momentum, decay), share, &rates, &weights) };
        let workload =
            Workload::LastIterate { momentum, weight_decay: decay, prefix_share: share, rates, weights };
        let strategy = design(specs[case % specs.len()], &Problem::prefix(steps));
        let (found, known) = (strategy.error(&workload).unwrap(), strategy.error(&written).unwrap());
        let off = (found.rms / known.rms - 1.0).abs().max((found.max / known.max - 1.0).abs());
        assert!(off < 1e-8, "{} {workload} of {steps}: {found:?} {known:?}", specs[case % specs.len()]);
        let read: Workload = constant.to_string().parse().unwrap();
        assert_eq!(read, constant);
        compared += 1;
    }
    assert_eq!(compared, 200);
}

#[test]
fn designs_are_as_good_as_those_for_the_rows() {
    let (steps, momentum, prefix_share) = (30, 0.9, 0.05);
    let falls: Vec<f64> = (0..steps).map(|t| 1.0 - t as f64 / steps as f64).collect();
    let cases =
        [("single", vec![]), ("cyclic:10,3", vec![]), ("min-sep:8,4", vec![]), ("cyclic:10,3", falls)];
    for (participation, rates) in cases {
        let written = Workload::Queries { rows: rows(steps, (momentum, 0.0), prefix_share, &rates, &[]) };
        let plain = Problem::prefix(steps).with_participation(participation.parse().unwrap());
        let workload =
            Workload::LastIterate { momentum, prefix_share, rates, weights: vec![], weight_decay: 0.0 };
        let problem = plain.clone().with_workload(workload);
        let by_rows = plain.clone().with_workload(written);
        let dense = rms_loss(&design("dense", &problem), &problem);
        for spec in [
            "dense",
            "banded:8",
            "banded-toeplitz:8",
            "banded-toeplitz:8+column-normalized",
            "toeplitz",
            "blt:4",
            "rational:2",
            "banded-inverse:8",
        ] {
            let loss = rms_loss(&design(spec, &problem), &problem);
            let known = rms_loss(&design(spec, &by_rows), &problem);
            let for_sums = rms_loss(&design(spec, &plain), &problem);
            let case = format!("{spec} {participation}: {loss}, by rows {known}, for prefix sums {for_sums}");
            assert!(loss < known * 1.002, "{case}");
            assert!(loss < for_sums * (1.0 + 1e-9), "{case}");
            assert!(loss > dense * 0.999, "{case}, dense {dense}");
        }
    }
}

/// For the max objective, classes without a solver for it minimise the sum over rows.
#[test]
fn objectives_of_long_runs() {
    let workload: Workload = "last-iterate:0.9".parse().unwrap();
    for (spec, steps) in [("blt:4", 10_000), ("banded-toeplitz:50", 100_000), ("banded:8", 1_000)] {
        let schema = format!("cyclic:{},20", steps / 20).parse().unwrap();
        let plain = Problem::prefix(steps).with_participation(schema);
        let problem = plain.clone().with_workload(workload.clone());
        let (found, for_sums) = (design(spec, &problem), design(spec, &plain));
        let (loss, of_sums) = (rms_loss(&found, &problem), rms_loss(&for_sums, &problem));
        assert!(loss < of_sums, "{spec}: {loss} {of_sums}");
        let by_max = design(spec, &problem.clone().with_objective(Objective::Max));
        assert!((rms_loss(&by_max, &problem) / loss - 1.0).abs() < 1e-12);
    }
}
