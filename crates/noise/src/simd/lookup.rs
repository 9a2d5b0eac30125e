//! Operations with an implementation for each instruction set: polynomials from tables, table look-ups, and
//! copies directly to main memory.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::isa::Portable;
#[cfg(target_arch = "x86_64")]
use super::isa::{Avx2, Avx512};
use super::memory::Lines;
use crate::number::Number;

/// The numbers of one vector register.
pub(crate) type F32s = [f32; 16];

/// The coefficients of several polynomials (pieces), by power, then by piece.
pub type Pieces<const P: usize> = [[f32; 32]; P];

/// The operations that are implemented for each instruction set. All give the same bits, since the order of
/// operations is the same.
pub trait Instructions: Copy {
    /// Evaluates, at t\[i\], the polynomial that the low five bits of piece\[i\] select.
    fn polynomial<const P: usize>(self, table: &Pieces<P>, piece: &[u32; 16], t: &F32s) -> F32s;

    /// Looks up numbers by the low four bits of `index`.
    #[inline(always)]
    fn pick(self, table: &[f64; 16], index: &[u64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| table[index[i] as usize % 16])
    }

    /// Whether [`Instructions::write_lines`] writes directly to main memory.
    #[inline(always)]
    fn streams(self) -> bool {
        false
    }

    /// Writes whole cache lines.
    #[inline(always)]
    fn write_lines<T: Number>(self, from: &[T], to: Lines<'_, T>) {
        to.write(from);
    }
}

#[inline(always)]
fn polynomial_at<const P: usize>(table: &Pieces<P>, piece: u32, t: f32) -> f32 {
    let at = |power: usize| table[power][piece as usize % 32];
    (0..P - 1).rev().fold(at(P - 1), |z, power| z.mul_add(t, at(power)))
}

impl Instructions for Portable {
    #[inline(always)]
    fn polynomial<const P: usize>(self, table: &Pieces<P>, piece: &[u32; 16], t: &F32s) -> F32s {
        std::array::from_fn(|i| polynomial_at(table, piece[i], t[i]))
    }
}

/// AVX-512 looks up a coefficient by one instruction, since a row of the table fits in two registers.
#[cfg(target_arch = "x86_64")]
impl Instructions for Avx512 {
    #[inline(always)]
    fn polynomial<const P: usize>(self, table: &Pieces<P>, piece: &[u32; 16], t: &F32s) -> F32s {
        let mut found = [0.0; 16];
        // SAFETY: every array has the 64 bytes that are read or written, a row of the table twice that, and
        // `self` proves AVX-512.
        unsafe {
            let (piece, t) = (_mm512_loadu_si512(piece.as_ptr().cast()), _mm512_loadu_ps(t.as_ptr()));
            let at = |power: usize| {
                let row = table[power].as_ptr();
                _mm512_permutex2var_ps(_mm512_loadu_ps(row), piece, _mm512_loadu_ps(row.add(16)))
            };
            let mut z = at(P - 1);
            for power in (0..P - 1).rev() {
                z = _mm512_fmadd_ps(z, t, at(power));
            }
            _mm512_storeu_ps(found.as_mut_ptr(), z);
        }
        found
    }

    #[inline(always)]
    fn pick(self, table: &[f64; 16], index: &[u64; 8]) -> [f64; 8] {
        let mut found = [0.0; 8];
        // SAFETY: the arrays have the 64 bytes that are read or written, the table twice that, and `self`
        // proves AVX-512.
        unsafe {
            let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table.as_ptr().add(8)));
            let index = _mm512_loadu_si512(index.as_ptr().cast());
            _mm512_storeu_pd(found.as_mut_ptr(), _mm512_permutex2var_pd(low, index, high));
        }
        found
    }

    #[inline(always)]
    fn streams(self) -> bool {
        true
    }

    #[inline(always)]
    fn write_lines<T: Number>(self, from: &[T], to: Lines<'_, T>) {
        to.stream(self, from);
    }
}

/// AVX2 looks up pieces 12 to 27, which all but one in 256 words select, in two tables of eight numbers; the
/// other pieces are evaluated one by one.
#[cfg(target_arch = "x86_64")]
impl Instructions for Avx2 {
    #[inline(always)]
    fn polynomial<const P: usize>(self, table: &Pieces<P>, piece: &[u32; 16], t: &F32s) -> F32s {
        const FIRST: usize = 12;
        let mut found = [0.0; 16];
        let mut elsewhere = 0;
        for half in [0, 8] {
            // SAFETY: eight numbers are read or written at 0 and at 8 of arrays of sixteen, and at 12 and 20
            // of rows of 32; `self` proves AVX2 and FMA.
            unsafe {
                let t = _mm256_loadu_ps(t.as_ptr().add(half));
                let piece = _mm256_loadu_si256(piece.as_ptr().add(half).cast());
                let place = _mm256_sub_epi32(piece, _mm256_set1_epi32(FIRST as i32));
                let upper = _mm256_castsi256_ps(_mm256_srai_epi32::<31>(_mm256_slli_epi32::<28>(place)));
                let at = |power: usize| {
                    let row = table[power].as_ptr().add(FIRST);
                    // Xor and mask instead of a blend, which takes three instructions. The compiler computes
                    // the xor of the tables in advance.
                    let (lower, higher) = (_mm256_loadu_ps(row), _mm256_loadu_ps(row.add(8)));
                    let change = _mm256_permutevar8x32_ps(_mm256_xor_ps(lower, higher), place);
                    _mm256_xor_ps(_mm256_permutevar8x32_ps(lower, place), _mm256_and_ps(change, upper))
                };
                let mut z = at(P - 1);
                for power in (0..P - 1).rev() {
                    z = _mm256_fmadd_ps(z, t, at(power));
                }
                _mm256_storeu_ps(found.as_mut_ptr().add(half), z);
                let outside = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(place));
                elsewhere |= (_mm256_movemask_ps(outside) as u32) << half;
            }
        }
        while elsewhere != 0 {
            let i = elsewhere.trailing_zeros() as usize % 16;
            found[i] = polynomial_at(table, piece[i], t[i]);
            elsewhere &= elsewhere - 1;
        }
        found
    }
}
