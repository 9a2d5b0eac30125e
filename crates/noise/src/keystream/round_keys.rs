//! The round keys of AES-256, for vector instructions.

use std::arch::x86_64::*;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::simd::VectorAes;

/// The 15 round keys of AES-256.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct RoundKeys(pub(crate) [[u64; 2]; 15]);

impl RoundKeys {
    /// Expands `key` (FIPS 197, 5.2).
    pub(super) fn new(_: VectorAes, key: &[u8; 32]) -> Self {
        // SAFETY: the argument proves AES instructions; every x86-64 processor has SSE2.
        unsafe { Self::expanded(key) }
    }

    #[target_feature(enable = "aes,sse2")]
    fn expanded(key: &[u8; 32]) -> Self {
        let half = |at: usize| _mm_set_epi64x(word(key, at + 8) as i64, word(key, at) as i64);
        let (mut even, mut odd) = (half(0), half(16));
        let mut keys = [even; 15];
        keys[1] = odd;
        macro_rules! expand {
            ($($at:literal: $constant:literal),*) => {$(
                even = mix::<0xFF>(even, _mm_aeskeygenassist_si128::<$constant>(odd));
                odd = mix::<0xAA>(odd, _mm_aeskeygenassist_si128::<0>(even));
                (keys[$at], keys[$at + 1]) = (even, odd);
            )*};
        }
        expand!(2: 0x01, 4: 0x02, 6: 0x04, 8: 0x08, 10: 0x10, 12: 0x20);
        keys[14] = mix::<0xFF>(even, _mm_aeskeygenassist_si128::<0x40>(odd));
        Self(
            keys.map(|key| {
                [_mm_cvtsi128_si64(key) as u64, _mm_cvtsi128_si64(_mm_srli_si128::<8>(key)) as u64]
            }),
        )
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// One step of the key expansion: the prefix xor of the four words of `key`, xor the word of `assist` that
/// `WORD` selects.
#[inline]
#[target_feature(enable = "sse2")]
fn mix<const WORD: i32>(mut key: __m128i, assist: __m128i) -> __m128i {
    key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
    _mm_xor_si128(key, _mm_shuffle_epi32::<WORD>(assist))
}
