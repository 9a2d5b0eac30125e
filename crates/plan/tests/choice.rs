//! Among the candidates the cheapest of those that are nearly the best is taken, within every budget.

use antinoise_mechanism::Class;
use antinoise_mechanism::design::Objective;
use antinoise_noise::{Key, NoiseStream};
use antinoise_plan::{ArithmeticKind, Candidate, Choice, Length, Request, Setting, choose};
use proptest::prelude::*;

/// What no state up to it is weighed for.
const UNNOTICED: u64 = 256 << 20;

/// Small problems of every setting, with models from none to large ones.
fn requests() -> impl Strategy<Value = Request> {
    let setting = prop_oneof![
        Just(Setting::Cyclic),
        Just(Setting::Poisson),
        Just(Setting::Single),
        Just(Setting::Stream),
        (1usize..12).prop_map(|min_sep| Setting::Federated { min_sep, max_participations: None }),
    ];
    let sizes = (20usize..400, 1usize..40, 1usize..5, 0.2f64..12.0);
    let budget = (0u32..9, 0.0f64..0.5, any::<bool>());
    (sizes, setting, budget).prop_map(|((examples, batch_size, epochs, epsilon), setting, budget)| {
        let (magnitude, tolerance, thorough) = budget;
        let batch_size = batch_size.min(examples);
        let steps = (epochs * examples / batch_size).clamp(1, 24);
        let length = match setting {
            Setting::Single | Setting::Stream => steps.min(examples / batch_size),
            Setting::Federated { min_sep, .. } => steps.max(min_sep),
            _ => steps,
        };
        let mut request = Request::new(examples, batch_size, Length::Steps(length), setting);
        request.dim = if magnitude == 0 { 0 } else { 10usize.pow(magnitude) };
        (request.epsilon, request.tolerance, request.thorough) = (epsilon, tolerance, thorough);
        request
    })
}

fn loss(request: &Request, choice: &Choice, i: usize) -> f64 {
    choice.candidates[i].objective(request.objective)
}

/// What every choice keeps.
fn hold(request: &Request, choice: &Choice) -> Result<(), TestCaseError> {
    let all = 0..choice.candidates.len();
    let chosen = &choice.candidates[choice.chosen];
    let fits = |i: &usize| {
        let candidate = &choice.candidates[*i];
        request.memory.is_none_or(|most| candidate.state_bytes <= most)
            && request.noise_time.is_none_or(|most| candidate.noise_seconds <= most)
    };
    prop_assert!(fits(&choice.chosen));
    let least = all.clone().filter(fits).map(|i| loss(request, choice, i)).fold(f64::INFINITY, f64::min);
    prop_assert_eq!(loss(request, choice, choice.least(request)), least);
    let most = (1.0 + request.tolerance) * least * (1.0 + 2e-4);
    prop_assert!(loss(request, choice, choice.chosen) <= most);
    for i in
        all.clone().filter(fits).filter(|&i| loss(request, choice, i) <= (1.0 + request.tolerance) * least)
    {
        prop_assert!(chosen.state_bytes <= choice.candidates[i].state_bytes.max(UNNOTICED));
    }
    let left_out = choice.rejected.iter().filter(|l| l.reason.contains("above")).count();
    prop_assert_eq!(left_out, all.clone().filter(|i| !fits(i)).count());
    let front = choice.pareto_front(request);
    for pair in front.windows(2) {
        let state = |i: usize| choice.candidates[i].state_vectors;
        prop_assert!(
            state(pair[0]) < state(pair[1])
                && loss(request, choice, pair[0]) > loss(request, choice, pair[1])
        );
    }
    for i in all {
        let beats = |&j: &usize| {
            choice.candidates[j].state_vectors <= choice.candidates[i].state_vectors
                && loss(request, choice, j) <= loss(request, choice, i)
        };
        prop_assert!(front.iter().any(beats), "{}", choice.candidates[i].spec);
        let candidate = &choice.candidates[i];
        prop_assert!(candidate.noise_seconds.is_finite() && candidate.noise_seconds >= 0.0);
        prop_assert!(candidate.rms_loss > 0.0 && candidate.rms_loss.is_finite());
    }
    Ok(())
}

