//! The mechanism that this project runs, built from a claim: train's clipping and sums, noise's streams.

use antinoise_noise::{Grid, GridStream, Key, NoiseStream};
use antinoise_train::clip::clipped_sum;
use serde::Serialize;

use crate::{Claim, Data, Error, UnderAudit};

/// How sums and noise are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// Both rounded to a grid and added in whole numbers.
    Grid,
    /// In floating point.
    Plain,
}

/// A grid raises the sensitivity by at most this part.
const GRID_INCREASE: f64 = 1e-6;

/// Where the keys of runs come from.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// The operating system: a fresh key a run.
    Fresh,
    /// A number, so that an audit can be repeated.
    Insecure(u64),
}

/// The real mechanism.
#[derive(Debug)]
pub struct Real {
    claim: Claim,
    keys: Keys,
    stream: Option<Stream>,
}

#[derive(Debug)]
enum Stream {
    Plain(NoiseStream),
    Grid(GridStream),
}

impl Real {
    /// The mechanism of `claim`.
    pub fn new(claim: Claim, keys: Keys) -> Self {
        Self { claim, keys, stream: None }
    }

    fn grid(&self, dim: usize) -> Result<Option<Grid>, Error> {
        match self.claim.release {
            Release::Plain => Ok(None),
            Release::Grid => Ok(Some(Grid::for_clip_norm(self.claim.clip_norm, dim, GRID_INCREASE)?)),
        }
    }
}

/// What a clip norm becomes where it meets the noise.
pub(crate) fn widened_clip_norm(claim: &Claim, dim: usize) -> Result<f64, Error> {
    match claim.release {
        Release::Plain => Ok(claim.clip_norm),
        Release::Grid => {
            let grid = Grid::for_clip_norm(claim.clip_norm, dim, GRID_INCREASE)?;
            Ok(grid.clip_norm(claim.clip_norm, dim)?)
        }
    }
}

/// The standard deviation of seed noise where it meets the sum.
pub(crate) fn widened_noise_std(claim: &Claim, dim: usize) -> Result<f64, Error> {
    Ok(claim.noise_std * (widened_clip_norm(claim, dim)? / claim.clip_norm))
}

impl UnderAudit for Real {
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let sum = clipped_sum(&data.model, &data.parameters, &data.examples, batch, self.claim.clip_norm)?;
        let on_grid = self.grid(sum.gradient.len())?;
        Ok(sum
            .gradient
            .into_iter()
            .map(|x| match on_grid {
                Some(grid) => (f64::from(x) / grid.spacing()).round_ties_even() * grid.spacing(),
                None => f64::from(x),
            })
            .collect())
    }

    fn begin(&mut self, run: u64, dim: usize) -> Result<(), Error> {
        let mechanism = self.claim.strategy.mechanism();
        let noise_std = widened_noise_std(&self.claim, dim)?;
        let builder =
            NoiseStream::builder(mechanism.recursion()?, mechanism.steps(), dim, noise_std).threads(1);
        let key = match self.keys {
            Keys::Fresh => Key::from_os()?,
            Keys::Insecure(seed) => Key::from_seed_insecure(seed.wrapping_mul(1 << 20).wrapping_add(run)),
        };
        self.stream = Some(match self.grid(dim)? {
            None => Stream::Plain(builder.build(key)?),
            Some(grid) => Stream::Grid(builder.build_on_grid(grid, key)?),
        });
        Ok(())
    }

    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let sum = clipped_sum(&data.model, &data.parameters, &data.examples, batch, self.claim.clip_norm)?;
        let mut out = sum.gradient;
        match self.stream.as_mut().expect("a run was begun") {
            Stream::Plain(stream) => stream.add_next_into(&mut out, 1.0)?,
            Stream::Grid(stream) => stream.release(&mut out)?,
        }
        Ok(out.into_iter().map(f64::from).collect())
    }
}
