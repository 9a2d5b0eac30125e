//! Runs: what a step does, resumption to the last bit, checkpoints that must be refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches, Length, Plan, PrivacyUnit, Request, Setting, choose};
use antinoise_train::clip::{clipped_sum, plain_sum};
use antinoise_train::data::{Dataset, Examples, digits};
use antinoise_train::model::Model;
use antinoise_train::optimizer::Rule;
use antinoise_train::trainer::{Options, Outcome, Setup, Trainer};
use chacha20::{ChaCha8Rng, rand_core::SeedableRng};

const SGD: Rule = Rule::Sgd { learning_rate: 0.5, momentum: 0.9 };
const ADAM: Rule = Rule::Adam { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
const FILES: [&str; 2] = ["noise.safetensors", "training.safetensors"];
const KEY: u64 = 5;

/// A plan of 24 steps on the digits.
fn plan(setting: Setting, epsilon: f64, clip_norm: f64) -> Plan {
    let length = if setting == Setting::Poisson { Length::Steps(24) } else { Length::Epochs(2) };
    let mut request = Request::new(1440, 120, length, setting);
    (request.epsilon, request.delta, request.clip_norm) = (epsilon, 1e-5, clip_norm);
    choose(&request).unwrap().plan
}

struct Case {
    plan: Plan,
    model: Model,
    dataset: Dataset,
    rule: Rule,
}

impl Case {
    fn new(plan: Plan, rule: Rule) -> Self {
        let dataset = digits();
        let model = Model::cnn(dataset.shape, dataset.classes).unwrap();
        Self { plan, model, dataset, rule }
    }

    fn setup(&self) -> Setup<'_> {
        Setup { plan: &self.plan, model: &self.model, dataset: &self.dataset, rule: self.rule }
    }

    fn start(&self) -> Vec<f32> {
        self.model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(11))
    }

    fn trainer(&self) -> Trainer<'_> {
        Trainer::new(self.setup(), self.start(), Key::from_seed_insecure(KEY)).unwrap()
    }
}

fn options(folder: Option<&Path>) -> Options<'_> {
    Options { test_every: 5, checkpoints: folder.map(|folder| (folder, 4)) }
}

