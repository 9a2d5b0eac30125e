//! A stream that was given a state: it is handed over when the state is known to be the one that was saved.

use crate::{AnyStream, Error, Result, StateAt};

/// A stream with the words of a state, of which [`checked`](Restored::checked) makes a stream that can be used.
///
/// Altered words could take the noise off coordinates of all later releases, so no row is made of words that nobody checked.
#[derive(Debug)]
pub struct Restored {
    stream: AnyStream,
    at: StateAt,
    sum: u128,
}

impl Restored {
    pub(crate) fn new(mut stream: AnyStream, at: StateAt, words: &[i32]) -> Result<Self> {
        let sum = stream.restore_state(at, words)?;
        Ok(Self { stream, at, sum })
    }

    /// The [keyed sum](crate::Stream::sum_of_words) of this shard's words, which is added, wrapping, to those of the other shards.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The stream, if `commitment` is what [`state_commitment`](crate::Stream::state_commitment) gave where the state was saved: for
    /// the same run's key, description, context and steps, for words of this `total` over all shards, and for the same `extra`.
    ///
    /// # Errors
    /// [`Error::AlteredState`](crate::Error::AlteredState) otherwise.
    pub fn checked(self, total: u128, extra: &[u8], commitment: &[u8]) -> Result<AnyStream> {
        if self.stream.state_commitment(self.at, total, extra) == *commitment {
            Ok(self.stream)
        } else {
            Err(Error::AlteredState)
        }
    }
}
