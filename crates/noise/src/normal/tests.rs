use super::coordinates::Coordinates;
use super::gathered::{Gathered, Segment};
use super::tile::{NormalTile, TILE};
use super::transform::{Normal, groups};
use super::{exact, single};
use crate::keystream::{GROUP_BYTES, KeySource};
use crate::simd::Isa;
use crate::{Cipher, Key};

fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_le_bytes).collect()
}

fn random_bits(seed: u64, groups: usize) -> Vec<u8> {
    let mut bits = vec![0; groups * GROUP_BYTES];
    KeySource::new(&Key::from_seed_insecure(seed), Cipher::default()).keystream(0).fill(0, &mut bits);
    bits
}

/// Words near every power of two and near both ends, where conversions and selections change.
fn edge_words(width: u32) -> impl Iterator<Item = u64> {
    let mask = u64::MAX >> (64 - width);
    (0..width).flat_map(move |k| (0..16u64).map(move |d| (1u64 << k).wrapping_add(d).wrapping_sub(8) & mask))
}

/// The largest distance of `out` from the exact transform of the same 64-bit words, computed in double-double
/// precision.
fn worst_pair(bits: &[u8], out: &[f64]) -> f64 {
    let words: Vec<u64> = bits.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    let middle = |word: u64| u128::from(word) << 64 | 1 << 63;
    let off = |part: exact::DoubleDouble, found: f64| (part.hi - found + part.lo).abs();
    let mut worst: f64 = 0.0;
    for (words, out) in words.chunks_exact(16).zip(out.chunks_exact(16)) {
        for i in 0..8 {
            let (r, (cosine, sine)) =
                (exact::radius(middle(words[i])), exact::unit_circle(middle(words[i + 8])));
            worst = worst.max(off(r.times(cosine), out[i])).max(off(r.times(sine), out[i + 8]));
        }
    }
    worst
}

/// Distance of z from the quantile that a normal exceeds with probability p, by a Newton step from z.
fn distance(z: f64, p: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    ((0.5 * libm::erfc(z / std::f64::consts::SQRT_2) - p) / density).abs()
}

/// The largest such distance over words that are not rare.
fn worst_single(words: impl Iterator<Item = u32>) -> f64 {
    let words: Vec<u32> = words.filter(|&w| (w as i32).unsigned_abs() > 1 << 17).collect();
    let whole = &words[..words.len() / 32 * 32];
    let bits: Vec<u8> = whole.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut out = vec![0f32; whole.len()];
    assert!(!groups(Isa::detect(), bits.as_chunks().0, &mut out));
    let off = whole.iter().zip(&out).map(|(&w, &x)| {
        let w = f64::from(w as i32) + 0.5;
        distance(f64::from(x) * w.signum(), w.abs() / 2f64.powi(32))
    });
    off.fold(0.0, f64::max)
}

/// Every 257th word in both tails and between, and all words around the ends of the pieces.
#[test]
fn single_precision_is_within_its_bound_of_the_exact_point() {
    let all = (0..1u64 << 24).map(|i| (i * 257) as u32);
    let ends = (2..64u64).map(|half| (2 + half % 2) << (half / 2)).filter(|&end| end < 1 << 32);
    let about_ends = ends.flat_map(|end| (0..512u64).map(move |d| (end + d).wrapping_sub(256) as u32));
    let found = worst_single(all).max(worst_single(about_ends));
    assert!(found < 2f64.powi(-21), "{found:e}");
}

#[test]
fn the_refined_tail_is_within_its_bound_of_the_exact_point() {
    let mut worst: f64 = 0.0;
    for distance_word in (0..17).flat_map(|k| [(1u32 << k) - 1, 1 << k, (1 << k) + (1 << k >> 1)]) {
        for more in (0..64).flat_map(|k| [1u64 << k, u64::MAX - (1 << k)]).chain([0]) {
            let p = (f64::from(distance_word) + (more as f64 + 0.5) / 2f64.powi(64)) / 2f64.powi(32);
            worst = worst.max(distance(single::tail(distance_word, more), p));
        }
    }
    assert!(worst < 2f64.powi(-26), "{worst:e}");
    assert!(single::tail(0, 0) > 11.2 && single::tail((1 << 17) - 1, u64::MAX) < 4.01);
}

/// Ordered words make ordered normals up to one rounding: no piece begins inside the range of another.
#[test]
fn single_precision_has_no_steps_between_pieces() {
    for end in (34..64u64).map(|half| (2 + half % 2) << (half / 2)).filter(|&end| end < 1 << 31) {
        let words: Vec<u32> = (0..128).map(|d| (end + d) as u32 - 64).collect();
        let bits: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut out = vec![0f32; 128];
        groups(Isa::detect(), bits.as_chunks().0, &mut out);
        assert!(out.is_sorted_by(|a, b| *b < a + 2f32.powi(-20)), "at {end:#x}");
    }
}

#[test]
fn double_precision_is_within_its_bound_of_the_exact_transform() {
    let edges: Vec<u64> = edge_words(64).collect();
    let angles: Vec<u64> = edges.iter().rev().copied().collect();
    let paired = edges.chunks_exact(8).zip(angles.chunks_exact(8)).flat_map(|(r, a)| [r, a].concat());
    let bits = [bytes_of(paired), random_bits(11, 1 << 16)].concat();
    let mut out = vec![0f64; bits.len() / 8];
    groups(Isa::detect(), bits.as_chunks().0, &mut out);
    let found = worst_pair(&bits, &out);
    assert!(found < 2f64.powi(-48), "{found:e}");
}

