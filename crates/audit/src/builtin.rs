//! The real mechanism, built from a claim: clipping and sums of the train crate, streams of the noise crate.

use antinoise_noise::{Key, NoiseStream, RunId, Shard, StreamBuilder};
use antinoise_train::clip::clipped_sum;
use tempfile::TempDir;

use crate::memo::Memo;
use crate::{Claim, Data, Error, UnderAudit};

/// The real mechanism, with one key for all of its runs.
#[derive(Debug)]
pub struct Real {
    claim: Claim,
    seed: u64,
    sums: Memo,
    /// Each process's stream, and its builder for resumption.
    processes: Vec<(StreamBuilder, NoiseStream)>,
    released: Vec<f32>,
}

impl Real {
    /// The mechanism of `claim`, with a key made from `seed`: the noise of an audit protects nothing.
    pub fn new(claim: Claim, seed: u64) -> Self {
        Self { claim, seed, sums: Memo::default(), processes: Vec::new(), released: Vec::new() }
    }
}

fn clipped(clip_norm: f64, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
    Ok(clipped_sum(data.model(), data.parameters(), data.examples(), batch, clip_norm)?.gradient)
}

impl UnderAudit for Real {
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let mut sum = clipped(self.claim.clip_norm, data, batch)?;
        if let Some(grid) = self.claim.grid {
            sum.iter_mut().for_each(|x| *x = (*x / grid.spacing()).round_ties_even() * grid.spacing());
        }
        Ok(sum)
    }

    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error> {
        let Claim { strategy, noise_std, grid, .. } = &self.claim;
        let whole = NoiseStream::builder(strategy.recursion()?, strategy.steps(), dim, *noise_std);
        // With so few coordinates, threads would only wait for each other.
        let whole = whole.threads(1).run(RunId::from(run));
        let key = Key::from_seed_insecure(self.seed);
        let process = |index| -> Result<_, Error> {
            let builder = whole.clone().shard(Shard::part(index, processes, dim)?);
            let stream = builder.clone().grid(*grid).build(&key)?;
            Ok((builder, stream))
        };
        self.processes = (0..processes).map(process).collect::<Result<_, _>>()?;
        self.released = vec![0.0; dim];
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

    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let sum = self.sums.of(data, batch, || clipped(self.claim.clip_norm, data, batch))?;
        let (mut sum, mut released) = (&sum[..], &mut self.released[..]);
        for (_, stream) in &mut self.processes {
            let (own, others) = sum.split_at(stream.len());
            let (filled, rest) = released.split_at_mut(stream.len());
            stream.release(own, filled)?;
            (sum, released) = (others, rest);
        }
        Ok(self.released.iter().copied().map(f64::from).collect())
    }
}
