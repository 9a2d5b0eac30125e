//! Optimizers against their formulas, written out for one parameter in double precision.

use antinoise_mechanism::Workload;
use antinoise_train::optimizer::{Decay, Optimizer, OptimizerConfig, Schedule, UpdateRule};
use proptest::prelude::*;

fn run(config: impl Into<OptimizerConfig>, start: f32, gradients: &[f32]) -> f64 {
    let mut optimizer = Optimizer::of_run(config.into(), 1, gradients.len().max(1)).unwrap();
    let mut theta = [start];
    gradients.iter().for_each(|&g| optimizer.step(&mut theta, &[g]));
    theta[0].into()
}

/// torch.optim.SGD, AdamW or Adam with rates eta_t: a transcription of PyTorch's loops, with AdamW's decay
/// for SGD too.
fn reference(config: &OptimizerConfig, start: f32, gradients: &[f32]) -> f64 {
    let (mut theta, mut first, mut second) = (f64::from(start), 0f64, 0f64);
    for (t, &g) in gradients.iter().enumerate() {
        let mut g = f64::from(g);
        if config.zero_beyond.is_some_and(|bound| g.abs() > bound) {
            g = 0.0;
        }
        let rate = config.rule.learning_rate() * config.schedule.share(t, gradients.len());
        theta *= 1.0 - rate * config.weight_decay;
        match config.rule {
            UpdateRule::Sgd { momentum, .. } => {
                first = momentum * first + g;
                theta -= rate * first;
            }
            UpdateRule::Nesterov { momentum, .. } => {
                first = momentum * first + g;
                theta -= rate * (g + momentum * first);
            }
            UpdateRule::Ftrl { radius, .. } => {
                first += config.schedule.share(t, gradients.len()) * g;
                let moved = config.rule.learning_rate() * first;
                theta = f64::from(start) - moved.clamp(-radius, radius);
            }
            UpdateRule::Adam { beta1, beta2, epsilon, .. } => {
                first = beta1 * first + (1.0 - beta1) * g;
                second = beta2 * second + (1.0 - beta2) * g * g;
                let corrected = |beta: f64| 1.0 - beta.powi(t as i32 + 1);
                theta -= rate * first / corrected(beta1) / ((second / corrected(beta2)).sqrt() + epsilon);
            }
        }
    }
    theta
}

fn rules() -> impl Strategy<Value = UpdateRule> {
    let momentum = || prop_oneof![Just(0f64), 0f64..0.95];
    prop_oneof![
        (1e-3f64..1.0, momentum())
            .prop_map(|(learning_rate, momentum)| UpdateRule::Sgd { learning_rate, momentum }),
        (1e-3f64..1.0, momentum())
            .prop_map(|(learning_rate, momentum)| UpdateRule::Nesterov { learning_rate, momentum }),
        (1e-3f64..1.0, 0.01f64..2.0)
            .prop_map(|(learning_rate, radius)| UpdateRule::Ftrl { learning_rate, radius }),
        (1e-4f64..0.1, 0f64..0.95, 0.5f64..0.999).prop_map(|(learning_rate, beta1, beta2)| {
            UpdateRule::Adam { learning_rate, beta1, beta2, epsilon: 1e-8 }
        }),
    ]
}

fn decays() -> impl Strategy<Value = Decay> {
    prop_oneof![
        Just(Decay::Constant),
        (0f64..=1.0).prop_map(|last| Decay::Linear { last }),
        (0f64..=1.0).prop_map(|last| Decay::Cosine { last }),
        (0.01f64..=1.0, 0f64..=1.0).prop_map(|(share, last)| Decay::Cooldown { share, last }),
        (0.01f64..=1.0, 0f64..=1.0).prop_map(|(share, last)| Decay::Drop { share, last }),
        (1usize..=9, 0f64..=1.0).prop_map(|(parts, factor)| Decay::Steps { parts, factor }),
    ]
}

