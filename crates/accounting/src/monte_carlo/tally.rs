use rayon::prelude::*;

use super::estimate::Tally;
use super::normals::{Normals, Source};
use crate::pld::Direction;

/// Samples that decide tilt and number of samples; independent of those that decide the figure.
pub(crate) const PILOT: usize = 8192;
/// Samples that share a random stream: fixed, so that threads change nothing.
const CHUNK: usize = 512;

/// `count` samples, which `sample` adds to a tally, so many at a time; the same for the same arguments, however many
/// threads there are.
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