fn run(trainer: &mut Trainer) {
    let outcome = trainer.run(&options(None), &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
}

#[test]
fn without_noise_and_clipping_it_is_plain_sgd() {
    // No gradient here is as long as 20; noise of 1e-6 a coordinate is next to nothing.
    let mut case = Case::new(plan(Setting::Cyclic, 1e12, 20.0), SGD);
    case.model = Model::logistic(case.dataset.shape, case.dataset.classes).unwrap();
    assert!(case.plan.noise_std() / 120.0 < 1e-6);
    let mut trainer = case.trainer();
    run(&mut trainer);

    let rng = |purpose, step| KeyedRng::new(&Key::from_seed_insecure(KEY), &RunId::default(), purpose, step);
    let batches = Batches::cyclic(1440, 12, &mut rng(Purpose::DataOrder, 0));
    let (mut parameters, mut velocity) = (case.start(), vec![0.0; case.model.parameters()]);
    for step in 0..24 {
        let batch = batches.at(step, &mut rng(Purpose::BatchSampling, step as u64));
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
    let (steps, accuracy) = *trainer.history().accuracies.last().unwrap();
    assert!(steps == 24 && accuracy > 0.85, "{accuracy}");
}

#[test]
fn the_first_noise_has_the_plans_deviation_over_the_batch_size() {
    // One step on all examples with learning rate 1: the parameters move by -(clipped sum + noise) / B.
    let mut request = Request::new(1440, 1440, Length::Epochs(1), Setting::Single);
    (request.epsilon, request.clip_norm) = (2.0, 0.3);
    let mut case = Case::new(choose(&request).unwrap().plan, Rule::Sgd { learning_rate: 1.0, momentum: 0.0 });
    case.model = Model::logistic(case.dataset.shape, case.dataset.classes).unwrap();
    let start = case.start();
    let all: Vec<usize> = (0..1440).collect();
    let sum = clipped_sum(&case.model, &start, &case.dataset.train, &all, 0.3).unwrap();
    let (mut total, mut squares, mut count) = (0f64, 0f64, 0f64);
    for seed in 0..40 {
        let mut trainer = Trainer::new(case.setup(), start.clone(), Key::from_seed_insecure(seed)).unwrap();
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

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    for (setting, rule) in [(Setting::Cyclic, SGD), (Setting::Poisson, SGD), (Setting::Cyclic, ADAM)] {
        let case = Case::new(plan(setting, 4.0, 1.0), rule);
        let mut whole = case.trainer();
        run(&mut whole);
        let folder = tempfile::tempdir().unwrap();
        // Killed right after step 10: the last checkpoint is of step 8.
        let mut killed = case.trainer();
        let stop = AtomicBool::new(false);
        let mut saved = Vec::new();
        killed
            .run(&options(Some(folder.path())), &stop, |trainer| {
                if trainer.step_count() == 10 {
                    saved = FILES.map(|name| (name, fs::read(folder.path().join(name)).unwrap())).to_vec();
                    stop.store(true, Ordering::Relaxed);
                }
            })
            .unwrap();
        drop(killed);
        for (name, bytes) in saved {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let mut resumed = Trainer::resume(case.setup(), folder.path()).unwrap();
        assert_eq!(resumed.step_count(), 8);
        run(&mut resumed);
        assert_eq!(resumed.parameters(), whole.parameters(), "{setting:?}, {rule:?}");
        assert_eq!(resumed.history().losses, whole.history().losses);
        assert_eq!(resumed.history().clipped_shares, whole.history().clipped_shares);
        assert_eq!(resumed.history().accuracies, whole.history().accuracies);
    }
}

#[test]
fn a_run_that_is_told_to_stop_leaves_a_private_checkpoint_and_nothing_else() {
    let case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/by/the/run");
    let mut trainer = case.trainer();
    let outcome = trainer.run(&options(Some(&folder)), &AtomicBool::new(true), |_| ()).unwrap();
    assert_eq!((outcome, trainer.step_count()), (Outcome::Stopped, 0));
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, FILES);
    #[cfg(unix)]
    for name in FILES {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let resumed = Trainer::resume(case.setup(), &folder).unwrap();
    assert_eq!((resumed.step_count(), resumed.parameters()), (0, trainer.parameters()));
}

#[test]
fn a_checkpoint_of_another_run_is_refused_by_what_differs() {
    let case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = case.trainer();
    trainer.step().unwrap();
    trainer.save(folder.path()).unwrap();
    let refusal = |case: &Case| {
        let error = Trainer::resume(case.setup(), folder.path()).err().unwrap();
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    };
    assert!(refusal(&Case::new(plan(Setting::Cyclic, 3.0, 1.0), SGD)).contains("another plan"));
    assert!(refusal(&Case::new(case.plan.clone(), ADAM)).contains("another optimizer"));
    let mut other = Case::new(case.plan.clone(), SGD);
    other.model = Model::mlp(other.dataset.shape, 10, 8).unwrap();
    assert!(refusal(&other).contains("another model"));
    let mut other = Case::new(case.plan.clone(), SGD);
    let mut features: Vec<f32> = (0..1440).flat_map(|i| other.dataset.train.features(i).to_vec()).collect();
    features[1000] += 1.0;
    other.dataset.train = Examples::new(features, other.dataset.train.labels().to_vec(), 64).unwrap();
    assert!(refusal(&other).contains("another data set"));
}

#[test]
fn a_checkpoint_that_is_not_whole_is_refused_by_name() {
    let case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), ADAM);
    let folder = tempfile::tempdir().unwrap();
    case.trainer().save(folder.path()).unwrap();
    for name in FILES {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let refuse = |contents: Option<&[u8]>| {
            match contents {
                Some(contents) => fs::write(&path, contents).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let error = Trainer::resume(case.setup(), folder.path()).err().unwrap();
            assert!(error.is_bad_input(), "{error:?}");
            assert!(error.to_string().contains(name), "{error}");
        };
        for length in [0, 1, 7, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
            refuse(Some(&whole[..length]));
        }
        refuse(Some(&[whole.as_slice(), &[0]].concat()));
        refuse(None);
        fs::write(&path, whole).unwrap();
    }
    assert!(Trainer::resume(case.setup(), folder.path()).is_ok());
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let refusal = |setup: Setup, start: Vec<f32>| {
        let error = Trainer::new(setup, start, Key::from_seed_insecure(0)).err().unwrap();
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    };
    assert!(refusal(case.setup(), vec![0.0; 3]).starts_with("number of parameters is 3"));
    let rule = Rule::Sgd { learning_rate: 0.0, momentum: 0.9 };
    assert!(refusal(Setup { rule, ..case.setup() }, case.start()).starts_with("learning_rate"));
    let federated = plan(Setting::Federated { min_sep: 4, max_participations: None }, 4.0, 1.0);
    assert!(refusal(Setup { plan: &federated, ..case.setup() }, case.start()).starts_with("sampler"));
    let mut of_users = case.plan.clone();
    of_users.privacy.unit = PrivacyUnit::User;
    assert!(refusal(Setup { plan: &of_users, ..case.setup() }, case.start()).starts_with("unit of the plan"));
    let mut altered = case.plan.clone();
    altered.noise_multiplier *= 0.9;
    assert!(refusal(Setup { plan: &altered, ..case.setup() }, case.start()).contains("epsilon"));
    let fewer = choose(&Request::new(1439, 120, Length::Epochs(1), Setting::Cyclic)).unwrap().plan;
    assert!(
        refusal(Setup { plan: &fewer, ..case.setup() }, case.start()).starts_with("examples of the plan")
    );

    let mut trainer = case.trainer();
    let never = AtomicBool::new(false);
    let zero = Options { test_every: 0, checkpoints: None };
    assert!(trainer.run(&zero, &never, |_| ()).unwrap_err().to_string().starts_with("test_every"));
    let zero = Options { test_every: 1, checkpoints: Some((Path::new("absent"), 0)) };
    assert!(trainer.run(&zero, &never, |_| ()).unwrap_err().to_string().starts_with("checkpoint_every"));
    run(&mut trainer);
    let last = trainer.parameters().to_vec();
    assert!(trainer.step().unwrap_err().to_string().contains("24 steps"));
    assert_eq!(trainer.parameters(), last);

    case.dataset.test = Examples::new(vec![0.0; 4], vec![0], 4).unwrap();
    assert!(refusal(case.setup(), case.start()).starts_with("features an example"));
}