fn configs() -> impl Strategy<Value = OptimizerConfig> {
    let bound = prop_oneof![Just(None), (0.1f64..1.0).prop_map(Some)];
    (rules(), decays(), 0usize..4, prop_oneof![Just(0f64), 0f64..0.9], bound).prop_map(
        |(rule, decay, warm_up, weight_decay, zero_beyond)| OptimizerConfig {
            rule,
            schedule: Schedule { warm_up, decay },
            weight_decay: if matches!(rule, UpdateRule::Ftrl { .. }) { 0.0 } else { weight_decay },
            zero_beyond,
        },
    )
}

/// Bound on the movement of a parameter of at most 1 by `steps` updates of at most 1.
fn scale(config: &OptimizerConfig, steps: usize) -> f64 {
    let momentum = match config.rule {
        UpdateRule::Sgd { momentum, .. } | UpdateRule::Nesterov { momentum, .. } => momentum,
        UpdateRule::Ftrl { .. } => 0.0,
        UpdateRule::Adam { .. } => 0.9,
    };
    1.0 + 2.0 * config.rule.learning_rate() * steps as f64 / (1.0 - momentum)
}

/// A by the formulas of `Workload`.
fn rows(workload: &Workload, steps: usize) -> Vec<Vec<f64>> {
    let matrix = |entry: &dyn Fn(usize, usize) -> f64| {
        (0..steps).map(|i| (0..=i).map(|j| entry(i, j)).collect()).collect()
    };
    match workload {
        Workload::Matrix { rows } => rows.clone(),
        Workload::Schedule { rates, momentum } => {
            matrix(&|i, j| (j..=i).map(|s| rates[s] * momentum.powi((s - j) as i32)).sum())
        }
        Workload::Cooldown { start, last } => matrix(&|_, j| {
            let length = (steps - 1 - start).max(1) as f64;
            1.0 - (1.0 - last) * j.saturating_sub(*start) as f64 / length
        }),
        toeplitz => {
            let column = toeplitz.coefficients(steps).unwrap().unwrap();
            matrix(&|i, j| column[i - j])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn a_recipe_is_its_formula(
        config in configs(),
        start in -1f32..1.0,
        gradients in proptest::collection::vec(prop_oneof![Just(0f32), -1f32..1.0], 4..30),
    ) {
        let (got, expected) = (run(config, start, &gradients), reference(&config, start, &gradients));
        prop_assert!((got - expected).abs() < 2e-6 * scale(&config, gradients.len()), "{got} {expected}");
    }

    #[test]
    fn sgd_is_the_heavy_ball(
        start in -1f32..1.0,
        gradients in proptest::collection::vec(-1f32..1.0, 0..30),
        learning_rate in 1e-3f64..1.0,
        momentum in prop_oneof![Just(0f64), 0f64..0.95],
    ) {
        // theta_n = theta_0 - rate * sum over t of g_t (1 + momentum + ... + momentum^(n-1-t)).
        let n = gradients.len();
        let weight = |t: usize| (0..n - t).map(|i| momentum.powi(i as i32)).sum::<f64>();
        let moved: f64 = gradients.iter().enumerate().map(|(t, &g)| f64::from(g) * weight(t)).sum();
        let scale = 1.0 + learning_rate * (0..n).map(weight).sum::<f64>();
        let got = run(UpdateRule::Sgd { learning_rate, momentum }, start, &gradients);
        prop_assert!((got - (f64::from(start) - learning_rate * moved)).abs() < 1e-6 * scale);
    }

    /// Column j of the workload is the effect on the parameters, after each step, of an update of 1 at step j
    /// and 0 at other steps.
    #[test]
    fn the_workload_is_what_the_optimizer_does(config in configs(), steps in 4usize..24) {
        prop_assume!(!matches!(config.rule, UpdateRule::Adam { .. }));
        // FTRL is linear until it reaches its radius.
        let rule = match config.rule {
            UpdateRule::Ftrl { learning_rate, .. } => UpdateRule::Ftrl { learning_rate, radius: 1e3 },
            rule => rule,
        };
        let config = OptimizerConfig { zero_beyond: None, rule, ..config };
        let workload = config.workload(steps);
        workload.check_steps(steps).unwrap();
        let rows = rows(&workload, steps);
        for j in 0..steps {
            let mut optimizer = Optimizer::of_run(config, 1, steps).unwrap();
            let mut theta = [0f32];
            for (i, row) in rows.iter().enumerate() {
                optimizer.step(&mut theta, &[if i == j { 1.0 } else { 0.0 }]);
                let moved = -f64::from(theta[0]) / config.rule.learning_rate();
                let expected = row.get(j).copied().unwrap_or(0.0);
                prop_assert!((moved - expected).abs() < 1e-5 * (1.0 + expected), "{i} {j}: {moved} {expected}");
            }
        }
    }
}

#[test]
fn schedules_are_what_they_say() {
    let shares =
        |warm_up, decay: &str, steps| Schedule { warm_up, decay: decay.parse().unwrap() }.shares(steps);
    assert_eq!(shares(0, "constant", 3), [1.0; 3]);
    assert_eq!(shares(4, "constant", 6), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]);
    assert_eq!(shares(0, "linear:0.5", 3), [1.0, 0.75, 0.5]);
    assert_eq!(shares(0, "cooldown:0.25", 8), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0]);
    assert_eq!(shares(0, "linear", 1), [1.0]);
    assert_eq!(shares(2, "drop:0.25,0.1", 8), [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1]);
    assert_eq!(shares(0, "drop:1,0.5", 3), [0.5; 3]);
    assert_eq!(shares(0, "steps:2,0.5", 4), [1.0, 1.0, 0.5, 0.5]);
    let cosine = shares(0, "cosine:0.2", 5);
    for (got, expected) in cosine.iter().zip([1.0, 0.2 + 0.4 * (1.0 + 0.5f64.sqrt()), 0.6]) {
        assert!((got - expected).abs() < 1e-15, "{cosine:?}");
    }
    assert!((cosine[4] - 0.2).abs() < 1e-15);
    for text in ["constant", "linear:0.5", "cosine:0", "cooldown:0.25,0.1", "drop:0.25,0.1", "steps:4,0.5"] {
        assert_eq!(text.parse::<Decay>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "x",
        "linear:2",
        "linear:",
        "cosine:nan",
        "cosine:-0.1",
        "cooldown",
        "cooldown:0",
        "cooldown:1.5",
        "drop:0.5",
        "drop:0,0.5",
        "drop:0.5,2",
    ] {
        assert!(text.parse::<Decay>().is_err(), "{text}");
    }
}

/// A run whose every step has rate 0 would spend its privacy on a model that stays as it began.
#[test]
fn a_schedule_without_a_learning_rate_is_refused() {
    let check = |text: &str, warm_up, steps| {
        Schedule { warm_up, decay: text.parse().unwrap() }.check(steps).map_err(|error| error.to_string())
    };
    let refused = "schedule is drop:1,0 but must be one with a learning rate above 0 at some step";
    assert_eq!(check("drop:1,0", 0, 10).unwrap_err(), refused);
    assert!(check("drop:0.99,0", 0, 10).is_err() && check("drop:0.9,0", 0, 10).is_ok());
    assert!(check("drop:1,0", 5, 10).is_ok(), "the warm-up has a rate");
    for steps in [1, 2, 10] {
        for text in ["constant", "linear", "cosine", "cooldown:1", "steps:4,0"] {
            assert!(check(text, 0, steps).is_ok(), "{text}, {steps} steps");
        }
    }
}

/// A schedule does not change previous behaviour: a rule and the config of that rule without options take the
/// same steps to the bit.
#[test]
fn a_rule_alone_takes_the_steps_of_its_recipe() {
    for rule in [
        UpdateRule::Sgd { learning_rate: 0.3, momentum: 0.9 },
        UpdateRule::Adam { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 },
    ] {
        let (mut alone, mut of_run) =
            (Optimizer::new(rule, 2).unwrap(), Optimizer::of_run(rule.into(), 2, 9).unwrap());
        let (mut x, mut y) = ([0.3f32, -1.0], [0.3f32, -1.0]);
        for t in 0..9 {
            let g = [(t as f32).sin(), (t as f32 * 0.7).cos()];
            alone.step(&mut x, &g);
            of_run.step(&mut y, &g);
            assert_eq!(x, y);
        }
    }
}

/// A NaN update would make the parameters NaN; with a bound it counts as 0.
#[test]
fn updates_beyond_the_bound_and_those_that_are_no_numbers_are_dropped() {
    let config = OptimizerConfig {
        zero_beyond: Some(2.0),
        ..UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.5 }.into()
    };
    let mut optimizer = Optimizer::of_run(config, 2, 10).unwrap();
    let mut theta = [0f32; 2];
    for (update, expected) in [
        ([1.0, -2.0], [-1.0, 2.0]),
        ([2.5, 0.0], [-1.5, 3.0]), // the momentum continues
        ([f32::NAN, 0.0], [-1.75, 3.5]),
        ([0.0, f32::NEG_INFINITY], [-1.875, 3.75]),
    ] {
        optimizer.step(&mut theta, &update);
        assert_eq!(theta, expected);
    }
}

