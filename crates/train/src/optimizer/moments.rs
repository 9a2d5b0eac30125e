//! Second moments of noisy numbers, with damping relative to their root mean square.

/// Scales within a factor of 2^40 of 1 keep sums of scaled gradients within the range of double precision.
pub(crate) const MOST_SCALE: f32 = (1u64 << 40) as f32;

/// The square root of the mean of max(v, 0).
pub(super) fn root_mean_square(second: &[f32]) -> f64 {
    let sum: f64 = second.iter().map(|&v| f64::from(v.max(0.0))).sum();
    (sum / second.len() as f64).sqrt()
}

/// s = k / (sqrt(v) + damping rms), with k such that sum of s^2 v = sum of v: scaling keeps the expected
/// length of a gradient with these second moments. 1 everywhere if all of v are 0 or their mean is not
/// finite.
pub(super) fn scales(second: &[f32], damping: f64) -> Vec<f32> {
    let rms = root_mean_square(second);
    if rms == 0.0 || !rms.is_finite() {
        return vec![1.0; second.len()];
    }
    let damped = |v: f32| f64::from(v).sqrt() + damping * rms;
    let (before, after) = second.iter().fold((0.0, 0.0), |(before, after), &v| {
        (before + f64::from(v), after + f64::from(v) / damped(v).powi(2))
    });
    let k = (before / after).sqrt();
    second.iter().map(|&v| ((k / damped(v)) as f32).clamp(1.0 / MOST_SCALE, MOST_SCALE)).collect()
}
