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

/// Starts at a cache line, so that no vector of it lies across two.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// Looks sixteen numbers up in a table of 32, by the low five bits of their indices.
pub(crate) trait Lookup {
    fn pick(table: &[f32; 32], index: &[u32; 16]) -> [f32; 16];
}

/// For any processor.
pub(crate) struct Indexed;

impl Lookup for Indexed {
    #[inline(always)]
    fn pick(table: &[f32; 32], index: &[u32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| table[index[i] as usize % 32])
    }
}

/// One instruction with the table in two registers. Only for functions compiled for AVX-512.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Permuted;

#[cfg(target_arch = "x86_64")]
impl Lookup for Permuted {
    #[inline(always)]
    fn pick(table: &[f32; 32], index: &[u32; 16]) -> [f32; 16] {
        use std::arch::x86_64::{
            _mm512_loadu_ps, _mm512_loadu_si512, _mm512_permutex2var_ps, _mm512_storeu_ps,
        };
        let mut found = [0.0; 16];
        // SAFETY: the arrays have the 64 bytes that are read and written, and callers are compiled for AVX-512.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(table.as_ptr()), _mm512_loadu_ps(table.as_ptr().add(16)));
            let index = _mm512_loadu_si512(index.as_ptr().cast());
            _mm512_storeu_ps(found.as_mut_ptr(), _mm512_permutex2var_ps(low, index, high));
        }
        found
    }
}

/// Asks for `numbers` to be brought near, without waiting.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(LINE / size_of::<T>()) {
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
