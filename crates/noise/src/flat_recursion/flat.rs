//! A recursion, checked and flattened: what has to be computed at step t of a stream.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::Recursion;

use super::leaf::{Leaf, nonzero};
use super::retained::retained_rows;
use crate::error::{Error, Result};

/// A layer around a leaf.
enum Layer {
    Scaled(Vec<f64>),
    Restarted { period: usize, seeds: usize },
}

/// The position of step t: its run, and the factor of its noise.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// The step of the whole stream.
    pub(crate) step: usize,
    /// The step within the innermost run.
    pub(crate) local: usize,
    /// The run's first seed.
    pub(crate) first_seed: u64,
    /// What its noise is multiplied by.
    pub(crate) factor: f64,
}

/// A recursion as a leaf and the layers around it, from the outermost inwards.
pub struct FlatRecursion {
    layers: Vec<Layer>,
    pub(crate) leaf: Leaf,
    /// Steps of the innermost run.
    pub(crate) run_steps: usize,
    /// Seeds of the innermost run.
    pub(crate) run_seeds: usize,
}

impl FlatRecursion {
    /// The recursion over `steps` steps.
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
                // A run that never ends reads no seed after its own.
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

    /// The recursion of a plain stream: the coefficients are those that its kernels hold.
    pub(crate) fn in_single_precision(
        recursion: &Recursion,
        steps: usize,
    ) -> std::result::Result<Self, InvalidParameter> {
        // What was given is checked first: rounding makes other numbers of bad ones.
        Self::new(recursion, steps)?;
        Self::new(&recursion.in_single_precision(), steps)
    }

    /// The recursion of releases on a grid, which feed their rounding back into a seed of their own: sums of seeds are
    /// brought to a form that has one fresh seed a step.
    pub(crate) fn on_grid(recursion: &Recursion, steps: usize) -> Result<Self> {
        let mut flat = Self::new(&recursion.one_seed_a_step(steps).map_err(Error::of_mechanism)?, steps)?;
        if let Leaf::Sum { rows } = &flat.leaf {
            let (rows, slots) = retained_rows(rows);
            flat.leaf = Leaf::Retained { rows, slots };
        }
        Ok(flat)
    }

    /// The position of `step`.
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
