//! Scalar functions that the compiler vectorises.

/// e^x with relative error at most 2e-7 for |x| <= 87; x is clamped to that range; NaN for NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, where ln 2 is split in two so that r is exact; e^r by its series of
/// degree 7; the bits of n become the exponent.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// The last bits of the sum of this constant and a number are the integer nearest to the number.
    const ROUND: f32 = 12_582_912.0;
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * HIGH - n * LOW;
    let series = 1.0 / 720.0 + r * (1.0 / 5040.0);
    let series = 1.0 / 24.0 + r * (1.0 / 120.0 + r * series);
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * series)));
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    series * f32::from_bits(exponent << 23)
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    2.0 / (1.0 + exp(-2.0 * x)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_they_are_called() {
        for i in -100_000..=100_000 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x.clamp(-87.0, 87.0)).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 2e-7, "{x}");
            let exact = f64::from(x);
            assert!((f64::from(tanh(x)) - exact.tanh()).abs() < 3e-7, "{x}");
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + (-exact).exp())).abs() < 2e-7, "{x}");
        }
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
        assert_eq!((tanh(f32::INFINITY), sigmoid(f32::NEG_INFINITY) < 1e-37), (1.0, true));
    }
}
