//! Saving the state by coordinate and the key of the run, so that another sharding can continue a stream.

use antinoise_input::between;

use crate::either::either;
use crate::key::StateFields;
use crate::keystream::KeySource;
use crate::stream::in_pool;
use crate::used_steps::Used;
use crate::word_sum::word_sum;
use crate::{Error, NoiseStream, Result, StateAt};

/// The purpose of the keyed sums of states.
const STATE: &str = "state";

impl NoiseStream {
    /// The number of 4-byte words per output that [`state`](NoiseStream::state) writes.
    pub fn state_words(&self) -> usize {
        either!(&self.engine, engine => engine.state_words())
    }

    /// Writes the state by coordinate into the first [`state_words`](NoiseStream::state_words) vectors of
    /// `words`, each of the shard's length. Returns the steps that the state belongs to, and the [keyed
    /// sum](NoiseStream::sum_of_words) of all of `words`. Further vectors in `words` are data of the caller,
    /// which the sum also covers. Streams of other shards at the same step write the words of their
    /// coordinates. (All tiles first make their noise up to the same step.) The words are as secret as the
    /// noise.
    ///
    /// Save the state with the run's key and a [commitment](NoiseStream::state_commitment) to the total of
    /// all shards' sums; [`resume_state`](crate::StreamBuilder::resume_state) continues from it.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if `words` are not whole vectors, or too few.
    pub fn state(&mut self, words: &mut [i32]) -> Result<(StateAt, u128)> {
        let wanted = self.check_state(words.len())?;
        let engine = &mut self.engine;
        let state = || either!(engine, engine => engine.state(&mut words[..wanted]));
        let at = in_pool(self.pool.as_ref(), state);
        Ok((at, self.sum_of_words(STATE, words)?))
    }

    /// The keyed sum of `words`: the sum over vectors w and coordinates j of this shard of c(w, j) words(w,
    /// j), modulo 2^128. The coefficients c(w, j) are secret numbers of 128 bits from the run's key, for this
    /// `purpose` alone. The wrapping total over all shards is the same for every sharding. Other words,
    /// chosen without the run's key, have the same total with a probability below 2^-96. The sum is as secret
    /// as the words: publish only a commitment to it.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, Shard};
    /// let sum = |range: std::ops::Range<u64>, words: &[i32]| {
    ///     let builder = NoiseStream::builder(Recursion::Independent, 10, 6, 1.0).shard(Shard::of_range(range));
    ///     builder.build(Key::from_seed_insecure(7))?.sum_of_words("weights", words)
    /// };
    /// let whole = sum(0..6, &[1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(whole, sum(0..2, &[1, 2])?.wrapping_add(sum(2..6, &[3, 4, 5, 6])?));
    /// assert_ne!(whole, sum(0..6, &[2, 1, 3, 4, 5, 6])?);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if `words` are not whole vectors.
    pub fn sum_of_words(&self, purpose: &str, words: &[i32]) -> Result<u128> {
        if !words.len().is_multiple_of(self.len()) {
            let must_be = format!("a multiple of the shard's {} outputs", self.len());
            return Err(Error::input("words' length", words.len(), must_be));
        }
        let keys = KeySource::new(&self.key.of_words(purpose), self.spec.cipher);
        let sum = || either!(&self.engine, engine => word_sum(&keys, &engine.tiles, words, engine.threads()));
        Ok(in_pool(self.pool.as_ref(), sum))
    }

    /// A commitment to a state: a digest, keyed by the run's key, of description,
    /// [context](crate::StreamBuilder::context), steps, `total` (the keyed sum over all shards) and `extra`
    /// (other data that the caller saves with the state, or a digest of them). The commitment reveals nothing
    /// about any of these.
    pub fn state_commitment(&self, at: StateAt, total: u128, extra: &[u8]) -> [u8; 32] {
        self.key.state_commitment(StateFields {
            description: &self.description,
            context: &self.context,
            step: at.step as u64,
            made: at.made as u64,
            total,
            extra,
        })
    }

    /// Exposes the run's key to `send`, which must store it with the state, readable by its owner alone.
    /// [`resume_state`](crate::StreamBuilder::resume_state) needs both.
    pub fn expose_run_key<T>(&self, send: impl FnOnce(&[u8; 32]) -> T) -> T {
        send(self.key.bytes())
    }

    /// Continues from the words that [`state`](NoiseStream::state) wrote, in any sharding. Returns their
    /// keyed sum, which must be checked before a row is made.
    pub(crate) fn restore_state(&mut self, at: StateAt, words: &[i32]) -> Result<u128> {
        let wanted = self.check_state(words.len())?;
        between("step of the state", at.step, 0, self.spec.steps, "steps")?;
        let most = self.spec.steps.min(at.step + self.placement().look_ahead);
        between(
            "step up to which the noise of the state was made",
            at.made,
            at.step,
            most,
            "the step up to which this stream looks ahead",
        )?;
        either!(&mut self.engine, engine => engine.restore_state(at, &words[..wanted]));
        self.used = Used::before(at.step);
        self.sum_of_words(STATE, words)
    }

    /// Checks that `got` words can contain a state; returns the number of words of the state.
    fn check_state(&self, got: usize) -> Result<usize> {
        let wanted = self.len() * self.state_words();
        if got >= wanted && got.is_multiple_of(self.len()) {
            return Ok(wanted);
        }
        let (words, outputs) = (self.state_words(), self.len());
        let must_be = format!(
            "{wanted} ({words} for each of the shard's {outputs} outputs), or more by a multiple of {outputs}"
        );
        Err(Error::input("words' length", got, must_be))
    }
}
