//! Models of a caller's own: the same sums as this crate's models for the same function, and refusals.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use antinoise_input::BadInput;
use antinoise_noise::{Key, RunId};
use antinoise_plan::Setting;
use antinoise_train::candle::{CandleModel, ExampleModel};
use antinoise_train::checkpoint::Checkpoints;
use antinoise_train::clip::{Clipping, Groups, clipped_sum, plain_sum};
use antinoise_train::data::{Example, Examples};
use antinoise_train::model::Model;
use antinoise_train::private_model::PrivateModel;

use antinoise_train::trainer::{Options, Setup, Trainer};
use candle_core::{
    CpuStorage, CustomOp1, DType, Device, DeviceLocation, Error, Layout, Result, Shape, Tensor,
};
use common::mlp::{HIDDEN, Mlp};
use common::{Case, KEY, SGD, plan};

fn own() -> CandleModel<Mlp> {
    CandleModel::new("own mlp", Mlp).unwrap()
}

fn case() -> Case {
    let mut case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    case.model = Model::mlp(case.dataset.shape, 10, HIDDEN).unwrap();
    case
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn a_model_written_both_ways_has_the_same_sums() {
    let (case, own) = (case(), own());
    let (start, train) = (case.start(), &case.dataset.train);
    assert_eq!(own.parameters(), case.model.parameters());
    for batch in [&[][..], &[5], &[3, 1, 4, 1000], &(0..500).collect::<Vec<_>>()] {
        for clip in [1e-3, 0.5, 2.0, 100.0] {
            let ghost = clipped_sum(&case.model, &start, train, batch, clip).unwrap();
            let each = own.clipped_sum(&start, train, batch, clip.into()).unwrap();
            let apart: Vec<f64> = ghost.gradient.iter().zip(&each.gradient).map(|(x, y)| x - y).collect();
            // Gradients are computed in single precision, in another order.
            assert!(length(&apart) <= 2e-6 * clip.min(10.0) * batch.len() as f64, "{}", length(&apart));
            assert_eq!(ghost.clipped, each.clipped);
            assert!((ghost.loss - each.loss).abs() < 1e-5 * batch.len().max(1) as f64);
        }
        let (ghost, each) = (
            plain_sum(&case.model, &start, train, batch).unwrap(),
            own.plain_sum(&start, train, batch).unwrap(),
        );
        let apart: Vec<f64> = ghost.gradient.iter().zip(&each.gradient).map(|(x, y)| x - y).collect();
        assert!(length(&apart) <= 1e-5 * batch.len() as f64);
    }
    let (ghost, each) = (
        case.model.evaluate(&start, &case.dataset.test).unwrap(),
        own.evaluate(&start, &case.dataset.test).unwrap(),
    );
    assert!(ghost.accuracy == each.accuracy && (ghost.loss - each.loss).abs() < 1e-5);
}

#[test]
fn a_model_that_is_put_on_the_cpu_keeps_its_bits() {
    let (case, own, on) = (case(), own(), own().on(Device::Cpu).unwrap());
    let (start, train, batch) = (case.start(), &case.dataset.train, (0..300).collect::<Vec<_>>());
    assert_eq!(own.identity(), on.identity());
    let sum = |model: &CandleModel<Mlp>| model.clipped_sum(&start, train, &batch, 0.5.into()).unwrap();
    assert_eq!(sum(&own), sum(&on));
    let plain = |model: &CandleModel<Mlp>| model.plain_sum(&start, train, &batch).unwrap();
    assert_eq!(plain(&own), plain(&on));
    let evaluate = |model: &CandleModel<Mlp>| model.evaluate(&start, &case.dataset.test).unwrap();
    let (of_own, of_on) = (evaluate(&own), evaluate(&on));
    assert_eq!((of_own.loss.to_bits(), of_own.accuracy), (of_on.loss.to_bits(), of_on.accuracy));
}

/// Without candle's CUDA feature its device type exists, but no device works.
#[cfg(not(feature = "cuda"))]
#[test]
fn a_device_that_is_not_there_is_told() {
    let error = own().on(Device::Cuda(candle_core::CudaDevice)).unwrap_err();
    assert!(error.to_string().contains("cuda"), "{error}");
}

/// Neither threads nor other examples of a batch change a bit of an example's contribution.
#[test]
fn sums_do_not_depend_on_threads_and_examples_not_on_their_neighbours() {
    let (case, own) = (case(), own());
    let (start, train) = (case.start(), &case.dataset.train);
    let batch: Vec<usize> = (0..300).map(|i| i * 3).collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| own.clipped_sum(&start, train, &batch, 0.5.into()).unwrap())
    };
    assert_eq!(with(1), with(4));
    // All gradients are clipped to 2^-10 of a multiple of a power of two: sums of a few terms in double
    // precision are exact enough to detect a difference.
    let alone = own.clipped_sum(&start, train, &[7], 0.5.into()).unwrap();
    for others in [&[900, 3][..], &[1, 2, 3, 4, 5, 6, 8, 9, 10]] {
        let without = own.clipped_sum(&start, train, others, 0.5.into()).unwrap();
        let all: Vec<usize> = others.iter().copied().chain([7]).collect();
        let sum = own.clipped_sum(&start, train, &all, 0.5.into()).unwrap();
        for i in 0..start.len() {
            let added = sum.gradient[i] - without.gradient[i];
            assert!((added - alone.gradient[i]).abs() <= 1e-14, "{added} {}", alone.gradient[i]);
        }
    }
}