/// How many random requests: 60 with `ANTINOISE_SWEEPS=whole`, which `scripts/long.sh sweeps` sets; otherwise
/// a quarter of them.
fn random_requests() -> u32 {
    if std::env::var_os("ANTINOISE_SWEEPS").is_some_and(|sweeps| sweeps == "whole") { 60 } else { 15 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(random_requests()))]

    #[test]
    fn the_cheapest_of_the_nearly_best_is_chosen_within_the_budget(request in requests(), share in 0.0f64..1.5) {
        let choice = choose(&request).unwrap();
        hold(&request, &choice)?;
        prop_assert!(loss(&request, &choice, choice.least(&request)) <= loss(&request, &choice, 0));
        if request.dim == 0 {
            prop_assert_eq!(loss(&request, &choice, choice.chosen), loss(&request, &choice, choice.least(&request)));
            return Ok(());
        }
        let best = &choice.candidates[choice.least(&request)];
        let memory = Request { memory: Some((share * best.state_bytes as f64) as u64), ..request.clone() };
        hold(&memory, &choose(&memory).unwrap())?;
        let least = choice.candidates[0].noise_seconds;
        let noise_time = Some(least.max(share * best.noise_seconds));
        let timed = Request { noise_time, ..request.clone() };
        hold(&timed, &choose(&timed).unwrap())?;
    }
}

/// Several epochs within the memory of four vectors: no other class of a few buffers or bands comes near.
#[test]
fn buffers_with_varying_weights_are_chosen_where_memory_is_short_and_examples_come_again() {
    let mut request = Request::new(6400, 100, Length::Epochs(8), Setting::Cyclic);
    (request.epsilon, request.delta, request.dim) = (4.0, 1e-5, 1_000_000);
    request.memory = Some(40 << 20);
    let choice = choose(&request).unwrap();
    let chosen = &choice.candidates[choice.chosen];
    assert_eq!(chosen.spec.class, Class::VaryingBlt, "{}", chosen.spec);
    let loss = |c: &Candidate| c.objective(request.objective);
    let fits = |c: &&Candidate| Some(c.state_bytes) <= request.memory;
    let others = choice.candidates.iter().filter(fits).filter(|c| c.spec.class != Class::VaryingBlt);
    let next = others.map(loss).fold(f64::INFINITY, f64::min);
    assert!(loss(chosen) < 0.98 * next, "{} and {next}", loss(chosen));
}

/// A few steps an epoch and many epochs: what steps read of buffers falls, and what they write rises, by ten
/// orders of magnitude. Plans are for noise that runs, and the stated loss is that of their noise.
#[test]
fn the_stated_loss_is_that_of_the_noise_where_weights_vary_by_orders_of_magnitude() {
    let mut varying = 0;
    for (a, epochs) in [(2, 15), (2, 20), (2, 30), (2, 40), (3, 8), (5, 9)] {
        for arithmetic in [ArithmeticKind::Grid, ArithmeticKind::PlainFloatingPoint] {
            let mut request = Request::new(1000 * a, 1000, Length::Epochs(epochs), Setting::Cyclic);
            (request.epsilon, request.dim, request.arithmetic) = (2.0, 1_000_000_000, arithmetic);
            let choice = choose(&request).unwrap();
            let (chosen, plan) = (&choice.candidates[choice.chosen], &choice.plan);
            let steps = a * epochs;
            varying += usize::from(chosen.spec.class == Class::VaryingBlt);
            assert!(plan.rounding_factor < 1.001, "{steps} steps, {arithmetic:?}: {}", plan.rounding_factor);
            assert!(chosen.relative_to_independent < 0.9, "{steps} steps, {}", chosen.spec);
            let recursion = plan.strategy.recursion().unwrap();
            let stream = NoiseStream::builder(recursion, steps, 3, plan.noise_std());
            let stream = stream.grid(plan.arithmetic.grid().unwrap()).build(Key::from_seed_insecure(0));
            assert!(stream.is_ok(), "{steps} steps, {arithmetic:?}: {:?}", stream.err());
        }
    }
    assert!(varying >= 6, "{varying}");
}

