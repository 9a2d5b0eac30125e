//! The mechanism that this project runs, built from a claim: train's clipping and sums, noise's streams.

use antinoise_noise::{AnyStream, Key, NoiseStream, RunId, StreamBuilder};
use antinoise_train::clip::clipped_sum;

use crate::{Claim, Data, Error, UnderAudit};

/// The real mechanism, one key for all of its runs.
#[derive(Debug)]
pub struct Real {
    claim: Claim,
    seed: u64,
    stream: Option<AnyStream>,
}

impl Real {
    /// The mechanism of `claim`, its key made from `seed`: the noise of an audit protects nothing.
    pub fn new(claim: Claim, seed: u64) -> Self {
        Self { claim, seed, stream: None }
    }

    fn builder(&self, run: u64, dim: usize) -> Result<StreamBuilder, Error> {
        let Claim { strategy, noise_std, .. } = &self.claim;
        let builder = NoiseStream::builder(strategy.recursion()?, strategy.steps(), dim, *noise_std);
        // So few coordinates that threads would only wait for each other.
        Ok(builder.threads(1).run(RunId::from(run)))
    }

    fn clipped(&self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        Ok(clipped_sum(&data.model, &data.parameters, &data.examples, batch, self.claim.clip_norm)?.gradient)
    }
}

impl UnderAudit for Real {
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let mut sum = self.clipped(data, batch)?;
        if let Some(grid) = self.claim.grid {
            sum.iter_mut().for_each(|x| *x = (*x / grid.spacing()).round_ties_even() * grid.spacing());
        }
        Ok(sum)
    }

    fn begin(&mut self, run: u64, dim: usize) -> Result<(), Error> {
        let (builder, key) = (self.builder(run, dim)?, Key::from_seed_insecure(self.seed));
        self.stream = Some(builder.build_any(self.claim.grid, key)?);
        Ok(())
    }

    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let sum = self.clipped(data, batch)?;
        let mut out = vec![0f32; sum.len()];
        self.stream.as_mut().expect("a run was begun").release(&sum, &mut out)?;
        Ok(out.into_iter().map(f64::from).collect())
    }
}
