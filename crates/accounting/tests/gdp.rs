//! Gaussian differential privacy against 60-digit arithmetic (`scripts/accounting/gdp_golden.py`).

use antinoise_accounting::{Gdp, gaussian_noise_multiplier_upper};
use proptest::prelude::*;

/// The rows of a golden file of three columns.
fn rows(file: &str) -> Vec<[f64; 3]> {
    let parse = |line: &str| {
        let mut fields = line.split(',').map(|field| field.parse().expect("a number"));
        std::array::from_fn(|_| fields.next().expect("three columns"))
    };
    let rows: Vec<_> = file.lines().skip(1).map(parse).collect();
    assert!(rows.len() > 200, "a truncated golden file");
    rows
}

#[test]
fn ln_delta_agrees_with_the_golden_values() {
    let mut worst: f64 = 0.0;
    for [mu, epsilon, ln_delta] in rows(include_str!("golden/gdp_delta.csv")) {
        let error = (Gdp::new(mu).unwrap().ln_delta_to_nearest(epsilon).unwrap() - ln_delta).abs();
        worst = worst.max(error / (1.0 + 0.005 * ln_delta.abs()));
        assert!(error <= 1e-10, "mu {mu} epsilon {epsilon}: error {error:e} in ln delta {ln_delta}");
        let gdp = Gdp::new(mu).unwrap();
        assert!(
            gdp.delta_upper(epsilon).unwrap() >= ln_delta.exp()
                && gdp.delta_lower(epsilon).unwrap() <= ln_delta.exp()
        );
    }
    // The margin that `rounding` takes in the crate is 2e-12 + 1e-14 |ln delta|, ten times this.
    println!("worst error in ln delta, over 1 + 0.005 |ln delta|: {worst:e}");
    assert!(worst < 2e-13);
}

#[test]
fn epsilon_and_mu_agree_with_the_golden_values() {
    for [mu, delta, epsilon] in rows(include_str!("golden/gdp_epsilon.csv")) {
        let gdp = Gdp::new(mu).unwrap();
        let (lower, upper) = (gdp.epsilon_lower(delta).unwrap(), gdp.epsilon_upper(delta).unwrap());
        let relative = (upper - epsilon).max(epsilon - lower) / epsilon;
        assert!(lower <= epsilon && epsilon <= upper, "mu {mu} delta {delta}: {lower} {epsilon} {upper}");
        assert!(relative <= 1e-10, "mu {mu} delta {delta}: {relative:e}");
        let found = Gdp::from_privacy_lower(epsilon, delta).unwrap().mu();
        assert!(found <= mu && found >= mu * (1.0 - 1e-10), "mu {mu} delta {delta}: {found}");
    }
}

#[test]
fn published_noise_multipliers_come_out() {
    for (epsilon, sigma) in [(17.648, 0.34099), (8.841, 0.59997), (2.000, 2.23048)] {
        let found = gaussian_noise_multiplier_upper(epsilon, 1e-6).unwrap();
        assert!((found - sigma).abs() < 1e-5, "epsilon {epsilon}: {found}");
        assert!(
            Gdp::from_noise_multiplier_upper(found).unwrap().epsilon_upper(1e-6).unwrap()
                <= epsilon * (1.0 + 1e-11)
        );
    }
}

#[test]
fn bad_parameters_are_named() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(Gdp::new(bad).unwrap_err().to_string().starts_with("mu is"));
        assert!(
            Gdp::from_noise_multiplier_upper(bad).unwrap_err().to_string().starts_with("noise_multiplier is")
        );
        let gdp = Gdp::new(1.0).unwrap();
        assert!(gdp.epsilon_upper(bad).unwrap_err().to_string().starts_with("delta is"));
        assert!(gdp.delta_upper(bad).unwrap_err().to_string().starts_with("epsilon is"));
    }
    assert!(
        Gdp::from_noise_multiplier_upper(0.0).is_err() && Gdp::from_noise_multiplier_upper(1e-300).is_err()
    );
    assert!(
        gaussian_noise_multiplier_upper(1.0, 0.0).is_err()
            && gaussian_noise_multiplier_upper(1.0, 1.0).is_err()
    );
    assert!(Gdp::compose_upper([Gdp::new(1e150).unwrap(); 2]).is_err());
}

/// Every magnitude a float can have, and zero.
fn any_size() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(5e-324), (-323.0..308.0f64).prop_map(|x| 10f64.powf(x)), 0.0..50.0f64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_finite_input_breaks_anything(mu in any_size(), epsilon in any_size(), delta in any_size()) {
        let mu = mu.min(1e150);
        let gdp = Gdp::new(mu).unwrap();
        let (lower, upper) = (gdp.delta_lower(epsilon).unwrap(), gdp.delta_upper(epsilon).unwrap());
        prop_assert!(0.0 <= lower && lower <= upper && upper <= 1.0);
        prop_assert!(!gdp.ln_delta_to_nearest(epsilon).unwrap().is_nan());
        prop_assert!(gdp.rho_upper() >= 0.5 * mu * mu);
        if delta > 0.0 && delta < 1.0 {
            let (lower, upper) = (gdp.epsilon_lower(delta).unwrap(), gdp.epsilon_upper(delta).unwrap());
            prop_assert!(0.0 <= lower && lower <= upper && upper.is_finite());
            let mu = Gdp::from_privacy_lower(epsilon, delta).unwrap();
            prop_assert!(mu.delta_lower(epsilon).unwrap() <= delta);
            prop_assert!(gaussian_noise_multiplier_upper(epsilon, delta).unwrap() > 0.0);
        }
    }

    #[test]
    fn epsilon_is_monotone(mu in 1e-4..50.0f64, more in 1.0..2.0f64, ln_delta in -490.0..-0.01f64, less in 1.0..1.5f64) {
        let delta = ln_delta.exp();
        let smaller = (ln_delta * less).exp();
        let epsilon = |mu: f64, delta| Gdp::new(mu).unwrap().epsilon_upper(delta).unwrap();
        let slack = 1.0 + 1e-11;
        prop_assert!(epsilon(mu, delta) <= epsilon(mu * more, delta) * slack + 1e-11 * mu);
        prop_assert!(epsilon(mu, delta) <= epsilon(mu, smaller) * slack + 1e-11 * mu);
    }
}
