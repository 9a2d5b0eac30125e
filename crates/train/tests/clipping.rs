//! The clipped sum against its definition: one example at a time, with layers written out for candle's
//! differentiation.

use antinoise_input::BadInput;
use antinoise_train::clip::{clipped_sum, plain_sum};
use antinoise_train::data::{Examples, ImageShape};
use antinoise_train::model::{Activation, Layer, Model, Pooling};
use candle_core::{Device, Result, Tensor, Var};
use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use proptest::prelude::*;

const SHAPE: ImageShape = ImageShape { height: 9, width: 7, channels: 2 };
const CLASSES: usize = 3;
const RELU: Layer = Layer::Activation(Activation::Relu);
const TANH: Layer = Layer::Activation(Activation::Tanh);

fn convolution(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Layer {
    Layer::Convolution { outputs, kernel, stride, padding }
}

fn pool(kind: Pooling, size: usize, stride: usize) -> Layer {
    Layer::Pool { kind, size, stride }
}

/// Every kind of layer, and every option that changes a layer's function.
fn architectures() -> Vec<Vec<Layer>> {
    let linear = Layer::Linear { outputs: CLASSES };
    vec![
        vec![linear],
        vec![Layer::Linear { outputs: 11 }, TANH, Layer::Linear { outputs: 5 }, RELU, linear],
        vec![convolution(4, 3, 1, 0), TANH, linear],
        vec![convolution(4, 3, 2, 1), RELU, convolution(5, 2, 1, 1), TANH, linear],
        vec![convolution(3, 4, 3, 3), TANH, pool(Pooling::Max, 2, 1), convolution(4, 2, 2, 0), TANH, linear],
        vec![convolution(3, 2, 1, 0), TANH, pool(Pooling::Average, 2, 1), linear],
        vec![pool(Pooling::Max, 2, 2), convolution(2, 1, 1, 0), pool(Pooling::Average, 3, 3), linear],
        vec![Layer::Linear { outputs: 8 }, pool(Pooling::Max, 1, 1), linear],
    ]
}

/// Deterministic numbers in [-1, 1].
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn start(model: &Model, seed: u64) -> Vec<f32> {
    model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(seed))
}

fn examples(count: usize, seed: u64) -> Examples {
    let labels = (0..count as u32).map(|i| i * 7 % CLASSES as u32).collect();
    // Lengths from 0.1 to 3, so that gradients differ in length as well.
    let mut features = numbers(count * SHAPE.len(), seed);
    for (i, row) in features.chunks_exact_mut(SHAPE.len()).enumerate() {
        row.iter_mut().for_each(|x| *x *= 0.1 + 2.9 * (i % 7) as f32 / 6.0);
    }
    Examples::new(features, labels, SHAPE.len()).unwrap()
}

