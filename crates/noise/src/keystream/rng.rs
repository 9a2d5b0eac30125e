//! Uniform random numbers for samplers, from the same run key as the noise but independent of the noise.

use std::convert::Infallible;
use std::fmt;

use rand_core::{TryCryptoRng, TryRng};
use zeroize::Zeroize;

use super::cipher::{Cipher, GROUP_BYTES, KeySource, Keystream};
use crate::key::RunKey;
use crate::{Key, RunId};

/// The purpose of a [`KeyedRng`]. Different purposes have independent random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// The examples that take part in a step.
    BatchSampling,
    /// The order of the data, which is drawn once per run.
    DataOrder,
    /// A model's initial parameters.
    Initialization,
    /// A public token by which the files and processes of a run recognise each other. It reveals nothing
    /// about the key.
    Token,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::BatchSampling => "batch sampling",
            Self::DataOrder => "data order",
            Self::Initialization => "initialization",
            Self::Token => "token",
        }
    }
}

/// A cryptographically secure uniform random generator whose numbers are a function of (key, run, purpose,
/// step). So a resumed run draws the same numbers at step t without drawing those of earlier steps. They are
/// independent of the noise of the run.
///
/// ```
/// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
/// use rand_core::Rng;
/// let (key, run) = (Key::from_seed_insecure(7), RunId::default());
/// let draw = |step| KeyedRng::new(&key, &run, Purpose::BatchSampling, step).next_u64();
/// assert_eq!(draw(3), draw(3));
/// assert_ne!(draw(3), draw(4));
/// ```
pub struct KeyedRng {
    keystream: Keystream,
    group: u64,
    buffer: [u8; GROUP_BYTES],
    used: usize,
}

impl KeyedRng {
    /// Creates the generator for `purpose` at `step`. It is the same as
    /// [`NoiseStream::rng`](crate::NoiseStream::rng) of a stream with this key and run.
    pub fn new(key: &Key, run: &RunId, purpose: Purpose, step: u64) -> Self {
        Self::of(&RunKey::new(key, run), purpose, step)
    }

    pub(crate) fn of(run: &RunKey, purpose: Purpose, step: u64) -> Self {
        let keystream = KeySource::new(&run.of_sampler(purpose.name()), Cipher::default()).keystream(step);
        Self { keystream, group: 0, buffer: [0; GROUP_BYTES], used: GROUP_BYTES }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used == self.buffer.len() {
                self.keystream.fill(self.group, &mut self.buffer);
                self.group += 1;
                self.used = 0;
            }
            let count = out.len().min(self.buffer.len() - self.used);
            let (part, rest) = out.split_at_mut(count);
            part.copy_from_slice(&self.buffer[self.used..self.used + count]);
            self.used += count;
            out = rest;
        }
    }
}

impl TryRng for KeyedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.take()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.take()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for KeyedRng {}

impl Drop for KeyedRng {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

impl fmt::Debug for KeyedRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedRng(..)")
    }
}