/// A rare word gets the same 64 further bits on every path: fused with the cipher or not, whole tiles or one
/// coordinate.
#[test]
fn rare_words_are_refined_alike_wherever_a_tile_starts() {
    let key = Key::from_seed_insecure(21);
    for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
        let keystream = KeySource::new(&key, cipher).keystream(0);
        let mut tile = NormalTile::<f32>::new(Isa::detect());
        let mut portable = NormalTile::<f32>::new(Isa::available()[Isa::available().len() - 1]);
        let mut rare = 0;
        for start in (0..1u64 << 22).step_by(TILE) {
            let mut bits = vec![0; TILE * 4];
            keystream.fill(start / 32, &mut bits);
            let made = tile.make(&keystream, Coordinates::From(start), TILE).to_vec();
            assert_eq!(portable.make(&keystream, Coordinates::From(start), TILE), made);
            for (i, word) in bits.as_chunks().0.iter().enumerate() {
                let w = i32::from_le_bytes(*word);
                let distance = (w ^ w >> 31) as u32;
                if distance >> 17 == 0 {
                    rare += 1;
                    assert_eq!(tile.make(&keystream, Coordinates::From(start + i as u64), 1), &made[i..=i]);
                    let [more, _] = keystream.extra(start + i as u64);
                    assert_eq!(f64::from(made[i].abs()) as f32, single::tail(distance, more) as f32);
                    assert_eq!(made[i] < 0.0, w < 0);
                } else {
                    assert!(made[i].abs() < 4.01);
                }
            }
        }
        // 2^22 coordinates, of which 2^-14 are rare: 256 +- 16.
        assert!((170..340).contains(&rare), "{rare}");
    }
}

/// Ranges whose blocks are made without the rest of their groups have the normals of their coordinates, rare
/// ones included.
fn gathered_ranges_have_their_own_normals<T: Normal + PartialEq>() {
    let widths = (0..100).map(|i| 1 + 7 * i % 37);
    let ends = widths.scan(3, |end, width| Some(std::mem::replace(end, *end + width) as u64));
    let ends: Vec<u64> = ends.collect();
    let ranges = ends.windows(2).map(|ends| Segment { start: ends[0], len: (ends[1] - ends[0]) as usize });
    // Every other range, the last first, and the ranges between them.
    let (even, odd): (Vec<_>, Vec<_>) = ranges.rev().enumerate().partition(|(i, _)| i % 2 == 0);
    let shapes = [even, odd].map(|some| some.into_iter().map(|(_, range)| range).collect::<Vec<_>>());
    let mut rare = 0;
    let last = Isa::available().len() - 1;
    for (cipher, isa) in [(Cipher::Aes256Ctr, 0), (Cipher::Aes256Ctr, last), (Cipher::ChaCha20, last)] {
        let keystream = KeySource::new(&Key::from_seed_insecure(22), cipher).keystream(0);
        let isa = Isa::available()[isa];
        let (mut tile, mut whole) = (NormalTile::<T>::new(isa), NormalTile::<T>::with_room(isa, 2 * TILE));
        for origin in (0..1500).map(|i| (1 << 37) + 2 * TILE as u64 * i) {
            let whole = whole.make(&keystream, Coordinates::From(origin), 2 * TILE);
            for ranges in &shapes {
                let shape = Gathered::new::<T>(ranges.clone());
                let len = ranges.iter().map(|range| range.len).sum();
                let made = tile.make(&keystream, Coordinates::Gathered(&shape, origin), len);
                let expected = ranges.iter().flat_map(|range| &whole[range.start as usize..][..range.len]);
                assert!(made.len() > 700 && made.iter().eq(expected), "{cipher:?} at {origin}");
            }
            let mut bits = vec![0; 2 * TILE / T::PER_GROUP * GROUP_BYTES];
            keystream.fill(origin / T::PER_GROUP as u64, &mut bits);
            rare += u32::from(groups(isa, bits.as_chunks().0, &mut [T::default(); 2 * TILE]));
        }
    }
    assert!(rare > 10, "{rare}");
}

#[test]
fn gathered_ranges_have_the_normals_of_their_coordinates() {
    gathered_ranges_have_their_own_normals::<f32>();
    gathered_ranges_have_their_own_normals::<f64>();
}

#[test]
fn every_instruction_set_makes_the_same_normals() {
    let edges = bytes_of(edge_words(64).chain(edge_words(32)));
    let bits = [random_bits(3, 5000), edges].concat();
    let run = |isa: Isa| {
        let (mut single, mut double) = (vec![0f32; bits.len() / 4], vec![0f64; bits.len() / 8]);
        let rare =
            (groups(isa, bits.as_chunks().0, &mut single), groups(isa, bits.as_chunks().0, &mut double));
        (single, double, rare)
    };
    let reference = run(Isa::available()[Isa::available().len() - 1]);
    assert!(Isa::available().iter().all(|&isa| run(isa) == reference));
}
