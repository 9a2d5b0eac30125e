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

/// Returns the sums over `count` samples, which do not depend on the number of threads.
/// `sample(normals, tally, n)` adds n samples to a tally; chunks of samples are drawn in parallel.
pub(crate) fn tally(
    count: usize,
    source: &Source,
    direction: Direction,
    sample: impl Fn(&mut Normals, &mut Tally, usize) + Sync,
) -> Tally {
    let chunks: Vec<Tally> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut normals = Normals::new(source, direction as u8, chunk as u64);
            let mut tally = Tally::default();
            sample(&mut normals, &mut tally, CHUNK.min(count - chunk * CHUNK));
            tally
        })
        .collect();
    chunks.into_iter().fold(Tally::default(), Tally::join)
}
