//! Contributions other than clipped gradients: gradients scaled before clipping, and squares. Compared with
//! the definition, one example at a time, and tested with examples built to move sums beyond the bound.

mod common;

use antinoise_train::clip::{Contribution, contribution_sum, plain_sum, sum_margin};
use antinoise_train::data::{Examples, ImageShape};
use antinoise_train::model::Model;
use chacha20::{ChaCha8Rng, rand_core::Rng, rand_core::SeedableRng};
use common::HOSTILE;

const SHAPE: ImageShape = ImageShape { height: 6, width: 5, channels: 1 };
const CLASSES: usize = 3;

struct Random(ChaCha8Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| 2.0 * self.unit() as f32 - 1.0).collect()
    }
}

fn models() -> Vec<Model> {
    vec![
        Model::logistic(SHAPE, CLASSES).unwrap(),
        Model::mlp(SHAPE, CLASSES, 9).unwrap(),
        Model::cnn(ImageShape { height: 8, width: 8, channels: 1 }, CLASSES).unwrap().with_chunk(3).unwrap(),
    ]
}

fn examples(model: &Model, count: usize, random: &mut Random) -> Examples {
    let labels = (0..count).map(|_| random.below(CLASSES) as u32).collect();
    let mut features = random.numbers(count * model.shape().len());
    features.iter_mut().for_each(|x| *x *= 3.0);
    Examples::new(features, labels, model.shape().len()).unwrap()
}

