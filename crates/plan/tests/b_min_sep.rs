//! Plans under b-min-sep sampling: what is claimed is shown by sampling that no file can choose.

use antinoise_accounting::{Gdp, gaussian_noise_multiplier_upper};
use antinoise_input::BadInput;
use antinoise_mechanism::{Adjacency, Participation};
use antinoise_plan::{
    Accountant, Length, Plan, PrivacyUnit, Request, Sampler, Setting, VerifiedPlan, choose, compose,
};

fn request(spec: &str, setting: Setting) -> Request {
    let mut request = Request::new(400, 20, Length::Steps(24), setting);
    (request.epsilon, request.delta, request.dim) = (4.0, 1e-4, 1000);
    request.specs = Some(vec![spec.parse().unwrap()]);
    request
}

fn plan(spec: &str) -> VerifiedPlan {
    choose(&request(spec, Setting::BMinSep)).unwrap().plan
}

#[test]
fn a_claim_is_shown_again_whenever_it_is_read_and_says_how() {
    let plan = plan("banded-toeplitz:4");
    assert_eq!(
        (plan.sampler, plan.privacy.accountant),
        (Sampler::BMinSep { min_sep: 4 }, Accountant::BMinSep)
    );
    let participation = Participation::MinSep { min_sep: 4, max_participations: 6 };
    let schedule = plan.schedule();
    assert_eq!((&schedule.participation, schedule.is_amplified()), (&participation, true));
    assert_eq!(plan.expected_batch_size(), 20.0);
    let unsampled = gaussian_noise_multiplier_upper(4.0, 1e-4).unwrap();
    assert!(plan.noise_multiplier < 0.7 * unsampled, "{} {unsampled}", plan.noise_multiplier);
    // Less noise than where an example's group comes every fourth step.
    let cyclic = choose(&request("banded-toeplitz:4", Setting::Poisson)).unwrap().plan;
    assert_eq!(cyclic.sampler, Sampler::Poisson { groups: 4 });
    assert!(plan.noise_std() < cyclic.noise_std(), "{} {}", plan.noise_std(), cyclic.noise_std());
    assert!(plan.privacy.epsilon == 4.0 && plan.privacy.epsilon_lower >= 3.2, "{:?}", plan.privacy);
    assert_eq!(plan.privacy.failure, Some(1e-20));
    assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
    let said = format!("{:#}", plan.statement());
    for words in [
        "none of the last 3 steps",
        "wrong with probability at most 1e-20",
        "stays secret",
        "at least 4 apart",
        "0.0588",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    // Several models are counted without sampling.
    let several = compose(&[(&plan, 2)], 1e-4).unwrap();
    let gdp = Gdp::from_noise_multiplier_upper(plan.noise_multiplier).unwrap().repeat_upper(2).unwrap();
    assert_eq!(several.upper, gdp.epsilon_upper(1e-4).unwrap());
}

/// Each alteration makes the claim untrue, or takes away what it is shown by.
#[test]
fn a_plan_that_claims_too_much_is_refused() {
    let plan = plan("banded-toeplitz:4");
    type Alteration = fn(&mut Plan);
    let alterations: [(&str, Alteration); 22] = [
        ("less noise", |p| p.noise_multiplier *= 0.95),
        ("smaller epsilon", |p| p.privacy.epsilon *= 0.95),
        ("no number for epsilon", |p| p.privacy.epsilon = f64::NAN),
        ("larger lower end", |p| p.privacy.epsilon_lower = p.privacy.epsilon),
        ("smaller delta", |p| p.privacy.delta *= 0.7),
        ("no failure", |p| p.privacy.failure = None),
        ("a smaller failure", |p| p.privacy.failure = Some(1e-30)),
        ("the claim without sampling", |p| {
            (p.privacy.accountant, p.privacy.failure) = (Accountant::Gdp, None)
        }),
        ("the claim of Poisson batches", |p| {
            (p.privacy.accountant, p.privacy.failure) = (Accountant::SampledGaussian, None);
        }),
        ("the claim of bins", |p| p.privacy.accountant = Accountant::BallsInBins),
        ("batches whose order is known", |p| p.sampler = Sampler::Stream),
        ("batches in turn", |p| p.sampler = Sampler::Cyclic { groups: 4 }),
        ("bins", |p| p.sampler = Sampler::BallsInBins { bins: 4 }),
        ("fewer steps apart than bands", |p| p.sampler = Sampler::BMinSep { min_sep: 3 }),
        ("that and a schema for it", |p| {
            p.sampler = Sampler::BMinSep { min_sep: 3 };
            p.participation = Participation::MinSep { min_sep: 3, max_participations: 8 };
            p.sensitivity = p.strategy.sensitivity(&p.participation).unwrap();
        }),
        ("farther apart than batches reach", |p| p.sampler = Sampler::BMinSep { min_sep: 21 }),
        ("a schema of exact distances", |p| {
            p.participation = Participation::Cyclic { min_sep: 4, max_participations: 6 };
            p.sensitivity = p.strategy.sensitivity(&p.participation).unwrap();
        }),
        ("larger batches", |p| p.batch_size += 2),
        ("fewer examples", |p| p.examples -= 40),
        ("users", |p| p.privacy.unit = PrivacyUnit::User),
        ("replaced examples", |p| p.privacy.adjacency = Adjacency::ReplaceOne),
        ("more steps", |p| p.steps += 1),
    ];
    for (name, alter) in alterations {
        let mut altered = plan.clone().into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
    // Whatever else a file says, so that its samples are others, 5% less noise is not shown to be enough.
    for digits in 0..4 {
        let mut altered = plan.clone().into_plan();
        altered.noise_multiplier *= 0.95 * (1.0 + 1e-9 * f64::from(digits));
        assert!(altered.verify().unwrap_err().to_string().contains("epsilon"), "{digits}");
    }
}

/// The dominating pair is one for non-negative C alone.
#[test]
fn a_negative_entry_of_c_is_refused() {
    let plan = plan("banded-toeplitz:4");
    let mut altered: toml::Table = plan.to_toml().parse().unwrap();
    let strategy = altered["strategy"].as_table_mut().unwrap();
    let coefficients =
        strategy.iter_mut().find_map(|(_, value)| value.as_array_mut()).expect("Toeplitz coefficients");
    *coefficients.last_mut().unwrap() = toml::Value::Float(-1e-9);
    let mut altered: Plan = altered.try_into().unwrap();
    altered.sensitivity = altered.strategy.sensitivity(&altered.participation).unwrap();
    altered.rounding_factor = 1.001;
    let error = altered.verify().unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("column"), "{error}");
}

#[test]
fn what_has_no_bands_or_another_adjacency_is_refused_by_name() {
    for spec in ["blt:2", "toeplitz", "tree"] {
        let error = choose(&request(spec, Setting::BMinSep)).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains("bands"), "{spec}: {error}");
    }
    let mut replaced = request("banded-toeplitz:4", Setting::BMinSep);
    replaced.adjacency = Adjacency::ReplaceOne;
    let error = choose(&replaced).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("zero-out"), "{error}");
    let too_long = Request { length: Length::Steps(3000), ..request("banded-toeplitz:4", Setting::BMinSep) };
    assert!(choose(&too_long).unwrap_err().to_string().contains("steps is 3000"));
}
