//! How a stream is continued by another sharding: its state by coordinate, and the key of its run.

use antinoise_input::between;

use crate::key::StateFields;
use crate::keystream::KeySource;
use crate::word_sum::word_sum;
use crate::{Error, Mode, Result, StateAt, Stream};

/// The purpose of the sums of states.
const STATE: &str = "state";

impl<M: Mode> Stream<M> {
    /// Numbers of 4 bytes that [`state`](Stream::state) has for each output.
    pub fn state_words(&self) -> usize {
        self.engine.state_words()
    }

    /// Writes the state by coordinate into the first [`state_words`](Stream::state_words) vectors of `words`, each of the shard's
    /// length; returns which steps it belongs to, and the [keyed sum](Stream::sum_of_words) of all of `words`: vectors after those of the
    /// state are the caller's own, saved and checked with it. Streams of other shards at the same step write the words of their coordinates.
    /// Steps that some coordinates have made ahead are made for all of them. The words are as secret as the noise.
    ///
    /// The state is saved with the run's key and a [commitment](Stream::state_commitment) to the total of all shards' sums;
    /// [`resume_any_state`](crate::StreamBuilder::resume_any_state) continues from it.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for words that are not whole vectors, or too few of them.
    pub fn state(&mut self, words: &mut [i32]) -> Result<(StateAt, u128)> {
        let wanted = self.check_state(words.len())?;
        let engine = &mut self.engine;
        let at = match &self.pool {
            Some(pool) => pool.install(|| engine.state(&mut words[..wanted])),
            None => engine.state(&mut words[..wanted]),
        };
        Ok((at, self.sum_of_words(STATE, words)?))
    }

    /// The sum of c(w, j) words(w, j) modulo 2^128 over the vectors w in `words`, one after the other, and the coordinates j of this
    /// shard, where the c(w, j) are secret: 128 bits each from the run's key, for this `purpose` alone. The wrapping sum of what all
    /// shards find is the same for every sharding. Other words have the same total with a probability below 2^-96, however they
    /// are chosen without the run's key. It is as secret as the words: publish a commitment to it.
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
    /// [`Error::Invalid`](crate::Error::Invalid) for words that are not whole vectors.
    pub fn sum_of_words(&self, purpose: &str, words: &[i32]) -> Result<u128> {
        if !words.len().is_multiple_of(self.len()) {
            let must_be = format!("a multiple of the shard's {} outputs", self.len());
            return Err(Error::input("words' length", words.len(), must_be));
        }
        let keys = KeySource::new(&self.key.of_words(purpose), self.spec.cipher);
        let sum = || word_sum(&keys, &self.engine.tiles, words, self.engine.threads());
        Ok(match &self.pool {
            Some(pool) => pool.install(sum),
            None => sum(),
        })
    }

    /// A commitment to a state: a digest, keyed by the run's key, of description, [context](crate::StreamBuilder::context), steps, the
    /// `total` of all shards' sums, and what the caller saves beside it (`extra`, or a digest of it). It reveals nothing about any of them.
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

    /// Lends the run's key to `send`, which stores it beside the state, readable by its owner alone:
    /// [`resume_any_state`](crate::StreamBuilder::resume_any_state) needs both.
    pub fn lend_run_key<T>(&self, send: impl FnOnce(&[u8; 32]) -> T) -> T {
        send(self.key.bytes())
    }

    /// Continues from the words that [`state`](Stream::state) wrote, in any sharding; their sum, to be checked before a row is made.
    pub(crate) fn restore_state(&mut self, at: StateAt, words: &[i32]) -> Result<u128> {
        let wanted = self.check_state(words.len())?;
        between("step of the state", at.step, 0, self.spec.steps, "steps")?;
        let most = self.spec.steps.min(at.step + self.placement().look_ahead);
        between(
            "step that the state was made to",
            at.made,
            at.step,
            most,
            "as far as this stream looks ahead",
        )?;
        self.engine.restore_state(at, &words[..wanted]);
        self.sum_of_words(STATE, words)
    }

    /// How many of `got` words are the state's.
    fn check_state(&self, got: usize) -> Result<usize> {
        let wanted = self.len() * self.state_words();
        if got >= wanted && got.is_multiple_of(self.len()) {
            return Ok(wanted);
        }
        let (words, outputs) = (self.state_words(), self.len());
        let must_be =
            format!("{wanted}, {words} for each of the shard's {outputs} outputs, or more vectors of these");
        Err(Error::input("words' length", got, must_be))
    }
}
