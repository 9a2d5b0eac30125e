//! Models of a caller's own on an NVIDIA GPU:
//! `cargo test --release -p antinoise-train --features cuda --test candle_cuda -- --ignored`.

mod common;

use antinoise_input::BadInput;
use antinoise_noise::{Key, RunId};
use antinoise_plan::Setting;
use antinoise_train::candle::{CandleModel, ExampleModel};
use antinoise_train::checkpoint::Checkpoints;
use antinoise_train::data::Example;
use antinoise_train::model::Model;
use antinoise_train::private_model::PrivateModel;

use antinoise_train::trainer::{Setup, Trainer};
use candle_core::{Device, Result, Tensor};
use common::mlp::{HIDDEN, Mlp};
use common::{Case, KEY, SGD, plan};

/// A model that puts its inputs on the CPU, wherever its parameters are.
struct Lost;

impl ExampleModel for Lost {
    fn identity(&self) -> String {
        "lost".into()
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        vec![vec![64, 10]]
    }

    fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
        Tensor::from_slice(example.features, (1, 64), &Device::Cpu)?.matmul(&parameters[0])
    }
}

fn on_the_cpu() -> CandleModel<Mlp> {
    CandleModel::new("mlp", Mlp).unwrap()
}

fn on_the_gpu<M: ExampleModel>(model: M) -> CandleModel<M> {
    CandleModel::new("mlp", model).unwrap().on(Device::new_cuda(0).expect("an NVIDIA GPU")).unwrap()
}

fn case() -> Case {
    let mut case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    case.model = Model::mlp(case.dataset.shape, 10, HIDDEN).unwrap();
    case
}

fn length(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn sums_are_those_of_the_cpu_and_their_bits_are_the_same_each_time() {
    let (case, cpu, gpu) = (case(), on_the_cpu(), on_the_gpu(Mlp));
    let (train, start) = (&case.dataset.train, case.start());
    for batch in [&[][..], &[5], &[3, 1, 4, 1000], &(0..500).collect::<Vec<_>>()] {
        for clip in [1e-3, 0.5, 100.0] {
            let expected = cpu.clipped_sum(&start, train, batch, clip.into()).unwrap();
            let sum = gpu.clipped_sum(&start, train, batch, clip.into()).unwrap();
            let apart = length(sum.gradient.iter().zip(&expected.gradient).map(|(x, y)| x - y));
            assert!(apart <= 1e-5 * clip.min(10.0) * batch.len() as f64, "{apart}");
            assert_eq!(sum, gpu.clipped_sum(&start, train, batch, clip.into()).unwrap());
            // Another thread has another stream.
            std::thread::scope(|scope| {
                let other = scope.spawn(|| gpu.clipped_sum(&start, train, batch, clip.into()).unwrap());
                assert_eq!(sum, other.join().unwrap());
            });
        }
    }
    let expected = cpu.evaluate(&start, &case.dataset.test).unwrap();
    let evaluation = gpu.evaluate(&start, &case.dataset.test).unwrap();
    assert!((evaluation.loss - expected.loss).abs() < 1e-5);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_network_that_does_not_follow_its_parameters_is_refused() {
    let error = on_the_gpu(Lost).check(&[0.1; 640], &case().dataset.train).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().starts_with("device of a model's tensor"), "{error}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_run_resumes_to_the_bit_and_not_on_the_cpu() {
    let (case, gpu, cpu) = (case(), on_the_gpu(Mlp), on_the_cpu());
    let setup = Setup { model: &gpu, ..case.setup() };
    let trainer =
        || Trainer::new(setup, RunId::default(), case.start(), Key::from_seed_insecure(KEY)).unwrap();
    let mut whole = trainer();
    (0..24).for_each(|_| whole.step().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), RunId::default()).unwrap();
    let mut cut = trainer();
    (0..10).for_each(|_| cut.step().unwrap());
    cut.save(&checkpoints).unwrap();
    let refusal = Trainer::resume(Setup { model: &cpu, ..case.setup() }, &checkpoints).err().unwrap();
    assert!(refusal.to_string().contains("another model"), "{refusal}");
    let mut resumed = Trainer::resume(setup, &checkpoints).unwrap();
    (10..24).for_each(|_| resumed.step().unwrap());
    assert_eq!(resumed.parameters(), whole.parameters());
}
