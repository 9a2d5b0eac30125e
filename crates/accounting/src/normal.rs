//! The Mills ratio of the normal distribution, which represents tails without underflow.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

/// ln sqrt(2 pi).
pub(crate) const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// From this point on, the continued fraction of the Mills ratio converges in [`FRACTION_TERMS`] terms.
const FRACTION_FROM: f64 = 12.0;
const FRACTION_TERMS: u32 = 14;

/// phi(x).
pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x - LN_SQRT_2PI).exp()
}

/// m(x) = Phi(-x) / phi(x) for x >= -1, to about 4 units in the last place.
pub(crate) fn mills(x: f64) -> f64 {
    if x > FRACTION_FROM {
        return 1.0 / (x + fraction(x));
    }
    let t = x * FRAC_1_SQRT_2;
    let square = t * t;
    // exp(t^2) for the t of erfc. The rounding error of t * t is added back; without it, t^2 ulps would be
    // lost.
    let rest = t.mul_add(t, -square);
    FRAC_PI_2.sqrt() * square.exp() * (1.0 + rest) * libm::erfc(t)
}

/// -m'(x) = 1 - x m(x) > 0 for x >= -1, to a relative 1e-13 or better.
pub(crate) fn mills_slope(x: f64) -> f64 {
    if x > FRACTION_FROM {
        let k = fraction(x);
        return k / (x + k);
    }
    (-x).mul_add(mills(x), 1.0)
}

/// 1/(x + 2/(x + 3/(x + ...))), so that m(x) = 1/(x + fraction(x)) and 1 - x m(x) = fraction m(x).
fn fraction(x: f64) -> f64 {
    let mut tail = 0.0;
    for k in (1..=FRACTION_TERMS).rev() {
        tail = f64::from(k) / (x + tail);
    }
    tail
}

/// m(a) - m(b) for -1 <= a < b = a + width, given both ends; to a relative 1e-13.
///
/// If the interval is short compared with the scale on which m changes, the difference would cancel; it is
/// then computed as the integral of -m' > 0 by Gauss-Legendre quadrature.
pub(crate) fn mills_drop(a: f64, b: f64, width: f64) -> f64 {
    if SHORT * width > a.max(1.0) {
        return mills(a) - mills(b);
    }
    let (half, middle) = (0.5 * width, 0.5 * a + 0.5 * b);
    let mean = |(node, weight): (f64, f64)| {
        weight * (mills_slope(middle - half * node) + mills_slope(middle + half * node))
    };
    width * 0.5 * LEGENDRE.into_iter().map(mean).sum::<f64>()
}

/// The mass of N(0, 1) from `a` to `b`, to a relative 1e-13.
pub(crate) fn mass_between(a: f64, b: f64) -> f64 {
    let parts = ((b - a) / WIDEST).ceil();
    let half = 0.5 * (b - a) / parts;
    let part = |middle: f64| -> f64 {
        let of_node = |(node, weight): (f64, f64)| {
            weight * (density(middle - half * node) + density(middle + half * node))
        };
        half * LEGENDRE.into_iter().map(of_node).sum::<f64>()
    };
    (0..parts as usize).map(|i| part(a + half * (2 * i + 1) as f64)).sum()
}

/// Largest interval over which a density is integrated by one rule.
const WIDEST: f64 = 0.05;

/// An interval is integrated if it is at least this factor shorter than the scale on which m changes; the
/// difference over a longer interval loses up to this many ulps.
const SHORT: f64 = 30.0;

/// The positive nodes of the 4-point Gauss-Legendre rule on [-1, 1], with their weights.
const LEGENDRE: [(f64, f64); 2] = [
    (0.339_981_043_584_856_26, 0.652_145_154_862_546_1),
    (0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
];
