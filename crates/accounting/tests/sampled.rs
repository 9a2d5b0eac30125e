//! Poisson-sampled Gaussian steps: brackets against quadrature, identities, other accountants, and any input.

mod common;

use antinoise_accounting::{
    BlockCyclicPoisson, Bounds, Composition, Gdp, PoissonSampledGaussian, block_cyclic_poisson_reduction,
    calibrate,
};
use common::{Steps, is_swept, random_cases, uniforms};
use proptest::prelude::*;

fn run(sigma: f64, rate: f64, steps: u64) -> Composition {
    Composition::new([PoissonSampledGaussian::new(sigma, rate, steps).unwrap()]).unwrap()
}

fn narrow(bracket: Bounds, width: f64) -> bool {
    bracket.lower <= bracket.upper && bracket.upper - bracket.lower <= width * bracket.upper
}

#[test]
fn two_steps_agree_with_quadrature() {
    // The generator is scripts/accounting/sampled_golden.py.
    let file = include_str!("golden/sampled_delta.csv");
    let mut rows = 0;
    for line in file.lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [sigma_1, rate_1, sigma_2, rate_2, epsilon, delta] = row[..] else {
            panic!("six columns: {line}")
        };
        rows += 1;
        // The small ones take the longest; every other kind is here anyway.
        if epsilon == 0.01 || !is_swept(rows, 4) {
            continue;
        }
        let phases = [
            PoissonSampledGaussian::new(sigma_1, rate_1, 1).unwrap(),
            PoissonSampledGaussian::new(sigma_2, rate_2, 1).unwrap(),
        ];
        let composition = Composition::new(phases).unwrap();
        let found = composition.delta(epsilon).unwrap();
        assert!(found.lower <= delta && delta <= found.upper, "{line}: {found:?}");
        if epsilon < 0.1 {
            continue;
        }
        let back = composition.epsilon(delta).unwrap();
        assert!(back.lower <= epsilon * (1.0 + 1e-9) + 1e-9 && epsilon <= back.upper, "{line}: {back:?}");
    }
    assert!(rows >= 40, "a truncated golden file");
}

#[test]
fn many_steps_agree_with_contour_integration() {
    // The generator is scripts/accounting/bromwich.py, good to about 1e-9.
    let file = include_str!("golden/composed_epsilon.csv");
    assert!(file.lines().count() >= 10, "a truncated golden file");
    for line in file.lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [sigma, rate, steps, delta, epsilon] = row[..] else { panic!("five columns: {line}") };
        let composition = run(sigma, rate, steps as u64);
        let found = composition.epsilon(delta).unwrap();
        assert!(narrow(found, 1e-3), "{line}: {found:?}");
        assert!(
            found.lower <= epsilon * (1.0 + 1e-8) && epsilon * (1.0 - 1e-8) <= found.upper,
            "{line}: {found:?}"
        );
        let back = composition.delta(epsilon).unwrap();
        assert!(back.lower <= delta * (1.0 + 1e-7) && delta * (1.0 - 1e-7) <= back.upper, "{line}: {back:?}");
    }
}

#[test]
fn a_single_step_is_the_closed_form() {
    // delta of a sampled step is q times the Gaussian one at ln(1 + (e^epsilon - 1)/q), in the worse
    // direction.
    for (sigma, rate, epsilon) in [(1.0, 0.1, 0.5), (0.5, 1e-3, 1.0), (20.0, 0.5, 0.01), (2.0, 0.9, 3.0)] {
        let exact = rate
            * Gdp::from_noise_multiplier_upper(sigma)
                .unwrap()
                .delta_to_nearest((f64::exp_m1(epsilon) / rate).ln_1p())
                .unwrap();
        let found = run(sigma, rate, 1).delta(epsilon).unwrap();
        assert!(
            found.lower <= exact && exact <= found.upper && narrow(found, 1e-9),
            "{sigma} {rate}: {found:?} {exact}"
        );
    }
}

