//! Upper bounds against what they have to be above, where it is known at once.

use antinoise_accounting::{
    Composition, Gdp, MonteCarlo, MonteCarloMechanism, PoissonSampledGaussian, delta_warning,
    group_privacy_upper,
};

fn run(sigma: f64, rate: f64, steps: u64) -> Composition {
    Composition::new([PoissonSampledGaussian::new(sigma, rate, steps).unwrap()]).unwrap()
}

/// The epsilon of a group is the minimum under group privacy: the curve for one unit gives it, and no smaller
/// one.
#[test]
fn an_epsilon_of_groups_is_the_least_that_follows_from_one_unit() {
    let mut cases = 0;
    for (sigma, steps) in [(1.0, 1), (5.0, 100), (20.0, 30)] {
        let one = run(sigma, 1.0, steps);
        let exact = Gdp::from_noise_multiplier_upper(sigma).unwrap().repeat_upper(steps).unwrap();
        for size in [2, 3] {
            for delta in [1e-9, 1e-5, 1e-2] {
                let found = one.group_epsilon(delta, size).unwrap();
                assert!(found.lower <= found.upper && found.upper <= 1.05 * found.lower, "{found:?}");
                let of_group = |epsilon: f64| {
                    let each = epsilon / size as f64;
                    group_privacy_upper(each, exact.delta_to_nearest(each).unwrap(), size).unwrap().1
                };
                let place =
                    format!("sigma {sigma}, {steps} steps, groups of {size}, delta {delta:e}: {found:?}");
                assert!(of_group(found.upper) <= delta * (1.0 + 1e-9), "{place}");
                assert!(of_group(found.lower * (1.0 - 1e-4)) > delta, "{place}");
                // The truth for a group is Gaussian as well, and smaller.
                let truth = exact.group_upper(size).unwrap().delta_to_nearest(found.upper).unwrap();
                assert!(truth <= delta, "{place}: {truth:e}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 18);
}

/// Naive iteration from above ends in the same epsilon: each bound on epsilon bounds the growth of delta,
/// which bounds delta for one unit.
#[test]
fn an_epsilon_of_groups_is_where_naive_iteration_ends() {
    let mut ended = 0;
    for (sigma, rate, steps) in [(0.8, 0.01, 500), (1.7, 0.13, 75), (4.0, 0.02, 300), (1.0, 1e-3, 20)] {
        let run = run(sigma, rate, steps);
        for (size, delta) in [(2, 1e-9), (3, 1e-5), (6, 1e-2), (20, 1e-6)] {
            let mut one = delta / size as f64;
            let naive = (0..60).find_map(|_| {
                let (epsilon, grown) =
                    group_privacy_upper(run.epsilon(one).unwrap().upper, one, size).unwrap();
                one = (one * (delta / grown).min(1.0) * (1.0 - 1e-6)).max(f64::MIN_POSITIVE);
                (grown <= delta).then_some(epsilon)
            });
            let found = run.group_epsilon_upper(delta, size);
            let place =
                format!("sigma {sigma}, rate {rate}, {steps} steps, {size}, {delta:e}: {found:?} {naive:?}");
            match naive {
                // Beyond, no bound is looked for.
                Some(naive) if naive > 200.0 => assert!(found.map_or(true, |found| found > 199.0), "{place}"),
                Some(naive) => {
                    assert!((found.unwrap() / naive - 1.0).abs() < 2e-6, "{place}");
                    ended += 1;
                }
                None => assert!(found.is_err(), "{place}"),
            }
        }
    }
    assert_eq!(ended, 13);
}

/// Of units whose epsilon is so large that e^epsilon overflows, nothing is left for a group.
#[test]
fn groups_of_units_without_privacy_have_none() {
    let mut cases = 0;
    for epsilon in [1.0, 300.0, 709.0, 709.7, 709.8, 710.0, 1e3, 1e5, 1e300, f64::MAX] {
        for size in [2, 3, 1000] {
            for delta in [5e-324, 1e-300, 1e-9, 0.5] {
                let (total, grown) = group_privacy_upper(epsilon, delta, size).unwrap();
                let ln_grown = f64::ln(delta) + (size - 1) as f64 * epsilon;
                assert!(total >= epsilon && grown >= delta, "{epsilon} {size} {delta}");
                assert!(ln_grown < 0.0 || grown == 1.0, "{epsilon} {size} {delta}: {grown}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 120);
    // Both members of a pair that is sampled in half of two steps, at hardly any noise.
    let pair = Composition::new([PoissonSampledGaussian::new(0.028, 0.5, 2).unwrap()]).unwrap();
    assert!(pair.group_epsilon_upper(1e-5, 2).is_err());
    assert!(run(1.0, 0.01, 500).group_epsilon_upper(1e-5, 100_000).is_err());
}

/// A second step reveals no less, also where only one of the directions can reach epsilon.
#[test]
fn two_steps_reveal_no_less_than_one() {
    let mut cases = 0;
    for (sigma, rate) in [(0.5, 0.5), (1.0, 0.3), (0.7, 0.01)] {
        // With the example added, losses of two steps are below -2 ln(1 - rate).
        let reach = -2.0 * f64::ln_1p(-rate);
        for epsilon in [reach + 0.2, reach + 2.0] {
            let (one, two) = (run(sigma, rate, 1), run(sigma, rate, 2));
            let (one, two) = (one.delta(epsilon).unwrap(), two.delta(epsilon).unwrap());
            assert!(one.lower > 0.0 && two.lower >= one.lower, "{sigma} {rate} {epsilon}: {one:?} {two:?}");
            cases += 1;
        }
    }
    assert_eq!(cases, 6);
}

#[test]
fn a_delta_is_warned_of_from_one_in_all_units_on() {
    let warned = |delta, units| delta_warning(delta, units, "example").is_some();
    assert!(warned(1e-3, 1001) && warned(0.5, 2) && !warned(0.5, 1) && !warned(1e-5, 60_000));
}

/// The epsilon of a mechanism of one pattern is that of a Gaussian release, from both sides.
#[test]
fn simulated_epsilons_enclose_the_exact_one() {
    let settings = MonteCarlo { precision: 0.1, max_samples: 50_000, ..MonteCarlo::default() };
    for (steps, std, delta) in [(5, 4.0, 1e-3), (2, 0.8, 1e-4)] {
        let columns = vec![vec![1.0]; steps];
        let exact = Gdp::new((steps as f64).sqrt() / std).unwrap().epsilon_upper(delta).unwrap();
        for mechanism in [
            MonteCarloMechanism::balls_in_bins(&columns, 1, std).unwrap(),
            MonteCarloMechanism::b_min_sep(&columns, 1, 10.0, 10, std).unwrap(),
        ] {
            for guess in [None, Some(1.03 * exact)] {
                let found = mechanism.epsilon(delta, &settings, guess, &|_, _| ()).unwrap();
                assert!(found.lower <= exact && exact <= found.upper, "{mechanism:?}: {found:?} {exact}");
                assert!(
                    found.upper < 1.1 * exact && found.lower > 0.9 * exact,
                    "{mechanism:?}: {found:?} {exact}"
                );
            }
        }
    }
}

/// With the noise that is found for a target its claim holds, and with a tenth less it does not.
#[test]
fn the_noise_for_a_target_meets_it_and_hardly_less_does() {
    let bands = [1.0, 0.6, 0.3];
    let columns: Vec<Vec<f64>> = (0..12).map(|t| bands[..3.min(12 - t)].to_vec()).collect();
    type Made<'a> = &'a dyn Fn(f64) -> MonteCarloMechanism;
    let bins = |std| MonteCarloMechanism::balls_in_bins(&columns, 4, std).unwrap();
    let apart = |std| MonteCarloMechanism::b_min_sep(&columns, 3, 2.0, 30, std).unwrap();
    for (name, made, epsilon, delta) in
        [("bins", &bins as Made, 1.0, 1e-3), ("b-min-sep", &apart as Made, 3.0, 1e-4)]
    {
        let scale = made(1.0).noise_scale_for(epsilon, delta).unwrap();
        let upper = |std| made(std).certified_delta(epsilon).unwrap().upper;
        let (enough, less) = (upper(scale), upper(0.9 * scale));
        assert!(enough <= delta && less > delta, "{name} {epsilon} {delta}: {scale} {enough:e} {less:e}");
    }
}
