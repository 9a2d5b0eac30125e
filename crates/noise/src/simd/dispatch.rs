//! A macro that compiles a function for several instruction sets.
//!
//! Hot loops are written once, in plain Rust over slices, with explicit fused multiply-adds. [`per_isa`]
//! compiles them for each instruction set. The compiler never reorders or fuses floating-point operations, so
//! that instruction sets differ only in speed. Outside x86-64 the target's baseline (NEON on AArch64) is
//! used.

/// Defines a function whose first argument is an [`Isa`], and compiles it for each instruction set. In the
/// form `name<set>[T: Bound](..)`, `set` is the proof of the instruction set in the body.
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
