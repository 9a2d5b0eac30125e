//! A stream with a restored state that must be verified before the stream is used.

use crate::{Error, NoiseStream, Result, StateAt};

/// A stream with the words of a state. [`checked`](Restored::checked) verifies the words and returns the
/// stream.
///
/// Altered words could remove the noise from coordinates of all later noisy sums, so no row is made from
/// unverified words.
#[derive(Debug)]
pub struct Restored {
    stream: NoiseStream,
    at: StateAt,
    sum: u128,
}

impl Restored {
    pub(crate) fn new(mut stream: NoiseStream, at: StateAt, words: &[i32]) -> Result<Self> {
        let sum = stream.restore_state(at, words)?;
        Ok(Self { stream, at, sum })
    }

    /// The [keyed sum](crate::NoiseStream::sum_of_words) of this shard's words. The wrapping sum over all
    /// shards is the `total` of [`checked`](Restored::checked).
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the stream if `commitment` is the [`state_commitment`](crate::NoiseStream::state_commitment)
    /// to this state: to the same run key, description, context and steps, to the keyed sum `total` over all
    /// shards, and to `extra`.
    ///
    /// # Errors
    /// [`Error::AlteredState`](crate::Error::AlteredState) otherwise.
    pub fn checked(self, total: u128, extra: &[u8], commitment: &[u8]) -> Result<NoiseStream> {
        if self.stream.state_commitment(self.at, total, extra) == *commitment {
            Ok(self.stream)
        } else {
            Err(Error::AlteredState)
        }
    }
}