/// Where e^epsilon overflows, one step has the epsilon of Gaussian noise at delta / q, and ln q less.
#[test]
fn a_single_step_with_little_noise_is_the_closed_form() {
    let mut cases = 0;
    for sigma in [0.01, 0.02, 0.0243, 0.05] {
        for rate in [0.5, 0.1, 1e-3] {
            for delta in [1e-30, 1e-5] {
                let found = run(sigma, rate, 1).epsilon(delta).unwrap();
                let gaussian = Gdp::new(1.0 / sigma).unwrap();
                let exact = gaussian.epsilon_upper(delta / rate).unwrap() + rate.ln();
                let place = format!("{sigma} {rate} {delta}: {found:?} {exact}");
                assert!(
                    found.lower <= exact * (1.0 + 1e-12) && exact * (1.0 - 1e-12) <= found.upper,
                    "{place}"
                );
                assert!(found.upper <= exact * (1.0 + 1e-9), "{place}");
                let there = run(sigma, rate, 1).delta(exact).unwrap();
                assert!((there.upper / delta - 1.0).abs() < 1e-6, "{place}: {there:?}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 24);
}

#[test]
fn sampling_everything_is_gaussian() {
    for (sigma, steps, delta) in
        [(1.0, 100, 1e-5), (5.0, 1000, 1e-9), (0.5, 3, 1e-12), (50.0, 1_000_000, 1e-3)]
    {
        let exact = Gdp::from_noise_multiplier_upper(sigma).unwrap().repeat_upper(steps).unwrap();
        let found = run(sigma, 1.0, steps).epsilon(delta).unwrap();
        assert!((found.upper / exact.epsilon_upper(delta).unwrap() - 1.0).abs() < 1e-9);
        assert!((found.lower / exact.epsilon_lower(delta).unwrap() - 1.0).abs() < 1e-9);
        // By the general way, at a rate that differs from 1 by nothing.
        let nearly = run(sigma, 1.0 - 1e-13, steps).epsilon(delta).unwrap();
        assert!(
            nearly.lower <= found.upper && nearly.upper >= found.lower * (1.0 - 1e-9) && narrow(nearly, 1e-3),
            "{nearly:?}"
        );
    }
}

#[test]
fn composition_multiplies_characteristic_functions() {
    let phase = |sigma, rate, steps| PoissonSampledGaussian::new(sigma, rate, steps).unwrap();
    let split =
        Composition::new([phase(1.0, 0.01, 300), phase(1.0, 0.01, 700)]).unwrap().epsilon(1e-6).unwrap();
    let whole = run(1.0, 0.01, 1000).epsilon(1e-6).unwrap();
    assert!((split.upper / whole.upper - 1.0).abs() < 1e-9 && (split.lower / whole.lower - 1.0).abs() < 1e-9);
    // With a full-batch release besides: not below either alone, and not above the sum of epsilons.
    let mixed =
        Composition::new([phase(1.0, 0.01, 1000), phase(4.0, 1.0, 1)]).unwrap().epsilon(1e-6).unwrap();
    let gaussian = Gdp::new(0.25).unwrap().epsilon_upper(1e-6).unwrap();
    assert!(narrow(mixed, 1e-3) && mixed.lower > whole.upper && mixed.upper < whole.upper + gaussian);
}

#[test]
fn brackets_are_narrow_over_the_grid() {
    // A part of the grid of scripts/accounting/compare_dp_accounting.py, where all of it is recorded.
    for sigma in [0.3, 0.8, 5.0, 50.0] {
        for rate in [1e-5, 1e-4, 1e-2, 0.5] {
            for steps in [10, 10_000, 1_000_000] {
                for delta in [1e-12, 1e-6, 1e-3] {
                    let found = run(sigma, rate, steps).epsilon(delta).unwrap();
                    assert!(narrow(found, 1e-3), "{sigma} {rate} {steps} {delta:e}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn renyi_divergences_are_looser_and_right() {
    for (sigma, rate, steps, delta) in
        [(1.0, 0.01, 1000, 1e-5), (2.0, 0.1, 100, 1e-9), (0.6, 1e-3, 10_000, 1e-6)]
    {
        let composition = run(sigma, rate, steps);
        let step = Steps { sigma, rate, steps: 1 };
        let renyi = Steps { steps, ..step }.epsilon_from_renyi(delta);
        let found = composition.epsilon(delta).unwrap();
        assert!(renyi > found.lower && renyi < 1.5 * found.upper, "{sigma} {rate}: {renyi} {found:?}");
        // Whole orders have a closed form: sum over k of C(alpha, k) (1-q)^(alpha-k) q^k e^(k(k-1)/(2
        // sigma^2)).
        for alpha in [2i32, 3, 8, 32] {
            let mut binomial = 1.0;
            let mut moment = 0.0;
            for k in 0..=alpha {
                let power = (f64::from(k * (k - 1)) / (2.0 * sigma * sigma)).exp();
                moment += binomial * (1.0 - rate).powi(alpha - k) * rate.powi(k) * power;
                binomial *= f64::from(alpha - k) / f64::from(k + 1);
            }
            let exact = moment.ln() / f64::from(alpha - 1);
            let found = step.renyi_divergence(f64::from(alpha));
            assert!((found - exact).abs() <= 1e-10 * exact + 1e-15, "alpha {alpha}: {found} {exact}");
        }
    }
}

#[test]
fn calibration_is_safe_and_close() {
    for (rate, steps, epsilon, delta) in
        [(0.01, 1000, 2.0, 1e-6), (0.1, 100, 0.5, 1e-5), (1e-3, 100_000, 8.0, 1e-8)]
    {
        let sigma = calibrate::noise_multiplier_upper(rate, steps, epsilon, delta).unwrap();
        assert!(run(sigma, rate, steps).epsilon(delta).unwrap().upper <= epsilon * (1.0 + 1e-3));
        assert!(run(sigma, rate, steps).delta(epsilon).unwrap().upper <= delta);
        assert!(
            run(sigma * 0.995, rate, steps).delta(epsilon).unwrap().upper > delta,
            "sigma {sigma} is too large"
        );
        let most = calibrate::steps_lower(sigma, rate, epsilon, delta).unwrap();
        assert!(most >= steps && most <= steps + steps / 50 + 1, "{most} for {steps} steps");
        let found = calibrate::sampling_rate_lower(sigma, steps, epsilon, delta).unwrap();
        assert!(found >= rate * (1.0 - 1e-3) && found <= rate * 1.02, "{found} for rate {rate}");
    }
    assert!(calibrate::steps_lower(0.1, 0.5, 0.1, 1e-6).unwrap_err().to_string().starts_with("no steps"));
}

/// For every comparison of neighbours: the target is met as it is accounted, and 2e-4 less noise misses it.
#[test]
fn noise_that_is_calibrated_is_the_least_over_the_whole_space() {
    let (mut uniform, mut compared) = (uniforms(11), 0);
    let cases = random_cases(2000, 100);
    for case in 0..cases {
        let mut between = |low: f64, high: f64| low * (high / low).powf(uniform());
        let (rate, steps) = (between(1e-6, 1.0), between(1.0, 1e6) as u64);
        let (epsilon, delta) = (between(1e-2, 30.0), between(1e-12, 1e-2));
        let run = PoissonSampledGaussian::new(1.0, rate, steps).unwrap();
        let run = match case % 4 {
            0 => run,
            1 => run.replaced(),
            2 => run.of_group(3).unwrap(),
            _ => run.truncated(1 + (2.0 * rate * 1e4) as u64, 10_000).unwrap(),
        };
        let place = format!("{run:?} for epsilon {epsilon}, delta {delta:e}");
        let upper = |sigma| {
            let run = run.with_noise_multiplier(sigma).unwrap();
            Composition::new([run]).unwrap().epsilon(delta).unwrap().upper
        };
        let Ok(sigma) = run.noise_multiplier_upper(epsilon, delta) else { continue };
        assert!(upper(sigma) <= epsilon, "{place}: {sigma} gives {}", upper(sigma));
        // Less noise than a thousandth is nowhere accounted for tightly.
        let less = sigma * (1.0 - 2e-4);
        assert!(sigma < 1e-3 || upper(less) > epsilon, "{place}: {less} gives {}", upper(less));
        compared += 1;
    }
    assert!(compared > cases * 9 / 10, "{compared} of {cases}");
}

/// As many steps as met a target meet it again, and no more noise is asked for: also for one step, and
/// where the bounds of the answer are those of finer grids than the bounds next to it.
#[test]
fn a_calibration_finds_again_what_met_its_target() {
    let mut uniform = uniforms(12);
    let mut between = |low: f64, high: f64| low * (high / low).powf(uniform());
    let known = [
        (0.8786044975621402, 0.0033475547582591625, 3, 5.416434730133998e-6),
        (0.3003224640381225, 0.010294038479281172, 2, 1.4607778545789704e-8),
        (10.145255459942945, 0.001308423617858805, 6, 2.580533645756345e-5),
        (1.0, 0.1, 1, 1e-5),
    ];
    let random = (0..random_cases(100, 20)).map(|_| {
        let steps = between(1.0, 13.0) as u64;
        (between(0.3, 20.0), between(1e-4, 0.5), steps, between(1e-9, 1e-3))
    });
    for (sigma, rate, steps, delta) in known.into_iter().chain(random) {
        let epsilon = run(sigma, rate, steps).epsilon(delta).unwrap().upper;
        let place = format!("{sigma} {rate:e} {steps} {delta:e}: epsilon {epsilon}");
        for more in [1.0, 1.0 + 1e-9, 1.0 + 1e-7, 1.0 + 1e-4] {
            let found = calibrate::steps_lower(sigma, rate, epsilon * more, delta).unwrap();
            assert!(found >= steps, "{place}: {found} steps at {more} of it");
        }
        let found = calibrate::noise_multiplier_upper(rate, steps, epsilon, delta).unwrap();
        assert!(found <= sigma * (1.0 + 2e-4), "{place}: {found}");
    }
}

/// Targets for which the first guess is far off: an epsilon of 0, and few steps.
#[test]
fn calibration_finds_what_is_far_from_its_guess() {
    for (sigma, steps, epsilon, delta) in [(1.0, 10, 0.0, 1e-6), (0.7, 2, 0.5, 1e-9)] {
        let rate = calibrate::sampling_rate_lower(sigma, steps, epsilon, delta).unwrap();
        let upper = |rate| run(sigma, rate, steps).epsilon(delta).unwrap().upper;
        let (found, more) = (upper(rate), upper(1.01 * rate));
        assert!(
            found <= epsilon && more > epsilon,
            "{sigma} {steps}: {rate:e} gives {found}, a hundredth more {more}"
        );
    }
    for (rate, steps, epsilon, delta) in [(0.3, 2, 1.0, 1e-3), (0.01, 1, 0.1, 1e-3)] {
        let sigma = calibrate::noise_multiplier_upper(rate, steps, epsilon, delta).unwrap();
        let upper = |sigma| run(sigma, rate, steps).epsilon(delta).unwrap().upper;
        let (found, less) = (upper(sigma), upper(0.99 * sigma));
        assert!(
            found <= epsilon && less > epsilon,
            "{rate} {steps}: {sigma} gives {found}, a hundredth less {less}"
        );
    }
}

/// Without sampling too: what is answered is what was evaluated.
#[test]
fn unsampled_calibration_meets_its_target_as_it_is_accounted() {
    let mut uniform = uniforms(3);
    let mut between = |low: f64, high: f64| low * (high / low).powf(uniform());
    for _ in 0..300 {
        let (epsilon, delta) = (between(1e-3, 100.0), between(1e-15, 0.1));
        let steps = between(1.0, 1e9) as u64;
        let sigma = calibrate::noise_multiplier_upper(1.0, steps, epsilon, delta).unwrap();
        let found = run(sigma, 1.0, steps).epsilon(delta).unwrap().upper;
        assert!(found <= epsilon, "{epsilon} {delta:e} {steps}: {sigma} gives {found}");
        let less = run(sigma * (1.0 - 1e-10), 1.0, steps).epsilon(delta).unwrap().upper;
        assert!(less > epsilon, "{epsilon} {delta:e} {steps}: less than {sigma} would do");
    }
}

/// Where sampling is rare, one step is almost certain to reveal nothing: errors must be as small as what is
/// rare.
#[test]
fn brackets_are_narrow_where_sampling_is_rare() {
    for (sigma, rate, steps, delta, width) in [
        (0.5, 1e-7, 10_000_000, 1e-12, 1e-3),
        (0.5, 1e-8, 100_000_000, 1e-12, 1e-3),
        (0.5, 1e-7, 100, 1e-15, 0.02),
        (0.48, 2.1e-8, 2, 2.7e-15, 0.02),
    ] {
        let found = run(sigma, rate, steps).epsilon(delta).unwrap();
        assert!(narrow(found, width), "{sigma} {rate:e} {steps} {delta:e}: {found:?}");
    }
}

#[test]
fn banded_reduction_meets_its_ends() {
    let sampling = |bands| BlockCyclicPoisson { bands, steps: 1000, batch_size: 100.0, examples: 10_000 };
    let reduced = |bands| block_cyclic_poisson_reduction(&sampling(bands), 2.0);
    // One band is DP-SGD; a hundred are the unamplified mechanism with ten participations.
    let one = reduced(1).unwrap();
    assert!((one.sampling_rate() - 0.01).abs() < 1e-15 && one.steps() == 1000);
    let all = Composition::new([reduced(100).unwrap()]).unwrap().epsilon(1e-6).unwrap();
    let exact =
        Gdp::from_noise_multiplier_upper(2.0).unwrap().repeat_upper(10).unwrap().epsilon_upper(1e-6).unwrap();
    assert!((all.upper / exact - 1.0).abs() < 1e-9);
    // 1000 steps in 16 groups: some groups have 63 participations.
    assert_eq!(reduced(16).unwrap().steps(), 63);
    let few = |bands| {
        let sampling = BlockCyclicPoisson { bands, steps: 7, batch_size: 1.0, examples: 10_000 };
        block_cyclic_poisson_reduction(&sampling, 2.0).map(|run| run.steps())
    };
    assert!(few(7).unwrap() == 1 && few(6).unwrap() == 2);
    let error = few(8).unwrap_err().to_string();
    assert!(error.starts_with("bands is 8 but must be from 1 to steps = 7"), "{error}");
    let error = reduced(101).unwrap_err().to_string();
    assert!(error.starts_with("bands is 101 but must be at most examples / batch_size = 100"), "{error}");
}

#[test]
fn banded_noise_meets_its_target_and_its_ends() {
    let (epsilon, delta) = (2.0, 1e-6);
    let at = |bands| BlockCyclicPoisson { bands, steps: 1000, batch_size: 100.0, examples: 10_000 };
    for bands in [1, 3, 16, 100] {
        let sigma = at(bands).noise_multiplier_upper(epsilon, delta).unwrap();
        let run = block_cyclic_poisson_reduction(&at(bands), sigma).unwrap();
        assert!(Composition::new([run]).unwrap().epsilon(delta).unwrap().upper <= epsilon, "{bands} bands");
    }
    let dp_sgd = calibrate::noise_multiplier_upper(0.01, 1000, epsilon, delta).unwrap();
    let one = at(1).noise_multiplier_upper(epsilon, delta).unwrap();
    assert!((one / dp_sgd - 1.0).abs() < 2e-4, "{one} against {dp_sgd}");
    // Ten participations without amplification.
    let unamplified =
        antinoise_accounting::gaussian_noise_multiplier_upper(epsilon, delta).unwrap() * 10f64.sqrt();
    let all = at(100).noise_multiplier_upper(epsilon, delta).unwrap();
    assert!((all / unamplified - 1.0).abs() < 1e-9, "{all} against {unamplified}");
}

#[test]
fn extreme_noise_behaves() {
    let quiet = run(1e-6, 0.01, 10).epsilon(1e-6).unwrap();
    assert!(quiet.upper.is_finite() && quiet.upper > 1e6 && quiet.lower <= quiet.upper, "{quiet:?}");
    let loud = run(1e9, 0.01, 10).epsilon(1e-6).unwrap();
    assert!(loud.upper == 0.0 && loud.lower == 0.0, "{loud:?}");
}

/// Rates, noise and steps over many magnitudes, with all that is likely to break something.
fn any_run() -> impl Strategy<Value = (f64, f64, u64)> {
    let sigma = (-6.0..12.0f64).prop_map(|x| 10f64.powf(x));
    let rate = prop_oneof![(-300.0..0.0f64).prop_map(|x| 10f64.powf(x)), 0.0001..1.0f64, Just(1.0 - 1e-16)];
    let steps = (0.0..15.0f64).prop_map(|x| 10f64.powf(x) as u64);
    (sigma, rate, steps)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(random_cases(16, 4)))]

    #[test]
    fn no_input_breaks_anything((sigma, rate, steps) in any_run(), ln_delta in -700.0..-0.001f64, epsilon in 0.0..1e4f64) {
        let composition = run(sigma, rate, steps);
        let found = composition.epsilon(ln_delta.exp()).unwrap();
        prop_assert!(0.0 <= found.lower && found.lower <= found.upper && found.upper.is_finite(), "{:?}", found);
        let found = composition.delta(epsilon).unwrap();
        prop_assert!(0.0 <= found.lower && found.lower <= found.upper && found.upper <= 1.0, "{:?}", found);
    }

    #[test]
    fn epsilon_is_monotone(sigma in 0.4..5.0f64, rate in 1e-3..0.3f64, steps in 2u64..5000, ln_delta in -25.0..-7.0f64, more in 1.05..2.0f64) {
        // Brackets overlap unless something is out of order.
        let base = run(sigma, rate, steps).epsilon(ln_delta.exp()).unwrap();
        let less_noise = run(sigma / more, rate, steps).epsilon(ln_delta.exp()).unwrap();
        let more_data = run(sigma, (rate * more).min(1.0), steps).epsilon(ln_delta.exp()).unwrap();
        let more_steps = run(sigma, rate, (steps as f64 * more).ceil() as u64).epsilon(ln_delta.exp()).unwrap();
        let less_delta = run(sigma, rate, steps).epsilon((ln_delta * more).exp()).unwrap();
        for worse in [less_noise, more_data, more_steps, less_delta] {
            prop_assert!(base.lower <= worse.upper, "{:?} {:?}", base, worse);
        }
    }
}