/// Loss and gradient of one example, with candle's backward pass to every weight.
fn one_gradient(
    layers: &[Layer],
    parameters: &[f32],
    features: &[f32],
    label: u32,
) -> Result<(f64, Vec<f32>)> {
    let device = &Device::Cpu;
    let ImageShape { height, width, channels } = SHAPE;
    let mut x = Tensor::from_slice(features, (1, height, width, channels), device)?.permute((0, 3, 1, 2))?;
    let (mut variables, mut offset) = (Vec::new(), 0);
    for layer in layers {
        let (c, h, w) = match x.dims()[..] {
            [_, c, h, w] => (c, h, w),
            _ => unreachable!("every layer leaves an image"),
        };
        let mut variable = |inputs: usize, outputs: usize| -> Result<(Var, Var)> {
            let weight = &parameters[offset..][..inputs * outputs];
            let bias = &parameters[offset + inputs * outputs..][..outputs];
            offset += (inputs + 1) * outputs;
            let weight = Var::from_slice(weight, (outputs, inputs), device)?;
            let bias = Var::from_slice(bias, outputs, device)?;
            variables.extend([weight.clone(), bias.clone()]);
            Ok((weight, bias))
        };
        x = match *layer {
            Layer::Linear { outputs } => {
                let (weight, bias) = variable(c * h * w, outputs)?;
                let flat = x.permute((0, 2, 3, 1))?.contiguous()?.reshape((1, c * h * w))?;
                flat.matmul(&weight.t()?)?.broadcast_add(&bias)?.reshape((1, outputs, 1, 1))?
            }
            Layer::Convolution { outputs, kernel, stride, padding } => {
                let (weight, bias) = variable(kernel * kernel * c, outputs)?;
                let y = convolved(&x, &weight, kernel, stride, padding)?;
                y.broadcast_add(&bias.reshape((1, outputs, 1, 1))?)?
            }
            Layer::Activation(Activation::Relu) => x.relu()?,
            Layer::Activation(Activation::Tanh) => x.tanh()?,
            Layer::Pool { kind, size, stride } => pooled(&x, kind, size, stride)?,
        };
    }
    let logits = x.flatten_all()?;
    let loss = (logits.exp()?.sum_all()?.log()? - logits.get(label as usize)?)?;
    let gradients = loss.backward()?;
    let mut gradient = Vec::new();
    for variable in &variables {
        gradient.extend(gradients.get(variable).unwrap().flatten_all()?.to_vec1::<f32>()?);
    }
    Ok((f64::from(loss.to_scalar::<f32>()?), gradient))
}

/// The pixel at `offset` of every window of `size`, one per window: by definition, convolution and pooling
/// are a sum or a maximum over offsets. (Candle cannot differentiate its own layers for every size.)
fn shifted(x: &Tensor, offset: (usize, usize), size: usize, stride: usize) -> Result<Tensor> {
    let (_, _, h, w) = x.dims4()?;
    let pick = |x: &Tensor, dim: usize, side: usize, offset: usize| {
        let rows = (0..=side - size).step_by(stride).map(|top| (top + offset) as u32);
        x.contiguous()?.index_select(&Tensor::from_iter(rows, &Device::Cpu)?, dim)
    };
    pick(&pick(x, 2, h, offset.0)?, 3, w, offset.1)
}

fn offsets(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size * size).map(move |i| (i / size, i % size))
}

/// `weight`: outputs x (row, column, channel).
fn convolved(x: &Tensor, weight: &Tensor, size: usize, stride: usize, padding: usize) -> Result<Tensor> {
    let x = x.pad_with_zeros(2, padding, padding)?.pad_with_zeros(3, padding, padding)?;
    let channels = x.dim(1)?;
    let mut sum: Option<Tensor> = None;
    for (i, offset) in offsets(size).enumerate() {
        let pixels = shifted(&x, offset, size, stride)?;
        let (_, _, h, w) = pixels.dims4()?;
        let part = weight.narrow(1, i * channels, channels)?.contiguous()?;
        let y = part.matmul(&pixels.reshape((channels, h * w))?)?.reshape((1, (), h, w))?;
        sum = Some(sum.map_or(Ok(y.clone()), |sum| sum + y)?);
    }
    Ok(sum.unwrap())
}

fn pooled(x: &Tensor, kind: Pooling, size: usize, stride: usize) -> Result<Tensor> {
    let mut y = shifted(x, (0, 0), size, stride)?;
    for offset in offsets(size).skip(1) {
        let next = shifted(x, offset, size, stride)?;
        y = if kind == Pooling::Max { y.maximum(&next)? } else { (y + next)? };
    }
    if kind == Pooling::Average { y / (size * size) as f64 } else { Ok(y) }
}

struct Oracle {
    losses: Vec<f64>,
    gradients: Vec<Vec<f32>>,
    norms: Vec<f64>,
}

