use antinoise_input::{InvalidParameter, at_least};

/// What double precision adds to the sensitivity of [`clipped_sum`](super::clipped_sum), in clip norms, rounded up:
/// whatever one of at most `examples` examples of a batch holds, the sum moves by at most
/// clip_norm (1 + margin) where it is left out or taken in, in whatever order, and by twice that where it is
/// replaced.
///
/// ```text
/// margin = 2 m gamma_k,  gamma_k = k u / (1 - k u),  u = 2^-53,  k = chunk + ceil(log2(ceil(m / chunk))) + 1
/// ```
///
/// for m examples in chunks of `chunk`: k bounds the roundings on the way of a term to the sum. `docs/training.md`
/// has the proof.
///
/// ```
/// use antinoise_train::clip::sum_margin;
/// assert!(sum_margin(500, 20)? < 3e-12 && sum_margin(1_000_000, 64)? < 2e-8);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// When `chunk` is 0.
pub fn sum_margin(examples: usize, chunk: usize) -> Result<f64, InvalidParameter> {
    at_least("chunk", chunk, 1)?;
    let chunks = examples.div_ceil(chunk).max(1);
    let roundings = (chunk as f64 + f64::from(depth(chunks)) + 1.0) * (f64::EPSILON / 2.0);
    if roundings >= 0.5 {
        return Ok(f64::INFINITY);
    }
    // A few roundings to nearest of positive numbers, made up for.
    Ok(2.0 * examples as f64 * roundings / (1.0 - roundings) * (1.0 + 16.0 * f64::EPSILON))
}

/// Additions on the way of one of `chunks` sums to the sum of all, joined in halves: ceil(log2(chunks)).
fn depth(chunks: usize) -> u32 {
    chunks.next_power_of_two().trailing_zeros()
}
