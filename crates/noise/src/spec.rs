//! The specification of a stream: everything that determines its outputs, apart from key and run.

use antinoise_mechanism::{Grid, Recursion};

use crate::key::{BYTES, Description};
use crate::{Cipher, Shard};

/// The specification of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) recursion: Recursion,
    pub(crate) steps: usize,
    pub(crate) dim: usize,
    pub(crate) noise_std: f64,
    pub(crate) shard: Shard,
    pub(crate) cipher: Cipher,
    /// The grid of the noisy sums; `None` for a plain stream.
    pub(crate) grid: Option<Grid>,
}

impl Spec {
    /// Returns a digest of everything that determines the noise, apart from key and run. The shard is not
    /// part of it.
    pub(crate) fn describe(&self) -> [u8; BYTES] {
        let Self { recursion, steps, dim, noise_std, shard: _, cipher, grid } = self;
        let mut description = Description::new("antinoise stream 1");
        // A spacing of 0 means no grid, since grids have a positive spacing.
        let spacing = grid.map_or(0.0, Grid::spacing);
        describe_recursion(recursion, &mut description).count(*steps).count(*dim).number(*noise_std);
        description.number(spacing).text(cipher.name());
        description.digest()
    }
}

fn describe_recursion<'a>(recursion: &Recursion, to: &'a mut Description) -> &'a mut Description {
    match recursion {
        Recursion::Independent => to.text("independent"),
        Recursion::MovingAverage { taps } => to.text("moving-average").numbers(taps),
        Recursion::AutoRegressive { taps } => to.text("auto-regressive").numbers(taps),
        Recursion::Blt { scale, decay } => to.text("blt").numbers(scale).numbers(decay),
        Recursion::VaryingBlt { decay, reads, writes } => {
            to.text("varying-blt").numbers(decay).numbers(reads).numbers(writes)
        }
        Recursion::Rational { gain, feedback } => to.text("rational").numbers(gain).numbers(feedback),
        Recursion::Banded { bands, rows } => to.text("banded").count(*bands).numbers(rows),
        Recursion::Circulant { root } => to.text("circulant").numbers(root),
        Recursion::SeedCombination { rows } => {
            to.text("combination").count(rows.len());
            for row in rows {
                row.iter().fold(to.count(row.len()), |to, &(seed, weight)| to.count(seed).number(weight));
            }
            to
        }
        Recursion::Scaled { inner, factors } => describe_recursion(inner, to.text("scaled").numbers(factors)),
        Recursion::Restarted { inner, period } => {
            describe_recursion(inner, to.text("restarted").count(*period))
        }
    }
}
