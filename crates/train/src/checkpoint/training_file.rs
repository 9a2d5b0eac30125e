//! The training file of a checkpoint, bound to its manifest and its run: parameters, moments and history as
//! safetensors.

use std::collections::HashMap;
use std::path::Path;

use antinoise_input::InvalidParameter;
use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};

use super::files::{self, mismatch};
use super::folder::Checkpoints;
use super::identity::{Identity, PROGRAM};
use super::manifest::Manifest;
use crate::Error;

/// The measurements of a run.
///
/// Losses and fractions of clipped examples are computed from private examples without noise: the privacy
/// statement does not cover them. Show them only to people who may see the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Mean training loss of each step's batch, in nats; NaN for an empty batch.
    pub losses: Vec<f64>,
    /// Share of each step's batch that was clipped; NaN for an empty batch.
    pub clipped_shares: Vec<f64>,
    /// (steps done, test accuracy), in the order of steps.
    pub accuracies: Vec<(usize, f64)>,
    /// Seconds spent in steps and tests, over all resumptions.
    pub seconds: f64,
    /// Seconds of these spent in making and adding noise.
    pub seconds_in_noise: f64,
}

/// The results of a finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The parameters after the last step, which the privacy statement covers.
    pub parameters: Vec<f32>,
    /// The measurements of the run.
    pub history: History,
    /// The date of the last step, in UTC, such as 2026-01-31.
    pub day: String,
}

impl Finished {
    /// Reads the results of the finished run with this identity in `checkpoints`; its key was wiped.
    ///
    /// # Errors
    /// If there is no finished run, its files are damaged, or it belongs to another plan, model, data set or
    /// optimizer.
    pub fn read(identity: &Identity, checkpoints: &Checkpoints) -> Result<Self, Error> {
        let manifest = checkpoints.manifest()?;
        let finished = manifest.and_then(|manifest| Some((manifest.finished.clone()?, manifest)));
        let Some((day, manifest)) = finished else {
            return Err(mismatch(&checkpoints.training_file(0), "of no finished run"));
        };
        let Training { parameters, history, .. } = read_training(identity, checkpoints, &manifest)?;
        Ok(Self { parameters, history, day })
    }
}

/// The entries of the manifest that the training file repeats.
fn metadata(manifest: &Manifest) -> [(&'static str, String); 2] {
    [("step", manifest.step.to_string()), ("commitment", manifest.commitment.clone())]
}

/// The contents of the training file of `manifest`, if it belongs to this run.
pub(super) fn read_training(
    identity: &Identity,
    checkpoints: &Checkpoints,
    manifest: &Manifest,
) -> Result<Training, Error> {
    checkpoints.check_files(manifest)?;
    let path = checkpoints.training_file(manifest.save);
    let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    let training = from_bytes(&bytes).map_err(|reason| mismatch(&path, reason))?;
    for (what, mark) in identity.parts().chain(metadata(manifest)) {
        // The version does not matter to a finished run, which makes no more noise.
        let matters = what != PROGRAM || manifest.noise.is_some();
        if matters && training.metadata.get(what) != Some(&mark) {
            return Err(mismatch_of(&path, what));
        }
    }
    let is_known = |what: &str| identity.parts().chain(metadata(manifest)).any(|(known, _)| known == what);
    match training.metadata.keys().find(|what| !is_known(what)) {
        Some(what) => Err(mismatch_of(&path, what)),
        None => Ok(training),
    }
}

/// The error of resuming a run with another plan, model, optimizer, data set or program.
fn mismatch_of(path: &Path, what: &str) -> Error {
    let must_be = format!(
        "of the {what} given now: put that back as it was when the run began, or train in another folder, and count \
         the models that this run may have published"
    );
    InvalidParameter::new(format!("checkpoint {}", path.display()), format!("of another {what}"), must_be)
        .into()
}

/// Writes the training file of `manifest`: parameters, moments and history.
pub(super) fn write_training(
    identity: &Identity,
    checkpoints: &Checkpoints,
    manifest: &Manifest,
    (parameters, moments, history): (&[f32], (&[f32], &[f32]), &History),
) -> Result<(), Error> {
    let path = checkpoints.training_file(manifest.save);
    let entries =
        identity.parts().chain(metadata(manifest)).map(|(what, mark)| (what.to_owned(), mark)).collect();
    let bytes = to_bytes(entries, parameters, moments, history)
        .map_err(|error| Error::io(&path)(std::io::Error::other(error)))?;
    files::write(&path, &bytes)
}

/// The contents of a training file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Training {
    /// The identity of the run.
    pub metadata: HashMap<String, String>,
    pub parameters: Vec<f32>,
    /// The moments of the optimizer; empty after the last step.
    pub moments: (Vec<f32>, Vec<f32>),
    pub history: History,
}

/// The bytes of a training file.
fn to_bytes(
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
fn from_bytes(bytes: &[u8]) -> Result<Training, String> {
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
