//! The number types of noise, with their arithmetic, their bytes, and wiping.

use std::ops::{Add, Mul};

use safetensors::Dtype;
use zeroize::Zeroize;

/// A number of 4 or 8 bytes, in memory and in files.
pub trait Number: Copy + Default + Send + Sync + Zeroize + 'static {
    /// The number's safetensors type.
    const DTYPE: Dtype;

    /// Appends the number's bytes, little-endian.
    fn append_to(self, bytes: &mut Vec<u8>);

    /// The number with these bytes, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Whether the state of a stream can hold this number. Streams whose noise could leave the range of their
    /// precision are not built, so it cannot hold NaN or infinity nor, in double precision, sizes near the
    /// largest, sums of which would be infinite.
    fn can_be_state(self) -> bool;

    /// The number's bits; those of a 4-byte number are in the lower half.
    fn bits(self) -> u64;

    /// The number with these bits.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! numbers {
    ($($number:ty: $name:ident of $bits:ty, $to:expr, $from:expr, $in_range:expr;)*) => {$(
        impl Number for $number {
            const DTYPE: Dtype = Dtype::$name;

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(std::array::from_fn(|i| bytes[i]))
            }

            fn can_be_state(self) -> bool {
                $in_range(self)
            }

            fn bits(self) -> u64 {
                u64::from($to(self))
            }

            fn from_bits(bits: u64) -> Self {
                $from(bits as $bits)
            }
        }
    )*};
}

numbers! {
    f32: F32 of u32, f32::to_bits, f32::from_bits, f32::is_finite;
    f64: F64 of u64, f64::to_bits, f64::from_bits, |x: f64| x.abs() <= 1e300;
    i32: I32 of u32, i32::cast_unsigned, u32::cast_signed, |_| true;
}

/// A floating-point precision.
pub trait Real: Number + Add<Output = Self> + Mul<Output = Self> {
    /// `x` rounded to this precision.
    fn rounded(x: f64) -> Self;

    /// This number in double precision.
    fn widened(self) -> f64;

    /// self * factor + term, rounded once.
    fn times_plus(self, factor: Self, term: Self) -> Self;
}

macro_rules! reals {
    ($($real:ty),*) => {$(
        impl Real for $real {
            #[inline(always)]
            fn rounded(x: f64) -> Self {
                x as $real
            }

            #[inline(always)]
            fn widened(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn times_plus(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
        }
    )*};
}

reals!(f32, f64);
