//! A stream with a restored state, usable only after the state is verified.

use crate::{Error, NoiseStream, Result, StateAt};

/// A stream with the words of a state; [`checked`](Restored::checked) verifies them and returns the stream.
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

    /// The [keyed sum](crate::NoiseStream::sum_of_words) of this shard's words, to be added, wrapping, to the
    /// sums of the other shards.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the stream if `commitment` equals the
    /// [`state_commitment`](crate::NoiseStream::state_commitment) of the saved state: same run's key,
    /// description, context and steps, words with this `total` over all shards, and the same `extra`.
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
