//! A folder from which a run goes on: `noise.safetensors` (key and noise state) and `training.safetensors`
//! (everything else), both readable by their owner alone.
//!
//! Whoever reads them knows the noise and the unprotected history: they must not be published.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use antinoise_input::InvalidParameter;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use sha2::{Digest, Sha256};

use super::{History, Setup, Trainer};
use crate::Error;
use crate::data::Examples;
use crate::optimizer::Optimizer;

const NOISE: &str = "noise.safetensors";
const TRAINING: &str = "training.safetensors";
const VERSION: &str = "antinoise-train 1";

impl<'a> Trainer<'a> {
    /// Writes a checkpoint into `folder`, which is made if absent; each file is replaced whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        self.noise.save(folder.join(NOISE))?;
        // The noise comes first: a run that dies between the two resumes from noise one checkpoint ahead of the
        // parameters, and makes the noise of the steps between once more, for the same gradients.
        let (moments, history) = (self.optimizer.moments(), &self.history);
        let (steps, accuracies): (Vec<f64>, Vec<f64>) =
            history.accuracies.iter().map(|&(step, accuracy)| (step as f64, accuracy)).unzip();
        let singles = [("parameters", &self.parameters[..]), ("first", moments.0), ("second", moments.1)]
            .map(|(name, values)| (name, Dtype::F32, bytes(values, |x: f32| x.to_le_bytes())));
        let doubles = [
            ("losses", &history.losses[..]),
            ("clipped_shares", &history.clipped_shares),
            ("tested_steps", &steps),
            ("accuracies", &accuracies),
            ("seconds", &[history.seconds, history.seconds_in_noise]),
        ]
        .map(|(name, values)| (name, Dtype::F64, bytes(values, |x: f64| x.to_le_bytes())));
        let mut metadata = self.setup.identity();
        metadata.insert("step".into(), self.step_count().to_string());
        let path = folder.join(TRAINING);
        let views = singles.iter().chain(&doubles).map(|(name, dtype, bytes)| {
            let length = bytes.len() / (dtype.bitsize() / 8);
            Ok((*name, TensorView::new(*dtype, vec![length], bytes)?))
        });
        let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
        let whole = views.and_then(|views| safetensors::serialize(views, Some(metadata)));
        let whole = whole.map_err(|error| Error::file(&path)(std::io::Error::other(error)))?;
        write_private(&path, &whole)
    }

    /// The run whose checkpoint is in `folder`; it goes on as if it had not been interrupted.
    ///
    /// # Errors
    /// When there is no checkpoint in `folder`, it is not whole, or it is of another plan, model, data set or
    /// optimiser.
    pub fn resume(setup: Setup<'a>, folder: &Path) -> Result<Self, Error> {
        let path = folder.join(TRAINING);
        let whole = std::fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refuse(&path, "absent", "a file that a run has saved"),
            _ => Error::file(&path)(error),
        })?;
        let saved = Saved::read(&whole).map_err(|reason| refuse(&path, reason, "a whole checkpoint"))?;
        for (what, identity) in setup.identity() {
            if saved.metadata.get(&what) != Some(&identity) {
                return Err(refuse(&path, format!("of another {what}"), format!("of the run's own {what}")));
            }
        }
        let broken = |reason| refuse(&path, reason, "a whole checkpoint");
        let parameters = saved.singles("parameters").map_err(broken)?;
        setup.check(&parameters)?;
        let step = saved.metadata.get("step").and_then(|step| step.parse().ok());
        let step = step.filter(|&step| step <= setup.plan.steps);
        let step = step.ok_or_else(|| broken("without its step".into()))?;
        let moments = (saved.singles("first").map_err(broken)?, saved.singles("second").map_err(broken)?);
        let optimizer = Optimizer::resume(setup.rule, parameters.len(), step as u64, moments)?;
        let history = saved.history().map_err(broken)?;
        let mut noise = setup.noise()?.resume(folder.join(NOISE))?;
        if noise.step() != step {
            noise.seek(step)?;
        }
        let batches = setup.batches(&noise)?;
        Ok(Self { setup, batches, noise, optimizer, parameters, history })
    }
}

impl Setup<'_> {
    /// What a checkpoint must share with the run that resumes it.
    fn identity(&self) -> HashMap<String, String> {
        let digest = |parts: &[&Examples]| {
            let mut digest = Sha256::new();
            parts.iter().for_each(|examples| examples.digest(&mut digest));
            digest.finalize()
        };
        let dataset = digest(&[&self.dataset.train, &self.dataset.test]);
        let identity = [
            ("version", VERSION.to_owned()),
            ("plan", hex(&self.plan.digest())),
            ("model", hex(&Sha256::digest(format!("{:?}", self.model)))),
            ("optimizer", format!("{:?}", self.rule)),
            ("data set", hex(&dataset)),
        ];
        identity.map(|(what, identity)| (what.to_owned(), identity)).into()
    }
}

struct Saved<'a> {
    tensors: SafeTensors<'a>,
    metadata: HashMap<String, String>,
}

impl<'a> Saved<'a> {
    fn read(whole: &'a [u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(whole).map_err(|error| error.to_string())?;
        let tensors = SafeTensors::deserialize(whole).map_err(|error| error.to_string())?;
        Ok(Self { tensors, metadata: header.metadata().clone().unwrap_or_default() })
    }

    fn numbers<const SIZE: usize, T>(
        &self,
        name: &str,
        dtype: Dtype,
        number: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, String> {
        let tensor = self.tensors.tensor(name).map_err(|error| error.to_string())?;
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_private(path: &Path, contents: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        // Temporary files are readable by their owner alone, and stay so under their new name.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(Error::file(path))
}

fn refuse(path: &Path, got: impl std::fmt::Display, must_be: impl Into<String>) -> Error {
    InvalidParameter::new(format!("checkpoint {}", path.display()), got, must_be).into()
}
