//! Runs: the effect of a step, and inputs that do not fit.

mod common;

use std::sync::atomic::AtomicBool;

use antinoise_input::BadInput;
use antinoise_noise::{Key, KeyedRng, NoiseStream, Purpose, RunId};
use antinoise_plan::{
    Arithmetic, ArithmeticKind, Batches, Length, Plan, PrivacyUnit, Request, Setting, choose,
};
use antinoise_train::checkpoint::Checkpoints;
use antinoise_train::clip::{clipped_sum, plain_sum};
use antinoise_train::data::Examples;
use antinoise_train::model::Model;
use antinoise_train::optimizer::{Decay, Optimizer, OptimizerConfig, Schedule, UpdateRule};

use antinoise_train::trainer::{CheckpointInterval, Options, Outcome, Setup, Trainer};
use common::{ADAM, Case, KEY, PLAIN_SGD, SGD, plan, planned};

fn run(trainer: &mut Trainer) {
    let options = Options { test_every: 5, checkpoints: None };
    let outcome = trainer.run(&options, &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
}

/// The batches of a stream are consecutive examples.
#[test]
fn without_noise_and_clipping_it_is_plain_sgd() {
    for (setting, steps, least) in [(Setting::Cyclic, 24, 0.85), (Setting::Stream, 12, 0.8)] {
        is_plain_sgd(setting, steps, least);
    }
}

fn is_plain_sgd(setting: Setting, steps: usize, least: f64) {
    // No gradient here is as long as 20; noise of 1e-6 a coordinate is negligible.
    let mut case = Case::new(plan(setting, 1e12, 20.0), SGD);
    case.model = Model::logistic(case.dataset.shape, case.dataset.classes).unwrap();
    assert!(case.plan.noise_std() / 120.0 < 1e-6);
    let mut trainer = case.trainer();
    run(&mut trainer);

    let rng = |purpose, step| KeyedRng::new(&Key::from_seed_insecure(KEY), &RunId::default(), purpose, step);
    let batches = Batches::cyclic(1440, 12, &mut rng(Purpose::DataOrder, 0)).unwrap();
    let (mut parameters, mut velocity) = (case.start(), vec![0.0; case.model.parameters()]);
    for step in 0..steps {
        let batch = match setting {
            Setting::Stream => (120 * step..120 * (step + 1)).collect(),
            _ => batches.at(step, &mut rng(Purpose::BatchSampling, step as u64)),
        };
        let sum = plain_sum(&case.model, &parameters, &case.dataset.train, &batch).unwrap();
        for i in 0..parameters.len() {
            velocity[i] = 0.9 * velocity[i] + sum.gradient[i] as f32 / 120.0;
            parameters[i] -= 0.5 * velocity[i];
        }
    }
    let pairs = || trainer.parameters().iter().zip(&parameters);
    let furthest = pairs().map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(furthest < 1e-4, "{furthest}");
    assert!(trainer.history().clipped_shares.iter().all(|&share| share == 0.0));
    let (tested, accuracy) = *trainer.history().accuracies.last().unwrap();
    assert!(tested == steps && accuracy > least, "{accuracy}");
}

#[test]
fn the_first_noise_has_the_plans_deviation_over_the_batch_size() {
    // One step on all examples with learning rate 1: the parameters move by -(clipped sum + noise) / B.
    let mut request = Request::new(1440, 1440, Length::Epochs(1), Setting::Single);
    (request.epsilon, request.clip_norm) = (2.0, 0.3);
    let mut case =
        Case::new(choose(&request).unwrap().plan, UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.0 });
    case.model = Model::logistic(case.dataset.shape, case.dataset.classes).unwrap();
    let start = case.start();
    let all: Vec<usize> = (0..1440).collect();
    let sum = clipped_sum(&case.model, &start, &case.dataset.train, &all, 0.3).unwrap();
    let (mut total, mut squares, mut count) = (0f64, 0f64, 0f64);
    for seed in 0..40 {
        let mut trainer =
            Trainer::new(case.setup(), RunId::default(), start.clone(), Key::from_seed_insecure(seed))
                .unwrap();
        trainer.step().unwrap();
        for i in 0..start.len() {
            let moved = f64::from(trainer.parameters()[i]) - f64::from(start[i]);
            let noise = (-1440.0 * moved - sum.gradient[i]) / case.plan.noise_std();
            (total, squares, count) = (total + noise, squares + noise * noise, count + 1.0);
        }
    }
    // 26,000 standard normals: six standard errors each way, false alarm 2e-9 apiece.
    assert!(total.abs() < 6.0 * count.sqrt(), "mean {}", total / count);
    assert!((squares / count - 1.0).abs() < 6.0 * (2.0 / count).sqrt(), "variance {}", squares / count);
}

/// Parameters are functions of noisy sums only, to the bit: an optimizer costs no privacy.
#[test]
fn parameters_follow_from_the_noisy_sums_alone() {
    let scheduled = OptimizerConfig {
        rule: UpdateRule::Nesterov { learning_rate: 0.3, momentum: 0.9 },
        schedule: Schedule { warm_up: 6, decay: Decay::Cosine { last: 0.1 } },
        weight_decay: 0.01,
        zero_beyond: Some(0.05),
    };
    let ftrl = UpdateRule::Ftrl { learning_rate: 0.5, radius: 1.0 };
    let mut steps = 0;
    for optimizer in [SGD.into(), ADAM.into(), ftrl.into(), scheduled] {
        let case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), optimizer);
        let mut trainer = case.trainer();
        let mut replayed = Optimizer::of_run(optimizer, case.model.parameters(), case.plan.steps).unwrap();
        let (mut parameters, share) = (case.start(), (1.0 / case.plan.expected_batch_size()) as f32);
        while trainer.step_count() < case.plan.steps {
            trainer.step().unwrap();
            let mean: Vec<f32> = trainer.noisy_sum().iter().map(|x| x * share).collect();
            replayed.step(&mut parameters, &mean);
            assert_eq!(trainer.parameters(), parameters, "{optimizer:?}, step {}", trainer.step_count());
            steps += 1;
        }
    }
    assert_eq!(steps, 4 * 24);
}

