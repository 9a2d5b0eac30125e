//! Layers that are clipped apart: against the definition, one example and group at a time; against examples
//! made to move sums further than they may; and in checkpoints.

mod common;

use antinoise_input::BadInput;
use antinoise_noise::RunId;
use antinoise_plan::Setting;
use antinoise_train::checkpoint::Checkpoints;
use antinoise_train::clip::{Clipping, Groups, clipped_sum, plain_sum, sum_margin};
use antinoise_train::data::{Examples, ImageShape};
use antinoise_train::model::{Activation, Layer, Model, Pooling};

use antinoise_train::trainer::{Setup, Trainer};
use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use common::{Case, HOSTILE, Random, SGD, plan};

const CLASSES: usize = 3;

/// A model of one to four layers with parameters, of sizes drawn from `random`.
fn model(random: &mut Random) -> Model {
    let shape = ImageShape { height: 3, width: 2 + random.below(3), channels: 1 + random.below(2) };
    let mut layers = Vec::new();
    if random.below(2) == 0 {
        layers.extend([
            Layer::Convolution { outputs: 1 + random.below(3), kernel: 2, stride: 1, padding: 1 },
            Layer::Pool { kind: Pooling::Max, size: 2, stride: 1 },
            Layer::Activation(Activation::Tanh),
        ]);
    }
    for _ in 0..random.below(3) {
        layers.extend([Layer::Linear { outputs: 1 + random.below(5) }, Layer::Activation(Activation::Relu)]);
    }
    layers.push(Layer::Linear { outputs: CLASSES });
    let model = Model::new("random", shape, CLASSES, &layers).unwrap();
    model.with_chunk(1 + random.below(4)).unwrap()
}

/// Groups of the model's layers, and the group of each layer; squares of shares add up to 1, or to less.
fn groups(layers: &[usize], random: &mut Random) -> (Groups, Vec<usize>) {
    if random.below(3) == 0 {
        return (Groups::by_layer(layers).unwrap(), (0..layers.len()).collect());
    }
    let mut of: Vec<usize> = layers.iter().map(|_| random.below(layers.len())).collect();
    let mut used = of.clone();
    used.sort_unstable();
    used.dedup();
    of.iter_mut().for_each(|group| *group = used.iter().position(|used| used == group).unwrap());
    let weights: Vec<f64> = used.iter().map(|_| 0.05 + random.unit()).collect();
    let total = length(&weights) * if random.below(4) == 0 { 1.5 } else { 1.0 + 1e-15 };
    let shares: Vec<f64> = weights.iter().map(|x| (x / total).min(1.0)).collect();
    (Groups::new(layers, &of, &shares).unwrap(), of)
}

type Part = (f64, Vec<std::ops::Range<usize>>);

/// Share and places of each group.
fn parts(layers: &[usize], groups: &Groups, of: &[usize]) -> Vec<Part> {
    let mut parts: Vec<Part> = groups.norms(1.0).into_iter().map(|share| (share, Vec::new())).collect();
    let mut start = 0;
    for (&size, &group) in layers.iter().zip(of) {
        parts[group].1.push(start..start + size);
        start += size;
    }
    parts
}

