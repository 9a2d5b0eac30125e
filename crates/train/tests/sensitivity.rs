//! The change of the clipped sum due to one example, with examples built to maximise it: never more than the
//! clip norm and its margin, for any number of examples and any division into chunks.

mod common;

use antinoise_train::clip::{clipped_sum, sum_margin};
use antinoise_train::data::{Examples, ImageShape};
use antinoise_train::model::Model;
use common::HOSTILE;

const TINY: ImageShape = ImageShape { height: 2, width: 2, channels: 1 };

/// |a - b| / clip_norm, computed in units of clip_norm, since squares of 1e-300 underflow.
fn moved(a: &[f64], b: &[f64], clip_norm: f64) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x / clip_norm - y / clip_norm).powi(2)).sum::<f64>().sqrt()
}

/// A logistic model in which only the bias matters, so that every example's gradient is p or -(1 - p) in two
/// numbers: `first` examples of label 0 push a sum next to 2^k, where half an ulp of single precision is
/// 2^(k - 24), and each other example adds p = part * 2^(k - 23). One example decides whether the
/// contributions of the others survive rounding.
struct HalfUlps {
    model: Model,
    parameters: Vec<f32>,
    shape: ImageShape,
    count: usize,
}

impl HalfUlps {
    fn new(count: usize, k: i32, side: usize, part: f64) -> Self {
        let shape = ImageShape { height: side, width: side, channels: 1 };
        let model = Model::logistic(shape, 2).unwrap();
        let p = part * 2f64.powi(k - 23);
        let mut parameters = vec![0f32; model.parameters()];
        *parameters.last_mut().unwrap() = ((1.0 - p) / p).ln() as f32;
        Self { model, parameters, shape, count }
    }

    /// The change of the sum when the first example is removed, if `first` examples have label 0.
    fn moves(&self, first: usize, chunk: usize) -> f64 {
        let labels = (0..self.count).map(|i| u32::from(i >= first)).collect();
        let len = self.shape.len();
        let examples = Examples::new(vec![0.0; self.count * len], labels, len).unwrap();
        let model = self.model.clone().with_chunk(chunk).unwrap();
        let all: Vec<usize> = (0..self.count).collect();
        let sum =
            |batch: &[usize]| clipped_sum(&model, &self.parameters, &examples, batch, 1.0).unwrap().gradient;
        moved(&sum(&all), &sum(&all[1..]), 1.0)
    }
}

#[test]
fn half_ulps_of_others_add_nothing_to_what_an_example_moves() {
    // (examples, k, side, p / 2^(k - 23), numbers of labels 0 that are worst in single precision, chunks)
    let cases = [
        (500, 8, 256, 0.3, 363, &[1, 3][..]),
        (10_000, 12, 2, 0.0047, 5793, &[1, 7, 64, 1000, 10_000][..]),
        (20_000, 13, 2, 0.0047, 11_585, &[5, 64][..]),
        (60_000, 14, 2, 0.0047, 23_171, &[20, 64, 4096][..]),
    ];
    for (count, k, side, part, worst, chunks) in cases {
        let case = HalfUlps::new(count, k, side, part);
        for &chunk in chunks {
            let most = (worst - 1..=worst + 1).map(|first| case.moves(first, chunk)).fold(0.0, f64::max);
            let margin = sum_margin(count, chunk).unwrap();
            println!(
                "{count} examples in chunks of {chunk}: moved by {most:.15} clip norms, margin {margin:.1e}"
            );
            assert!(margin < 1e-6 && most <= 1.0 + margin, "{count} in chunks of {chunk}: {most}");
        }
    }
}

/// A third of the examples are equal.
fn hostile(count: usize) -> Examples {
    let mut state = 5u64;
    let mut pick = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut features = Vec::with_capacity(4 * count);
    for i in 0..count {
        // NaN and infinity in few examples only: the others must count.
        let from = if pick(10) == 0 { 0 } else { 3 };
        let mut one = || if i % 3 == 0 { 3e38 } else { HOSTILE[from + pick(HOSTILE.len() - from)] };
        features.extend([one(), one(), one(), one()]);
    }
    Examples::new(features, (0..count).map(|_| pick(3) as u32).collect(), 4).unwrap()
}

#[test]
fn no_hostile_example_moves_the_sum_further_than_the_clip_norm() {
    const COUNT: usize = 20_000;
    let examples = hostile(COUNT);
    let all: Vec<usize> = (0..COUNT).collect();
    for (model, scale) in [
        (Model::logistic(TINY, 3).unwrap(), 0.0),
        (Model::logistic(TINY, 3).unwrap(), 1e-30),
        (Model::mlp(TINY, 3, 5).unwrap(), 1.0),
    ] {
        let parameters: Vec<f32> = (0..model.parameters()).map(|i| (i as f32 * 1.7).sin() * scale).collect();
        let margin = sum_margin(COUNT, model.chunk()).unwrap();
        assert!(margin < 1e-9);
        for clip in [1e-300, 1e-6, 1.0, 1e19, 1e308] {
            let sum =
                |batch: &[usize]| clipped_sum(&model, &parameters, &examples, batch, clip).unwrap().gradient;
            let (whole, mut most) = (sum(&all), 0f64);
            assert!(whole.iter().all(|x| x.is_finite()) && whole.iter().any(|&x| x != 0.0));
            for leaving in (0..COUNT).step_by(2000).map(|i| i + i / 2000) {
                let length = moved(&sum(&[leaving]), &vec![0.0; parameters.len()], clip);
                assert!(length <= 1.0, "{} alone, clip norm {clip:e}: {length}", model.name());
                // All later examples move up a place.
                let others: Vec<usize> = all.iter().copied().filter(|&i| i != leaving).collect();
                most = most.max(moved(&whole, &sum(&others), clip));
            }
            println!("{}, weights of {scale}, clip norm {clip:e}: moved by {most:.15}", model.name());
            assert!(most <= 1.0 + margin, "{}, clip norm {clip:e}: {most}", model.name());
            if clip <= 1.0 {
                assert!(most > 0.999, "no example was clipped: {most}");
            }
        }
    }
}

/// Zero-out: the example's gradient becomes zero and all others stay in place.
#[test]
fn an_example_that_is_zeroed_moves_the_sum_by_its_own_gradient() {
    let count = 3000;
    let features: Vec<f32> = (0..4 * count).map(|i| (i as f32 * 0.37).sin() * 40.0).collect();
    let labels: Vec<u32> = (0..count as u32).map(|i| i % 3).collect();
    let examples = Examples::new(features.clone(), labels.clone(), 4).unwrap();
    let model = Model::mlp(TINY, 3, 6).unwrap();
    let parameters: Vec<f32> = (0..model.parameters()).map(|i| (i as f32 * 1.7).sin()).collect();
    let all: Vec<usize> = (0..count).collect();
    let sum = |examples: &Examples, batch: &[usize]| {
        clipped_sum(&model, &parameters, examples, batch, 0.5).unwrap().gradient
    };
    let whole = sum(&examples, &all);
    for leaving in [0, 63, 64, 1501, 2999] {
        // An example with NaN adds nothing.
        let mut zeroed = features.clone();
        zeroed[4 * leaving..][..4].fill(f32::NAN);
        let without = sum(&Examples::new(zeroed, labels.clone(), 4).unwrap(), &all);
        let difference: Vec<f64> = whole.iter().zip(&without).map(|(x, y)| x - y).collect();
        let own = sum(&examples, &[leaving]);
        let distance = moved(&difference, &own, 0.5);
        assert!(distance <= sum_margin(count, model.chunk()).unwrap(), "{leaving}: {distance:e}");
    }
}
