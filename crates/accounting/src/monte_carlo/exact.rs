//! The exact delta of a mixture of normals, by the trapezoid rule, with which tests compare Monte Carlo.

/// One mean of a mixture, in units of the noise, and its probability.
pub(crate) type Component = (Vec<f64>, f64);

/// The inner product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// delta at `epsilon` of the mixture of N(m, 1) against N(0, 1), in at most three dimensions, for the removal
/// and for the addition of an example.
pub(crate) fn deltas(mixture: &[Component], epsilon: f64) -> [f64; 2] {
    let dimensions = mixture[0].0.len();
    let spacing: f64 = if dimensions < 3 { 0.04 } else { 0.16 };
    let farthest = mixture.iter().flat_map(|(mean, _)| mean).fold(0.0f64, |most, entry| most.max(*entry));
    let (first, count) = ((-7.0 / spacing).floor(), ((14.0 + farthest) / spacing).ceil() as usize);
    let halves: Vec<f64> = mixture.iter().map(|(mean, chance)| chance.ln() - 0.5 * dot(mean, mean)).collect();
    let mut sums = [0.0; 2];
    let mut y = vec![0.0; dimensions];
    for cell in 0..count.pow(dimensions as u32) {
        let mut rest = cell;
        for y in &mut y {
            *y = (first + (rest % count) as f64) * spacing;
            rest /= count;
        }
        let density = (-0.5 * dot(&y, &y)).exp();
        let ratio: f64 =
            mixture.iter().zip(&halves).map(|((mean, _), half)| (dot(mean, &y) + half).exp()).sum();
        sums[0] += density * (ratio - epsilon.exp()).max(0.0);
        sums[1] += density * (1.0 - epsilon.exp() * ratio).max(0.0);
    }
    sums.map(|sum| sum * (spacing / std::f64::consts::TAU.sqrt()).powi(dimensions as i32))
}

#[test]
fn one_mean_is_a_gaussian_release() {
    for mean in [vec![0.7], vec![0.6, 0.8], vec![0.6, 0.0, 0.8]] {
        let exact = crate::Gdp::new(dot(&mean, &mean).sqrt()).unwrap().delta_to_nearest(0.5).unwrap();
        for found in deltas(&[(mean, 1.0)], 0.5) {
            assert!((found / exact - 1.0).abs() < 1e-3, "{found} {exact}");
        }
    }
}