/// The rounding errors of a long history for 4 10^15 parameters.
#[test]
fn a_stated_loss_includes_the_noise_for_rounding_errors() {
    let mut request = Request::new(2000, 10, Length::Steps(400), Setting::Cyclic);
    (request.epsilon, request.delta, request.dim) = (2.0, 1e-3, 4_000_000_000_000_000);
    request.specs = Some(vec!["toeplitz".parse().unwrap()]);
    let choice = choose(&request).unwrap();
    let (chosen, plan) = (&choice.candidates[choice.chosen], &choice.plan);
    assert!(plan.rounding_factor > 1.001, "{}", plan.rounding_factor);
    let without =
        chosen.unit_loss.rms_loss * plan.noise_multiplier * request.clip_norm / plan.expected_batch_size();
    assert!((chosen.rms_loss / without / plan.rounding_factor - 1.0).abs() < 1e-9);
}

#[test]
fn budgets_need_a_number_of_parameters() {
    let mut request = Request::new(100, 10, Length::Epochs(2), Setting::Cyclic);
    request.memory = Some(1 << 20);
    assert!(choose(&request).unwrap_err().to_string().contains("dim is 0 but must be"));
    (request.memory, request.noise_time) = (None, Some(1.0));
    assert!(choose(&request).unwrap_err().to_string().contains("dim is 0 but must be"));
    request.dim = 10;
    for (parameter, value) in
        [("noise_time", 0.0), ("noise_time", f64::NAN), ("tolerance", 1.0), ("tolerance", -0.1)]
    {
        let mut wrong = request.clone();
        match parameter {
            "noise_time" => wrong.noise_time = Some(value),
            _ => wrong.tolerance = value,
        }
        assert!(choose(&wrong).unwrap_err().to_string().starts_with(parameter));
    }
}

#[test]
fn dense_strategies_are_tried_where_they_can_be_optimised() {
    let mut request = Request::new(60_000, 500, Length::Epochs(4), Setting::Cyclic);
    (request.epsilon, request.delta) = (4.0, 1e-5);
    let choice = choose(&request).unwrap();
    assert!(choice.candidates[choice.chosen].rms_loss <= 0.01209);
}

/// In one pass four buffers with varying weights come within 0.1% of the least max loss, and no other
/// structured class within 3%.
#[test]
fn a_dense_strategy_is_designed_for_the_max_loss_of_prefix_sums() {
    let mut request = Request::new(20_000, 100, Length::Epochs(1), Setting::Single);
    (request.objective, request.tolerance) = (Objective::Max, 0.0);
    let choice = choose(&request).unwrap();
    let chosen = &choice.candidates[choice.chosen];
    assert_eq!((chosen.spec.to_string(), choice.plan.steps), ("dense".into(), 200));
    let least = |varying: bool| {
        let others = choice.candidates.iter().filter(|other| other.spec != chosen.spec);
        let of = others.filter(|other| (other.spec.class == Class::VaryingBlt) == varying);
        of.map(|other| other.max_loss).fold(f64::INFINITY, f64::min)
    };
    let (varying, next) = (least(true), least(false));
    assert!(varying < 1.001 * chosen.max_loss, "{varying} and {}", chosen.max_loss);
    assert!(next > 1.03 * chosen.max_loss, "{next} and {}", chosen.max_loss);
}
