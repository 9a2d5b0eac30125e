//! Simulated curves against exact ones.

mod common;

use std::sync::Mutex;

use antinoise_accounting::{Gdp, MonteCarlo, MonteCarloMechanism};
use common::allowed_misses;

/// At every epsilon and delta of the certified curves of 24 mechanisms without sampling, the exact figure is
/// within the bounds; near the centre they are close. Progress ends at all samples.
#[test]
fn certified_curves_enclose_the_exact_ones() {
    let (last, mut checked) = (Mutex::new((0, 1)), 0);
    for case in 0..24 {
        let std = 0.6 + 0.1 * f64::from(case);
        let exact = Gdp::new(2f64.sqrt() / std).unwrap();
        let columns = vec![vec![1.0]; 2];
        let mechanism = match case % 2 {
            0 => MonteCarloMechanism::balls_in_bins(&columns, 1, std).unwrap(),
            _ => MonteCarloMechanism::b_min_sep(&columns, 1, 10.0, 10, std).unwrap(),
        };
        let central = exact.epsilon_upper(10f64.powi(-2 - case % 4)).unwrap();
        let progress = |done: usize, total: usize| {
            let mut last = last.lock().unwrap();
            *last = (last.0.max(done), total);
        };
        let curve = mechanism.certified_curve(central, &progress).unwrap();
        let (done, total) = std::mem::replace(&mut *last.lock().unwrap(), (0, 1));
        assert_eq!((done, total), (curve.central().samples, curve.central().samples));
        for percent in (40..=220).step_by(3) {
            let epsilon = 0.01 * f64::from(percent) * central;
            let (found, truth) = (curve.delta(epsilon), exact.delta_to_nearest(epsilon).unwrap());
            assert!(found.lower <= truth * (1.0 + 1e-9), "{case} {percent}: {found:?} {truth:e}");
            assert!(truth * (1.0 - 1e-9) <= found.upper, "{case} {percent}: {found:?} {truth:e}");
            if !(1e-15..0.5).contains(&truth) {
                continue;
            }
            let found = curve.epsilon(truth);
            assert!(found.lower <= epsilon * (1.0 + 1e-6), "{case} {percent}: {found:?} {epsilon}");
            assert!(epsilon * (1.0 - 1e-6) <= found.upper, "{case} {percent}: {found:?} {epsilon}");
            let near = (95..=105).contains(&percent);
            assert!(!near || found.upper < 1.1 * found.lower, "{case} {percent}: {found:?}");
            checked += 1;
        }
    }
    assert!(checked > 900, "{checked}");
}

/// 100 curves at failure probability 0.05 hold the exact delta at all of their epsilons together as often as
/// they must; false alarm 1e-6. And the central figure alone.
#[test]
fn curves_hold_at_all_epsilons_together() {
    let (exact, runs, failure_probability) = (Gdp::new(1.0).unwrap(), 100, 0.05);
    let mechanism = MonteCarloMechanism::balls_in_bins(&[vec![1.0]], 1, 1.0).unwrap();
    let misses = (0..runs as u64).filter(|&seed| {
        let settings = MonteCarlo { failure_probability, precision: 0.1, max_samples: 20_000, seed };
        let curve = mechanism.curve(2.0, &settings, &|_, _| ()).unwrap();
        (0..=140).any(|i| {
            let epsilon = 2.0 * 1.01f64.powi(i - 70);
            let (found, truth) = (curve.delta(epsilon), exact.delta_to_nearest(epsilon).unwrap());
            // The failure probability is on top of the bound that is to be tested.
            let (lower, upper) =
                (found.lower * (1.0 - 1e-9), found.upper * (1.0 + 1e-9) - failure_probability);
            !(lower <= truth && truth <= upper)
        })
    });
    let misses = misses.count();
    assert!(misses <= allowed_misses(failure_probability, runs), "{misses} misses");
}
