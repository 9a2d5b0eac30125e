//! Damaged files, for tests of what reads them.

use std::collections::BTreeMap;

/// The size of a block of a file system, the largest that is zeroed.
const BLOCK: usize = 4096;
/// Number of cases of each kind of damage.
pub const CASES: [(&str, usize); 5] =
    [("cut", 50), ("flip", 200), ("flip in use", 200), ("swap", 12), ("zeros", 15)];

/// Kinds of damage and the damaged files, those of a kind all different: bits that are flipped anywhere
/// (first at the start, in the middle and at the end) and in bytes other than 0, ends that are cut off,
/// blocks of zeros, and blocks that changed places within the file or with one of `others`, the same file of
/// another run or step. [`CASES`] has the number of each kind; a short file has as many cuts as bytes, and a
/// file with blocks of zeros no more cases of zeros than other blocks.
///
/// # Panics
/// If the file is shorter than 32 bytes, which have too few different cases.
///
/// ```
/// use antinoise_input::damage::{CASES, damages};
/// let (file, other): (Vec<u8>, Vec<u8>) = ((0..=255).collect(), (0..=255).rev().collect());
/// let damaged = damages(&file, &[other]);
/// for (kind, count) in CASES {
///     assert_eq!(damaged.iter().filter(|(of, _)| *of == kind).count(), count);
/// }
/// assert!(damaged.iter().all(|(_, bytes)| *bytes != file));
/// ```
pub fn damages(file: &[u8], others: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    assert!(file.len() >= 32, "a file of {} bytes has too few cases", file.len());
    let mut state = 7u64;
    let mut below = |end: usize| {
        // Knuth's multiplier; the upper bits alone are random enough.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let mut edges = [0, 9, file.len() / 2, file.len() - 5, file.len() - 1].into_iter();
    let used: Vec<usize> = (0..file.len()).filter(|&at| file[at] != 0).collect();
    let block = BLOCK.min(file.len() / 16);
    let blocks = file.chunks(block).filter(|block| block.iter().any(|&byte| byte != 0)).count();
    let mut made: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for (kind, count) in CASES {
        let of_kind = made.entry(kind).or_default();
        let most = match kind {
            "cut" => file.len(),
            "zeros" => blocks,
            _ => count,
        };
        while of_kind.len() < count.min(most) {
            let mut damaged = file.to_vec();
            match kind {
                "cut" => damaged.truncate(below(file.len())),
                "flip" => match edges.next() {
                    Some(at) => damaged[at] ^= 1,
                    None => damaged[below(file.len())] ^= 1 << below(8),
                },
                "flip in use" => damaged[used[below(used.len())]] ^= 1 << below(8),
                "zeros" => {
                    let first = below(file.len().div_ceil(block)) * block;
                    damaged[first..file.len().min(first + block)].fill(0);
                }
                _ => {
                    let other = &others[of_kind.len() / 2 % others.len()];
                    let size = BLOCK.min(file.len().min(other.len()) / 4) >> below(3);
                    let (from, to) = (below(file.len() - size), below(file.len().min(other.len()) - size));
                    if of_kind.len().is_multiple_of(2) {
                        damaged[to..to + size].copy_from_slice(&file[from..from + size]);
                        damaged[from..from + size].copy_from_slice(&file[to..to + size]);
                    } else {
                        damaged[to..to + size].copy_from_slice(&other[to..to + size]);
                    }
                }
            }
            // Where files differ in a block alone, a swap of it makes the other file, which is not damaged.
            if damaged != file && !others.contains(&damaged) && !of_kind.contains(&damaged) {
                of_kind.push(damaged);
            }
        }
    }
    made.into_iter().flat_map(|(kind, files)| files.into_iter().map(move |file| (kind, file))).collect()
}
