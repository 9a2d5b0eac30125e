//! Instruction sets, chosen at run time; every one gives the same bits.
//!
//! Hot loops are written once, in plain Rust over slices, with fused multiply-adds spelled out. [`per_isa`] compiles
//! them once for each instruction set; the compiler never reorders or fuses floating-point operations by itself, so
//! the sets differ in speed alone. Outside x86-64 the target's own baseline (NEON on AArch64) is used.
//!
//! A value of type [`Avx512`], [`Avx2`] or [`VectorAes`] proves that this processor has those instructions: only this
//! file can make one, and only after it has found them. Whatever needs them takes the proof as an argument.

/// AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

/// AVX-512 F, DQ, BW and VL, and what [`Avx2`] proves.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

/// AES on vectors of 512 bits and on single blocks, and what [`Avx512`] proves.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorAes(Avx512);

#[cfg(target_arch = "x86_64")]
impl VectorAes {
    /// The part without AES.
    pub(crate) fn avx512(self) -> Avx512 {
        self.0
    }
}

/// Any processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portable;

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
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
                return &[Self::Avx512(Avx512(())), Self::Avx2(Avx2(())), Self::Portable(Portable)];
            }
            if avx2 {
                return &[Self::Avx2(Avx2(())), Self::Portable(Portable)];
            }
        }
        &[Self::Portable(Portable)]
    }

    /// Vector AES beside this set, where it is AVX-512 and the processor has it.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn vector_aes(self) -> Option<VectorAes> {
        match self {
            Self::Avx512(set) if is_x86_feature_detected!("aes") && is_x86_feature_detected!("vaes") => {
                Some(VectorAes(set))
            }
            _ => None,
        }
    }
}

/// Defines a function that takes an [`Isa`] first and is compiled once for each. Written `name<set>[T: Bound](..)`, its
/// body has the proof of the instruction set as `set`.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$set:ident>)? $([$t:ident: $bound:path])?
     ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<$t: $bound>)? (isa: $crate::simd::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$t: $bound>)? ($($set: impl $crate::simd::Instructions,)? $($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
            fn avx512 $(<$t: $bound>)? ($($set: $crate::simd::Avx512,)? $($arg: $ty),*) $(-> $ret)? {
                body($($set,)? $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$t: $bound>)? ($($set: $crate::simd::Avx2,)? $($arg: $ty),*) $(-> $ret)? {
                body($($set,)? $($arg),*)
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the value `_set` exists only where `Isa::available` found these features.
                $crate::simd::Isa::Avx512(_set) => unsafe { avx512($({ let $set = _set; $set },)? $($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::simd::Isa::Avx2(_set) => unsafe { avx2($({ let $set = _set; $set },)? $($arg),*) },
                $crate::simd::Isa::Portable(_set) => body($({ let $set = _set; $set },)? $($arg),*),
            }
        }
    };
}
pub(crate) use per_isa;
