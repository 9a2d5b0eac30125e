//! Random allocation: bounds against integration of the definition, against simulation, and the order of
//! epsilon in every parameter.

mod common;

use antinoise_accounting::{Bounds, Gdp, MonteCarlo, MonteCarloMechanism, RandomAllocation};

use common::{is_swept, random_cases, uniforms};

/// The mass of N(0, 1) below `x`.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// Nodes and weights of the trapezoid rule for a mean under N(0, 1), with `density` nodes per unit.
fn nodes(density: i32) -> Vec<(f64, f64)> {
    let weight = |z: f64| (-0.5 * z * z).exp() / (std::f64::consts::TAU.sqrt() * f64::from(density));
    (-9 * density..=9 * density).map(|i| f64::from(i) / f64::from(density)).map(|z| (z, weight(z))).collect()
}

/// E (X - k)_+ and E (k - X)_+ for X = e^{mu z - mu^2/2}, in closed form.
fn one_ratio(mu: f64, k: f64) -> (f64, f64) {
    if k <= 0.0 {
        return (1.0 - k, 0.0);
    }
    let d = 0.5 * mu - k.ln() / mu;
    (normal_cdf(d) - k * normal_cdf(d - mu), k * normal_cdf(mu - d) - normal_cdf(-d))
}

/// E (S - t)_+ and E (t - S)_+ for the mean S of `count` ratios, by the closed form of one and integration
/// over the others.
fn mean_ratio(mu: f64, count: usize, t: f64, nodes: &[(f64, f64)]) -> (f64, f64) {
    fn sum(mu: f64, left: usize, rest: f64, nodes: &[(f64, f64)]) -> (f64, f64) {
        if left == 1 {
            return one_ratio(mu, rest);
        }
        nodes.iter().fold((0.0, 0.0), |(above, below), &(z, weight)| {
            let (a, b) = sum(mu, left - 1, rest - (mu * (z - 0.5 * mu)).exp(), nodes);
            (above + weight * a, below + weight * b)
        })
    }
    let (above, below) = sum(mu, count, count as f64 * t, nodes);
    (above / count as f64, below / count as f64)
}

fn is_within(found: Bounds, exact: f64, error: f64) -> bool {
    found.lower <= exact + error && exact - error <= found.upper
}

/// One epoch of two or three steps: delta in both directions, integrated from the definition.
#[test]
fn one_epoch_is_that_of_the_definition() {
    let mut uniform = uniforms(3);
    let mut widest = 0.0f64;
    let wanted = random_cases(180, 6);
    for case in 0..wanted {
        let steps = 2 + (case % 2) as usize;
        let sigma = 0.35 * (10.0 * uniform()).max(1.0);
        let epsilon = 3.0 * uniform() / sigma;
        let nodes = nodes(if steps == 2 { 400 } else { 60 });
        let (removal, _) = mean_ratio(1.0 / sigma, steps, epsilon.exp(), &nodes);
        let (_, addition) = mean_ratio(1.0 / sigma, steps, (-epsilon).exp(), &nodes);
        let exact = removal.max(epsilon.exp() * addition);
        let found = RandomAllocation::new(sigma, steps as u64, 1).unwrap().delta(epsilon).unwrap();
        assert!(
            is_within(found, exact, 1e-7 * exact + 1e-12),
            "{sigma} {steps} {epsilon}: {found:?}, {exact}"
        );
        if exact > 1e-12 {
            widest = widest.max(found.upper / found.lower - 1.0);
        }
    }
    assert!(widest < 0.01, "{wanted} cases, the widest {widest}");
}

/// 300 random settings against transforms on even grids (`scripts/accounting/allocation.py`), which are off
/// by less than 5e-4 of delta.
#[test]
fn brackets_hold_what_transforms_find() {
    let mut rows = 0;
    for line in include_str!("golden/allocated_delta.csv").lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [sigma, steps, epochs, epsilon, wanted] = row[..] else { panic!("five columns: {line}") };
        rows += 1;
        if !is_swept(rows, 10) {
            continue;
        }
        let found =
            RandomAllocation::new(sigma, steps as u64, epochs as u64).unwrap().delta(epsilon).unwrap();
        assert!(is_within(found, wanted, 5e-4 * wanted), "{line}: {found:?}");
        assert!(found.upper <= 1.05 * found.lower, "{line}: {found:?}");
    }
    assert_eq!(rows, 300);
}

/// Two epochs of two steps: delta of the product of two ratios, integrated over the first epoch's outputs.
#[test]
fn two_epochs_are_those_of_the_definition() {
    let (outer, inner) = (nodes(10), nodes(25));
    for (sigma, epsilon) in [(0.8, 3.0), (1.2, 1.0), (2.0, 0.7), (3.0, 1.2)] {
        let mu = 1.0 / sigma;
        let ratio = |z: f64| (mu * (z - 0.5 * mu)).exp();
        let (mut removal, mut addition) = (0.0, 0.0);
        for &(x, weight_x) in &outer {
            // The order of the two steps does not matter.
            for &(y, weight_y) in outer.iter().filter(|(y, _)| *y <= x) {
                let first = 0.5 * (ratio(x) + ratio(y));
                let weight = weight_x * weight_y * if x == y { 1.0 } else { 2.0 };
                removal += weight * first * mean_ratio(mu, 2, f64::exp(epsilon) / first, &inner).0;
                let (_, below) = mean_ratio(mu, 2, f64::exp(-epsilon) / first, &inner);
                addition += weight * f64::exp(epsilon) * first * below;
            }
        }
        let exact = removal.max(addition);
        let found = RandomAllocation::new(sigma, 2, 2).unwrap().delta(epsilon).unwrap();
        assert!(is_within(found, exact, 1e-5 * exact), "{sigma} {epsilon}: {found:?}, {exact}");
        assert!(found.upper < 1.02 * found.lower, "{sigma} {epsilon}: {found:?}");
    }
}

