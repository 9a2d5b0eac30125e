//! What tests of this folder share.

use super::definition::Probe;
use crate::data::{self, Dataset};
use crate::model::Model;
use crate::optimizer::UpdateRule;

pub(super) fn draws(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(super) fn probe<'a>(model: &'a Model, dataset: &'a Dataset) -> Probe<'a> {
    Probe {
        model,
        dataset,
        optimizer: UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.5 }.into(),
        batch_size: 96,
        steps: 45,
        clip_norm: 1.0,
        noise_multiplier: 4.0,
        repeats: 3,
        seed: 5,
    }
}

pub(super) fn logistic_digits() -> (Model, Dataset) {
    let dataset = data::digits();
    (Model::logistic(dataset.shape, dataset.classes).unwrap(), dataset)
}
