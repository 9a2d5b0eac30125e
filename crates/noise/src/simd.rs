//! Instruction sets, chosen at run time; every one gives the same bits.
//!
//! Hot loops are written once, in plain Rust over slices, with fused multiply-adds spelled out. [`per_isa`] compiles
//! them once for each instruction set; the compiler never reorders or fuses floating-point operations by itself, so
//! the sets differ in speed alone. Outside x86-64 the target's own baseline (NEON on AArch64) is used.

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    /// The fastest set of this processor.
    pub(crate) fn detect() -> Self {
        Self::available()[0]
    }

    /// Every set of this processor, fastest first.
    pub(crate) fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return &[Self(Level::Avx512), Self(Level::Avx2), Self(Level::Portable)];
            }
            if avx2 {
                return &[Self(Level::Avx2), Self(Level::Portable)];
            }
        }
        &[Self(Level::Portable)]
    }

    /// The widest set with vector AES, which [`crate::vaes`] fuses with the transform.
    pub(crate) fn has_vector_aes(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.0 == Level::Avx512
            && is_x86_feature_detected!("aes")
            && is_x86_feature_detected!("vaes");
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Numbers of a cache line.
pub(crate) const fn per_line<T>() -> usize {
    LINE / size_of::<T>()
}

/// Starts at a cache line, so that no vector of it lies across two.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// Coefficients by power, then by piece.
pub(crate) type Pieces<const POWERS: usize> = [[f32; 32]; POWERS];

/// Evaluates polynomials that are looked up by the low five bits of `piece`, all in the same order of operations.
pub(crate) trait Lookup {
    fn polynomial<const POWERS: usize>(table: &Pieces<POWERS>, piece: &[u32; 16], t: &[f32; 16])
    -> [f32; 16];

    /// Looks up numbers by the low four bits of `index`.
    #[inline(always)]
    fn pick(table: &[f64; 16], index: &[u64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| table[index[i] as usize % 16])
    }
}

/// For any processor.
pub(crate) struct Indexed;

impl Indexed {
    #[inline(always)]
    fn one<const POWERS: usize>(table: &Pieces<POWERS>, piece: u32, t: f32) -> f32 {
        let at = |power: usize| table[power][piece as usize % 32];
        (0..POWERS - 1).rev().fold(at(POWERS - 1), |z, power| z.mul_add(t, at(power)))
    }
}

impl Lookup for Indexed {
    #[inline(always)]
    fn polynomial<const POWERS: usize>(
        table: &Pieces<POWERS>,
        piece: &[u32; 16],
        t: &[f32; 16],
    ) -> [f32; 16] {
        std::array::from_fn(|i| Self::one(table, piece[i], t[i]))
    }
}

/// One instruction a coefficient, with the table in two registers. Only for functions compiled for AVX-512.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Permuted;

#[cfg(target_arch = "x86_64")]
impl Lookup for Permuted {
    #[inline(always)]
    fn polynomial<const POWERS: usize>(
        table: &Pieces<POWERS>,
        piece: &[u32; 16],
        t: &[f32; 16],
    ) -> [f32; 16] {
        use std::arch::x86_64::{
            _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_permutex2var_ps, _mm512_storeu_ps,
        };
        let mut found = [0.0; 16];
        // SAFETY: every array has the 64 bytes that are read or written, a row of the table twice that, and callers
        // are compiled for AVX-512.
        unsafe {
            let (piece, t) = (_mm512_loadu_si512(piece.as_ptr().cast()), _mm512_loadu_ps(t.as_ptr()));
            let at = |power: usize| {
                let row = table[power].as_ptr();
                _mm512_permutex2var_ps(_mm512_loadu_ps(row), piece, _mm512_loadu_ps(row.add(16)))
            };
            let mut z = at(POWERS - 1);
            for power in (0..POWERS - 1).rev() {
                z = _mm512_fmadd_ps(z, t, at(power));
            }
            _mm512_storeu_ps(found.as_mut_ptr(), z);
        }
        found
    }

    #[inline(always)]
    fn pick(table: &[f64; 16], index: &[u64; 8]) -> [f64; 8] {
        use std::arch::x86_64::{
            _mm512_loadu_pd, _mm512_loadu_si512, _mm512_permutex2var_pd, _mm512_storeu_pd,
        };
        let mut found = [0.0; 8];
        // SAFETY: the arrays have the 64 bytes that are read or written, the table twice that, and callers are
        // compiled for AVX-512.
        unsafe {
            let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table.as_ptr().add(8)));
            let index = _mm512_loadu_si512(index.as_ptr().cast());
            _mm512_storeu_pd(found.as_mut_ptr(), _mm512_permutex2var_pd(low, index, high));
        }
        found
    }
}

