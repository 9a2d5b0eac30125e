use rayon::prelude::*;

use super::estimate::Tally;
use super::normals::{Normals, Source};
use crate::pld::Direction;

/// Samples that decide the proposal and the number of samples; independent of those of the figure.
pub(crate) const PILOT: usize = 8192;
/// Samples that share a random stream. Fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 512;

/// The sums over `count` samples. `sample` adds its last argument's number of samples to a tally; chunks run
/// in parallel. A function of the arguments alone, for any number of threads.
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