/// Epochs of more steps against the simulation of balls in bins, whose intervals hold with probability
/// 1 - 1e-6 each.
#[test]
fn longer_epochs_agree_with_simulation() {
    let settings = MonteCarlo { failure_probability: 1e-6, ..MonteCarlo::default() };
    for (sigma, steps, epsilon) in [(0.6, 5, 4.0), (1.0, 12, 1.5), (0.5, 40, 3.0), (1.5, 30, 0.4)] {
        let simulated = MonteCarloMechanism::balls_in_bins(&vec![vec![1.0]; steps], steps, sigma).unwrap();
        let interval = simulated.delta(epsilon, &settings).unwrap();
        let found = RandomAllocation::new(sigma, steps as u64, 1).unwrap().delta(epsilon).unwrap();
        assert!(found.lower <= interval.upper && interval.lower <= found.upper, "{found:?}, {interval:?}");
        assert!(found.upper < 1.02 * found.lower, "{found:?}");
    }
}

/// Over the space of parameters: bounds are in order and close, epsilon falls with noise and steps and grows
/// with epochs, and is below that of public choices; delta at epsilon is the delta that it was asked for.
#[test]
fn epsilon_is_ordered_in_every_parameter() {
    let mut uniform = uniforms(8);
    let wanted = random_cases(180, 20);
    let mut between = |low: f64, high: f64| low * (high / low).powf(uniform());
    for _ in 0..wanted {
        let (sigma, delta) = (between(0.25, 50.0), between(1e-12, 1e-2));
        let (steps, epochs) = (between(1.0, 1e6) as u64, between(1.0, 1e3) as u64);
        let of = |sigma: f64, steps: u64, epochs: u64| RandomAllocation::new(sigma, steps, epochs).unwrap();
        let epsilon = |run: RandomAllocation| run.epsilon(delta).unwrap();
        let case = format!("{sigma} {steps} {epochs} {delta}");
        let found = epsilon(of(sigma, steps, epochs));
        assert!(found.lower <= found.upper && found.upper.is_finite(), "{case}: {found:?}");
        assert!(found.upper <= 1.01 * found.lower || found.upper < 1e-3, "{case}: {found:?}");
        assert!(epsilon(of(1.3 * sigma, steps, epochs)).lower <= found.upper, "{case}");
        assert!(epsilon(of(sigma, 2 * steps, epochs)).lower <= found.upper, "{case}");
        assert!(found.lower <= epsilon(of(sigma, steps, 2 * epochs)).upper, "{case}");
        let public = Gdp::from_noise_multiplier_upper(sigma).unwrap().repeat_upper(epochs).unwrap();
        assert!(found.upper <= public.epsilon_upper(delta).unwrap(), "{case}");
        if found.upper > 0.0 {
            let back = of(sigma, steps, epochs).delta(found.upper).unwrap();
            assert!(back.lower <= delta * (1.0 + 1e-9), "{case}: {back:?}");
        }
    }
}

/// At the ends of the ranges nothing is infinite, NaN or out of order.
#[test]
fn the_ends_of_the_ranges_have_bounds() {
    let mut cases = 0;
    let ends = [(0.2, 1, 1_000_000), (1e4, 1, 1), (0.2, 10_000_000, 1), (1e4, 10_000_000, 1_000_000)];
    for (sigma, steps, epochs) in ends {
        for delta in [1e-300, 1.0 - 1e-9] {
            let run = RandomAllocation::new(sigma, steps, epochs).unwrap();
            let found = run.epsilon(delta).unwrap();
            assert!(
                0.0 <= found.lower && found.lower <= found.upper,
                "{sigma} {steps} {epochs} {delta}: {found:?}"
            );
            let delta = run.delta(found.upper.min(1e300)).unwrap();
            assert!(0.0 <= delta.lower && delta.lower <= delta.upper && delta.upper <= 1.0, "{delta:?}");
            cases += 1;
        }
    }
    assert_eq!(cases, 8);
}

/// The solver's answer meets the target, and a slightly smaller one does not.
#[test]
fn the_least_noise_meets_the_target() {
    for (steps, epochs, epsilon, delta) in
        [(10, 4, 2.0, 1e-6), (100, 1, 0.5, 1e-5), (7, 60, 8.0, 1e-8), (1, 1, 1.0, 1e-5)]
    {
        let run = RandomAllocation::new(1.0, steps, epochs).unwrap();
        let sigma = run.noise_multiplier_upper(epsilon, delta).unwrap();
        let at = |sigma: f64| RandomAllocation::new(sigma, steps, epochs).unwrap().epsilon(delta).unwrap();
        assert!(at(sigma).upper <= epsilon && at(0.997 * sigma).upper > epsilon, "{steps} {epochs}: {sigma}");
    }
}