fn length<'a>(x: impl IntoIterator<Item = &'a f64>) -> f64 {
    x.into_iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The definition: each group's part of one example's gradient h, clipped to its norm; nothing where h is not
/// finite.
fn naive(h: &[f64], parts: &[Part], norm: f64) -> (Vec<f64>, bool) {
    let (mut x, mut is_clipped) = (vec![0.0; h.len()], false);
    if h.iter().any(|h| !h.is_finite()) {
        return (x, true);
    }
    for (share, ranges) in parts {
        let of_group = ranges.iter().flat_map(|range| &h[range.clone()]);
        let factor = (share * norm / length(of_group)).min(1.0);
        is_clipped |= factor < 1.0;
        for range in ranges {
            range.clone().for_each(|j| x[j] = h[j] * factor);
        }
    }
    (x, is_clipped)
}

#[test]
fn sums_are_those_of_one_example_and_group_at_a_time() {
    let mut random = Random(ChaCha8Rng::seed_from_u64(1));
    const CASES: usize = 300;
    let (mut cases, mut clipped, mut several) = (0, 0, 0);
    while cases < CASES {
        let model = model(&mut random);
        let (layers, parameters) = (model.layers(), model.parameters());
        let (groups, of_layer) = groups(&layers, &mut random);
        let parts = parts(&layers, &groups, &of_layer);
        let start: Vec<f32> = (0..parameters).map(|_| 2.0 * random.unit() as f32 - 1.0).collect();
        let features = (0..7 * model.shape().len()).map(|_| 6.0 * random.unit() as f32 - 3.0).collect();
        let labels = (0..7).map(|_| random.below(CLASSES) as u32).collect();
        let examples = Examples::new(features, labels, model.shape().len()).unwrap();
        let norm = 10f64.powf(3.0 * random.unit() - 2.0);
        let (mut wanted, mut clips) = (vec![0.0; parameters], 0);
        for i in 0..7 {
            let h = plain_sum(&model, &start, &examples, &[i]).unwrap().gradient;
            let (x, is_clipped) = naive(&h, &parts, norm);
            clips += usize::from(is_clipped);
            wanted.iter_mut().zip(&x).for_each(|(sum, x)| *sum += x);
        }
        let clipping = Clipping { norm, groups: Some(&groups) };
        let found = clipped_sum(&model, &start, &examples, &[0, 1, 2, 3, 4, 5, 6], clipping).unwrap();
        let apart: Vec<f64> = found.gradient.iter().zip(&wanted).map(|(x, y)| x - y).collect();
        assert!(length(&apart) <= 1e-5 * norm, "{groups:?}: {}", length(&apart) / norm);
        assert_eq!(found.clipped, clips, "{groups:?} {norm}");
        clipped += clips;
        several += usize::from(parts.len() > 1);
        cases += 1;
    }
    assert!(clipped > 300 && clipped < 2000 && several > 100, "{clipped} {several}");
}

/// The law that privacy rests on, over random models, groups and norms: an example moves a sum by at most the
/// clip norm, and each group's part by at most the group's.
#[test]
fn no_example_moves_a_sum_further_than_the_clip_norm_whatever_the_groups() {
    let mut random = Random(ChaCha8Rng::seed_from_u64(2));
    let (mut cases, mut longest, mut left_out) = (0, 0f64, 0);
    while cases < 4000 {
        let model = model(&mut random);
        let (groups, _) = groups(&model.layers(), &mut random);
        let width = model.shape().len();
        let scale = 10f64.powf(4.0 * random.unit() - 2.0) as f32;
        let start: Vec<f32> =
            (0..model.parameters()).map(|_| scale * (2.0 * random.unit() as f32 - 1.0)).collect();
        // Hostile numbers in some examples only: the others must count.
        let mut features = Vec::with_capacity(5 * width);
        for _ in 0..5 {
            let from = [0, 3, HOSTILE.len()][random.below(3)];
            features.extend((0..width).map(|_| match from {
                len if len == HOSTILE.len() => 4.0 * random.unit() as f32 - 2.0,
                from => HOSTILE[from + random.below(HOSTILE.len() - from)],
            }));
        }
        let labels = (0..5).map(|_| random.below(CLASSES) as u32).collect();
        let examples = Examples::new(features, labels, width).unwrap();
        let norm = 10f64.powf([-300.0, -6.0, -1.0, 0.0, 3.0, 100.0][random.below(6)]) * (1.0 + random.unit());
        // One case in four clips gradients as a whole.
        let clipping = Clipping { norm, groups: (random.below(4) > 0).then_some(&groups) };
        let sum = |batch: &[usize]| clipped_sum(&model, &start, &examples, batch, clipping).unwrap();
        let (with, without) = (sum(&[0, 1, 2, 3, 4]).gradient, sum(&[0, 1, 2, 3]).gradient);
        assert!(with.iter().all(|x| x.is_finite()));
        let moved: Vec<f64> = with.iter().zip(&without).map(|(x, y)| (x - y) / norm).collect();
        let most = 1.0 + sum_margin(5, model.chunk()).unwrap();
        assert!(length(&moved) <= most, "{} of {groups:?}", length(&moved));
        for (j, moved) in moved.iter().enumerate() {
            assert!(moved.abs() <= clipping.norm_along(j) / norm + most - 1.0, "parameter {j} of {groups:?}");
        }
        longest = longest.max(length(&moved));
        left_out += usize::from(length(&moved) == 0.0);
        cases += 1;
    }
    println!("{cases} cases: moved by {longest:.9} clip norms at most, by nothing {left_out} times");
    assert!(longest > 0.999 && (40..2000).contains(&left_out), "{longest} {left_out}");
}

#[test]
fn groups_of_other_layers_are_refused_by_name() {
    let case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let groups = Groups::by_layer(&[640, 10]).unwrap();
    let clipping = Clipping { norm: 1.0, groups: Some(&groups) };
    let (start, train) = (case.start(), &case.dataset.train);
    let error = clipped_sum(&case.model, &start, train, &[0], clipping).unwrap_err();
    assert!(error.to_string().starts_with("parameters of the layers in groups is [640, 10]"), "{error}");
    let setup = Setup { groups: Some(&groups), ..case.setup() };
    assert!(setup.check(&start).unwrap_err().to_string().starts_with("parameters of the layers in groups"));
}

/// A run continues with the groups that it began with, to the same bits, and with no others.
#[test]
fn a_run_is_not_resumed_with_other_groups() {
    let mut case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    case.model = Model::mlp(case.dataset.shape, 10, 8).unwrap();
    let layers = case.model.layers();
    let by_layer = Groups::by_layer(&layers).unwrap();
    let uneven = Groups::new(&layers, &[0, 1], &[0.6, 0.8]).unwrap();
    let options = [None, Some(&by_layer), Some(&uneven)];
    let key = || antinoise_noise::Key::from_seed_insecure(9);
    let mut refused = 0;
    for (i, of_run) in options.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::open(folder.path(), RunId::default()).unwrap();
        let setup = Setup { groups: of_run, ..case.setup() };
        let mut trainer = Trainer::new(setup, RunId::default(), case.start(), key()).unwrap();
        (0..3).for_each(|_| trainer.step().unwrap());
        trainer.save(&checkpoints).unwrap();
        for (j, other) in options.into_iter().enumerate() {
            let resumed = Trainer::resume(Setup { groups: other, ..case.setup() }, &checkpoints);
            if i == j {
                let mut resumed = resumed.unwrap();
                resumed.step().unwrap();
                trainer.step().unwrap();
                assert_eq!(resumed.parameters(), trainer.parameters());
                continue;
            }
            let error = resumed.err().expect("a refusal");
            assert!(
                error.is_bad_input() && error.to_string().contains("of another clipping"),
                "{i} {j}: {error}"
            );
            refused += 1;
        }
    }
    assert_eq!(refused, 6);
}
