//! Plans whose examples are put in bins: what is claimed is shown by sampling that no file can choose.

use antinoise_accounting::{Gdp, MonteCarlo, MonteCarloMechanism, gaussian_noise_multiplier_upper};
use antinoise_input::BadInput;
use antinoise_mechanism::{Adjacency, Participation};
use antinoise_plan::{
    Accountant, Length, Plan, PrivacyUnit, Request, Sampler, Setting, VerifiedPlan, choose, compose,
};

fn request(spec: &str) -> Request {
    let mut request = Request::new(160, 20, Length::Epochs(3), Setting::Poisson);
    (request.epsilon, request.delta, request.dim) = (4.0, 1e-5, 1000);
    request.specs = Some(vec![spec.parse().unwrap()]);
    request
}

fn plan(spec: &str) -> VerifiedPlan {
    choose(&request(spec)).unwrap().plan
}

/// Bins of one norm lose the least noise to the bound on weights: here 8%.
#[test]
fn blts_with_columns_of_norm_1_are_put_in_bins_too() {
    let request = Request {
        epsilon: 4.0,
        tolerance: 0.0,
        ..Request::new(1600, 100, Length::Epochs(2), Setting::Poisson)
    };
    let choice = choose(&request).unwrap();
    let chosen = &choice.candidates[choice.chosen];
    assert_eq!(choice.plan.sampler, Sampler::BallsInBins { bins: 16 });
    assert!(chosen.spec.column_normalize, "{}", chosen.name());
}