fn length(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0f64, |most, x| most.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * x.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// The contribution of an example, by definition.
fn added(contribution: Contribution, gradient: &[f64], clip_norm: f64) -> Vec<f64> {
    let clipped = |g: Vec<f64>, to: f64| -> Vec<f64> {
        let factor = (to / length(&g)).min(1.0);
        g.into_iter().map(|x| x * factor).collect()
    };
    match contribution {
        Contribution::Gradient => clipped(gradient.to_vec(), clip_norm),
        Contribution::Scaled(scales) => {
            clipped(gradient.iter().zip(scales).map(|(g, &s)| g * f64::from(s)).collect(), clip_norm)
        }
        Contribution::WithSquares { ratio } => {
            let zeta = clip_norm / (1.0 + ratio * ratio).sqrt();
            let x = clipped(gradient.to_vec(), zeta);
            let squares: Vec<f64> = x.iter().map(|x| ratio / zeta * x * x).collect();
            [x, squares].concat()
        }
    }
}

#[test]
fn sums_are_those_of_the_definition() {
    let mut random = Random::new(1);
    for round in 0..12 {
        for model in models() {
            let examples = examples(&model, 10, &mut random);
            let parameters = random.numbers(model.parameters());
            let batch: Vec<usize> = (0..random.below(10)).collect();
            let scales: Vec<f32> =
                (0..parameters.len()).map(|_| (6.0 * random.unit() - 3.0).exp() as f32).collect();
            let (clip_norm, ratio) = (random.pick(&[0.01, 1.0, 30.0]), 0.1 + 0.9 * random.unit());
            for contribution in
                [Contribution::Gradient, Contribution::Scaled(&scales), Contribution::WithSquares { ratio }]
            {
                let got = contribution_sum(&model, contribution, &parameters, &examples, &batch, clip_norm)
                    .unwrap();
                let mut sum = vec![0.0; contribution.dim(parameters.len())];
                for &one in &batch {
                    let gradient = plain_sum(&model, &parameters, &examples, &[one]).unwrap().gradient;
                    let terms = added(contribution, &gradient, clip_norm);
                    sum.iter_mut().zip(terms).for_each(|(sum, x)| *sum += x);
                }
                let apart: Vec<f64> = sum.iter().zip(&got.gradient).map(|(x, y)| x - y).collect();
                let bound = 4e-6 * clip_norm * batch.len() as f64;
                let name = model.name();
                assert!(
                    length(&apart) <= bound,
                    "round {round}, {name}, {contribution:?}: {}",
                    length(&apart)
                );
            }
        }
    }
}

/// Scales of 1 change no bit.
#[test]
fn scales_of_one_are_none() {
    let mut random = Random::new(2);
    for model in models() {
        let examples = examples(&model, 10, &mut random);
        let parameters = random.numbers(model.parameters());
        let (batch, ones): (Vec<usize>, _) = ((0..10).collect(), vec![1.0; parameters.len()]);
        let of = |contribution| {
            contribution_sum(&model, contribution, &parameters, &examples, &batch, 0.3).unwrap()
        };
        let (scaled, plain) = (of(Contribution::Scaled(&ones)), of(Contribution::Gradient));
        let apart: Vec<f64> = scaled.gradient.iter().zip(&plain.gradient).map(|(x, y)| x - y).collect();
        assert!(length(&apart) <= 1e-14 && scaled.clipped == plain.clipped);
    }
}

fn hostile(count: usize, numbers: usize, random: &mut Random) -> Examples {
    let mut features = Vec::new();
    for _ in 0..count {
        // NaN in a few examples only: the others must count.
        let from = if random.below(10) == 0 { 0 } else { 3 };
        features.extend((0..numbers).map(|_| random.pick(&HOSTILE[from..])));
    }
    Examples::new(features, (0..count).map(|_| random.below(CLASSES) as u32).collect(), numbers).unwrap()
}

/// For any example and scales, a contribution has at most the clip norm, and its effect on others stays
/// within the margin.
#[test]
fn no_hostile_example_adds_more_than_the_clip_norm() {
    const MOST: f32 = (1u64 << 40) as f32;
    let tiny = ImageShape { height: 2, width: 2, channels: 1 };
    let mut random = Random::new(3);
    let (mut cases, mut clipped, mut longest) = (0, 0, 0f64);
    for (model, weights) in [
        (Model::logistic(tiny, CLASSES).unwrap(), 0.0),
        (Model::logistic(tiny, CLASSES).unwrap().with_chunk(4).unwrap(), 1e-30),
        (Model::mlp(tiny, CLASSES, 5).unwrap(), 1.0),
        (
            Model::cnn(ImageShape { height: 8, width: 8, channels: 1 }, CLASSES)
                .unwrap()
                .with_chunk(2)
                .unwrap(),
            0.3,
        ),
    ] {
        let rounds = if model.parameters() > 1000 { 30 } else { 250 };
        for _ in 0..rounds {
            let examples = hostile(12, model.shape().len(), &mut random);
            let parameters: Vec<f32> =
                random.numbers(model.parameters()).iter().map(|x| x * weights).collect();
            let scales: Vec<f32> = (0..parameters.len())
                .map(|_| match random.below(4) {
                    0 => random.pick(&[1.0 / MOST, MOST, 1.0, 1e-12, 1e12]),
                    1 => ((random.unit() - 0.5) * 50.0).exp() as f32,
                    _ => 1.0,
                })
                .map(|scale: f32| scale.clamp(1.0 / MOST, MOST))
                .collect();
            let ratio = random.pick(&[1e-9, 0.3, 0.5, 1.0]);
            let clip_norm = random.pick(&[1e-300, 1e-19, 1e-6, 1.0, 1e19, 1e308]);
            for contribution in [Contribution::Scaled(&scales), Contribution::WithSquares { ratio }] {
                let sum = |batch: &[usize]| {
                    let found =
                        contribution_sum(&model, contribution, &parameters, &examples, batch, clip_norm);
                    let found = found.unwrap();
                    let units: Vec<f64> = found.gradient.iter().map(|x| x / clip_norm).collect();
                    (units, found.clipped)
                };
                let all: Vec<usize> = (0..12).collect();
                let (whole, of_whole) = sum(&all);
                assert!(whole.iter().all(|x| x.is_finite()));
                clipped += of_whole;
                for leaving in [0, random.below(12)] {
                    let alone = length(&sum(&[leaving]).0);
                    assert!(alone <= 1.0, "{alone} of {contribution:?}, clip norm {clip_norm:e}");
                    longest = longest.max(alone);
                    let others: Vec<usize> = all.iter().copied().filter(|&i| i != leaving).collect();
                    let moved: Vec<f64> = whole.iter().zip(&sum(&others).0).map(|(x, y)| x - y).collect();
                    let margin = sum_margin(12, model.chunk()).unwrap();
                    assert!(length(&moved) <= 1.0 + margin, "{contribution:?}, clip norm {clip_norm:e}");
                    cases += 1;
                }
            }
        }
    }
    // The bound is attained, so that the test is not vacuous.
    assert!(cases > 3000 && clipped > 1000 && longest > 1.0 - 3e-6, "{cases} {clipped} {longest}");
}

/// |x - y|^2 + lambda^2 |x^2 - y^2|^2 for zeta = 1, lambda = ratio.
fn joint(x: &[f64], y: &[f64], ratio: f64) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).powi(2) + (ratio * (x * x - y * y)).powi(2)).sum()
}

/// Points of the unit ball: random, on its sphere, with equal entries, along one or two axes.
fn point(dim: usize, random: &mut Random) -> Vec<f64> {
    let axis = random.below(dim);
    let mut x: Vec<f64> = match random.below(4) {
        0 => (0..dim).map(|_| 2.0 * random.unit() - 1.0).collect(),
        1 => (0..dim).map(|_| random.pick(&[-1.0, 1.0])).collect(),
        2 => (0..dim).map(|i| f64::from(u8::from(i == axis))).collect(),
        _ => (0..dim).map(|i| if i.abs_diff(axis) < 2 { 2.0 * random.unit() - 1.0 } else { 0.0 }).collect(),
    };
    let norm = length(&x).max(1e-9);
    let within = random.unit();
    let to = random.pick(&[1.0, 1.0, 0.99, within]) / norm;
    x.iter_mut().for_each(|x| *x *= to);
    x
}