impl Oracle {
    fn new(layers: &[Layer], parameters: &[f32], examples: &Examples) -> Self {
        let one = |i| one_gradient(layers, parameters, examples.features(i), examples.labels()[i]).unwrap();
        let (losses, gradients): (Vec<_>, Vec<_>) = (0..examples.len()).map(one).unzip();
        let norm = |g: &Vec<f32>| g.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        Self { losses, norms: gradients.iter().map(norm).collect(), gradients }
    }

    fn sum(&self, clip_norm: f64) -> Vec<f64> {
        let mut sum = vec![0.0; self.gradients[0].len()];
        for (gradient, norm) in self.gradients.iter().zip(&self.norms) {
            let factor = if *norm > clip_norm { clip_norm / norm } else { 1.0 };
            sum.iter_mut().zip(gradient).for_each(|(sum, &x)| *sum += factor * f64::from(x));
        }
        sum
    }
}

fn relative_distance(got: &[f64], oracle: &[f64]) -> f64 {
    let square = |x: f64| x * x;
    let distance: f64 = got.iter().zip(oracle).map(|(x, y)| square(x - y)).sum();
    (distance / oracle.iter().map(|&y| square(y)).sum::<f64>()).sqrt()
}

#[test]
fn every_layer_equals_one_example_at_a_time_to_1e_5() {
    const COUNT: usize = 75; // more than one chunk, and not a multiple of it
    let examples = examples(COUNT, 1);
    let batch: Vec<usize> = (0..COUNT).collect();
    for layers in architectures() {
        let model = Model::new("test", SHAPE, CLASSES, &layers).unwrap();
        let parameters = start(&model, 3);
        let oracle = Oracle::new(&layers, &parameters, &examples);
        let mut sorted = oracle.norms.clone();
        sorted.sort_by(f64::total_cmp);
        // Clip norms that clip nothing, half of the examples, and all.
        let clip_norms = [2.0 * sorted[COUNT - 1], (sorted[37] + sorted[38]) / 2.0, 0.5 * sorted[0]];
        for (clip_norm, clipped) in clip_norms.into_iter().zip([0, 37, COUNT]) {
            let got = clipped_sum(&model, &parameters, &examples, &batch, clip_norm).unwrap();
            let distance = relative_distance(&got.gradient, &oracle.sum(clip_norm));
            assert!(distance < 1e-5, "{layers:?}, clip norm {clip_norm}: {distance:e}");
            assert_eq!(got.clipped, clipped, "{layers:?}, clip norm {clip_norm}");
            let loss: f64 = oracle.losses.iter().sum();
            assert!((got.loss - loss).abs() < 1e-5 * loss);
        }
        let plain = plain_sum(&model, &parameters, &examples, &batch).unwrap();
        let distance = relative_distance(&plain.gradient, &oracle.sum(f64::INFINITY));
        assert!(distance < 1e-5, "{layers:?}, no clipping: {distance:e}");
    }
}

#[test]
fn gradients_of_zero_and_empty_batches_are_zero() {
    let layers = [Layer::Linear { outputs: CLASSES }];
    let model = Model::new("test", SHAPE, CLASSES, &layers).unwrap();
    let mut parameters = vec![0.0; model.parameters()];
    parameters[model.parameters() - CLASSES] = 1000.0; // class 0 with certainty
    let examples = examples(1, 5);
    for batch in [&[][..], &[0]] {
        let sum = clipped_sum(&model, &parameters, &examples, batch, 1.0).unwrap();
        assert_eq!((sum.clipped, sum.loss), (0, 0.0));
        assert!(sum.gradient.len() == parameters.len() && sum.gradient.iter().all(|&x| x == 0.0));
    }
}