/// An example with NaN adds nothing; a duplicate example and parameters of another length are refused.
#[test]
fn hostile_examples_and_batches_are_held_as_by_ghost_clipping() {
    let (case, own) = (case(), own());
    let start = case.start();
    let mut features: Vec<f32> = (0..12).flat_map(|i| case.dataset.train.features(i).to_vec()).collect();
    for (row, hostile) in [(2, f32::NAN), (5, f32::INFINITY), (7, 3e38)] {
        features[64 * row..64 * (row + 1)].fill(hostile);
    }
    let examples = Examples::new(features, (0..12).map(|i| i % 10).collect(), 64).unwrap();
    let all: Vec<usize> = (0..12).collect();
    let finite: Vec<usize> = all.iter().copied().filter(|i| ![2, 5, 7].contains(i)).collect();
    let sum = own.clipped_sum(&start, &examples, &all, 0.5.into()).unwrap();
    assert!(sum.gradient.iter().all(|x| x.is_finite()) && length(&sum.gradient) <= 12.0 * 0.5);
    let rest = own.clipped_sum(&start, &examples, &finite, 0.5.into()).unwrap();
    for row in [2, 5] {
        let one = own.clipped_sum(&start, &examples, &[row], 0.5.into()).unwrap();
        assert_eq!((length(&one.gradient), one.clipped), (0.0, 1));
    }
    let third = own.clipped_sum(&start, &examples, &[7], 0.5.into()).unwrap();
    assert!(length(&third.gradient) <= 0.5);
    for i in 0..start.len() {
        assert!((sum.gradient[i] - rest.gradient[i] - third.gradient[i]).abs() < 1e-13);
    }
    let refused = |batch: &[usize], start: &[f32]| {
        let error = own.clipped_sum(start, &examples, batch, 0.5.into()).unwrap_err();
        assert!(error.is_bad_input());
        error.to_string()
    };
    assert!(refused(&[3, 1, 3], &start).contains("3 twice"));
    assert!(refused(&[12], &start).contains("below 12"));
    assert!(refused(&[1], &start[1..]).starts_with("number of parameters"));
    assert!(own.clipped_sum(&start, &examples, &[1], 1e-302.into()).is_err());
}

/// Networks that are not functions from one example to one number.
enum Fault {
    Vector,
    Double,
    WrongGradient,
    Counts(AtomicUsize),
    TwoDevices,
}

/// Passes the forward value through and returns a gradient of another shape.
struct Careless;

impl CustomOp1 for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((storage.clone(), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(Tensor::zeros(5, DType::F32, &Device::Cpu)?))
    }
}

impl ExampleModel for Fault {
    fn identity(&self) -> String {
        "a fault".into()
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        vec![vec![64]]
    }

    fn outputs(&self, parameters: &[Tensor], _: Example) -> Result<Tensor> {
        parameters[0].narrow(0, 0, 3)
    }

    fn loss(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
        let w = &parameters[0];
        let x = Tensor::from_slice(example.features, 64, &Device::Cpu)?;
        match self {
            Self::Vector => w * x,
            Self::Double => (w * x)?.sum_all()?.to_dtype(DType::F64),
            Self::WrongGradient => w.apply_op1(Careless)?.sum_all(),
            Self::Counts(calls) => {
                let calls = calls.fetch_add(1, Ordering::Relaxed) as f64;
                ((w * x)?.sum_all()? * (1.0 + calls))?.sum_all()
            }
            // The error of candle for a product over two devices, of which this machine may have only one.
            Self::TwoDevices => {
                let (lhs, rhs) = (DeviceLocation::Cuda { gpu_id: 0 }, DeviceLocation::Cpu);
                Err(Error::DeviceMismatchBinaryOp { lhs, rhs, op: "mul" }.bt())
            }
        }
    }
}

/// Three outputs for ten labels; or no parameter at all.
struct Few(usize);

impl ExampleModel for Few {
    fn identity(&self) -> String {
        "few".into()
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        vec![vec![3, self.0]]
    }

    fn outputs(&self, parameters: &[Tensor], _: Example) -> Result<Tensor> {
        parameters[0].narrow(1, 0, 1)
    }
}

