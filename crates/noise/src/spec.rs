//! What the noise of a stream is a function of, apart from its key and its run.

use antinoise_mechanism::{Grid, Recursion};

use crate::key::{BYTES, Description};
use crate::keystream::Cipher;
use crate::shard::Shard;

/// Every number that a bit of the noise depends on, but for the grid, which belongs to the mode of the stream.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) recursion: Recursion,
    pub(crate) steps: usize,
    pub(crate) dim: usize,
    pub(crate) noise_std: f64,
    pub(crate) shard: Shard,
    pub(crate) cipher: Cipher,
}

impl Spec {
    /// A digest of all that noise is a function of beside key and run: not of shard, threads or memory.
    pub(crate) fn describe(&self, grid: Option<Grid>) -> [u8; BYTES] {
        let Self { recursion, steps, dim, noise_std, shard: _, cipher } = self;
        let mut description = Description::new("antinoise stream 1");
        describe_recursion(recursion, &mut description);
        description.count(*steps);
        description.count(*dim);
        description.number(*noise_std);
        // No grid has spacing 0.
        description.number(grid.map_or(0.0, Grid::spacing));
        description.text(cipher.name());
        description.digest()
    }
}

fn describe_recursion(recursion: &Recursion, description: &mut Description) {
    match recursion {
        Recursion::Independent => description.text("independent"),
        Recursion::MovingAverage { taps } => {
            description.text("moving-average");
            description.numbers(taps);
        }
        Recursion::AutoRegressive { taps } => {
            description.text("auto-regressive");
            description.numbers(taps);
        }
        Recursion::Blt { scale, decay } => {
            description.text("blt");
            description.numbers(scale);
            description.numbers(decay);
        }
        Recursion::Banded { bands, rows } => {
            description.text("banded");
            description.count(*bands);
            description.numbers(rows);
        }
        Recursion::Combination { rows } => {
            description.text("combination");
            description.count(rows.len());
            for row in rows {
                description.count(row.len());
                for &(seed, weight) in row {
                    description.count(seed);
                    description.number(weight);
                }
            }
        }
        Recursion::Scaled { inner, factors } => {
            description.text("scaled");
            description.numbers(factors);
            describe_recursion(inner, description);
        }
        Recursion::Restarted { inner, period } => {
            description.text("restarted");
            description.count(*period);
            describe_recursion(inner, description);
        }
    }
}
