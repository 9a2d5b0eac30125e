//! Likelihood ratios of a canary's participation, given the noisy sums along its direction.

use crate::operator::Operator;

/// The possible participations of a canary, as known to an observer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turns {
    /// The canary takes part in all of these steps.
    Known(Vec<usize>),
    /// The canary takes part in all steps of one of these lists, which is drawn uniformly.
    OneOf(Vec<Vec<usize>>),
    /// The canary takes part in each of these steps independently with this probability. No row of C has
    /// non-zero entries for two of the steps.
    Sampled(Vec<usize>, f64),
}

/// The log of the likelihood of `noisy` with the canary over the likelihood without it. `noisy` is G +
/// C^-1 Z along the canary's direction, one entry per step, where G is 1 at the steps of the canary's
/// participations and Z has standard deviation `noise_std`. For participations with indicator e the ratio is
///
/// > exp(<y, q> / nu^2 - |q|^2 / (2 nu^2)),   y = C noisy, q = C e,
///
/// and for random participations it is the mean of these ratios.
pub(crate) fn log_likelihood_ratio(
    whitening: &Operator,
    turns: &Turns,
    noisy: &[f64],
    noise_std: f64,
) -> f64 {
    let y = whitening.apply(noisy);
    let exponent = |steps: &[usize]| {
        let mut indicator = vec![0.0; noisy.len()];
        steps.iter().for_each(|&step| indicator[step] = 1.0);
        let q = whitening.apply(&indicator);
        let product: f64 = y.iter().zip(&q).map(|(y, q)| q * (y - 0.5 * q)).sum();
        product / (noise_std * noise_std)
    };
    match turns {
        Turns::Known(steps) => exponent(steps),
        Turns::OneOf(lists) => {
            let exponents: Vec<f64> = lists.iter().map(|steps| exponent(steps)).collect();
            let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = exponents.iter().map(|x| (x - largest).exp()).sum();
            largest + (sum / lists.len() as f64).ln()
        }
        Turns::Sampled(steps, probability) => {
            steps.iter().map(|&step| mixed(exponent(&[step]), *probability)).sum()
        }
    }
}

/// ln (1 - p + p e^x), without overflow for large x.
fn mixed(x: f64, p: f64) -> f64 {
    if x > 0.0 { x + (p + (1.0 - p) * (-x).exp()).ln() } else { (p * x.exp_m1()).ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with explicit densities: two steps, C = ((1, 0), (c, 1)).
    #[test]
    fn ratios_are_those_of_the_densities() {
        let (c, nu) = (0.5, 0.7);
        let whitening = Operator::Toeplitz(vec![1.0, c]);
        let density = |noisy: [f64; 2], g: [f64; 2]| {
            let [x, y] = [noisy[0] - g[0], noisy[1] - g[1]];
            let (z0, z1): (f64, f64) = (x, c * x + y);
            f64::exp(-0.5 * (z0 * z0 + z1 * z1) / (nu * nu))
        };
        for noisy in [[0.0, 0.0], [1.0, 1.0], [-3.0, 0.4], [2.0, -5.0]] {
            let without = density(noisy, [0.0, 0.0]);
            let holds = |turns: Turns, with: f64| {
                let found = log_likelihood_ratio(&whitening, &turns, &noisy, nu);
                let exact = (with / without).ln();
                assert!(
                    (found - exact).abs() < 1e-12 * (1.0 + exact.abs()),
                    "{turns:?} {noisy:?}: {found} {exact}"
                );
            };
            holds(Turns::Known(vec![0, 1]), density(noisy, [1.0, 1.0]));
            let second = density(noisy, [0.0, 1.0]);
            holds(Turns::Sampled(vec![1], 0.3), 0.7 * without + 0.3 * second);
            holds(Turns::OneOf(vec![vec![0], vec![1]]), 0.5 * (density(noisy, [1.0, 0.0]) + second));
        }
        assert_eq!(mixed(1e4, 0.5), 1e4 + 0.5f64.ln());
        assert_eq!(mixed(-1e4, 0.5), 0.5f64.ln());
        assert_eq!(mixed(-1e4, 1.0), f64::NEG_INFINITY);
    }
}
