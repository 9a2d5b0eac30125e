//! The first grid of a fit: how wide it leaves the bounds, and what it costs.

use super::*;
use crate::pld::bounds::WIDTH;
use crate::pld::profile::{Direction, Profile};

/// Noise multiplier, sampling rate and steps.
const RUNS: [(f64, f64, u64); 4] =
    [(0.8, 1e-3, 10_000), (1.0, 0.1, 100), (0.5, 1e-4, 1_000_000), (2.0, 0.3, 2)];

fn side((sigma, q, steps): (f64, f64, u64), direction: Direction) -> Side {
    Side { parts: vec![(Box::new(Profile { mu: 1.0 / sigma, q, direction }), steps)] }
}

/// Atoms times frequencies, rounded up to a tenth of a magnitude.
fn cost(fit: &Fit, side: &Side) -> f64 {
    let atoms: usize = fit.grids(&side.parts).iter().map(|grid| grid.losses.len()).sum();
    let mut magnitudes = (30..100).map(|i| 10f64.powf(0.1 * f64::from(i)));
    magnitudes.find(|most| fit.settings().within(most / atoms as f64).1).unwrap()
}

/// Relative width over the target.
fn width(found: Bounds) -> f64 {
    (found.upper - found.lower) / (WIDTH * found.upper)
}

/// The bounds on epsilon are as wide as they may be, and those on delta need one more grid at most.
#[test]
fn the_first_grid_is_fine_enough_and_no_finer() {
    for run in RUNS {
        for direction in Direction::BOTH {
            for ln_delta in [-7.0, -28.0] {
                let side = side(run, direction);
                let fit = Fit::new(&side.parts, ln_delta);
                let work = cost(&fit, &side);
                let epsilon = side.refine(fit, Bounds::ZERO, 1, |spectrum, target| {
                    let (upper, lower) = both(spectrum);
                    let most = upper.and_then(|spectrum| spectrum.epsilon(ln_delta, target));
                    let least = lower.and_then(|spectrum| spectrum.epsilon(ln_delta, most.unwrap_or(target)));
                    Bounds { lower: least.unwrap_or(0.0), upper: most.unwrap_or(f64::INFINITY) }
                });
                let place = format!("{run:?} {direction:?} {ln_delta}: {epsilon:?}, work {work:e}");
                assert!((0.8..1.05).contains(&width(epsilon)) && work < 1e7, "{place}");
                let fit = Fit::at(&side.parts, ln_delta, epsilon.upper);
                let work = cost(&fit, &side);
                let delta = side.refine(fit, Bounds::ZERO, 1, |spectrum, _| {
                    let (upper, lower) = both(spectrum);
                    Bounds {
                        lower: lower.map_or(0.0, |spectrum| spectrum.ln_delta(epsilon.upper).exp()),
                        upper: upper.map_or(1.0, |spectrum| spectrum.ln_delta(epsilon.upper).exp()),
                    }
                });
                let place = format!("{run:?} {direction:?} {ln_delta}: {delta:?}, work {work:e}");
                assert!((1.0..2.4).contains(&width(delta)) && work < 4e8, "{place}");
            }
        }
    }
}

/// Without sampling the exponent is closed form: (epsilon - mu^2 / 2)^2 / (2 mu^2), of all steps together.
#[test]
fn the_first_delta_is_the_bound_by_moments() {
    for (mu, steps, epsilon) in [(0.3, 10, 2.0), (1.0, 1, 4.0), (0.05, 1000, 6.0)] {
        let profile = Profile { mu, q: 1.0, direction: Direction::Remove };
        let square = mu * mu * steps as f64;
        let exact = -(epsilon - 0.5 * square).powi(2) / (2.0 * square);
        let found = Fit::renyi_ln_delta(&[(Box::new(profile), steps)], epsilon);
        assert!((found / exact - 1.0).abs() < 1e-3, "{mu} {steps} {epsilon}: {found} {exact}");
    }
}
