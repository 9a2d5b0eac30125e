//! Rounding of a clipped sum in double precision. A plan allows for it by a wider clip norm
//! (`antinoise_plan::Plan::widened_clip_norm`); a trainer compares the two before its first step.

use antinoise_input::{InvalidParameter, at_least};

/// Bound on the effect of double precision on the sensitivity of [`clipped_sum`](super::clipped_sum), in clip
/// norms, rounded up: with at most `examples` examples in a batch, adding or removing one example changes the
/// sum by at most clip_norm (1 + margin), in any order, and replacing it by at most twice that.
///
/// ```text
/// margin = 2 m gamma_k,  gamma_k = k u / (1 - k u),  u = 2^-53,  k = chunk + ceil(log2(ceil(m / chunk))) + 1
/// ```
///
/// for m examples in chunks of `chunk`, where k bounds the number of roundings of a term on its way to the
/// sum. `docs/training.md` has the proof.
///
/// ```
/// use antinoise_train::clip::sum_margin;
/// assert!(sum_margin(500, 20)? < 3e-12 && sum_margin(1_000_000, 64)? < 2e-8);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// If `chunk` is 0.
pub fn sum_margin(examples: usize, chunk: usize) -> Result<f64, InvalidParameter> {
    let chunk = at_least("chunk", chunk, 1)?;
    Ok(margin(examples, chunk, examples.div_ceil(chunk)))
}

/// Bound on the effect of double precision on the sensitivity of
/// [`clipped_user_sum`](super::clipped_user_sum), as [`sum_margin`] with users in place of examples: a user's
/// clipped gradient is one term, and chunks may be as many as users, so that k = chunk + ceil(log2(m)) + 1.
///
/// ```
/// use antinoise_train::clip::{sum_margin, user_sum_margin};
/// assert!(user_sum_margin(500, 20)? < 4e-12 && user_sum_margin(500, 20)? >= sum_margin(500, 20)?);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// If `chunk` is 0.
pub fn user_sum_margin(users: usize, chunk: usize) -> Result<f64, InvalidParameter> {
    Ok(margin(users, at_least("chunk", chunk, 1)?, users))
}

/// 2 `terms` gamma_k, where `terms` terms are added in `chunks` sums of at most `chunk` terms, and these in a
/// tree.
fn margin(terms: usize, chunk: usize, chunks: usize) -> f64 {
    let roundings = (chunk as f64 + f64::from(depth(chunks.max(1))) + 1.0) * (f64::EPSILON / 2.0);
    if roundings >= 0.5 {
        return f64::INFINITY;
    }
    // The last factor covers the roundings of this formula itself.
    2.0 * terms as f64 * roundings / (1.0 - roundings) * (1.0 + 16.0 * f64::EPSILON)
}

/// Number of additions of a chunk's sum on its way to the total of `chunks` sums, joined in halves:
/// ceil(log2(chunks)).
fn depth(chunks: usize) -> u32 {
    chunks.next_power_of_two().trailing_zeros()
}
