//! Columns of the noise-correlating matrix N (n x r), usually C^-1, from the recursion that computes N Z.

use crate::Recursion;
use crate::circulant::circulant_entry;

/// The columns of N, in the form that is cheapest to evaluate for a recursion.
pub(crate) enum Columns<'a> {
    /// The (step, entry) pairs of each column.
    Listed(Vec<Vec<(usize, f64)>>),
    /// The columns of `inner`, with row t multiplied by factors\[t\].
    Scaled { inner: Box<Columns<'a>>, factors: &'a [f64] },
    /// The columns of `inner`, repeated after each restart.
    Restarted { inner: Box<Columns<'a>>, period: usize, seeds: usize },
    /// The first column, if every other column is the first one shifted down (Toeplitz).
    Shifted(Vec<f64>),
    /// The first column of a circulant matrix; a column of N holds the differences of adjacent entries in a
    /// column of the circulant.
    Circulant(&'a [f64]),
    /// The recursion, whose noise for a unit seed is the column.
    Applied(&'a Recursion),
}

impl<'a> Columns<'a> {
    /// Chooses the form for a recursion over `steps` steps.
    pub(crate) fn new(recursion: &'a Recursion, steps: usize) -> Self {
        match recursion {
            Recursion::SeedCombination { rows } => {
                let mut columns = vec![Vec::new(); recursion.seeds(steps)];
                for (t, row) in rows[..steps].iter().enumerate() {
                    row.iter().for_each(|&(seed, entry)| columns[seed].push((t, entry)));
                }
                Self::Listed(columns)
            }
            Recursion::Scaled { inner, factors } => {
                Self::Scaled { inner: Box::new(Self::new(inner, steps)), factors }
            }
            Recursion::Restarted { inner, period } => {
                let run = steps.min(*period);
                let columns = Box::new(Self::new(inner, run));
                Self::Restarted { inner: columns, period: *period, seeds: inner.seeds(run) }
            }
            Recursion::Circulant { root } => Self::Circulant(root),
            Recursion::Banded { .. } | Recursion::VaryingBlt { .. } => Self::Applied(recursion),
            Recursion::Independent
            | Recursion::MovingAverage { .. }
            | Recursion::AutoRegressive { .. }
            | Recursion::Blt { .. }
            | Recursion::Rational { .. } => {
                let mut unit = vec![0.0; steps];
                unit[0] = 1.0;
                Self::Shifted(recursion.apply(steps, &unit))
            }
        }
    }

    /// Writes column `seed` to `out`, one entry per step; `out` must hold zeros. `space` is work space.
    pub(crate) fn write(&self, seed: usize, space: &mut Vec<f64>, out: &mut [f64]) {
        match self {
            Self::Listed(columns) => {
                let steps = out.len();
                let here = columns[seed].iter().take_while(|&&(t, _)| t < steps);
                here.for_each(|&(t, entry)| out[t] += entry);
            }
            Self::Scaled { inner, factors } => {
                inner.write(seed, space, out);
                out.iter_mut().zip(*factors).for_each(|(x, factor)| *x *= factor);
            }
            Self::Restarted { inner, period, seeds } => {
                let start = seed / seeds * period;
                let end = out.len().min(start + period);
                inner.write(seed % seeds, space, &mut out[start..end]);
            }
            Self::Shifted(first) => out[seed..].iter_mut().zip(first).for_each(|(x, entry)| *x = *entry),
            Self::Circulant(root) => {
                out.iter_mut().enumerate().for_each(|(t, x)| *x = circulant_entry(root, t, seed));
            }
            Self::Applied(recursion) => {
                space.clear();
                space.resize(recursion.seeds(out.len()), 0.0);
                space[seed] = 1.0;
                out.copy_from_slice(&recursion.apply(out.len(), space));
            }
        }
    }
}
