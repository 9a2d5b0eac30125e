//! Random bits from ciphers, which can be read from any position, and uniform random numbers.

mod cipher;
mod rng;
#[cfg(target_arch = "x86_64")]
mod round_keys;

pub use cipher::Cipher;
pub(crate) use cipher::{BLOCK_BYTES, GROUP_BLOCKS, GROUP_BYTES, KeySource, Keystream};
pub use rng::{KeyedRng, Purpose};
#[cfg(target_arch = "x86_64")]
pub(crate) use round_keys::RoundKeys;