/// Two tables of eight for pieces 12 to 27, where all words but one in 256 fall; the others one at a time. Only for
/// functions compiled for AVX2.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Blended;

#[cfg(target_arch = "x86_64")]
impl Lookup for Blended {
    #[inline(always)]
    fn polynomial<const POWERS: usize>(
        table: &Pieces<POWERS>,
        piece: &[u32; 16],
        t: &[f32; 16],
    ) -> [f32; 16] {
        use std::arch::x86_64::*;
        const FIRST: usize = 12;
        let mut found = [0.0; 16];
        let mut elsewhere = 0;
        for half in [0, 8] {
            // SAFETY: eight numbers are read or written at 0 and at 8 of arrays of sixteen, and at 12 and 20 of rows
            // of 32; callers are compiled for AVX2 and FMA.
            unsafe {
                let t = _mm256_loadu_ps(t.as_ptr().add(half));
                let piece = _mm256_loadu_si256(piece.as_ptr().add(half).cast());
                let place = _mm256_sub_epi32(piece, _mm256_set1_epi32(FIRST as i32));
                let upper = _mm256_castsi256_ps(_mm256_srai_epi32::<31>(_mm256_slli_epi32::<28>(place)));
                let at = |power: usize| {
                    let row = table[power].as_ptr().add(FIRST);
                    // Not a blend, which is three instructions inside: the compiler makes the table of changes.
                    let (lower, higher) = (_mm256_loadu_ps(row), _mm256_loadu_ps(row.add(8)));
                    let change = _mm256_permutevar8x32_ps(_mm256_xor_ps(lower, higher), place);
                    _mm256_xor_ps(_mm256_permutevar8x32_ps(lower, place), _mm256_and_ps(change, upper))
                };
                let mut z = at(POWERS - 1);
                for power in (0..POWERS - 1).rev() {
                    z = _mm256_fmadd_ps(z, t, at(power));
                }
                _mm256_storeu_ps(found.as_mut_ptr().add(half), z);
                let outside = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(place));
                elsewhere |= (_mm256_movemask_ps(outside) as u32) << half;
            }
        }
        while elsewhere != 0 {
            let i = elsewhere.trailing_zeros() as usize % 16;
            found[i] = Indexed::one(table, piece[i], t[i]);
            elsewhere &= elsewhere - 1;
        }
        found
    }
}

/// Asks for the lines of `numbers` to be brought near, without waiting.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(per_line::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint, at an address inside the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

/// Defines a function that takes an [`Isa`] first and runs `$body`, an `#[inline(always)]` function, compiled for it.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$t:ident: $bound:path])? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:path) => {
        $(#[$meta])*
        $vis fn $name $(<$t: $bound>)? (isa: $crate::simd::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
            fn avx512 $(<$t: $bound>)? ($($arg: $ty),*) $(-> $ret)? {
                $body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$t: $bound>)? ($($arg: $ty),*) $(-> $ret)? {
                $body($($arg),*)
            }
            match isa.level() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this level exists only where its features were detected.
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                $crate::simd::Level::Portable => $body($($arg),*),
            }
        }
    };
}
pub(crate) use per_isa;
