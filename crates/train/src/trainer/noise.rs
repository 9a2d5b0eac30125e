//! The noise that a plan's sums are released with.

use std::path::Path;

use antinoise_noise::{Grid, GridStream, Key, KeyedRng, NoiseStream, Purpose, StreamBuilder};

/// What makes a run's noise, anew or from a checkpoint.
pub(super) struct NoiseBuilder {
    pub(super) builder: StreamBuilder,
    /// The plan's grid; without one, noise and sums are added in floating point.
    pub(super) grid: Option<Grid>,
}

/// A run's noise.
pub(super) enum Noise {
    Grid(GridStream),
    Plain(NoiseStream),
}

impl NoiseBuilder {
    pub(super) fn build(self, key: Key) -> antinoise_noise::Result<Noise> {
        match self.grid {
            Some(grid) => self.builder.build_on_grid(grid, key).map(Noise::Grid),
            None => self.builder.build(key).map(Noise::Plain),
        }
    }

    pub(super) fn resume(self, path: impl AsRef<Path>) -> antinoise_noise::Result<Noise> {
        match self.grid {
            Some(grid) => self.builder.resume_on_grid(grid, path).map(Noise::Grid),
            None => self.builder.resume(path).map(Noise::Plain),
        }
    }
}

impl Noise {
    /// The release of `sum` at the next step.
    pub(super) fn release(&mut self, sum: &[f64]) -> antinoise_noise::Result<Vec<f32>> {
        let mut out = vec![0.0; sum.len()];
        match self {
            Self::Grid(stream) => stream.release(sum, &mut out)?,
            Self::Plain(stream) => {
                stream.next_into(&mut out)?;
                out.iter_mut().zip(sum).for_each(|(noise, sum)| *noise = (sum + f64::from(*noise)) as f32);
            }
        }
        Ok(out)
    }

    pub(super) fn step(&self) -> usize {
        match self {
            Self::Grid(stream) => stream.step(),
            Self::Plain(stream) => stream.step(),
        }
    }

    pub(super) fn commitment(&self) -> [u8; 32] {
        match self {
            Self::Grid(stream) => stream.commitment(),
            Self::Plain(stream) => stream.commitment(),
        }
    }

    pub(super) fn save(&self, path: impl AsRef<Path>) -> antinoise_noise::Result<()> {
        match self {
            Self::Grid(stream) => stream.save(path),
            Self::Plain(stream) => stream.save(path),
        }
    }

    pub(super) fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        match self {
            Self::Grid(stream) => stream.rng(purpose, step),
            Self::Plain(stream) => stream.rng(purpose, step),
        }
    }
}
