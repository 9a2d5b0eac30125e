//! The built-in mechanism, which is made from a claim: clipped sums of the train crate (if the feature
//! `train` is on) and noise streams of the noise crate.

use antinoise_noise::{Key, NoiseStream, RunId, Shard, StreamBuilder};
use tempfile::TempDir;

use crate::memo::Memo;
use crate::{AuditInputs, Claim, Error, Mechanism};

/// This project's mechanism, with one key for all of its runs.
///
/// With the feature `train` the gradients are computed, clipped and summed by `antinoise-train`; without it
/// they are clipped by definition, and only the noise and its addition are this project's own code.
#[derive(Debug)]
pub struct BuiltinMechanism {
    claim: Claim,
    seed: u64,
    sums: Memo,
    /// The stream of each process, and its builder, by which it is resumed.
    processes: Vec<(StreamBuilder, NoiseStream)>,
    noisy_sum: Vec<f32>,
}

impl BuiltinMechanism {
    /// The mechanism of `claim`, with a key that is made from `seed`: the noise of an audit need not be
    /// secret.
    pub fn new(claim: Claim, seed: u64) -> Self {
        Self { claim, seed, sums: Memo::default(), processes: Vec::new(), noisy_sum: Vec::new() }
    }
}

/// The sum of a batch's clipped gradients.
#[cfg(feature = "train")]
pub(crate) fn clipped_sum(inputs: &AuditInputs, batch: &[usize], clip_norm: f64) -> Result<Vec<f64>, Error> {
    let (model, parameters, examples) = inputs.model();
    Ok(antinoise_train::clip::clipped_sum(model, parameters, examples, batch, clip_norm)?.gradient)
}

/// The sum of a batch's clipped gradients; gradients that are not finite add nothing.
#[cfg(not(feature = "train"))]
pub(crate) fn clipped_sum(inputs: &AuditInputs, batch: &[usize], clip_norm: f64) -> Result<Vec<f64>, Error> {
    /// Keeps a clipped gradient within the clip norm in spite of rounding.
    const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;
    let mut sum = vec![0.0; inputs.dim()];
    for &example in batch {
        let gradient = inputs.gradient(example);
        let length = gradient.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        if length.is_finite() {
            let factor = (clip_norm * MARGIN / length).min(1.0);
            sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += factor * f64::from(x));
        }
    }
    Ok(sum)
}

impl Mechanism for BuiltinMechanism {
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let mut sum = clipped_sum(inputs, batch, self.claim.clip_norm)?;
        if let Some(grid) = self.claim.grid {
            sum.iter_mut().for_each(|x| *x = (*x / grid.spacing()).round_ties_even() * grid.spacing());
        }
        Ok(sum)
    }

    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error> {
        let Claim { strategy, noise_std, grid, .. } = &self.claim;
        let whole = NoiseStream::builder(strategy.recursion()?, strategy.steps(), dim, *noise_std);
        // With few coordinates, one thread is fastest.
        let whole = whole.threads(1).run(RunId::from(run));
        let key = Key::from_seed_insecure(self.seed);
        let process = |index| -> Result<_, Error> {
            let builder = whole.clone().shard(Shard::part(index, processes, dim)?);
            let stream = builder.clone().grid(*grid).build(&key)?;
            Ok((builder, stream))
        };
        self.processes = (0..processes).map(process).collect::<Result<_, _>>()?;
        self.noisy_sum = vec![0.0; dim];
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        let folder = TempDir::new()?;
        let file = |index: usize| folder.path().join(index.to_string());
        for (index, (_, stream)) in self.processes.iter().enumerate() {
            stream.save(file(index))?;
        }
        let builders: Vec<StreamBuilder> = self.processes.drain(..).map(|(builder, _)| builder).collect();
        for (index, builder) in builders.into_iter().enumerate() {
            let stream = builder.clone().grid(self.claim.grid).resume(file(index))?;
            self.processes.push((builder, stream));
        }
        Ok(())
    }

    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let sum = self.sums.of(inputs, batch, || clipped_sum(inputs, batch, self.claim.clip_norm))?;
        let (mut sum, mut noisy_sum) = (&sum[..], &mut self.noisy_sum[..]);
        for (_, stream) in &mut self.processes {
            let (own, others) = sum.split_at(stream.len());
            let (filled, rest) = noisy_sum.split_at_mut(stream.len());
            stream.add_to_sum(own, filled)?;
            (sum, noisy_sum) = (others, rest);
        }
        Ok(self.noisy_sum.iter().copied().map(f64::from).collect())
    }
}
