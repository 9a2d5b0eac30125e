//! Reproducible random numbers for simulations.

use chacha20::ChaCha20;
use cipher::{KeyIvInit, StreamCipher};

/// A ChaCha20 key and the number of a purpose, which determine a family of random streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    key: [u8; 32],
    purpose: u8,
}

impl Source {
    pub fn of_key(key: [u8; 32]) -> Self {
        Self { key, purpose: 0 }
    }

    pub fn of_seed(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self::of_key(key)
    }

    /// The source with the same key and the streams of `purpose`.
    pub fn for_purpose(&self, purpose: u8) -> Self {
        Self { purpose, ..*self }
    }
}

/// Standard normal and uniform variables from a keystream.
pub(crate) struct Normals {
    cipher: ChaCha20,
    bytes: [u8; 1024],
    used: usize,
    spare: Option<f64>,
}

impl Normals {
    pub fn new(source: &Source, direction: u8, chunk: u64) -> Self {
        let mut nonce = [0; 12];
        (nonce[0], nonce[1]) = (source.purpose, direction);
        nonce[4..].copy_from_slice(&chunk.to_le_bytes());
        let cipher = ChaCha20::new(&source.key.into(), &nonce.into());
        Self { cipher, bytes: [0; 1024], used: 1024, spare: None }
    }

    fn bits(&mut self) -> u64 {
        if self.used == self.bytes.len() {
            self.bytes.fill(0);
            self.cipher.apply_keystream(&mut self.bytes);
            self.used = 0;
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[self.used..self.used + 8]);
        self.used += 8;
        u64::from_le_bytes(word)
    }

    /// Returns a uniform random number in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniform random number in 0..bins, up to a bias of bins / 2^53.
    pub fn below(&mut self, bins: usize) -> usize {
        ((self.bits() >> 11) as f64 / (1u64 << 53) as f64 * bins as f64) as usize
    }

    /// Returns a standard normal number (Box-Muller transform).
    pub fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}