#[test]
fn networks_that_are_no_functions_of_one_example_to_one_number_are_refused() {
    let case = case();
    for (fault, words) in [
        (Fault::Vector, "loss of an example is [64] of F32 but must be one number"),
        (Fault::Double, "loss of an example is [] of F64"),
        (Fault::WrongGradient, "shape mismatch"),
        (
            Fault::Counts(AtomicUsize::new(0)),
            "gradient of an example is different when it was computed a second time",
        ),
        (
            Fault::TwoDevices,
            "device of a model's tensor is Cpu with Cuda { gpu_id: 0 } in mul but must be that",
        ),
    ] {
        let own = CandleModel::new("fault", fault).unwrap();
        let setup = Setup { model: &own, ..case.setup() };
        let refused = Trainer::new(setup, RunId::default(), vec![0.1; 64], Key::from_seed_insecure(1)).err();
        let message = refused.expect(words).to_string();
        assert!(message.contains(words), "{message}");
    }
    let nine = case.dataset.train.labels().iter().position(|&label| label == 9).unwrap();
    let few = CandleModel::new("few", Few(1)).unwrap();
    let error = few.plain_sum(&[0.0; 3], &case.dataset.train, &[nine]).unwrap_err();
    assert!(error.to_string().contains("label 9 of 3 classes"), "{error}");
    assert!(CandleModel::new("empty", Few(0)).unwrap_err().to_string().starts_with("number of parameters"));
}

/// The model trains under a plan and resumes with the same bits, and its checkpoint refuses another model,
/// even of the same size.
#[test]
fn an_own_model_trains_resumes_and_is_known_again() {
    let (case, own) = (case(), own());
    let setup = Setup { model: &own, ..case.setup() };
    let trainer =
        || Trainer::new(setup, RunId::default(), case.start(), Key::from_seed_insecure(KEY)).unwrap();
    let never = AtomicBool::new(false);
    let mut whole = trainer();
    whole.run(&Options { test_every: 24, checkpoints: None }, &never, |_| ()).unwrap();
    let accuracy = whole.history().accuracies.last().unwrap().1;
    assert!(accuracy > 0.6, "{accuracy}");

    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), RunId::default()).unwrap();
    let mut cut = trainer();
    (0..10).for_each(|_| cut.step().unwrap());
    cut.save(&checkpoints).unwrap();
    let refusal = Trainer::resume(case.setup(), &checkpoints).err().unwrap().to_string();
    assert!(refusal.contains("another model"), "{refusal}");
    let mut resumed = Trainer::resume(setup, &checkpoints).unwrap();
    while resumed.step_count() < 24 {
        resumed.step().unwrap();
    }
    assert_eq!(resumed.parameters(), whole.parameters());
}

#[test]
fn a_model_written_both_ways_is_clipped_by_the_same_layers() {
    let (case, own) = (case(), own());
    assert_eq!(own.layers(), case.model.layers());
    let groups = Groups::by_layer(&own.layers()).unwrap();
    let (start, train, batch) = (case.start(), &case.dataset.train, (0..300).collect::<Vec<_>>());
    let mut compared = 0;
    for norm in [1e-3, 0.5, 20.0] {
        let clipping = Clipping { norm, groups: Some(&groups) };
        let ghost = clipped_sum(&case.model, &start, train, &batch, clipping).unwrap();
        let each = own.clipped_sum(&start, train, &batch, clipping).unwrap();
        let apart: Vec<f64> = ghost.gradient.iter().zip(&each.gradient).map(|(x, y)| x - y).collect();
        assert!(length(&apart) <= 1e-5 * norm * batch.len() as f64, "{}", length(&apart));
        assert_eq!(ghost.clipped, each.clipped);
        let whole = own.clipped_sum(&start, train, &batch, norm.into()).unwrap();
        compared += usize::from(whole.gradient != each.gradient);
    }
    assert!(compared >= 2, "groups changed {compared} of 3 sums");
}

/// Layers that are not made of the model's tensors.
struct Odd(Vec<usize>);

impl ExampleModel for Odd {
    fn identity(&self) -> String {
        "odd".into()
    }
    fn shapes(&self) -> Vec<Vec<usize>> {
        Mlp.shapes()
    }
    fn layers(&self) -> Vec<usize> {
        self.0.clone()
    }
    fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
        Mlp.outputs(parameters, example)
    }
}

#[test]
fn groups_of_other_layers_are_refused() {
    let (case, own) = (case(), own());
    let groups = Groups::by_layer(&[640, 10]).unwrap();
    let clipping = Clipping { norm: 1.0, groups: Some(&groups) };
    let of_own = vec![0.0; own.parameters()];
    let error = own.clipped_sum(&of_own, &case.dataset.train, &[0], clipping).unwrap_err();
    assert!(error.to_string().starts_with("parameters of the layers in groups is [640, 10]"), "{error}");
    for tensors in [vec![], vec![1, 2], vec![3, 2], vec![usize::MAX, 5]] {
        let error = CandleModel::new("odd", Odd(tensors)).err().unwrap().to_string();
        assert!(error.starts_with("tensors of the layers is ["), "{error}");
    }
    assert_eq!(
        CandleModel::new("odd", Odd(vec![0, 1, 3])).unwrap().layers(),
        [64 * HIDDEN, 11 * HIDDEN + 10]
    );
}