/// The claim of `docs/training.md` about releases where examples can only be replaced, and why it is not
/// used: the contribution of one example alone is longer.
#[test]
fn squares_would_be_free_where_examples_are_replaced_up_to_a_ratio_of_a_root_of_a_half() {
    let mut random = Random::new(4);
    let mut largest = 0f64;
    for case in 0..200_000 {
        let dim = 1 + random.below(6);
        let x = point(dim, &mut random);
        // Near the antipode, where the bound is attained, or anywhere.
        let mut y = point(dim, &mut random);
        if case % 2 == 0 {
            let turn = random.pick(&[0.0, 1e-3, 0.03, 0.3]) * random.unit();
            y.iter_mut().zip(&x).for_each(|(y, x)| *y = turn * *y - x);
            let norm = length(&y).max(1.0);
            y.iter_mut().for_each(|y| *y /= norm);
        }
        let found = joint(&x, &y, 0.5f64.sqrt());
        assert!(found <= 4.0 * (1.0 + 1e-14), "{found} of {x:?} {y:?}");
        largest = largest.max(found);
    }
    assert!(largest > 4.0 * (1.0 - 1e-12));
    // Beyond that ratio they are not: x - y and x + y along two diagonals of a plane.
    let at = |ratio: f64, angle: f64| {
        let (u, v) = (angle.cos(), angle.sin());
        let half = 0.5f64.sqrt();
        joint(&[half * (u + v), half * (u - v)], &[half * (v - u), half * (-v - u)], ratio)
    };
    assert!(at(0.72, 0.05) > 4.0 && at(0.7, 0.05) < 4.0);
    assert!(joint(&[1.0], &[0.0], 0.7) > 1.48);
}

/// Gradients and squares together: the bound is attained along one parameter, and by two opposite examples.
#[test]
fn squares_leave_room_for_what_they_are_squares_of() {
    let mut random = Random::new(5);
    let (mut longest, mut furthest) = (0f64, 0f64);
    let model = Model::logistic(ImageShape { height: 1, width: 2, channels: 1 }, 2).unwrap();
    for _ in 0..4000 {
        let size = random.pick(&[0.3, 3.0, 1e4]);
        let features = random.numbers(4).iter().map(|x| x * size).collect();
        let labels = vec![random.below(2) as u32, random.below(2) as u32];
        let examples = Examples::new(features, labels, 2).unwrap();
        let parameters = random.numbers(model.parameters());
        let (clip_norm, ratio) = (random.pick(&[1e-3, 0.5, 7.0]), random.pick(&[0.01, 0.5, 1.0]));
        let of = Contribution::WithSquares { ratio };
        let one = |i: usize| {
            let sum = contribution_sum(&model, of, &parameters, &examples, &[i], clip_norm);
            sum.unwrap().gradient.iter().map(|x| x / clip_norm).collect::<Vec<f64>>()
        };
        let (x, y) = (one(0), one(1));
        let apart: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
        assert!(length(&x) <= 1.0 && length(&apart) <= 2.0, "{of:?}");
        (longest, furthest) = (longest.max(length(&x)), furthest.max(length(&apart)));
    }
    assert!(longest > 1.0 - 1e-4 && furthest > 1.99, "{longest} {furthest}");
}

/// An example of one of many classes: nearly all of its gradient is along one parameter, where squares are
/// longest.
#[test]
fn squares_along_one_parameter_fill_the_clip_norm() {
    const MANY: usize = 1000;
    let model = Model::logistic(ImageShape { height: 1, width: 1, channels: 1 }, MANY).unwrap();
    let examples = Examples::new(vec![0.0], vec![7], 1).unwrap();
    let parameters = vec![0.0; model.parameters()];
    for ratio in [0.1, 0.5, 1.0] {
        for clip_norm in [1e-200, 0.3, 0.5] {
            let of = Contribution::WithSquares { ratio };
            let sum = contribution_sum(&model, of, &parameters, &examples, &[0], clip_norm).unwrap();
            let units: Vec<f64> = sum.gradient.iter().map(|x| x / clip_norm).collect();
            assert!(length(&units) <= 1.0 && length(&units) > 0.999, "{ratio}: {}", length(&units));
        }
    }
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    let model = Model::logistic(SHAPE, CLASSES).unwrap();
    let examples = examples(&model, 2, &mut Random::new(6));
    let parameters = vec![0.0; model.parameters()];
    let refused = |contribution: Contribution, what: &str| {
        let error = contribution_sum(&model, contribution, &parameters, &examples, &[0], 1.0).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains(what), "{error}");
    };
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-13, 1e13] {
        let mut scales = vec![1.0; parameters.len()];
        scales[7] = bad;
        refused(Contribution::Scaled(&scales), "scale of a gradient");
    }
    refused(Contribution::Scaled(&[1.0]), "number of scales");
    for ratio in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
        refused(Contribution::WithSquares { ratio }, "ratio of squares");
    }
}
