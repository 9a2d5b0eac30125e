//! The secret from which all noise and all samples of a run are made.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::derive::{BYTES, Derived, derive};
use crate::error::{Error, Result};

/// Maximum length of a key file, in bytes; a longer file is refused without being read to its end.
const LONGEST_FILE: u64 = 1024;

/// A 256-bit secret. Anyone who knows it can subtract the noise. So it is overwritten on drop, never printed,
/// and never written to a file (a checkpoint holds only the key that is derived for its run). It cannot be
/// cloned, and a stream consumes it.
///
/// Noise is not generated from it directly. The key of a stream is derived from it, the run
/// ([`RunId`](crate::RunId)) and the stream's description; the key of other random numbers is derived from
/// it, the run and their [`Purpose`](crate::Purpose).
///
/// ```
/// let key = antinoise_noise::Key::from_os()?;
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
pub struct Key(Box<Zeroizing<[u8; BYTES]>>);

impl Key {
    /// Creates a fresh key from the operating system's random source.
    ///
    /// # Errors
    /// [`Error::Entropy`](crate::Error::Entropy) if the system has no random bytes.
    pub fn from_os() -> Result<Self> {
        let mut key = Self::zeros();
        getrandom::fill(key.0.as_mut_slice()).map_err(Error::Entropy)?;
        Ok(key)
    }

    /// Reads a key from a file of 32 bytes, or of 64 hexadecimal digits with white space around them; the
    /// file has at most 1 KiB. One key can serve many runs: streams with a different description, and streams
    /// of different [runs](crate::StreamBuilder::run), share no bit. The same description and run give the
    /// same stream, so give each data set and each repetition a run of its own.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read; [`Error::Invalid`](crate::Error::Invalid)
    /// if it is not a regular file, if users other than its owner may read or write it (`chmod 600`; links
    /// are followed), or if its content has another form or is the same byte 32 times.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read_private(path)?;
        let refused =
            |got: &str| Error::input("key file", format!("{} with {got}", path.display()), MUST_HOLD);
        let mut key = Self::zeros();
        let digits = text.trim_ascii();
        if text.len() == BYTES {
            key.0.copy_from_slice(&text);
        } else if digits.len() == 2 * BYTES {
            for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
                let digit = |c: u8| (c as char).to_digit(16).ok_or_else(|| refused("other characters"));
                *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
            }
        } else {
            return Err(refused(&format!("{} bytes", text.len())));
        }
        // Most likely a placeholder, not a key: a random key is refused here with probability 2^-248.
        if key.0.iter().all(|&byte| byte == key.0[0]) {
            return Err(refused("the same byte 32 times"));
        }
        Ok(key)
    }

    /// Creates a key that anyone can compute from `seed`: for tests, benchmarks and reproducible examples,
    /// never for privacy.
    ///
    /// ```
    /// let _key = antinoise_noise::Key::from_seed_insecure(7);
    /// ```
    pub fn from_seed_insecure(seed: u64) -> Self {
        let digest = Sha256::new().chain_update(b"antinoise insecure seed").chain_update(seed.to_le_bytes());
        let mut key = Self::zeros();
        digest.finalize_into((&mut **key.0).into());
        key
    }

    /// Creates a key from bytes that `read` writes directly to their final place in memory: for example a key
    /// that another process [exposed](Key::expose).
    ///
    /// ```
    /// use antinoise_noise::Key;
    /// let key = Key::from_os()?;
    /// let same = Key::from_reader(|bytes| Ok::<_, ()>(key.expose(|exposed| bytes.copy_from_slice(exposed))));
    /// assert!(same.is_ok());
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `read` fails.
    pub fn from_reader<E>(
        read: impl FnOnce(&mut [u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Self, E> {
        let mut key = Self::zeros();
        read(key.0.as_mut_slice())?;
        Ok(key)
    }

    /// Exposes the 32 secret bytes to `send`, which sends them to peers of the same run and keeps no copy.
    pub fn expose<T>(&self, send: impl FnOnce(&[u8; BYTES]) -> T) -> T {
        send(&self.0)
    }

    /// Derives the key for a purpose.
    pub(crate) fn derive(&self, purpose: Derived<'_>) -> Self {
        let mut key = Self::zeros();
        derive(&self.0, purpose, &mut key.0);
        key
    }

    pub(crate) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    fn zeros() -> Self {
        Self(Box::new(Zeroizing::new([0; BYTES])))
    }
}

const MUST_HOLD: &str =
    "32 random bytes, or 64 hexadecimal digits (head -c 32 /dev/urandom > FILE; chmod 600 FILE)";

/// Reads the first bytes of a regular file that only its owner may read or write.
fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let io = |error| Error::io(path, error);
    let refused =
        |got: String, must_be: String| Error::input("key file", format!("{} {got}", path.display()), must_be);
    // Checked before the file is opened, since opening a pipe would block.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(refused("which is not a regular file".into(), "a regular file".into()));
    }
    let file = File::open(path).map_err(io)?;
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&file.metadata().map_err(io)?.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            let must_be = format!("for its owner alone: chmod 600 {}", path.display());
            return Err(refused(format!("with mode {mode:o}"), must_be));
        }
    }
    // The capacity suffices for all bytes that are read (at most one more than is accepted), so that the
    // vector does not reallocate and leave a copy in memory.
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST_FILE as usize + 2));
    file.take(LONGEST_FILE + 1).read_to_end(&mut text).map_err(io)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(refused(format!("with more than {LONGEST_FILE} bytes"), MUST_HOLD.into()));
    }
    Ok(text)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}
