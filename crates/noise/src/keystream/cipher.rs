//! Keystreams, which are the random bits of one seed vector and can be read from any position.
//!
//! Every seed vector has its own key, which the cipher (a pseudo-random function) derives from the stream's
//! key and the index of the seed. Within the vector, the cipher's counter is the coordinate. So a bit of
//! noise is a function of (stream's key, seed, coordinate), whatever the order, the shard or the thread. The
//! stream's key has no other use ([`crate::key`]).

use aes::Aes256Enc;
use chacha20::ChaCha20;
use cipher::{
    Array, BlockCipherEncrypt, InnerIvInit, KeyInit, KeyIvInit, StreamCipher, StreamCipherCore,
    StreamCipherSeek,
};
use ctr::{CtrCore, flavors};
use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use super::round_keys::RoundKeys;
use crate::key::Key;
#[cfg(target_arch = "x86_64")]
use crate::simd::Isa;

/// The cipher that generates the random bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cipher {
    /// AES-256 in counter mode: the fastest cipher on processors with AES instructions, which are detected at
    /// run time.
    #[default]
    Aes256Ctr,
    /// ChaCha20 (RFC 8439): fast on processors without AES instructions.
    ChaCha20,
}

impl Cipher {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Aes256Ctr => "aes-256-ctr",
            Self::ChaCha20 => "chacha20",
        }
    }
}

/// Number of bytes of a group, the unit in which keystreams are generated: 32 normals in single precision, or
/// 16 in double precision.
pub(crate) const GROUP_BYTES: usize = 128;
/// Number of blocks of 16 bytes in a group.
pub(crate) const GROUP_BLOCKS: usize = GROUP_BYTES / BLOCK_BYTES;
pub(crate) const BLOCK_BYTES: usize = 16;

/// The key of a stream or of another use, from which keystreams are derived.
pub(crate) struct KeySource {
    master: Keystream,
}

impl KeySource {
    pub(crate) fn new(key: &Key, cipher: Cipher) -> Self {
        Self { master: Keystream::new(cipher, key.bytes()) }
    }

    /// Returns the keystream for `index`, which is a seed or a step.
    pub(crate) fn keystream(&self, index: u64) -> Keystream {
        let mut subkey = Zeroizing::new([0; 32]);
        match &self.master {
            Keystream::Aes(master) => {
                for (half, part) in subkey.chunks_exact_mut(16).enumerate() {
                    part[0] = half as u8;
                    part[8..].copy_from_slice(&index.to_be_bytes());
                    master.cipher.encrypt_block(Array::slice_as_mut_array(part).expect("16 bytes"));
                }
                Keystream::new(Cipher::Aes256Ctr, &subkey)
            }
            Keystream::ChaCha(master) => {
                let mut nonce = [0; 12];
                nonce[4..].copy_from_slice(&index.to_be_bytes());
                ChaCha20::new((&**master).into(), &Array(nonce)).write_keystream(subkey.as_mut_slice());
                Keystream::ChaCha(subkey)
            }
        }
    }
}

/// The random bits of one seed vector.
#[allow(clippy::large_enum_variant)] // One stream holds either all of the one kind or all of the other.
pub(crate) enum Keystream {
    Aes(Aes),
    ChaCha(Zeroizing<[u8; 32]>),
}

impl Keystream {
    fn new(cipher: Cipher, key: &[u8; 32]) -> Self {
        match cipher {
            Cipher::Aes256Ctr => Self::Aes(Aes::new(key)),
            Cipher::ChaCha20 => Self::ChaCha(Zeroizing::new(*key)),
        }
    }

