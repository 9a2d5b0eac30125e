use rayon::prelude::*;

use super::estimate::Tally;
use super::normals::{Normals, Source};
use crate::pld::Direction;

/// Number of samples that decide the proposal and the number of samples of a figure; they are independent of
/// the figure's own samples.
pub(crate) const PILOT: usize = 8192;
/// Number of samples that share a random stream. It is fixed so that results do not depend on the number of
/// threads.
const CHUNK: usize = 512;

/// The samples of a figure: their number, their random numbers, and who watches them.
#[derive(Clone, Copy)]
pub(crate) struct Samples<'a> {
    pub count: usize,
    pub source: &'a Source,
    /// Called with the number of samples of each finished chunk.
    pub on_drawn: &'a (dyn Fn(usize) + Sync),
}

/// Returns, for each of `epsilons`, the sums over the same samples, which do not depend on the number of
/// threads. `sample(normals, tallies, n)` adds n samples to the tallies; chunks of samples are drawn in
/// parallel.
pub(crate) fn tallies(
    samples: Samples<'_>,
    direction: Direction,
    epsilons: &[f64],
    sample: impl Fn(&mut Normals, &mut [Tally], usize) + Sync,
) -> Vec<Tally> {
    let none = || vec![Tally::default(); epsilons.len()];
    let chunks: Vec<Vec<Tally>> = (0..samples.count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut normals = Normals::new(samples.source, direction as u8, chunk as u64);
            let (mut tallies, count) = (none(), CHUNK.min(samples.count - chunk * CHUNK));
            sample(&mut normals, &mut tallies, count);
            (samples.on_drawn)(count);
            tallies
        })
        .collect();
    chunks.into_iter().fold(none(), |mut sums, chunk| {
        sums.iter_mut().zip(chunk).for_each(|(sum, tally)| *sum = sum.join(tally));
        sums
    })
}

/// Adds a sample to the tally of each epsilon: `(1 - e^{epsilon - loss})_+`, times its importance weight.
pub(crate) fn add(tallies: &mut [Tally], epsilons: &[f64], (loss, weight): (f64, f64)) {
    for (tally, &epsilon) in tallies.iter_mut().zip(epsilons) {
        tally.add(if loss > epsilon { -(epsilon - loss).exp_m1() * weight } else { 0.0 });
    }
}

/// The least of `epsilons`: losses up to it add nothing to any tally.
pub(crate) fn least(epsilons: &[f64]) -> f64 {
    epsilons.iter().copied().fold(f64::INFINITY, f64::min)
}