#[test]
fn a_step_uses_the_arithmetic_of_the_plan() {
    for kind in [ArithmeticKind::Grid, ArithmeticKind::PlainFloatingPoint] {
        let case = Case::new(planned(Setting::Cyclic, 4.0, 1.0, kind), PLAIN_SGD);
        let mut trainer = case.trainer();
        trainer.step().unwrap();
        let key = || Key::from_seed_insecure(KEY);
        let rng = |purpose| KeyedRng::new(&key(), &RunId::default(), purpose, 0);
        let batches = Batches::cyclic(1440, 12, &mut rng(Purpose::DataOrder)).unwrap();
        let batch = batches.at(0, &mut rng(Purpose::BatchSampling));
        let start = case.start();
        let sum = clipped_sum(&case.model, &start, &case.dataset.train, &batch, 1.0).unwrap().gradient;
        let recursion = case.plan.strategy.recursion().unwrap();
        let builder = NoiseStream::builder(recursion, 24, start.len(), case.plan.noise_std());
        let mut noisy_sum = vec![0.0; start.len()];
        match case.plan.arithmetic.grid().unwrap() {
            Some(grid) => {
                builder.grid(grid).build(key()).unwrap().add_to_sum(&sum, &mut noisy_sum).unwrap();
                assert!(noisy_sum.iter().all(|&x| f64::from(x) % grid.spacing() == 0.0));
            }
            None => {
                builder.build(key()).unwrap().next_into(&mut noisy_sum).unwrap();
                noisy_sum.iter_mut().zip(&sum).for_each(|(x, sum)| *x = (f64::from(*x) + sum) as f32);
            }
        }
        let stepped: Vec<f32> =
            start.iter().zip(&noisy_sum).map(|(w, x)| w - 0.5 * (x * (1.0 / 120.0))).collect();
        assert_eq!(trainer.parameters(), stepped, "{kind:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let refusal = |setup: Setup, start: Vec<f32>| {
        let error = Trainer::new(setup, RunId::default(), start, Key::from_seed_insecure(0)).err().unwrap();
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    };
    assert!(refusal(case.setup(), vec![0.0; 3]).starts_with("number of parameters is 3"));
    let optimizer = UpdateRule::Sgd { learning_rate: 0.0, momentum: 0.9 }.into();
    assert!(refusal(Setup { optimizer, ..case.setup() }, case.start()).starts_with("learning_rate"));
    let schedule = Schedule { warm_up: 24, ..Schedule::default() };
    let optimizer = OptimizerConfig { schedule, ..case.optimizer };
    assert!(refusal(Setup { optimizer, ..case.setup() }, case.start()).starts_with("warm_up is 24"));
    let federated = plan(Setting::Federated { min_sep: 4, max_participations: None }, 4.0, 1.0);
    assert!(refusal(Setup { plan: &federated, ..case.setup() }, case.start()).starts_with("sampler"));
    // A setup takes only verified plans: these two are refused before there is one.
    let unverified = |alter: fn(&mut Plan)| {
        let mut altered = case.plan.clone().into_plan();
        alter(&mut altered);
        altered.verify().unwrap_err().to_string()
    };
    assert!(unverified(|plan| plan.privacy.unit = PrivacyUnit::User).starts_with("unit of the plan"));
    assert!(unverified(|plan| plan.noise_multiplier *= 0.9).contains("epsilon"));
    let fewer = choose(&Request::new(1439, 120, Length::Epochs(1), Setting::Cyclic)).unwrap().plan;
    assert!(
        refusal(Setup { plan: &fewer, ..case.setup() }, case.start()).starts_with("examples of the plan")
    );

    // Sums of such large chunks have too large a rounding error.
    let coarse = case.model.clone().with_chunk(1 << 40).unwrap();
    let message = refusal(Setup { model: &coarse, ..case.setup() }, case.start());
    assert!(message.starts_with("examples of the largest batch is 120"), "{message}");
    let mut narrow = case.plan.clone().into_plan();
    let Arithmetic::Grid { spacing, .. } = narrow.arithmetic else {
        panic!("a grid unless plain is asked for")
    };
    narrow.arithmetic = Arithmetic::Grid { spacing, dim: case.start().len() - 1 };
    let narrow = narrow.verify().unwrap();
    let message = refusal(Setup { plan: &narrow, ..case.setup() }, case.start());
    assert!(message.starts_with("number of parameters is"), "{message}");

    let mut trainer = case.trainer();
    let never = AtomicBool::new(false);
    let zero = Options { test_every: 0, checkpoints: None };
    assert!(trainer.run(&zero, &never, |_| ()).unwrap_err().to_string().starts_with("test_every"));
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), RunId::default()).unwrap();
    let zero = Options { test_every: 1, checkpoints: Some((&checkpoints, CheckpointInterval::every(0))) };
    assert!(trainer.run(&zero, &never, |_| ()).unwrap_err().to_string().starts_with("max_steps"));
    run(&mut trainer);
    let last = trainer.parameters().to_vec();
    assert!(trainer.step().unwrap_err().to_string().contains("24 steps"));
    assert_eq!(trainer.parameters(), last);

    case.dataset.test = Examples::new(vec![0.0; 4], vec![0], 4).unwrap();
    assert!(refusal(case.setup(), case.start()).starts_with("features an example"));
}
