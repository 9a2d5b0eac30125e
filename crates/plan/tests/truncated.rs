//! Plans whose Poisson batches are cut at a maximum size: what they claim, what is refused, and what runs.

use antinoise_accounting::{Composition, PoissonSampledGaussian};
use antinoise_input::BadInput;
use antinoise_mechanism::Adjacency;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{
    Accountant, Batches, Length, MaxBatchSize, Plan, Request, Sampler, Setting, VerifiedPlan, choose, compose,
};

fn request(strategy: &str, max_batch_size: Option<MaxBatchSize>) -> Request {
    let mut request = Request::new(3000, 100, Length::Epochs(3), Setting::Poisson);
    (request.epsilon, request.delta, request.max_batch_size) = (2.0, 1e-5, max_batch_size);
    request.specs = Some(vec![strategy.parse().unwrap()]);
    request
}

fn planned(strategy: &str, max_batch_size: Option<MaxBatchSize>) -> VerifiedPlan {
    choose(&request(strategy, max_batch_size)).unwrap().plan
}

/// Pr[Bin(n, p) >= m] by adding one trial after another.
fn tail(n: usize, p: f64, m: usize) -> f64 {
    let start = vec![1.0];
    let all = (0..n).fold(start, |before: Vec<f64>, _| {
        let at = |k: usize| before.get(k).copied().unwrap_or(0.0);
        (0..=before.len()).map(|k| at(k) * (1.0 - p) + if k > 0 { at(k - 1) * p } else { 0.0 }).collect()
    });
    all.iter().skip(m).rev().sum()
}

/// The claim against the theorem, with a tail of its own: delta of the uncut steps at the claimed epsilon and
/// the expected number of participations in cut batches are at most delta together, and not much less.
#[test]
fn the_claim_includes_the_cost_of_the_cut() {
    for (strategy, groups) in [("identity", 1), ("banded-toeplitz:4", 4)] {
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            for wanted in [MaxBatchSize::Auto, MaxBatchSize::Of(152), MaxBatchSize::Of(2900)] {
                let plan = choose(&Request { adjacency, ..request(strategy, Some(wanted)) }).unwrap().plan;
                let case = format!("{strategy} {adjacency} {wanted}");
                let Sampler::TruncatedPoisson { groups: found, max_batch_size } = plan.sampler else {
                    panic!("{case}: {:?}", plan.sampler)
                };
                assert_eq!((found, plan.privacy.accountant), (groups, Accountant::SampledGaussian), "{case}");
                let (rate, turns) = (groups as f64 / 30.0, 90_usize.div_ceil(groups));
                let cost = turns as f64 * rate * tail(3000 / groups - 1, rate, max_batch_size);
                let noise = plan.noise_multiplier * adjacency.sensitivity_factor();
                let run = PoissonSampledGaussian::new(noise, rate, turns as u64).unwrap();
                let run = if adjacency == Adjacency::ReplaceOne { run.replaced() } else { run };
                let uncut = Composition::new([run]).unwrap().delta(plan.privacy.epsilon).unwrap();
                assert!(uncut.lower + cost <= 1e-5 * (1.0 + 1e-9), "{case}: {uncut:?} {cost}");
                assert!(uncut.upper + 1.2 * cost > 0.98e-5, "{case}: {uncut:?} {cost}");
                assert!(plan.privacy.epsilon <= 2.0 && plan.privacy.epsilon > 1.99, "{case}");
                let stated = plan.truncation_delta().unwrap();
                assert!(stated >= cost && stated <= 1.2 * cost + 1e-300, "{case}: {stated} {cost}");
                assert!(wanted != MaxBatchSize::Auto || stated <= 1e-7, "{case}: {stated}");
            }
        }
    }
}

/// At the default size, fixed shapes cost next to nothing, and next to no padding.
#[test]
fn the_default_size_is_small_and_nearly_free() {
    let (cut, uncut) = (planned("identity", Some(MaxBatchSize::Auto)), planned("identity", None));
    assert!(cut.noise_multiplier < 1.002 * uncut.noise_multiplier);
    let size = cut.sampler.max_batch_size().unwrap();
    assert!((140..165).contains(&size), "{size}");
    assert_eq!(uncut.sampler.max_batch_size(), None);
    assert_eq!(cut.expected_batch_size(), 100.0);
}

