//! How a stream is continued by another sharding: its state by coordinate, and the key of its run.

use antinoise_input::between;

use crate::{Error, Mode, Result, StateAt, Stream};

impl<M: Mode> Stream<M> {
    /// Numbers of 4 bytes that [`state`](Stream::state) has for each output.
    pub fn state_words(&self) -> usize {
        self.engine.state_words()
    }

    /// Writes the state by coordinate into `words`, [`state_words`](Stream::state_words) vectors of the shard's length one after the
    /// other, and returns which steps it belongs to. Streams of other shards at the same step write the words of
    /// their coordinates. A stream that is given the words of all its coordinates continues by [`restore_state`](Stream::restore_state). Steps that
    /// some coordinates have made ahead are made for all of them. The words are as secret as the noise.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for another length.
    pub fn state(&mut self, words: &mut [i32]) -> Result<StateAt> {
        self.check_words(words.len())?;
        let engine = &mut self.engine;
        Ok(match &self.pool {
            Some(pool) => pool.install(|| engine.state(words)),
            None => engine.state(words),
        })
    }

    /// Lends the run's key to `send`, which stores it beside the state, readable by its owner alone:
    /// [`resume_any_state`](crate::StreamBuilder::resume_any_state) needs both.
    pub fn lend_run_key<T>(&self, send: impl FnOnce(&[u8; 32]) -> T) -> T {
        send(self.key.bytes())
    }

    /// Continues from the words that [`state`](Stream::state) wrote, in any sharding. Key, run, description and
    /// [placement](crate::StreamBuilder::state_in_memory) must be the same. The words do not show whether they are: keep a
    /// [`commitment`](Stream::commitment) beside them. Altered words are not detected, so keep them where
    /// nobody else can write.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for another length, and for steps that no state of this stream is at.
    pub fn restore_state(&mut self, at: StateAt, words: &[i32]) -> Result<()> {
        self.check_words(words.len())?;
        between("step of the state", at.step, 0, self.spec.steps, "steps")?;
        let most = self.spec.steps.min(at.step + self.placement().look_ahead);
        between(
            "step that the state was made to",
            at.made,
            at.step,
            most,
            "as far as this stream looks ahead",
        )?;
        self.engine.restore_state(at, words);
        Ok(())
    }

    fn check_words(&self, got: usize) -> Result<()> {
        let wanted = self.len() * self.state_words();
        if got == wanted {
            return Ok(());
        }
        let must_be =
            format!("{wanted}, {} for each of the shard's {} outputs", self.state_words(), self.len());
        Err(Error::input("words' length", got, must_be))
    }
}
