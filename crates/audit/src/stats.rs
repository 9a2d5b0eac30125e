//! Normal, chi-squared and binomial tails, computed to full precision, since the thresholds of tests must be
//! exact.

use std::f64::consts::SQRT_2;

/// Maximum score; tail probabilities beyond it underflow.
const LARGEST_SCORE: f64 = 38.0;

/// P(Z > z) for a standard normal Z.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// Returns the z with P(Z > z) = `tail`, for a tail from 0 to 1, limited to 38 in absolute value.
pub fn normal_quantile(tail: f64) -> f64 {
    let (mut low, mut high) = (-LARGEST_SCORE, LARGEST_SCORE);
    // 64 bisections of an interval of length 76 end at neighbouring doubles.
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

/// Converts a chi-squared sum to the normal score with the same tail probability.
pub fn chi_squared_score(x: f64, freedom: f64) -> f64 {
    let (lower, upper) = chi_squared_tails(x, freedom);
    if lower < upper { -normal_quantile(lower) } else { normal_quantile(upper) }
}

/// ln P(X = k) for X ~ Binomial(n, p), given ln p and ln (1 - p).
pub fn log_binomial(n: usize, k: usize, log_p: f64, log_q: f64) -> f64 {
    let factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    let choices = factorial(n) - factorial(k) - factorial(n - k);
    choices + k as f64 * log_p + (n - k) as f64 * log_q
}

/// P(X >= k) for X ~ Binomial(n, p), p from 0 to 1.
///
/// For independent trials with unequal probabilities of mean p, this is still an upper bound if k >= n p + 1.
///
/// # Source
/// W. Hoeffding (1956), On the distribution of the number of successes in independent trials, Theorem 4.
pub fn binomial_upper_tail(n: usize, k: usize, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    if p <= 0.0 || k > n {
        return 0.0;
    }
    // Sums the terms on the side of the mean on which k is, from k outwards.
    let mean = n as f64 * p;
    let first = |k: usize| log_binomial(n, k, p.ln(), (-p).ln_1p()).exp();
    let odds = p / (1.0 - p);
    if k as f64 >= mean {
        let (mut term, mut sum) = (first(k), 0.0);
        for j in k..=n {
            sum += term;
            if term <= sum * 1e-17 {
                break;
            }
            term *= odds * (n - j) as f64 / (j + 1) as f64;
        }
        return sum.min(1.0);
    }
    let (mut term, mut sum) = (first(k - 1), 0.0);
    for j in (0..k).rev() {
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
        term *= j as f64 / ((n - j + 1) as f64 * odds);
    }
    (1.0 - sum).max(0.0)
}

/// A lower bound, at confidence 1 - alpha, on the probability of success, after k successes in n trials
/// (Clopper and Pearson); 0 if they prove nothing.
pub fn binomial_lower_bound(n: usize, k: usize, alpha: f64) -> f64 {
    // Hoeffding's bound needs k >= n p + 1.
    let (mut low, mut high) = (0.0, (k as f64 - 1.0) / n as f64);
    if high <= 0.0 || n == 0 {
        return 0.0;
    }
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if binomial_upper_tail(n, k, middle) <= alpha { low = middle } else { high = middle }
    }
    low
}

/// n KL(k / n || p): a sum of n random numbers from 0 to 1 with mean p is at least as far from n p as k, on
/// the same side, with probability at most e to minus this. It holds for independent numbers and for draws
/// without replacement (Hoeffding 1963, Theorems 1 and 4). Infinite if k is impossible.
#[cfg(feature = "train")]
pub fn deviation(n: f64, k: f64, p: f64) -> f64 {
    let part = |seen: f64, expected: f64| if seen == 0.0 { 0.0 } else { seen * (seen / expected).ln() };
    let found = part(k, n * p) + part(n - k, n * (1.0 - p));
    // The result can be negative only by rounding. NaN, for k > n, stays NaN.
    if found < 0.0 { 0.0 } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The x with P(X <= x) = `tail` for X chi-squared.
    fn chi_squared_lower_quantile(tail: f64, freedom: f64) -> f64 {
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

    /// Compared with scipy 1.17.1: norm.isf, chi2.ppf and chi2.sf.
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

    /// Compared with scipy 1.17.1: binom.sf(k - 1, n, p) and beta.ppf(alpha, k, n - k + 1).
    #[test]
    fn binomial_tails_are_scipys() {
        let close =
            |x: f64, y: f64, relative: f64| assert!((x / y - 1.0).abs() < relative, "{x} against {y}");
        close(binomial_upper_tail(10, 8, 0.6), 0.167_289_753_6, 1e-12);
        close(binomial_upper_tail(50_000, 34_900, 0.69), 5.404_267_640_964_949e-5, 1e-8);
        close(binomial_upper_tail(50_000, 34_000, 0.69), 0.999_999_304_173_842, 1e-10);
        close(binomial_lower_bound(50_000, 34_500, 1e-4), 0.682_261_993_102_281_4, 1e-9);
        close(binomial_lower_bound(3000, 2990, 1e-4), 0.990_773_265_476_614_2, 1e-9);
        assert_eq!(binomial_lower_bound(100, 0, 1e-3), 0.0);
        assert_eq!((binomial_upper_tail(5, 0, 0.1), binomial_upper_tail(5, 6, 0.1)), (1.0, 0.0));
    }

    /// e^-deviation bounds each exact tail, and has its order of magnitude.
    #[cfg(feature = "train")]
    #[test]
    fn deviations_bound_tails() {
        for (n, p) in [(20, 0.3), (1000, 0.02), (5000, 0.5)] {
            let mean = (n as f64 * p) as usize;
            for k in [mean + 1, mean + mean / 2, 2 * mean] {
                let (exact, bound) =
                    (binomial_upper_tail(n, k, p), (-deviation(n as f64, k as f64, p)).exp());
                assert!(
                    exact <= bound * (1.0 + 1e-9) && bound < 100.0 * exact.max(1e-290),
                    "{n} {p} {k}: {exact} {bound}"
                );
            }
        }
        assert_eq!((deviation(10.0, 10.0, 1.0), deviation(10.0, 0.0, 0.0)), (0.0, 0.0));
        assert_eq!((deviation(10.0, 9.0, 1.0), deviation(10.0, 1.0, 0.0)), (f64::INFINITY, f64::INFINITY));
        assert!(deviation(10.0, 11.0, 0.5).is_nan());
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