#[test]
fn settings_outside_their_range_are_refused_by_name() {
    let refused = |config: OptimizerConfig, name: &str| {
        let message = Optimizer::of_run(config, 3, 8).unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    };
    let plain = OptimizerConfig::from(UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 });
    for bad in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        refused(UpdateRule::Sgd { learning_rate: bad, momentum: 0.0 }.into(), "learning_rate");
        refused(
            UpdateRule::Adam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, epsilon: bad }.into(),
            "epsilon of Adam",
        );
        refused(OptimizerConfig { zero_beyond: Some(bad), ..plain }, "zero_beyond");
        refused(UpdateRule::Ftrl { learning_rate: 0.1, radius: bad }.into(), "radius");
    }
    for bad in [1.0, -0.1, f64::NAN] {
        refused(UpdateRule::Sgd { learning_rate: 0.1, momentum: bad }.into(), "momentum");
        refused(UpdateRule::Nesterov { learning_rate: 0.1, momentum: bad }.into(), "momentum");
        refused(
            UpdateRule::Adam { learning_rate: 0.1, beta1: bad, beta2: 0.999, epsilon: 1e-8 }.into(),
            "beta1",
        );
        refused(
            UpdateRule::Adam { learning_rate: 0.1, beta1: 0.9, beta2: bad, epsilon: 1e-8 }.into(),
            "beta2",
        );
    }
    for bad in [-0.1, f64::NAN, f64::INFINITY, 2.0] {
        refused(OptimizerConfig { weight_decay: bad, ..plain }, "weight_decay");
    }
    let ftrl = UpdateRule::Ftrl { learning_rate: 0.1, radius: 1.0 };
    refused(OptimizerConfig { weight_decay: 0.1, ..ftrl.into() }, "weight_decay");
    let scheduled = |warm_up, decay| OptimizerConfig { schedule: Schedule { warm_up, decay }, ..plain };
    refused(scheduled(8, Decay::Constant), "warm_up");
    refused(scheduled(0, Decay::Linear { last: -0.5 }), "last of the schedule");
    refused(scheduled(0, Decay::Cooldown { share: 0.0, last: 0.0 }), "share of the schedule");
}

#[test]
fn ftrl_is_the_nearest_point_of_its_ball_and_remembers_what_was_cut_off() {
    let rule = UpdateRule::Ftrl { learning_rate: 0.5, radius: 5.0 };
    let (start, updates) = ([1f32, -2.0], [[-6f32, -8.0], [-6.0, -8.0], [10.0, 14.0]]);
    let mut optimizer = Optimizer::new(rule, 2).unwrap();
    let mut theta = start;
    // Within the ball it is SGD: half of (6, 8) has length 5. Beyond, the parameters for the sum (12, 16) are
    // projected to (3, 4), but the sum itself continues.
    for (update, expected) in updates.iter().zip([[4f32, 2.0], [4.0, 2.0], [2.0, -1.0]]) {
        optimizer.step(&mut theta, update);
        for (theta, expected) in theta.iter().zip(expected) {
            assert!((theta - expected).abs() < 1e-6, "{theta} {expected}");
        }
    }
}
