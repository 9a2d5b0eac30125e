//! An assumption of the privacy proof outside of arithmetic: an example's captured numbers do not depend on
//! other examples.

use antinoise_input::InvalidParameter;

use super::*;
use crate::data::ImageShape;

const SHAPE: ImageShape = ImageShape { height: 8, width: 8, channels: 1 };
const CLASSES: usize = 10;

/// Pseudo-random numbers in [0, 1).
fn numbers(count: usize, mut state: u64) -> Vec<f32> {
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    (0..count).map(|_| next()).collect()
}

/// Half of the examples are plain images, half have the most hostile values of single precision.
fn examples(count: usize, shape: ImageShape) -> Examples {
    let hostile = [f32::INFINITY, f32::NAN, f32::MAX, f32::NEG_INFINITY, 1e-45, -3e38, 1e30];
    let mut features = numbers(count * shape.len(), 7);
    for (i, row) in features.chunks_exact_mut(shape.len()).enumerate().skip(count / 2) {
        match hostile[i % hostile.len()] {
            whole if i % 2 == 0 => row.fill(whole),
            some => row.iter_mut().step_by(5).for_each(|x| *x = some),
        }
    }
    let labels = (0..count as u32).map(|i| i * 7 % CLASSES as u32).collect();
    Examples::new(features, labels, shape.len()).unwrap()
}

/// The bits of every number of each place in a chunk: loss, X, G and dW of each layer, norm and factor.
fn bits(pass: Pass, chunk: &[usize]) -> Vec<Vec<u64>> {
    let size = pass.model.chunk();
    let (losses, captured) = pass.capture(chunk);
    let layers: Vec<_> = captured.iter().map(LayerGradients::new).collect();
    let norms = norms_squared(&layers, Clip::new(1.0).unwrap(), size);
    let mut bits: Vec<Vec<u64>> =
        losses.iter().zip(&norms).map(|(loss, norm)| vec![key(f64::from(*loss)), key(*norm)]).collect();
    let mut push = |values: &[f32]| {
        for (bits, part) in bits.iter_mut().zip(values.chunks_exact(values.len() / size)) {
            bits.extend(part.iter().map(|&x| key(f64::from(x))));
        }
    };
    for (captured, layer) in captured.iter().zip(&layers) {
        push(&captured.input);
        push(&captured.output_gradient);
        if let LayerGradients::Explicit { weights, biases, .. } = layer {
            push(weights);
            push(biases);
        }
    }
    bits
}

