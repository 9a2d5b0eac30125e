//! Instruction sets, which are chosen at run time. All of them give the same bits.
//!
//! A value of type [`Avx512`], [`Avx2`] or [`VectorAes`] proves that this processor has the instructions:
//! only this file can create one, after detecting them. Functions that need the instructions take the proof
//! as an argument.

/// AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

/// AVX-512 F, DQ, BW and VL, in addition to [`Avx2`].
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

/// AES instructions on vectors of 512 bits and on single blocks, in addition to [`Avx512`].
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorAes(Avx512);

#[cfg(target_arch = "x86_64")]
impl VectorAes {
    /// The proof that the processor has AVX-512.
    pub(crate) fn avx512(self) -> Avx512 {
        self.0
    }
}

/// The instructions that every processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portable;

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
}

impl Isa {
    /// Returns the fastest instruction set of this processor.
    pub(crate) fn detect() -> Self {
        Self::available()[0]
    }

    /// Returns all instruction sets of this processor, the fastest first.
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

    /// The proof of vector AES, if this instruction set is AVX-512 and the processor has vector AES.
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
