//! Whether all lambda of a polynomial P(X) = prod_i (1 + (1 - lambda_i) X) lie in a disc: whether 1 / P
//! decays.

use super::powers::binomial_power;

/// Returns whether |lambda_i| < radius for all i, where P(X) = 1 + sum_k coefficients\[k - 1\] X^k is the
/// product of the factors 1 + (1 - lambda_i) X and radius >= 1. False if a coefficient is not finite.
///
/// 1. Replacing x by x / radius divides every lambda by the radius. It replaces X by X / (radius + (radius -
///    1) X), and P by a polynomial whose coefficients are sums of terms of the same sign as before.
/// 2. |lambda| < 1 if and only if the zero X = -1 / (1 - lambda) has a real part below -1/2.
/// 3. So Routh's criterion decides, applied to P(Y - 1/2).
pub(crate) fn are_within(coefficients: &[f64], radius: f64) -> bool {
    let degree = coefficients.len();
    if coefficients.iter().any(|x| !x.is_finite()) {
        return false;
    }
    let mut shrunk = vec![0.0; degree + 1];
    for (k, coefficient) in std::iter::once(&1.0).chain(coefficients).enumerate() {
        for (j, term) in binomial_power(radius, radius - 1.0, degree - k).into_iter().enumerate() {
            shrunk[k + j] += coefficient * term;
        }
    }
    // Horner's rule for P(Y - 1/2).
    for lowest in 0..degree {
        for k in (lowest..degree).rev() {
            shrunk[k] -= 0.5 * shrunk[k + 1];
        }
    }
    is_hurwitz(&shrunk)
}

/// Returns whether all zeros of sum_k h_k Y^k have negative real parts, for h_0 > 0: whether the first column
/// of Routh's array is positive.
fn is_hurwitz(h: &[f64]) -> bool {
    let row = |from: usize| h.iter().rev().skip(from).step_by(2).copied().collect::<Vec<f64>>();
    let (mut above, mut row) = (row(0), row(1));
    // A comparison with NaN is false.
    while !row.is_empty() {
        if !(above[0] > 0.0 && row[0] > 0.0) {
            return false;
        }
        let ratio = above[0] / row[0];
        let next = above[1..].iter().enumerate();
        let next = next.map(|(i, x)| x - ratio * row.get(i + 1).copied().unwrap_or(0.0)).collect();
        above = std::mem::replace(&mut row, next);
    }
    above[0] > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random poles, real and in pairs, near the circle and near 1: the largest modulus decides.
    #[test]
    fn the_largest_modulus_decides() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut inside, mut outside) = (0, 0);
        for _ in 0..4000 {
            let mut p = vec![1.0];
            let mut largest: f64 = 0.0;
            for _ in 0..1 + (6.0 * random()) as usize {
                let modulus = 1.0 + 10f64.powf(-3.0 * random()) * (random() - 0.8);
                let (factor, modulus) = if random() < 0.5 {
                    let angle = std::f64::consts::PI * 10f64.powf(-3.0 * random());
                    let (re, im) = (1.0 - modulus * angle.cos(), modulus * angle.sin());
                    (vec![1.0, 2.0 * re, re * re + im * im], modulus)
                } else {
                    let delta = 10f64.powf(-4.0 * random());
                    (vec![1.0, delta], 1.0 - delta)
                };
                largest = largest.max(modulus.abs());
                p = crate::toeplitz::multiply(&p, &factor, p.len() + factor.len() - 1);
            }
            for radius in [1.0, 1.001, 1.1] {
                if (largest / radius - 1.0).abs() > 1e-6 {
                    assert_eq!(are_within(&p[1..], radius), largest < radius, "{p:?}: {largest}, {radius}");
                    if largest < radius { inside += 1 } else { outside += 1 }
                }
            }
        }
        assert!(inside > 1000 && outside > 1000, "{inside} {outside}");
    }

    #[test]
    fn the_circle_itself_is_outside_of_radius_one_and_inside_of_a_larger_one() {
        // lambda = 1 twice, lambda = -1, the pair i and -i, and lambda = 0 with 1.
        for on_circle in [vec![0.0, 0.0], vec![2.0], vec![2.0, 2.0], vec![1.0, 0.0]] {
            assert!(!are_within(&on_circle, 1.0), "{on_circle:?}");
            assert!(are_within(&on_circle, 1.001), "{on_circle:?}");
        }
        assert!(are_within(&[], 1.0) && !are_within(&[f64::NAN], 2.0) && !are_within(&[-1.0], 1.5));
    }
}
