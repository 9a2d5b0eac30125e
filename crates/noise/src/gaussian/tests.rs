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

fn exact(count: f64, high: bool, turn: f64) -> (f64, f64) {
    let r = if high { (-2.0 * libm::log1p(-count)).sqrt() } else { (-2.0 * count.ln()).sqrt() };
    // Octants keep the argument of sin and cos small and exact.
    let (sine, cosine) = (turn * std::f64::consts::TAU).sin_cos();
    (r * cosine, r * sine)
}

#[test]
fn single_precision_is_within_its_bound_of_the_exact_transform() {
    let edges: Vec<u64> = edge_words(32).collect();
    let angles: Vec<u64> = edges.iter().rev().copied().collect();
    let paired = edges.chunks(16).zip(angles.chunks(16)).flat_map(|(r, a)| [r, a].concat());
    let bits = [group_bits::<4>(paired), random_bits(11, 1 << 16)].concat();
    let mut out = vec![0f32; bits.len() / 4];
    f32::from_bits_of(Isa::detect(), &bits, &mut out);
    let mut worst: f64 = 0.0;
    for (bits, out) in bits.chunks_exact(GROUP_BYTES).zip(out.chunks_exact(32)) {
        let word = |i: usize| f64::from(u32::from_le_bytes(bits[4 * i..][..4].try_into().unwrap()));
        for i in 0..16 {
            let high = word(i) >= 2f64.powi(31) * std::f64::consts::SQRT_2;
            let count = if high { 2f64.powi(32) - 1.0 - word(i) } else { word(i) } + 0.5;
            let (x, y) = exact(count * 2f64.powi(-32), high, (word(i + 16) + 0.5) * 2f64.powi(-32));
            worst = worst.max((f64::from(out[i]) - x).abs()).max((f64::from(out[i + 16]) - y).abs());
        }
    }
    assert!(worst < 2f64.powi(-20) - 2f64.powi(-22), "{worst:e}");
}

#[test]
fn every_instruction_set_makes_the_same_normals() {
    let edges = group_bits::<8>(edge_words(64).chain(edge_words(32)));
    let bits = [random_bits(3, 5000), edges].concat();
    let run = |isa: Isa| {
        let (mut single, mut double) = (vec![0f32; bits.len() / 4], vec![0f64; bits.len() / 8]);
        let rare = (f32::from_bits_of(isa, &bits, &mut single), f64::from_bits_of(isa, &bits, &mut double));
        (single, double, rare)
    };
    let reference = run(Isa::available()[Isa::available().len() - 1]);
    assert!(Isa::available().iter().all(|&isa| run(isa) == reference));
}
