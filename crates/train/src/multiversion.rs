//! Functions compiled once for each instruction set and chosen at run time.

/// Defines a function whose body is compiled for AVX-512, for AVX2 and for the baseline processor. No
/// operations are fused or reordered, so that all versions give the same bits.
///
/// The body is written into each compiled function: a closure passed to a dispatcher would be inlined only if
/// the compiler's rules for calls between instruction sets allow it, and loops would otherwise run one number
/// at a time.
#[doc(hidden)]
#[macro_export]
macro_rules! multiversion {
    ($(#[$attribute:meta])* fn $name:ident $(<const $size:ident: usize>)? ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$attribute])*
        fn $name $(<const $size: usize>)? ($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
                fn avx512 $(<const $size: usize>)? ($($argument: $type),*) $body
                #[target_feature(enable = "avx2")]
                fn avx2 $(<const $size: usize>)? ($($argument: $type),*) $body
                if ::std::is_x86_feature_detected!("avx512f")
                    && ::std::is_x86_feature_detected!("avx512vl")
                    && ::std::is_x86_feature_detected!("avx512dq")
                    && ::std::is_x86_feature_detected!("avx512bw")
                    && ::std::is_x86_feature_detected!("avx2")
                {
                    // SAFETY: the processor has the features for which the function is compiled.
                    return unsafe { avx512 $(::<$size>)? ($($argument),*) };
                }
                if ::std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the features for which the function is compiled.
                    return unsafe { avx2 $(::<$size>)? ($($argument),*) };
                }
            }
            fn plain $(<const $size: usize>)? ($($argument: $type),*) $body
            plain $(::<$size>)? ($($argument),*)
        }
    };
}
