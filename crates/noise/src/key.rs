//! The secret that all noise of a run is made from.

use std::fmt;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::NoiseError;

const BYTES: usize = 32;

/// A 256-bit secret key: whoever knows it can subtract the noise, so it is overwritten on drop, never printed and
/// written nowhere but to checkpoints. It cannot be cloned.
///
/// ```
/// let key = antinoise_noise::Key::from_os()?;
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// # Ok::<(), antinoise_noise::NoiseError>(())
/// ```
pub struct Key(Box<Zeroizing<[u8; BYTES]>>);

impl Key {
    /// A fresh key from the operating system's random source.
    ///
    /// # Errors
    /// [`NoiseError::Entropy`] when the system has none to give.
    pub fn from_os() -> Result<Self, NoiseError> {
        let mut key = Self::zeros();
        getrandom::fill(key.0.as_mut_slice()).map_err(NoiseError::Entropy)?;
        Ok(key)
    }

    /// The key in a file of 32 bytes, or of 64 hexadecimal digits and optional white space around them. The same
    /// file gives the same noise: never use one for two different runs on the same data.
    ///
    /// # Errors
    /// [`NoiseError::Io`] when the file cannot be read, [`NoiseError::Input`] when it holds anything else.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, NoiseError> {
        let path = path.as_ref();
        let mut text = Zeroizing::new(Vec::with_capacity(1024));
        let file = std::fs::File::open(path).map_err(|e| NoiseError::io(path, e))?;
        file.take(1024).read_to_end(&mut text).map_err(|e| NoiseError::io(path, e))?;
        let mut key = Self::zeros();
        if text.len() == BYTES {
            key.0.copy_from_slice(&text);
            return Ok(key);
        }
        let digits = text.trim_ascii();
        let refused = || {
            NoiseError::input(
                "key file",
                format!("{} bytes", text.len()),
                "32 bytes, or 64 hexadecimal digits",
            )
        };
        if digits.len() != 2 * BYTES {
            return Err(refused());
        }
        for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16).ok_or_else(refused);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(key)
    }

    /// A key that anyone can guess from a number: for tests, benches and reproducible examples, never for privacy.
    ///
    /// ```
    /// let _key = antinoise_noise::Key::from_seed_insecure(7);
    /// ```
    pub fn from_seed_insecure(seed: u64) -> Self {
        let digest = Sha256::new().chain_update(b"antinoise insecure seed").chain_update(seed.to_le_bytes());
        Self::from_bytes(&digest.finalize().into())
    }

    pub(crate) fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let mut key = Self::zeros();
        key.0.copy_from_slice(bytes);
        key
    }

    pub(crate) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    fn zeros() -> Self {
        Self(Box::new(Zeroizing::new([0; BYTES])))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_text(text: &[u8]) -> Result<Key, NoiseError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Key::from_file(file.path())
    }

    #[test]
    fn raw_and_hexadecimal_files_give_the_same_key() {
        let bytes: [u8; BYTES] = std::array::from_fn(|i| (i * 7 + 200) as u8);
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(from_text(&bytes).unwrap().bytes(), &bytes);
        assert_eq!(from_text(hex.as_bytes()).unwrap().bytes(), &bytes);
        assert_eq!(from_text(format!(" {}\n", hex.to_uppercase()).as_bytes()).unwrap().bytes(), &bytes);
    }

    #[test]
    fn any_other_file_is_refused_without_printing_it() {
        for text in [&b""[..], b"abc", &[b'g'; 64], &[b'a'; 63], &[b'a'; 65], &[7; 33], &[b'a'; 4096]] {
            let message = from_text(text).unwrap_err().to_string();
            assert!(message.starts_with("key file is ") && !message.contains("aaa"), "{message}");
        }
        assert!(matches!(Key::from_file("no such file"), Err(NoiseError::Io { .. })));
    }

    #[test]
    fn keys_differ_and_are_not_printed() {
        assert_ne!(Key::from_os().unwrap().bytes(), Key::from_os().unwrap().bytes());
        assert_ne!(Key::from_seed_insecure(0).bytes(), Key::from_seed_insecure(1).bytes());
        assert_eq!(format!("{:?}", Key::from_seed_insecure(3)), "Key(..)");
    }
}
