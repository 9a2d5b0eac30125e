use super::*;

/// Groups whose radius words run through `radii` and whose angle words are spread over the circle.
fn group_bits<const BYTES: usize>(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(|w| w.to_le_bytes()[..BYTES].to_vec()).collect()
}

fn random_bits(seed: u64, groups: usize) -> Vec<u8> {
    let mut bits = vec![0; groups * GROUP_BYTES];
    KeySource::new(&Key::from_seed_insecure(seed), Cipher::default(), NOISE).keystream(0).fill(0, &mut bits);
    bits
}

/// Words near every power of two and near both ends, where conversions and selections change.
fn edge_words(width: u32) -> impl Iterator<Item = u64> {
    let mask = u64::MAX >> (64 - width);
    (0..width).flat_map(move |k| (0..16u64).map(move |d| (1u64 << k).wrapping_add(d).wrapping_sub(8) & mask))
}

/// (x, y) of the transform in double precision: `count` is the distance of u from its nearer end.
fn exact(count: f64, high: bool, turn: f64) -> (f64, f64) {
    let r = if high { (-2.0 * (-count).ln_1p()).sqrt() } else { (-2.0 * count.ln()).sqrt() };
    let (sine, cosine) = (turn * std::f64::consts::TAU).sin_cos();
    (r * cosine, r * sine)
}

/// The worst distance of `out` from the exact transform of the same words, each of `BYTES` bytes.
fn worst<const BYTES: usize>(bits: &[u8], out: impl Fn(usize) -> f64) -> f64 {
    let (pairs, end) = (64 / BYTES, 2f64.powi(8 * BYTES as i32));
    let mut worst: f64 = 0.0;
    for (g, bits) in bits.chunks_exact(GROUP_BYTES).enumerate() {
        let word = |i: usize| {
            let mut bytes = [0; 8];
            bytes[..BYTES].copy_from_slice(&bits[BYTES * i..][..BYTES]);
            u64::from_le_bytes(bytes)
        };
        for i in 0..pairs {
            let w = word(i);
            let high = w as f64 >= end * std::f64::consts::FRAC_1_SQRT_2;
            let count = if high { (u64::MAX >> (64 - 8 * BYTES)) - w } else { w };
            let (x, y) = exact((count as f64 + 0.5) / end, high, (word(i + pairs) as f64 + 0.5) / end);
            let at = 2 * pairs * g + i;
            worst = worst.max((out(at) - x).abs()).max((out(at + pairs) - y).abs());
        }
    }
    worst
}

fn edges_and_random<const BYTES: usize>() -> Vec<u8> {
    let pairs = 64 / BYTES;
    let edges: Vec<u64> = edge_words(8 * BYTES as u32).collect();
    let angles: Vec<u64> = edges.iter().rev().copied().collect();
    let paired = edges.chunks_exact(pairs).zip(angles.chunks_exact(pairs)).flat_map(|(r, a)| [r, a].concat());
    [group_bits::<BYTES>(paired), random_bits(11, 1 << 16)].concat()
}

#[test]
fn single_precision_is_within_its_bound_of_the_exact_transform() {
    let bits = edges_and_random::<4>();
    let mut out = vec![0f32; bits.len() / 4];
    groups(Isa::detect(), bits.as_chunks().0, &mut out);
    let found = worst::<4>(&bits, |i| f64::from(out[i]));
    assert!(found < 2f64.powi(-20), "{found:e}");
}

#[test]
fn double_precision_is_within_its_bound_of_the_exact_transform() {
    let bits = edges_and_random::<8>();
    let mut out = vec![0f64; bits.len() / 8];
    groups(Isa::detect(), bits.as_chunks().0, &mut out);
    // The reference is rounded too, by up to 2^-50 at 9 standard deviations.
    let found = worst::<8>(&bits, |i| out[i]);
    assert!(found < 2f64.powi(-48), "{found:e}");
}

/// A pair whose radius word is rare gets 64 bits more, on every path: whole vectors, single coordinates, and the
/// plain transform of the same bits with the further bits put in.
#[test]
fn rare_pairs_are_refined_alike_wherever_a_tile_starts() {
    let key = Key::from_seed_insecure(21);
    for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
        let keystream = KeySource::new(&key, cipher, NOISE).keystream(0);
        let mut tile = NormalTile::<f32>::new(Isa::detect());
        let mut rare = 0;
        for start in (0..1u64 << 22).step_by(TILE) {
            let mut bits = vec![0; TILE * 4];
            keystream.fill(start / 32, &mut bits);
            let mut plain = vec![0f32; TILE];
            groups(Isa::detect(), bits.as_chunks().0, &mut plain);
            let made = tile.make(&keystream, start, TILE).to_vec();
            for i in (0..TILE).filter(|&i| made[i] != plain[i]) {
                rare += 1;
                assert_eq!(tile.make(&keystream, start + i as u64, 1), &made[i..=i]);
                // 64 bits move a pair by less than one step of its 32-bit word does.
                assert!((made[i] - plain[i]).abs() < 0.5 && plain[i].abs() < 7.0);
            }
        }
        // 2^22 coordinates, of which 2^-14 are in a rare pair (a few are moved by nothing): 256 +- 23.
        assert!((140..380).contains(&rare), "{rare}");
    }
}

#[test]
fn every_instruction_set_makes_the_same_normals() {
    let edges = group_bits::<8>(edge_words(64).chain(edge_words(32)));
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