/// All NaN count as equal: an example with a NaN adds nothing.
fn key(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

#[test]
fn an_examples_gradient_is_the_same_at_each_place_beside_any_others() {
    let large = ImageShape { height: 28, width: 28, channels: 1 };
    for model in [
        Model::logistic(SHAPE, CLASSES).unwrap(),
        Model::mlp(SHAPE, CLASSES, 24).unwrap(),
        Model::cnn(SHAPE, CLASSES).unwrap(),
        Model::cnn(SHAPE, CLASSES).unwrap().with_chunk(7).unwrap(),
        Model::cnn(large, CLASSES).unwrap(),
        Model::logistic(ImageShape { height: 64, ..large }, 2).unwrap(),
    ] {
        let chunk = model.chunk();
        let all = Examples::len;
        let mut examples = examples(3 * chunk, model.shape());
        if model.classes() == 2 {
            let labels = examples.labels().iter().map(|label| label % 2).collect();
            let features = (0..all(&examples)).flat_map(|i| examples.features(i).to_vec()).collect();
            examples = Examples::new(features, labels, model.shape().len()).unwrap();
        }
        let parameters: Vec<f32> = numbers(model.parameters(), 3).iter().map(|x| (x - 0.5) * 0.6).collect();
        let pass = Pass { model: &model, parameters: &parameters, examples: &examples, clip: None };
        let mut known: Vec<Option<Vec<u64>>> = vec![None; examples.len()];
        let mut order: Vec<usize> = (0..examples.len()).collect();
        for round in 0..12u64 {
            let keys = numbers(order.len(), round);
            order.sort_by(|&i, &j| keys[i].total_cmp(&keys[j]));
            // Full chunks, and one that is padded.
            let cut = 1 + (round as usize * 5) % chunk;
            for batch in order[..order.len() - cut].chunks(chunk).chain([&order[order.len() - cut..]]) {
                for (&i, bits) in batch.iter().zip(bits(pass, batch)) {
                    let before = known[i].get_or_insert_with(|| bits.clone());
                    let differs = before.iter().zip(&bits).position(|(a, b)| a != b);
                    assert_eq!(differs, None, "{} in chunks of {chunk}: example {i}", model.name());
                }
            }
        }
        assert!(known.iter().all(Option::is_some));
    }
}

#[test]
fn factors_keep_the_clip_norm_over_the_whole_range() {
    for norm in [1e-45, 1e-20, 0.3, 1.0, 7.0, 1e38, 1e80] {
        for clip_norm in [1e-300, 1e-6, 0.5, 1.0, 1e9, 1e300, f64::MAX] {
            let clip = Clip::new(clip_norm).unwrap();
            let mut factor = [norm * norm];
            assert_eq!(clip.factors(&mut factor, 1, 1), usize::from(norm > clip_norm));
            let [factor] = factor;
            assert!(factor.is_normal() && factor * norm * clip.unit <= clip_norm);
            assert!(factor * norm * clip.unit >= norm.min(clip_norm) * (1.0 - 1e-5), "{norm} {clip_norm}");
        }
        for none in [f64::NAN, f64::INFINITY] {
            let mut factor = [none];
            assert_eq!(Clip::new(1.0).unwrap().factors(&mut factor, 1, 1), 1);
            assert_eq!(factor, [0.0]);
        }
    }
    assert!(Clip::new(1e-302).is_err() && Clip::new(f64::INFINITY).is_err());
}

/// 2 m gamma_k of the proof, with the additions of a term counted one by one.
#[test]
fn the_margin_of_a_sum_is_that_of_the_proof() {
    let mut cases = 0;
    for examples in (1_usize..200).chain([1000, 65_536, 1_000_003]) {
        for chunk in [1, 2, 3, 7, 20, 64, 1000] {
            let (mut runs, mut halvings): (usize, usize) = (examples.div_ceil(chunk), 0);
            while runs > 1 {
                (runs, halvings) = (runs.div_ceil(2), halvings + 1);
            }
            let k = (chunk + halvings + 1) as f64 * 2f64.powi(-53);
            let wanted = 2.0 * examples as f64 * k / (1.0 - k);
            let found = sum_margin(examples, chunk).unwrap();
            let excess = (found / wanted - 1.0) / f64::EPSILON;
            assert!((12.0..20.0).contains(&excess), "{examples} in {chunk}: {found}, {excess}");
            cases += 1;
        }
    }
    assert_eq!(cases, 202 * 7);
}

/// Explicit vectors: their sum, losses and clipped units are those of the definition.
#[test]
fn sums_of_vectors_are_those_of_the_definition() {
    let vectors: Vec<Vec<f32>> = (0..23).map(|unit| numbers(6, unit + 1)).collect();
    let units: Vec<usize> = (0..23).collect();
    for clip_norm in [0.1, 1.2, 100.0] {
        let each = |_: &mut (), unit: usize, add: &mut dyn FnMut(&[f32], f64)| {
            add(&vectors[unit], unit as f64);
            Ok::<(), InvalidParameter>(())
        };
        let sum = sum_clipped_vectors(&units, 4, 6, Some(clip_norm.into()), || (), each).unwrap();
        let (mut wanted, mut clipped) = ([0.0; 6], 0);
        for vector in &vectors {
            let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
            clipped += usize::from(length > clip_norm);
            wanted
                .iter_mut()
                .zip(vector)
                .for_each(|(sum, &x)| *sum += f64::from(x) * (clip_norm / length).min(1.0));
        }
        assert_eq!((sum.clipped, sum.loss), (clipped, 253.0));
        assert!(clip_norm > 1.0 || clipped > 0);
        for (found, wanted) in sum.gradient.iter().zip(wanted) {
            assert!((found - wanted).abs() <= 2e-6 * wanted.abs() && wanted > 0.0, "{found}, {wanted}");
        }
    }
}
