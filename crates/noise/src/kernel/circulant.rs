//! The kernel of circulant noise: Fourier transforms make all steps of a run together, two coordinates at a
//! time.

use antinoise_mechanism::Convolution;
use zeroize::Zeroizing;

use super::{LookAhead, ScratchOf, Steps};
use crate::flat_recursion::Position;
use crate::keystream::Keystream;
use crate::normal::{Coordinates, Segment};
use crate::number::Real;

/// Number of coordinates whose seeds are in memory at the same time. It is even, so that coordinates 2i and
/// 2i + 1 share a transform wherever a tile starts, and bits do not depend on tiles.
const SLICE: u64 = 16;

/// Computes the rows z~ of the steps at `positions`, and stores them in `ahead` or, if rows are not stored,
/// leaves the last one in the scratch memory. O(n log n) time per coordinate and run of n seeds; the memory
/// is n seeds for a slice of coordinates.
pub(crate) fn make_circulant<'a, M: Steps>(
    mode: M,
    convolution: &Convolution,
    scratch: &mut ScratchOf<M>,
    positions: &[Position],
    keystream: impl Fn(u64) -> &'a Keystream,
    coordinates: Coordinates<'_>,
    ahead: &mut LookAhead<'_, M::Row>,
) {
    let count = convolution.seeds();
    // Allocated once per tile and window, which takes little time compared with the transforms.
    let zeros = |count: usize| Zeroizing::new(vec![M::Number::default(); count * SLICE as usize]);
    let (mut seeds, mut made, mut pair) = (zeros(count), zeros(positions.len()), convolution.pair());
    for run in positions.chunk_by(|a, b| a.first_seed == b.first_seed) {
        let ranges = coordinates.ranges(ahead.len);
        let slices = ranges.flat_map(|(output, Segment { start, len })| {
            let end = start + len as u64;
            (start & !1..end).step_by(SLICE as usize).map(move |slice| (slice, output, start, end))
        });
        for (slice, output, start, end) in slices {
            for (seed, to) in seeds.chunks_exact_mut(SLICE as usize).enumerate() {
                let keystream = keystream(run[0].first_seed + seed as u64);
                to.copy_from_slice(scratch.normals[0].make(
                    keystream,
                    Coordinates::From(slice),
                    SLICE as usize,
                ));
            }
            for j in (0..SLICE as usize).step_by(2) {
                let z = |seed: usize| [0, 1].map(|i| seeds[seed * SLICE as usize + j + i].widened());
                pair.make(convolution, z);
                for (row, position) in made.chunks_exact_mut(SLICE as usize).zip(run) {
                    let [even, odd] = pair.noise(position.local);
                    (row[j], row[j + 1]) = (M::Number::rounded(even), M::Number::rounded(odd));
                }
            }
            let (first, last) = (slice.max(start), end.min(slice + SLICE));
            let width = (last - first) as usize;
            for (row, position) in made.chunks_exact(SLICE as usize).zip(run) {
                let (row, at) =
                    (&row[(first - slice) as usize..][..width], output + (first - start) as usize);
                match ahead.range(position.step) {
                    Some(range) => {
                        let row = mode.as_row(scratch.isa, position, row, &mut scratch.row[..width]);
                        ahead.rows[range.start + at..][..width].copy_from_slice(row);
                    }
                    None => scratch.noise[at..][..width].copy_from_slice(row),
                }
            }
        }
    }
}