    /// The round keys of AES, on processors with vector AES.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn round_keys(&self) -> Option<&RoundKeys> {
        match self {
            Self::Aes(aes) => aes.rounds.as_ref(),
            Self::ChaCha(_) => None,
        }
    }

    /// Fills `out`, which holds whole groups, with the bits of the groups from `first_group` on.
    pub(crate) fn fill(&self, first_group: u64, out: &mut [u8]) {
        debug_assert!(out.len().is_multiple_of(GROUP_BYTES));
        match self {
            Self::Aes(aes) => fill_aes(&aes.cipher, aes_counter(0, first_group * 8), out),
            Self::ChaCha(key) => fill_chacha(key, 0, first_group * 2, out),
        }
    }

    /// Fills `out`, which holds whole blocks, with the bits of the given blocks.
    pub(crate) fn fill_blocks(&self, blocks: impl Iterator<Item = u64>, out: &mut [u8]) {
        let (places, _) = out.as_chunks_mut::<BLOCK_BYTES>();
        match self {
            Self::Aes(aes) => {
                places.iter_mut().zip(blocks).for_each(|(place, block)| *place = aes_counter(0, block));
                aes.cipher.encrypt_blocks(Array::slice_as_chunks_mut(out).0);
            }
            Self::ChaCha(key) => {
                // ChaCha20 generates four blocks at a time.
                let (mut four, mut bits) = (u64::MAX, Zeroizing::new([[0; BLOCK_BYTES]; 4]));
                for (place, block) in places.iter_mut().zip(blocks) {
                    if block / 4 != four {
                        four = block / 4;
                        fill_chacha(key, 0, four, bits.as_flattened_mut());
                    }
                    *place = bits[block as usize % 4];
                }
            }
        }
    }

    /// Returns 128 further bits for the coordinate (single precision) or pair of coordinates (double
    /// precision) `index`, from a part of the keystream that `fill` never reads.
    pub(crate) fn extra(&self, index: u64) -> [u64; 2] {
        let mut block = Zeroizing::new([0; 64]);
        let place = match self {
            Self::Aes(aes) => {
                fill_aes(&aes.cipher, aes_counter(1, index), &mut block[..16]);
                0
            }
            Self::ChaCha(key) => {
                fill_chacha(key, 1, index / 4, &mut *block);
                (index % 4) as usize * 16
            }
        };
        std::array::from_fn(|i| u64::from_le_bytes(block[place + 8 * i..][..8].try_into().expect("8 bytes")))
    }
}

/// AES-256 with one key, for any processor; on processors with vector AES, also its round keys.
pub(crate) struct Aes {
    cipher: Aes256Enc,
    #[cfg(target_arch = "x86_64")]
    rounds: Option<RoundKeys>,
}

impl Aes {
    fn new(key: &[u8; 32]) -> Self {
        Self {
            cipher: Aes256Enc::new(key.into()),
            #[cfg(target_arch = "x86_64")]
            rounds: Isa::detect().vector_aes().map(|proof| RoundKeys::new(proof, key)),
        }
    }
}

/// Returns the cipher's input for a block: its index and its domain, both little-endian.
fn aes_counter(domain: u64, block: u64) -> [u8; 16] {
    (u128::from(domain) << 64 | u128::from(block)).to_le_bytes()
}

fn fill_aes(cipher: &Aes256Enc, first_counter: [u8; 16], out: &mut [u8]) {
    let mut stream = CtrCore::<&Aes256Enc, flavors::Ctr64LE>::inner_iv_init(cipher, &Array(first_counter));
    let (blocks, _) = Array::slice_as_chunks_mut(out);
    stream.write_keystream_blocks(blocks);
}

/// Fills `out` with ChaCha20 keystream from block `block` on. The low 31 bits of a block's index are RFC
/// 8439's counter; the other bits are part of the nonce.
fn fill_chacha(key: &[u8; 32], domain: u32, mut block: u64, mut out: &mut [u8]) {
    while !out.is_empty() {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&domain.to_le_bytes());
        nonce[4..].copy_from_slice(&(block >> 31).to_le_bytes());
        let low = block & ((1 << 31) - 1);
        let fits = ((1 << 31) - low).saturating_mul(64).min(out.len() as u64) as usize;
        let (part, rest) = out.split_at_mut(fits);
        let mut stream = ChaCha20::new(key.into(), &Array(nonce));
        stream.seek(low * 64);
        stream.write_keystream(part);
        block += fits as u64 / 64;
        out = rest;
    }
}

#[cfg(test)]
mod tests;