#[test]
fn a_claim_in_bins_is_shown_again_whenever_it_is_read_and_says_how() {
    let plan = plan("blt:2");
    assert_eq!(
        (plan.sampler, plan.privacy.accountant),
        (Sampler::BallsInBins { bins: 8 }, Accountant::BallsInBins)
    );
    let participation = Participation::Cyclic { min_sep: 8, max_participations: 3 };
    let schedule = plan.schedule();
    assert_eq!((&schedule.participation, schedule.is_amplified()), (&participation, true));
    assert_eq!(plan.expected_batch_size(), 20.0);
    let unsampled = gaussian_noise_multiplier_upper(4.0, 1e-5).unwrap();
    assert!(plan.noise_multiplier < 0.95 * unsampled, "{} {unsampled}", plan.noise_multiplier);
    assert!(plan.privacy.epsilon == 4.0 && plan.privacy.epsilon_lower >= 3.2, "{:?}", plan.privacy);
    assert_eq!(plan.privacy.failure, Some(1e-20));
    assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
    let said = format!("{:#}", plan.statement());
    for words in [
        "one of 8 bins, uniformly",
        "wrong with probability at most 1e-20",
        "stays secret",
        "exactly 8 apart",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    // Several models are counted without sampling.
    let several = compose(&[(&plan, 2)], 1e-5).unwrap();
    let gdp = Gdp::from_noise_multiplier_upper(plan.noise_multiplier).unwrap().repeat_upper(2).unwrap();
    assert_eq!(several.upper, gdp.epsilon_upper(1e-5).unwrap());
    assert_eq!(plan.statement_of_models(2).unwrap().failure, None);
}

/// Each alteration makes the claim untrue, or takes away what it is shown by.
#[test]
fn a_plan_in_bins_that_claims_too_much_is_refused() {
    let plan = plan("blt:2");
    type Alteration = fn(&mut Plan);
    let alterations: [(&str, Alteration); 18] = [
        ("less noise", |p| p.noise_multiplier *= 0.97),
        ("smaller epsilon", |p| p.privacy.epsilon *= 0.97),
        ("no number for epsilon", |p| p.privacy.epsilon = f64::NAN),
        ("larger lower end", |p| p.privacy.epsilon_lower = p.privacy.epsilon),
        ("smaller delta", |p| p.privacy.delta *= 0.8),
        ("no failure", |p| p.privacy.failure = None),
        ("a smaller failure", |p| p.privacy.failure = Some(1e-30)),
        ("the claim without sampling", |p| {
            (p.privacy.accountant, p.privacy.failure) = (Accountant::Gdp, None)
        }),
        ("the claim of Poisson batches", |p| {
            (p.privacy.accountant, p.privacy.failure) = (Accountant::SampledGaussian, None);
        }),
        ("batches whose order is known", |p| p.sampler = Sampler::Stream),
        ("batches in turn", |p| p.sampler = Sampler::Cyclic { groups: 8 }),
        ("more bins", |p| p.sampler = Sampler::BallsInBins { bins: 9 }),
        ("fewer bins", |p| p.sampler = Sampler::BallsInBins { bins: 4 }),
        ("more bins and a schema for them", |p| {
            p.sampler = Sampler::BallsInBins { bins: 400 };
            p.participation = Participation::Single;
            p.sensitivity = p.strategy.sensitivity(&p.participation).unwrap();
        }),
        ("users", |p| p.privacy.unit = PrivacyUnit::User),
        ("replaced examples", |p| p.privacy.adjacency = Adjacency::ReplaceOne),
        ("smaller sensitivity", |p| p.sensitivity.value *= 0.99),
        ("more steps", |p| p.steps += 1),
    ];
    for (name, alter) in alterations {
        let mut altered = plan.clone().into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
}

/// Whatever else a file says, so that its samples are others, 3% less noise is not shown to be enough.
#[test]
fn no_other_samples_show_what_is_not_true() {
    let plan = plan("blt:2");
    for digits in 0..10 {
        let mut altered = plan.clone().into_plan();
        altered.noise_multiplier *= 0.97 * (1.0 + 1e-9 * f64::from(digits));
        altered.privacy.epsilon *= 1.0 - 1e-9 * f64::from(digits);
        assert!(altered.verify().unwrap_err().to_string().contains("epsilon"), "{digits}");
    }
}

/// What verification found at other deltas and epsilons is part of the verified plan, read from a file or
/// not, and agrees with a new simulation.
#[test]
fn a_verified_plan_keeps_its_curve() {
    let plan = plan("blt:2");
    let curve = plan.curve().expect("bins are simulated");
    assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap().curve(), Some(curve));
    assert!(curve.central().upper <= plan.privacy.delta);
    assert_eq!(plan.privacy.epsilon_lower, curve.epsilon(plan.privacy.delta).lower);
    assert!(plan.privacy.epsilon_lower > 0.9 * plan.privacy.epsilon, "{:?}", plan.privacy);
    let mechanism = plan.monte_carlo().unwrap().unwrap();
    let settings = MonteCarlo { failure_probability: 1e-10, ..MonteCarlo::default() };
    let mut checked = 0;
    for delta in [1e-3, 1e-4, 3e-5, 3e-6, 1e-6, 1e-7] {
        let (known, guess) = (curve.epsilon(delta), curve.estimated_epsilon(delta));
        let new = mechanism.epsilon(delta, &settings, guess, &|_, _| ()).unwrap();
        assert!(known.lower <= new.upper && new.lower <= known.upper, "{delta:e}: {known:?} {new:?}");
        assert!(new.upper < 1.06 * new.lower, "{delta:e}: {new:?}");
        checked += 1;
    }
    assert_eq!(checked, 6);
    let none = choose(&Request::new(160, 20, Length::Epochs(3), Setting::Cyclic)).unwrap().plan;
    assert_eq!(none.curve(), None);
}

/// The dominating pair is one for non-negative C alone.
#[test]
fn a_negative_entry_of_c_is_refused() {
    let plan = plan("toeplitz");
    assert_eq!(plan.privacy.accountant, Accountant::BallsInBins);
    let mut altered: toml::Table = plan.to_toml().parse().unwrap();
    let strategy = altered["strategy"].as_table_mut().unwrap();
    let coefficients =
        strategy.iter_mut().find_map(|(_, value)| value.as_array_mut()).expect("Toeplitz coefficients");
    *coefficients.last_mut().unwrap() = toml::Value::Float(-1e-9);
    let mut altered: Plan = altered.try_into().unwrap();
    altered.sensitivity = altered.strategy.sensitivity(&altered.participation).unwrap();
    (altered.noise_multiplier, altered.rounding_factor) = (plan.noise_multiplier * 1.5, 1.001);
    let error = altered.clone().verify().unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("column"), "{error}");
    // As much noise as needs no sampling.
    (altered.privacy.accountant, altered.privacy.failure, altered.privacy.epsilon_lower) =
        (Accountant::Gdp, None, 0.0);
    assert!(altered.verify().is_ok());
}

/// One bin samples nothing, more bins more, and the noise is between none and that without sampling.
#[test]
fn more_bins_need_less_noise_and_one_needs_that_without_sampling() {
    let columns: Vec<Vec<f64>> = (0..16).map(|t| (0..16 - t).map(|lag| 0.7f64.powi(lag)).collect()).collect();
    let alone = |bins: usize| {
        let sum = |first: usize| -> Vec<f64> {
            (0..16).map(|row| (first..=row).step_by(bins).map(|t| columns[t][row - t]).sum()).collect()
        };
        let norm = |x: Vec<f64>| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        (0..bins).map(|first| norm(sum(first))).fold(0.0, f64::max)
    };
    let mut last = 1.0 + 1e-6;
    for bins in [1, 2, 4, 8] {
        let factor = MonteCarloMechanism::balls_in_bins(&columns, bins, 1.0)
            .unwrap()
            .noise_scale_for(2.0, 1e-4)
            .unwrap();
        let relative = factor / (alone(bins) * gaussian_noise_multiplier_upper(2.0, 1e-4).unwrap());
        assert!(relative <= last, "{bins} bins: {relative} after {last}");
        assert!(bins > 1 || relative > 1.0 - 1e-9, "one bin: {relative}");
        last = relative;
    }
    assert!(last < 0.9, "{last}");
}
