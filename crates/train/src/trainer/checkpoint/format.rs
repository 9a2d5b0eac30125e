//! The bytes of a training file: parameters, moments and history as safetensors.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};

use crate::trainer::History;

/// The contents of a training file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Training {
    /// The identity of the run.
    pub metadata: HashMap<String, String>,
    pub parameters: Vec<f32>,
    /// The moments of the optimizer; empty after the last step.
    pub moments: (Vec<f32>, Vec<f32>),
    pub history: History,
}

/// The bytes of a training file.
pub(super) fn to_bytes(
    metadata: HashMap<String, String>,
    parameters: &[f32],
    moments: (&[f32], &[f32]),
    history: &History,
) -> Result<Vec<u8>, SafeTensorError> {
    let (steps, accuracies): (Vec<f64>, Vec<f64>) =
        history.accuracies.iter().map(|&(step, accuracy)| (step as f64, accuracy)).unzip();
    let singles = [("parameters", parameters), ("first", moments.0), ("second", moments.1)]
        .map(|(name, values)| (name, Dtype::F32, bytes(values, f32::to_le_bytes)));
    let doubles = [
        ("losses", &history.losses[..]),
        ("clipped_shares", &history.clipped_shares),
        ("tested_steps", &steps),
        ("accuracies", &accuracies),
        ("seconds", &[history.seconds, history.seconds_in_noise]),
    ]
    .map(|(name, values)| (name, Dtype::F64, bytes(values, f64::to_le_bytes)));
    let views = singles.iter().chain(&doubles).map(|(name, dtype, bytes)| {
        let length = bytes.len() / (dtype.bitsize() / 8);
        Ok((*name, TensorView::new(*dtype, vec![length], bytes)?))
    });
    let views = views.collect::<Result<Vec<_>, SafeTensorError>>()?;
    safetensors::serialize(views, Some(metadata))
}

/// Parses a training file; the error says what is wrong with it.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Training, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let tensors = Tensors(SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?);
    Ok(Training {
        metadata: header.metadata().clone().unwrap_or_default(),
        parameters: tensors.singles("parameters")?,
        moments: (tensors.singles("first")?, tensors.singles("second")?),
        history: tensors.history()?,
    })
}

struct Tensors<'a>(SafeTensors<'a>);

impl Tensors<'_> {
    fn numbers<const SIZE: usize, T>(
        &self,
        name: &str,
        dtype: Dtype,
        number: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, String> {
        let tensor = self.0.tensor(name).map_err(|error| error.to_string())?;
        if tensor.dtype() != dtype {
            return Err(format!("{name} as {:?}", tensor.dtype()));
        }
        let words = tensor.data().chunks_exact(SIZE);
        Ok(words.map(|word| number(word.try_into().expect("chunks of that size"))).collect())
    }

    fn singles(&self, name: &str) -> Result<Vec<f32>, String> {
        self.numbers(name, Dtype::F32, f32::from_le_bytes)
    }

    fn history(&self) -> Result<History, String> {
        let doubles = |name| self.numbers(name, Dtype::F64, f64::from_le_bytes);
        let [seconds, seconds_in_noise] =
            doubles("seconds")?.try_into().map_err(|_| "without its seconds".to_owned())?;
        let steps = doubles("tested_steps")?.into_iter().map(|step| step as usize);
        Ok(History {
            losses: doubles("losses")?,
            clipped_shares: doubles("clipped_shares")?,
            accuracies: steps.zip(doubles("accuracies")?).collect(),
            seconds,
            seconds_in_noise,
        })
    }
}

fn bytes<const SIZE: usize, T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; SIZE]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}
