//! Flattened recursions, which give the computation at each step of a stream.
//!
//! 1. A [`Recursion`] nests: scaled (row t times a factor) and restarted (from zero every `period` steps)
//!    recursions wrap an inner one. The innermost is the leaf, a [`Leaf`].
//! 2. Flattening checks every coefficient and stores the leaf with its layers, outermost first.
//! 3. [`FlatRecursion::position`] passes step t through the layers: a scaled layer multiplies the factor, a
//!    restarted one replaces t by t mod period and moves on to the seeds of its run. A kernel then only
//!    computes the leaf at step `local`, and its caller multiplies by `factor`.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::Recursion;

use super::leaf::{Leaf, nonzero};
use super::retained::retained_rows;
use crate::error::{Error, Result};

/// A layer around a leaf. `seeds` is the number of seeds that a run of `period` steps reads.
enum Layer {
    Scaled(Vec<f64>),
    Restarted { period: usize, seeds: usize },
}

/// The position of a step of the stream: its step within the innermost run, the run's seeds, and the factor
/// of its row.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// The step within the whole stream.
    pub(crate) step: usize,
    /// The step within the innermost run.
    pub(crate) local: usize,
    /// The number of the run's first seed.
    pub(crate) first_seed: u64,
    /// The factor of the row.
    pub(crate) factor: f64,
}

/// A recursion as a leaf and the layers around it, from the outermost inwards.
pub(crate) struct FlatRecursion {
    layers: Vec<Layer>,
    pub(crate) leaf: Leaf,
    /// Maximum number of steps of the innermost run.
    pub(crate) run_steps: usize,
    /// Maximum number of seeds of the innermost run.
    pub(crate) run_seeds: usize,
}

impl FlatRecursion {
    /// Flattens `recursion` over `steps` steps.
    pub(crate) fn new(recursion: &Recursion, steps: usize) -> std::result::Result<Self, InvalidParameter> {
        at_least("steps", steps, 1)?;
        match recursion {
            Recursion::Scaled { inner, factors } => {
                at_least("factors", factors.len(), steps)?;
                factors.iter().try_for_each(|&factor| nonzero("factors", factor).map(drop))?;
                Ok(Self::new(inner, steps)?.within(Layer::Scaled(factors.clone())))
            }
            Recursion::Restarted { inner, period } => {
                at_least("period", *period, 1)?;
                let run = Self::new(inner, steps.min(*period))?;
                // If there is only one run, no other run's seeds need an offset.
                let seeds = if steps >= *period { inner.seeds(*period) } else { 0 };
                Ok(run.within(Layer::Restarted { period: *period, seeds }))
            }
            other => {
                let leaf = Leaf::new(other, steps)?;
                Ok(Self { layers: vec![], leaf, run_steps: steps, run_seeds: other.seeds(steps) })
            }
        }
    }

    fn within(mut self, layer: Layer) -> Self {
        self.layers.insert(0, layer);
        self
    }

    /// Flattens the recursion of a plain stream, with coefficients rounded to single precision as its kernels
    /// use them.
    pub(crate) fn in_single_precision(
        recursion: &Recursion,
        steps: usize,
    ) -> std::result::Result<Self, InvalidParameter> {
        // The given coefficients are checked first, since rounding can make invalid ones valid.
        Self::new(recursion, steps)?;
        Self::new(&recursion.in_single_precision(), steps)
    }

    /// Flattens the recursion of a stream on a grid. The rounding of a step is fed back into its fresh seed,
    /// so that sums of seeds are rewritten with one fresh seed a step.
    pub(crate) fn on_grid(recursion: &Recursion, steps: usize) -> Result<Self> {
        let mut flat =
            Self::new(&recursion.with_one_seed_per_step(steps).map_err(Error::of_mechanism)?, steps)?;
        if let Leaf::Sum { rows } = &flat.leaf {
            let (rows, slots) = retained_rows(rows);
            flat.leaf = Leaf::Retained { rows, slots };
        }
        Ok(flat)
    }

    /// The position of step `step`.
    pub(crate) fn position(&self, step: usize) -> Position {
        let mut position = Position { step, local: step, first_seed: 0, factor: 1.0 };
        for layer in &self.layers {
            match layer {
                Layer::Scaled(factors) => position.factor *= factors[position.local],
                Layer::Restarted { period, seeds } => {
                    position.first_seed += (position.local / period * seeds) as u64;
                    position.local %= period;
                }
            }
        }
        position
    }
}