#[test]
fn files_statements_and_batches_know_the_size() {
    let plan = planned("banded-toeplitz:4", Some(MaxBatchSize::Of(152)));
    let text = plan.to_toml();
    assert!(text.contains("kind = \"truncated-poisson\"") && text.contains("max_batch_size = 152"), "{text}");
    assert_eq!(Plan::from_toml(&text).unwrap(), plan);
    let statement = format!("{:#}", plan.statement());
    assert!(statement.contains("of more than 152, that many are drawn uniformly at random"), "{statement}");
    assert!(statement.contains("sampled into a batch that is cut"), "{statement}");
    let rng = |purpose, step| KeyedRng::new(&Key::from_seed_insecure(2), &RunId::default(), purpose, step);
    let order = &mut rng(Purpose::DataOrder, 0);
    let batches = Batches::new(plan.sampler, 3000, 100, plan.steps, order).unwrap();
    let sizes = (0..90).map(|step| batches.at(step, &mut rng(Purpose::BatchSampling, step as u64)).len());
    assert!(sizes.clone().max() <= Some(152) && sizes.min() < Some(100));
    // Several models, parts of a run, and persons with several examples are counted with their cuts.
    let two = compose(&[(&plan, 2)], 1e-5).unwrap().upper;
    assert!(two > plan.privacy.epsilon && two < 2.5 * plan.privacy.epsilon, "{two}");
    let spent = plan.epsilon_by_step(&[10, 45, 90]).unwrap();
    assert!(spent.is_sorted() && spent[2] <= plan.privacy.epsilon, "{spent:?}");
    let independent = planned("identity", Some(MaxBatchSize::Of(150)));
    let by_examples: Vec<f64> = [1, 2, 5].map(|k| independent.epsilon_of_user(k).unwrap()).to_vec();
    assert!(by_examples.windows(2).all(|pair| 1.5 * pair[0] < pair[1]), "{by_examples:?}");
}

#[test]
fn a_plan_that_claims_too_much_is_refused() {
    type Alteration = fn(&mut Plan);
    let size = |groups, max_batch_size| Sampler::TruncatedPoisson { groups, max_batch_size };
    assert_eq!(planned("banded-toeplitz:4", Some(MaxBatchSize::Of(152))).sampler, size(4, 152));
    let alterations: [(&str, Alteration); 7] = [
        ("a smaller size", |p| p.sampler = Sampler::TruncatedPoisson { groups: 4, max_batch_size: 140 }),
        ("a size below a batch's", |p| {
            p.sampler = Sampler::TruncatedPoisson { groups: 4, max_batch_size: 99 }
        }),
        ("a size above the data's", |p| {
            p.sampler = Sampler::TruncatedPoisson { groups: 4, max_batch_size: 3001 }
        }),
        ("fewer groups than bands", |p| {
            p.sampler = Sampler::TruncatedPoisson { groups: 3, max_batch_size: 152 }
        }),
        ("no amplification", |p| p.privacy.accountant = Accountant::Gdp),
        ("less noise", |p| p.noise_multiplier *= 0.99),
        ("another adjacency", |p| p.privacy.adjacency = Adjacency::ReplaceOne),
    ];
    for (name, alter) in alterations {
        let mut altered = planned("banded-toeplitz:4", Some(MaxBatchSize::Of(152))).into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
}

#[test]
fn sizes_that_cost_too_much_and_other_settings_are_refused() {
    let error = choose(&request("identity", Some(MaxBatchSize::Of(110)))).unwrap_err().to_string();
    assert!(error.starts_with("max_batch_size is 110 but must be from 150 to 3000: "), "{error}");
    for setting in [Setting::Cyclic, Setting::Shuffled, Setting::Single, Setting::Stream, Setting::BMinSep] {
        let asked = Request { setting, ..request("identity", Some(MaxBatchSize::Auto)) };
        let error = choose(&asked).unwrap_err().to_string();
        assert!(error.starts_with("max_batch_size is auto but must be left out: "), "{error}");
    }
}

/// Without a named mechanism, bins, whose sizes are random, do not compete.
#[test]
fn every_candidate_has_batches_of_a_known_size() {
    let request = Request { specs: None, ..request("identity", Some(MaxBatchSize::Auto)) };
    let choice = choose(&request).unwrap();
    assert!(choice.candidates.len() > 10);
    for candidate in &choice.candidates {
        let is_known =
            matches!(candidate.schedule.sampler, Sampler::TruncatedPoisson { .. } | Sampler::Cyclic { .. });
        assert!(is_known, "{}: {:?}", candidate.name(), candidate.schedule.sampler);
    }
}
