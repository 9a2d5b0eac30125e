//! Runs, which are the uses of a key, and their names.

use std::fmt;

use antinoise_input::InvalidParameter;

use super::derive::{BYTES, Derived, StateFields};
use super::secret::Key;

/// The name of a run. Under one key, two runs share no bit, neither of noise nor of sampling.
///
/// ```
/// use antinoise_noise::RunId;
/// assert_eq!(RunId::default(), RunId::new("0")?);
/// assert_eq!(RunId::from(17).to_string(), "17");
/// assert!(RunId::new("").is_err());
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// Creates the run of this name; names are compared byte by byte.
    ///
    /// # Errors
    /// For a name that is empty, longer than 256 bytes, or has control characters.
    pub fn new(name: impl Into<String>) -> std::result::Result<Self, InvalidParameter> {
        let name = name.into();
        if (1..=256).contains(&name.len()) && !name.chars().any(char::is_control) {
            Ok(Self(name))
        } else {
            Err(InvalidParameter::new(
                "run",
                format!("{name:?}"),
                "a name of 1 to 256 bytes without control characters",
            ))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<u64> for RunId {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for RunId {
    type Err = InvalidParameter;

    fn from_str(name: &str) -> std::result::Result<Self, InvalidParameter> {
        Self::new(name)
    }
}

/// The key of one run, from which the keys of its streams and samplers are derived. Checkpoints hold this
/// key.
pub(crate) struct RunKey(Key);

impl RunKey {
    pub(crate) fn new(key: &Key, run: &RunId) -> Self {
        Self(key.derive(Derived::Run(&run.0)))
    }

    /// Returns the run's key from a key that was read from a checkpoint.
    pub(crate) fn restored(key: Key) -> Self {
        Self(key)
    }

    pub(crate) fn bytes(&self) -> &[u8; BYTES] {
        self.0.bytes()
    }

    /// The key of the noise of the stream with this description.
    pub(crate) fn of_noise(&self, description: &[u8; BYTES]) -> Key {
        self.0.derive(Derived::Noise(description))
    }

    /// The key of the random numbers for `purpose`.
    pub(crate) fn of_sampler(&self, purpose: &str) -> Key {
        self.0.derive(Derived::Sampler(purpose))
    }

    /// The key of the keyed sums of words for `purpose`.
    pub(crate) fn of_words(&self, purpose: &str) -> Key {
        self.0.derive(Derived::Words(purpose))
    }

    /// Returns a commitment to a state by coordinate. It reveals nothing about the key or the words.
    pub(crate) fn state_commitment(&self, state: StateFields<'_>) -> [u8; BYTES] {
        *self.0.derive(Derived::State(&state)).bytes()
    }

    /// Returns a commitment to this key, a description, the caller's context and a step. It reveals nothing
    /// about the key.
    pub(crate) fn commitment(
        &self,
        description: &[u8; BYTES],
        context: &[u8; BYTES],
        step: usize,
    ) -> [u8; BYTES] {
        *self.0.derive(Derived::Commitment(description, context, step as u64)).bytes()
    }
}
