//! Handing a stream over to another sharding: its state by coordinate, and the key of its run.

use antinoise_input::between;

use crate::{Error, Mode, Result, StateAt, Stream};

impl<M: Mode> Stream<M> {
    /// Numbers of 4 bytes that [`state`](Stream::state) has for each output.
    pub fn state_words(&self) -> usize {
        self.engine.state_words()
    }

    /// Writes the state by coordinate into `words`, [`state_words`](Stream::state_words) vectors of the shard's length one after the
    /// other, and tells which steps it belongs to. Streams of other shards that stand at the same step write the words of
    /// their coordinates; whoever has those of all its coordinates goes on by [`restore_state`](Stream::restore_state). Steps that
    /// some coordinates have made ahead are made for all of them. Words are as secret as the noise.
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

    /// Lends the run's key to `send`, which stores it beside the state where its owner alone can read:
    /// [`resume_any_state`](crate::StreamBuilder::resume_any_state) needs both.
    pub fn lend_run_key<T>(&self, send: impl FnOnce(&[u8; 32]) -> T) -> T {
        send(self.key.bytes())
    }

    /// Goes on where [`state`](Stream::state) wrote these words, in any sharding: key, run, description and
    /// [placement](crate::StreamBuilder::state_in_memory) must be the same. Words say nothing of that; a
    /// [`commitment`](Stream::commitment) that is kept beside them does. Nothing tells whether words were altered: they belong where
    /// nobody else writes.
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
