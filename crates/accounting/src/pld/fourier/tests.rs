//! Payoffs, what is left out of them, and their sums, against what is exact.

use super::*;
use crate::Gdp;
use crate::pld::discrete::Discrete;

/// Tilts with smoothings that are allowed for them.
const CASES: [(f64, f64); 5] = [(0.05, 0.2), (0.3, 0.1), (1.0, 0.1), (5.0, 0.04), (20.0, 0.01)];

/// e^{-theta v} (1 - e^{-v}) for v > 0.
fn g(theta: f64, v: f64) -> f64 {
    if v > 0.0 { -(-theta * v).exp() * (-v).exp_m1() } else { 0.0 }
}

/// The payoff at `v`, from its transform.
fn at(theta: f64, s: f64, v: f64, bound: Bound) -> f64 {
    let period = 60.0 / theta;
    let term = |k: u32| {
        let omega = 2.0 * PI * f64::from(k) / period;
        let term = payoff(theta, s, bound)(omega) * Complex::from_polar(2.0 / period, omega * v);
        if k == 0 { 0.5 * term.re } else { term.re }
    };
    (0..=(9.0 / s * period / (2.0 * PI)) as u32).map(term).sum()
}

/// The upper payoff is that of one more Gaussian release, which has a closed form. The lower payoff is below
/// g, by at most the bump.
#[test]
fn payoffs_are_on_their_sides_of_the_exact_one() {
    for (theta, s) in CASES {
        let gaussian = |epsilon: f64| Gdp::new(s).unwrap().delta_to_nearest(epsilon).unwrap();
        let a = (1.0 + theta) * s;
        for i in -48..=48 {
            let v = 0.25 * f64::from(i) * s;
            let delta = if v < 0.0 { gaussian(-v) } else { -(-v).exp_m1() + (-v).exp() * gaussian(v) };
            let (above, exact) = (at(theta, s, v, Bound::Above), (-theta * v).exp() * delta);
            assert!((above - exact).abs() < 1e-10, "{theta} {s} {v}: {above} {exact}");
            let (below, most) = (at(theta, s, v, Bound::Below), g(theta, v));
            let bump = s * (1.0 / (2.0 * PI).sqrt() + 2.0 * a) * (0.5 * (a * a - v * v / s / s)).exp();
            let place = format!("{theta} {s} {v}: {below} of {most}, bump {bump}");
            assert!(below <= most + 1e-10 && below >= most - 1.05 * bump - 1e-10, "{place}");
        }
    }
}

/// The bound on the terms that are left out is above their sum.
#[test]
fn terms_that_are_left_out_are_bounded() {
    for (theta, s) in CASES {
        for last in [6.5, 7.0, 9.0] {
            for period in [0.5, 3.0, 60.0] {
                let count = (last / s * period / (2.0 * PI)).ceil();
                let bound = left_out(theta, s, 2.0 * PI * count / period);
                for side in [Bound::Above, Bound::Below] {
                    let size = |k: u32| {
                        let omega = 2.0 * PI * (count + f64::from(k)) / period;
                        2.0 / period * payoff(theta, s, side)(omega).norm()
                    };
                    let exact: f64 = (0..20_000).map(size).sum();
                    assert!(exact <= bound, "{theta} {s} {last} {period}: {exact:e} {bound:e}");
                    let loosest = (-0.49 * last * last).exp() / s.min(0.1);
                    assert!(bound <= loosest, "{theta} {s} {last} {period}: {bound:e} {loosest:e}");
                }
            }
        }
    }
}

fn settings(theta: f64, smoothing: f64, period: f64, chernoff: f64) -> Settings {
    Settings { theta, smoothing, period, last: 7.0, above: chernoff, below: chernoff }
}

/// If S has one value with certainty, the error from making g periodic is the sum of g over all other
/// periods.
#[test]
fn what_periods_add_is_bounded() {
    for (theta, period) in [(0.5, 1.0), (0.2, 1.0), (1.0, 3.0), (4.0, 2.0)] {
        let certain = Discrete { losses: vec![2.0], ln_masses: vec![0.0], infinity: 0.0 };
        let part = Part { discrete: certain, steps: 1 };
        let found = Spectrum::new(&[part], settings(theta, 0.05, period, 400.0), Bound::Below).unwrap();
        for i in -200..=200 {
            let v = period * f64::from(i) / 80.0;
            let exact: f64 =
                (-200..=200).filter(|&m| m != 0).map(|m| g(theta, v + f64::from(m) * period)).sum();
            let bound = found.wrapped(2.0 - v);
            assert!(exact <= bound, "{theta} {period} {v}: {exact} {bound}");
            let loosest = 3.0 * (1.0 + exact + 1.0 / (period * theta * (1.0 + theta)));
            assert!(bound <= loosest + 4.0 / (theta * period), "{theta} {period} {v}: {exact} {bound}");
        }
    }
}

/// Each step has one of two losses: delta is a sum over the binomial distribution.
#[test]
fn spectra_bracket_sums_of_two_losses() {
    let (up, down, chance, steps) = (0.11, -0.09, 0.52f64, 400u64);
    let discrete = || Discrete {
        losses: vec![down, up],
        ln_masses: vec![(1.0 - chance).ln(), chance.ln()],
        infinity: 0.0,
    };
    for (epsilon, theta) in [(1.0, 0.3), (4.0, 0.5), (9.0, 1.0), (14.0, 2.2)] {
        let (mut ln_mass, mut exact) = (steps as f64 * (1.0 - chance).ln(), 0.0);
        for k in 0..=steps {
            let loss = k as f64 * up + (steps - k) as f64 * down;
            exact += if loss > epsilon { ln_mass.exp() * -(epsilon - loss).exp_m1() } else { 0.0 };
            ln_mass += ((steps - k) as f64 / (k + 1) as f64 * chance / (1.0 - chance)).ln();
        }
        let at = |bound| {
            let part = Part { discrete: discrete(), steps };
            let settings = settings(theta, 0.003 / (1.0 + theta), 60.0, 1.0);
            Spectrum::new(&[part], settings, bound).unwrap()
        };
        let [above, below] = [Bound::Above, Bound::Below].map(at);
        let (most, least) = (above.ln_delta(epsilon).exp(), below.ln_delta(epsilon).exp());
        assert!(least <= exact && exact <= most, "{epsilon}: {least:e} {exact:e} {most:e}");
        assert!(most <= 1.01 * exact && least >= 0.99 * exact, "{epsilon}: {least:e} {exact:e} {most:e}");
        for guess in [0.4 * epsilon, epsilon, 1.7 * epsilon] {
            let upper = above.epsilon(exact.ln(), guess).unwrap();
            assert!((epsilon..1.002 * epsilon).contains(&upper), "{epsilon} from {guess}: {upper}");
        }
        let lower = below.epsilon(exact.ln(), 1.01 * epsilon).unwrap();
        assert!((0.97 * epsilon..=epsilon).contains(&lower), "{epsilon}: {lower}");
    }
}
