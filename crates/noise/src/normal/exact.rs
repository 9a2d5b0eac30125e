//! Normals with twice the digits of double precision. They decide the rounding of the rare sums that are
//! close to the middle between two grid points.

use zeroize::Zeroizing;

use crate::keystream::{GROUP_BYTES, Keystream};

/// A double-double number hi + lo, where |lo| is at most half a unit in the last place of hi.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoubleDouble {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

impl DoubleDouble {
    pub(crate) fn of(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }

    fn sum_of(a: f64, b: f64) -> Self {
        let hi = a + b;
        let part = hi - a;
        Self { hi, lo: (a - (hi - part)) + (b - part) }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = Self::sum_of(self.hi, other.hi);
        let low = Self::sum_of(self.lo, other.lo);
        let sum = Self::sum_of(sum.hi, sum.lo + low.hi);
        Self::sum_of(sum.hi, sum.lo + low.lo)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let hi = self.hi * other.hi;
        let lo = self.hi.mul_add(other.hi, -hi) + (self.hi * other.lo + self.lo * other.hi);
        Self::sum_of(hi, lo)
    }

    fn over(self, other: Self) -> Self {
        let first = Self::of(self.hi / other.hi);
        let rest = self.plus(first.times(other).negated());
        let second = Self::of(rest.hi / other.hi);
        let rest = rest.plus(second.times(other).negated());
        first.plus(second).plus(Self::of(rest.hi / other.hi))
    }

    fn negated(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }

    /// Returns the number times 2^power.
    fn scaled(self, power: i32) -> Self {
        let factor = 2f64.powi(power);
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }

    fn root(self) -> Self {
        let first = Self::of(self.hi.sqrt());
        let rest = self.plus(first.times(first).negated());
        first.plus(Self::of(rest.hi / (2.0 * first.hi)))
    }

    fn of_integer(n: i128) -> Self {
        let hi = n as f64;
        Self::sum_of(hi, n.wrapping_sub(hi as i128) as f64)
    }
}

const LN_2: DoubleDouble = DoubleDouble { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };
const HALF_PI: DoubleDouble = DoubleDouble { hi: std::f64::consts::FRAC_PI_2, lo: 6.123_233_995_736_766e-17 };

/// Returns the normal at `coordinate` of a keystream for double precision, within 2^-90 of the exact
/// transform of all its random bits: 128 for the radius and 128 for the angle.
pub(crate) fn exact_normal(keystream: &Keystream, coordinate: u64) -> DoubleDouble {
    let (group, lane) = (coordinate / 16, coordinate as usize % 16);
    let mut bits = Zeroizing::new([0; GROUP_BYTES]);
    keystream.fill(group, &mut *bits);
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| bits[8 * i + b]));
    let [more_radius, more_angle] = keystream.extra(group * 8 + lane as u64 % 8);
    let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let radius = radius(join(word(lane % 8), more_radius));
    let (cosine, sine) = unit_circle(join(word(lane % 8 + 8), more_angle));
    radius.times(if lane < 8 { cosine } else { sine })
}

/// Returns sqrt(-2 ln u) for u = (word + 1/2) 2^-128.
pub(super) fn radius(word: u128) -> DoubleDouble {
    let ln = if word >> 127 == 1 {
        // u = 1 - x: ln u = -2 atanh(x / (2 - x)).
        let x = DoubleDouble::of_integer((!word) as i128).plus(DoubleDouble::of(0.5)).scaled(-128);
        atanh_twice(x.over(DoubleDouble::of(2.0).plus(x.negated()))).negated()
    } else {
        let x = DoubleDouble::of_integer(word as i128).plus(DoubleDouble::of(0.5));
        let exponent = (x.hi * std::f64::consts::SQRT_2).log2().floor() as i32;
        let m = x.scaled(-exponent);
        let s = m.plus(DoubleDouble::of(-1.0)).over(m.plus(DoubleDouble::of(1.0)));
        atanh_twice(s).plus(LN_2.times(DoubleDouble::of(f64::from(exponent - 128))))
    };
    ln.negated().scaled(1).root()
}

/// Returns 2 atanh s = 2 s (1 + s^2/3 + s^4/5 + ...) for |s| <= 1/3.
fn atanh_twice(s: DoubleDouble) -> DoubleDouble {
    let square = s.times(s);
    let mut sum = DoubleDouble::of(0.0);
    for k in (0..34).rev() {
        sum = sum.times(square).plus(DoubleDouble::of(1.0).over(DoubleDouble::of(f64::from(2 * k + 1))));
    }
    sum.times(s).scaled(1)
}

/// Returns (cos theta, sin theta) for theta = 2 pi (word + 1/2) 2^-128.
pub(super) fn unit_circle(word: u128) -> (DoubleDouble, DoubleDouble) {
    let quadrant = word.wrapping_add(1 << 125) >> 126;
    let rest = DoubleDouble::of_integer((word << 2) as i128).plus(DoubleDouble::of(2.0)).scaled(-128);
    let x = rest.times(HALF_PI);
    let (sine, cosine) = (series(x, 1), series(x, 0));
    match quadrant {
        0 => (cosine, sine),
        1 => (sine.negated(), cosine),
        2 => (cosine.negated(), sine.negated()),
        _ => (sine, cosine.negated()),
    }
}

/// Returns the sine of x (`first` = 1) or the cosine (`first` = 0) by its Taylor series, for |x| <= pi / 4.
fn series(x: DoubleDouble, first: u32) -> DoubleDouble {
    let square = x.times(x).negated();
    let mut sum = DoubleDouble::of(1.0);
    for k in (1..16).rev() {
        let n = f64::from(2 * k + first);
        sum = sum.times(square).over(DoubleDouble::of(n * (n - 1.0))).plus(DoubleDouble::of(1.0));
    }
    if first == 1 { sum.times(x) } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of `scripts/noise/exact_normals.py`, which computes 60 digits.
    #[test]
    fn radius_and_unit_circle_match_sixty_digits() {
        for (word, hi, lo) in RADII {
            let found = radius(word).plus(DoubleDouble { hi, lo }.negated());
            assert!((found.hi + found.lo).abs() < 2f64.powi(-93), "{word:x}: {found:?}");
        }
        for (word, cosine, cosine_low, sine, sine_low) in TURNS {
            let found = unit_circle(word);
            for (found, hi, lo) in [(found.0, cosine, cosine_low), (found.1, sine, sine_low)] {
                let off = found.plus(DoubleDouble { hi, lo }.negated());
                assert!((off.hi + off.lo).abs() < 2f64.powi(-96), "{word:x}: {off:?}");
            }
        }
    }

    include!("../../tests/golden/exact_normals.rs");
}
