//! Normal and chi-squared tails, by their own functions rather than approximations: thresholds must be exact.

use std::f64::consts::SQRT_2;

/// Scores are cut here: tails beyond are below the smallest double.
const LARGEST_SCORE: f64 = 38.0;

/// P(Z > z) for a standard normal Z.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// z with P(Z > z) = `tail`, for a tail from 0 to 1; at most 38 in magnitude.
pub fn normal_quantile(tail: f64) -> f64 {
    let (mut low, mut high) = (-LARGEST_SCORE, LARGEST_SCORE);
    // Halving an interval of 76 this often leaves neighbouring doubles.
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if normal_tail(middle) > tail { low = middle } else { high = middle }
    }
    high
}

/// (P(X <= x), P(X > x)) for X chi-squared with `freedom` degrees of freedom.
pub fn chi_squared_tails(x: f64, freedom: f64) -> (f64, f64) {
    let (a, x) = (0.5 * freedom, 0.5 * x);
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let lower = front * series(a, x);
        (lower, 1.0 - lower)
    } else {
        let upper = front * fraction(a, x);
        (1.0 - upper, upper)
    }
}

/// 1/a + x/(a (a+1)) + x^2/(a (a+1) (a+2)) + ...
fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut next) = (1.0 / a, 1.0 / a, a);
    while term > sum * 1e-17 {
        next += 1.0;
        term *= x / next;
        sum += term;
    }
    sum
}

/// The continued fraction of the upper incomplete gamma function, by Lentz's method.
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut value = d;
    let mut i = 1.0;
    loop {
        let numerator = -i * (i - a);
        b += 2.0;
        d = numerator * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + numerator / c;
        c = if c.abs() < TINY { TINY } else { c };
        value *= d * c;
        if (d * c - 1.0).abs() < 1e-15 || i > 1e7 {
            return value;
        }
        i += 1.0;
    }
}

/// A chi-squared sum as the normal score with the same tail: beyond z in magnitude with the probability of a normal.
pub fn chi_squared_score(x: f64, freedom: f64) -> f64 {
    let (lower, upper) = chi_squared_tails(x, freedom);
    if lower < upper { -normal_quantile(lower) } else { normal_quantile(upper) }
}

/// x with P(X <= x) = `tail` for X chi-squared.
pub fn chi_squared_lower_quantile(tail: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, freedom.max(1.0));
    while chi_squared_tails(high, freedom).0 < tail {
        high *= 2.0;
    }
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if chi_squared_tails(middle, freedom).0 > tail { high = middle } else { low = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against scipy 1.17.1: norm.isf, chi2.ppf and chi2.sf.
    #[test]
    fn quantiles_are_scipys() {
        let close =
            |x: f64, y: f64, relative: f64| assert!((x / y - 1.0).abs() < relative, "{x} against {y}");
        close(normal_quantile(1e-3), 3.090_232_306_167_813, 1e-13);
        close(normal_quantile(1e-12), 7.034_483_825_301_131, 1e-13);
        assert_eq!(normal_quantile(0.0), LARGEST_SCORE);
        close(chi_squared_lower_quantile(1e-4, 10.0), 0.888_920_357_912_895_9, 1e-12);
        close(chi_squared_lower_quantile(0.025, 1e6), 997_230.087_143_290_1, 1e-11);
        close(chi_squared_tails(30.7, 3.0).1, 9.831_078_401_976_192e-7, 1e-12);
    }

    #[test]
    fn scores_have_normal_tails() {
        for freedom in [1.0, 7.0, 300.0, 2e6] {
            for tail in [1e-6, 0.2, 0.7] {
                let x = chi_squared_lower_quantile(tail, freedom);
                let score = chi_squared_score(x, freedom);
                assert!((normal_tail(-score) / tail - 1.0).abs() < 1e-6, "{freedom} {tail}: {score}");
            }
        }
    }
}