#[test]
fn an_example_that_is_not_finite_adds_nothing() {
    for layers in architectures() {
        let model = Model::new("test", SHAPE, CLASSES, &layers).unwrap();
        let parameters = start(&model, 3);
        let clean = examples(6, 2);
        for poison in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut features: Vec<f32> = (0..6).flat_map(|i| clean.features(i).to_vec()).collect();
            features[2 * SHAPE.len()..3 * SHAPE.len()].fill(poison);
            let poisoned = Examples::new(features, clean.labels().to_vec(), SHAPE.len()).unwrap();
            let got = clipped_sum(&model, &parameters, &poisoned, &[0, 1, 2, 3, 4, 5], 0.5).unwrap();
            let without = clipped_sum(&model, &parameters, &clean, &[0, 1, 3, 4, 5], 0.5).unwrap();
            let distance: f64 =
                got.gradient.iter().zip(&without.gradient).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            // At most the clip norm; 0 unless the gradient is finite (tanh of infinity is).
            assert!(distance <= 0.5, "{layers:?}, {poison}: moved by {distance}");
            if poison.is_nan() {
                assert!(distance < 1e-12, "{layers:?}: moved by {distance}");
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let shape = ImageShape { height: 28, width: 28, channels: 1 };
    let model = Model::cnn(shape, 10).unwrap();
    let labels = (0..70).map(|i| i % 10).collect();
    let examples = Examples::new(numbers(70 * shape.len(), 4), labels, shape.len()).unwrap();
    let parameters = start(&model, 1);
    let batch: Vec<usize> = (0..70).rev().collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let sum = clipped_sum(&model, &parameters, &examples, &batch, 0.7).unwrap();
            (sum, model.evaluate(&parameters, &examples).unwrap())
        })
    };
    let one = run(1);
    assert!([2, 3, 8].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn bad_input_is_refused_by_name() {
    let layers = [Layer::Linear { outputs: CLASSES }];
    let model = Model::new("test", SHAPE, CLASSES, &layers).unwrap();
    let parameters = start(&model, 0);
    let examples = examples(3, 1);
    let message = |parameters: &[f32], examples: &Examples, batch: &[usize], clip_norm: f64| {
        let error = clipped_sum(&model, parameters, examples, batch, clip_norm).unwrap_err();
        assert!(error.is_bad_input());
        error.to_string()
    };
    for clip_norm in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(&parameters, &examples, &[0], clip_norm).starts_with("clip_norm is"));
    }
    assert!(message(&parameters[1..], &examples, &[0], 1.0).starts_with("number of parameters is 380"));
    assert!(message(&parameters, &examples, &[0, 3], 1.0).starts_with("example of a batch is 3"));
    assert!(message(&parameters, &examples, &[2, 0, 2], 1.0).starts_with("example of a batch is 2 twice"));
    let other = Examples::new(vec![0.0; 4], vec![0], 4).unwrap();
    assert!(message(&parameters, &other, &[0], 1.0).starts_with("features an example is 4"));
    let unknown = Examples::new(vec![0.0; SHAPE.len()], vec![3], SHAPE.len()).unwrap();
    assert!(message(&parameters, &unknown, &[0], 1.0).starts_with("label is 3"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The law on which privacy rests: adding or removing one example changes the sum by at most the clip
    /// norm.
    #[test]
    fn one_example_moves_the_sum_by_at_most_the_clip_norm(
        architecture in 0..architectures().len(),
        seed in any::<u64>(),
        scale in -3f32..6.0,
        clip_norm in 1e-3..1e3,
    ) {
        let model = Model::new("test", SHAPE, CLASSES, &architectures()[architecture]).unwrap();
        let mut parameters = start(&model, seed);
        parameters.iter_mut().for_each(|w| *w *= 10f32.powf(scale));
        let examples = examples(5, seed);
        let with = clipped_sum(&model, &parameters, &examples, &[0, 1, 2, 3, 4], clip_norm).unwrap();
        let without = clipped_sum(&model, &parameters, &examples, &[0, 1, 2, 3], clip_norm).unwrap();
        let moved = with.gradient.iter().zip(&without.gradient);
        let moved = moved.map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
        prop_assert!(moved <= clip_norm, "moved by {moved}, clip norm {clip_norm}");
    }
}
