//! The maximum change of the clipped sum by one example, whatever the other examples are.
//!
//! A sum in single precision has unbounded sensitivity: slightly above a power of two, additions of half a
//! unit in the last place of the numbers below it are lost; slightly below, they are not. So *base terms*
//! bring one coordinate to a power of two, and many *small terms* of about half a unit each follow. A single
//! base term then decides whether all small terms are lost.

use crate::canary_inputs::CanaryInputs;
use crate::{AuditInputs, Error, Mechanism};

/// Number of features of the linear model.
const FEATURES: usize = 2;
/// The feature that all examples share, in clip norms: so large that base terms are clipped.
const LARGE: f64 = 16.0;
/// Base-2 logarithm of the maximum number of small terms that a mechanism may add up before it adds them to
/// the sum.
const MOST_SMALL_TERMS_AT_ONCE: u32 = 10;

/// Returns the largest change of a sum by one example that was found, in l2 norm.
pub(crate) fn largest_movement(
    mechanism: &mut dyn Mechanism,
    canaries: &CanaryInputs,
    clip_norm: f64,
    examples: usize,
) -> Result<f64, Error> {
    let found = [
        units(mechanism, canaries)?,
        extreme(mechanism, clip_norm)?,
        small_terms(mechanism, clip_norm, examples)?,
    ];
    Ok(found.into_iter().fold(0.0, worse))
}

/// The larger of two numbers; NaN counts as larger than any number.
fn worse(x: f64, y: f64) -> f64 {
    if x >= y || x.is_nan() { x } else { y }
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

/// The largest change of a sum when one of the first units joins the other examples.
fn units(mechanism: &mut dyn Mechanism, canaries: &CanaryInputs) -> Result<f64, Error> {
    let mut batch = canaries.others();
    let without = mechanism.sum(&canaries.inputs, &batch)?;
    let mut largest = 0.0;
    for example in 0..canaries.others()[0].min(8) {
        batch.push(example);
        largest = worse(largest, distance(&mechanism.sum(&canaries.inputs, &batch)?, &without));
        batch.pop();
    }
    Ok(largest)
}

fn linear(parameters: Vec<f32>, features: Vec<f32>, labels: Vec<u32>) -> Result<AuditInputs, Error> {
    AuditInputs::new(FEATURES, parameters, features, labels)
}

/// The largest change of a sum when an example with extreme features (huge, tiny, infinite, NaN) joins two
/// ordinary ones.
fn extreme(mechanism: &mut dyn Mechanism, clip_norm: f64) -> Result<f64, Error> {
    let tame = clip_norm as f32;
    let extreme =
        [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e19, 1e-30, 0.0];
    let mut features = vec![tame, -tame, 0.1 * tame, 0.0];
    features.extend(extreme.iter().flat_map(|&x| [x, tame]));
    let labels = (0..features.len() as u32 / FEATURES as u32).map(|i| i % 2).collect();
    let inputs = linear(vec![0.0; 2 * (FEATURES + 1)], features, labels)?;
    let without = mechanism.sum(&inputs, &[0, 1])?;
    let mut largest = 0.0;
    for example in 2..inputs.len() {
        largest = worse(largest, distance(&mechanism.sum(&inputs, &[0, 1, example])?, &without));
    }
    Ok(largest)
}

/// The largest change of a sum of base terms, then small terms, when one base term is left out.
fn small_terms(mechanism: &mut dyn Mechanism, clip_norm: f64, examples: usize) -> Result<f64, Error> {
    let large = LARGE * clip_norm.max(1.0);
    // Half of the batch are base terms. Whether small terms are lost is decided at the largest power of two
    // below the sum of the base terms.
    let fill = examples / 2;
    let inputs = base_and_small_terms(examples, fill, large, 0.0)?;
    let reached = |mechanism: &mut dyn Mechanism, base: usize| -> Result<f64, Error> {
        Ok(mechanism.sum(&inputs, &(0..base).collect::<Vec<_>>())?[0].abs())
    };
    let power = reached(mechanism, fill)?.log2().floor();
    let (mut below, mut above) = (0, fill);
    while above - below > 1 {
        let middle = (below + above) / 2;
        if reached(mechanism, middle)? < power.exp2() { below = middle } else { above = middle }
    }
    let mut largest = 0.0;
    for halvings in 0..=MOST_SMALL_TERMS_AT_ONCE {
        // 0.4 units in the last place of numbers above the power of two: small terms are lost above it, and
        // rounded up below it.
        let small = 0.4 * (power - 23.0 - f64::from(halvings)).exp2();
        let inputs = base_and_small_terms(examples, above, large, small / large)?;
        let all: Vec<usize> = (0..examples).collect();
        let (with, without) = (mechanism.sum(&inputs, &all)?, mechanism.sum(&inputs, &all[1..])?);
        largest = worse(largest, distance(&with, &without));
    }
    Ok(largest)
}

/// `base` examples of class 0, the rest of class 1, with a model that gives class 0 the probability `share`:
/// a small term moves the first coordinate up by share * `large`, a base term moves it down by the clipped
/// -`large`.
fn base_and_small_terms(examples: usize, base: usize, large: f64, share: f64) -> Result<AuditInputs, Error> {
    let mut parameters = vec![0.0; 2 * (FEATURES + 1)];
    let bias = if share > 0.0 { ((1.0 - share) / share).ln() } else { 80.0 };
    *parameters.last_mut().expect("a model has parameters") = bias as f32;
    let features = (0..examples).flat_map(|_| [large as f32, 0.0]).collect();
    let labels = (0..examples).map(|i| u32::from(i >= base)).collect();
    linear(parameters, features, labels)
}
