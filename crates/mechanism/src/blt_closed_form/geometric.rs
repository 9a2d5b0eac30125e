//! Sums of n powers of r = 1 - x and their derivatives in x, accurate for every x in \[0, 1\].

/// If n x is below this bound, the quotients of the closed forms cancel, and power series in x with at most
/// `SERIES_TERMS` terms replace them.
const SERIES_BELOW: f64 = 0.5;
const SERIES_TERMS: usize = 24;

/// Returns (1 - x)^m, where 0^0 is 1.
pub(crate) fn power(m: f64, x: f64) -> f64 {
    if m == 0.0 { 1.0 } else { (m * (-x).ln_1p()).exp() }
}

/// Returns G_n(x) = sum over t < n of (1 - x)^t = -expm1(n log1p(-x)) / x, and dG/dx.
pub(crate) fn sum(n: f64, x: f64) -> (f64, f64) {
    if n == 0.0 {
        return (0.0, 0.0);
    }
    if n * x < SERIES_BELOW {
        return series(n, x, n, 1.0);
    }
    let value = -(n * (-x).ln_1p()).exp_m1() / x;
    (value, (n * power(n - 1.0, x) - value) / x)
}

/// Returns H_n(x) = sum over t < n of (n - t) (1 - x)^t = (n - (1 - x) G_n(x)) / x, and dH/dx.
pub(crate) fn weighted_sum(n: f64, x: f64) -> (f64, f64) {
    if n * x < SERIES_BELOW {
        return series(n, x, 0.5 * n * (n + 1.0), 2.0);
    }
    let (g, dg) = sum(n, x);
    let value = (n - (1.0 - x) * g) / x;
    (value, (g - (1.0 - x) * dg - value) / x)
}

/// Returns the sum over j of (-x)^j binomial(n + order - 1, j + order), and its derivative; `first` is the
/// term j = 0.
fn series(n: f64, x: f64, first: f64, order: f64) -> (f64, f64) {
    let (mut value, mut derivative) = (first, 0.0);
    let mut coefficient = first; // times x^j
    for j in 0..SERIES_TERMS {
        let j = j as f64;
        // binomial(n + order - 1, j + 1 + order) from binomial(n + order - 1, j + order)
        let next = -coefficient * (n - 1.0 - j) / (j + 1.0 + order);
        derivative += (j + 1.0) * next * x.powi(j as i32);
        value += next * x.powi(j as i32 + 1);
        coefficient = next;
        if next == 0.0 {
            break;
        }
    }
    (value, derivative)
}

/// Returns the coefficients of a BLT: c_0 = 1, c_t = sum_i alpha_i (1 - delta_i)^(t-1).
pub(crate) fn coefficients(alpha: &[f64], delta: &[f64], steps: usize) -> Vec<f64> {
    let mut c = vec![0.0; steps];
    c[0] = 1.0;
    for (alpha, delta) in alpha.iter().zip(delta) {
        let mut term = *alpha;
        for c in &mut c[1..] {
            *c += term;
            term -= delta * term;
        }
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_sums_and_derivatives_their_derivatives() {
        for n in [1usize, 2, 3, 10, 1000] {
            for x in [0.0, 1e-12, 1e-6, 4.9e-4, 5.1e-4, 0.01, 0.3, 0.9, 1.0] {
                let r: f64 = 1.0 - x;
                let powers: Vec<f64> = (0..n).map(|t| r.powi(t as i32)).collect();
                let slopes: Vec<f64> =
                    (0..n).map(|t| if t == 0 { 0.0 } else { -(t as f64) * r.powi(t as i32 - 1) }).collect();
                let weight = |t: usize| (n - t) as f64;
                let close = |got: f64, want: f64| {
                    assert!((got - want).abs() <= 2e-12 * want.abs(), "n={n} x={x}: {got} against {want}");
                };
                let (g, dg) = sum(n as f64, x);
                close(g, powers.iter().sum());
                close(dg, slopes.iter().sum());
                let (h, dh) = weighted_sum(n as f64, x);
                close(h, (0..n).map(|t| weight(t) * powers[t]).sum());
                close(dh, (0..n).map(|t| weight(t) * slopes[t]).sum());
            }
        }
    }
}
