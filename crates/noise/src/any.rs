//! A stream of either mode, for callers whose plan says at run time whether releases lie on a grid.

use std::path::Path;

use crate::{Error, GridStream, KeyedRng, NoiseStream, Placement, Purpose, Result, StateAt};

/// A stream of noise, plain or on a grid.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Grid, Key, NoiseStream};
/// let (key, builder) = (Key::from_os()?, NoiseStream::builder(Recursion::Independent, 10, 3, 1.0));
/// let grid = Grid::for_clip_norm(1.0, 3, 1e-3)?;
/// let mut stream = builder.build_any(Some(grid), &key)?;
/// let mut release = [0.0; 3];
/// stream.release(&[0.5, -0.25, 1e-9], &mut release)?;
/// assert!(release.iter().all(|&x| f64::from(x) % grid.spacing() == 0.0));
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
#[derive(Debug)]
pub enum AnyStream {
    /// Noise in floating point.
    Plain(Box<NoiseStream>),
    /// Releases on a grid.
    OnGrid(Box<GridStream>),
}

/// Runs an expression on the stream of the variant.
macro_rules! either {
    ($any:expr, $stream:ident => $what:expr) => {
        match $any {
            AnyStream::Plain($stream) => $what,
            AnyStream::OnGrid($stream) => $what,
        }
    };
}

impl AnyStream {
    /// Writes the next row into `out`; see [`NoiseStream::next_into`].
    ///
    /// # Errors
    /// Those of that method.
    pub fn next_into(&mut self, out: &mut [f32]) -> Result<()> {
        self.next_into_places(&mut [out])
    }

    /// Writes the next row into these slices, one after the other; see [`NoiseStream::next_into_places`].
    ///
    /// # Errors
    /// Those of that method.
    pub fn next_into_places(&mut self, out: &mut [&mut [f32]]) -> Result<()> {
        either!(self, stream => stream.next_into_places(out))
    }

    /// Writes the step's release of `sum` into `out`. On a grid this is [`GridStream::release`]; otherwise
    /// sum and noise are added in double precision, then rounded to single precision.
    ///
    /// # Errors
    /// As [`NoiseStream::next_into`], and for a `sum` of another length.
    pub fn release(&mut self, sum: &[f64], out: &mut [f32]) -> Result<()> {
        self.release_places(&[sum], &mut [out])
    }

    /// As [`Self::release`], for a sum and a release that are split over several slices, in this order.
    ///
    /// # Errors
    /// Those of that method.
    pub fn release_places(&mut self, sum: &[&[f64]], out: &mut [&mut [f32]]) -> Result<()> {
        self.release_places_if(sum, out, |_| Ok(()))
    }

    /// As [`Self::release_places`], with a veto: `accept` sees a digest of the release before anyone sees the
    /// release, and refuses it by an error. A caller that allows one sum a step compares this digest with the
    /// one it recorded for the step. Two different releases that were not built to collide have the same
    /// digest with probability 2^-32.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Error, Key, NoiseStream};
    /// let builder = NoiseStream::builder(Recursion::Independent, 10, 3, 1.0);
    /// let mut stream = builder.build_any(None, &Key::from_os()?)?;
    /// let (mut known, mut out) = (0, [0.0; 3]);
    /// stream.release_places_if(&[&[0.5, -0.25, 1.0]], &mut [&mut out], |digest| {
    ///     known = digest;
    ///     Ok::<(), Error>(())
    /// })?;
    /// stream.seek_and_reuse_noise_unprotected(0)?;
    /// let once = |digest| if digest == known { Ok(()) } else { Err(Error::Exhausted { steps: 1 }) };
    /// assert!(stream.release_places_if(&[&[0.5, -0.25, 2.0]], &mut [&mut out], once).is_err());
    /// assert_eq!((stream.step(), out), (0, [0.0; 3]));
    /// stream.release_places_if(&[&[0.5, -0.25, 1.0]], &mut [&mut out], once)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::release`], and the error of `accept`: `out` is then zeros, and the step can be
    /// released again.
    pub fn release_places_if<E: From<Error>>(
        &mut self,
        sum: &[&[f64]],
        out: &mut [&mut [f32]],
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        either!(self, stream => stream.release_places_if(sum, out, accept))
    }

    /// Moves to `step`, the next step to be made; see [`NoiseStream::seek`].
    ///
    /// # Errors
    /// For a step above the number of steps, and for one before a step whose noise was handed out.
    pub fn seek(&mut self, step: usize) -> Result<()> {
        either!(self, stream => stream.seek(step))
    }

    /// Makes `step` the next one, whether or not its noise was handed out; see
    /// [`NoiseStream::seek_and_reuse_noise_unprotected`].
    ///
    /// # Errors
    /// For a step above the number of steps.
    pub fn seek_and_reuse_noise_unprotected(&mut self, step: usize) -> Result<()> {
        either!(self, stream => stream.seek_and_reuse_noise_unprotected(step))
    }

    /// The step from which a seek to `step` rebuilds the past; see [`NoiseStream::sought_from`].
    pub fn sought_from(&self, step: usize) -> usize {
        either!(self, stream => stream.sought_from(step))
    }

    /// Saves the run's key, step and state; see [`NoiseStream::save`].
    ///
    /// # Errors
    /// Those of that method.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_at(path.as_ref())
    }

    fn save_at(&self, path: &Path) -> Result<()> {
        either!(self, stream => stream.save(path))
    }

    /// Words of state for each output; see [`NoiseStream::state_words`].
    pub fn state_words(&self) -> usize {
        either!(self, stream => stream.state_words())
    }

    /// Writes the state by coordinate; see [`NoiseStream::state`].
    ///
    /// # Errors
    /// Those of that method.
    pub fn state(&mut self, words: &mut [i32]) -> Result<(StateAt, u128)> {
        either!(self, stream => stream.state(words))
    }

    /// The keyed sum of words by coordinate; see [`NoiseStream::sum_of_words`].
    ///
    /// # Errors
    /// Those of that method.
    pub fn sum_of_words(&self, purpose: &str, words: &[i32]) -> Result<u128> {
        either!(self, stream => stream.sum_of_words(purpose, words))
    }

    /// A commitment to a state; see [`NoiseStream::state_commitment`].
    pub fn state_commitment(&self, at: StateAt, total: u128, extra: &[u8]) -> [u8; 32] {
        either!(self, stream => stream.state_commitment(at, total, extra))
    }

    pub(crate) fn restore_state(&mut self, at: StateAt, words: &[i32]) -> Result<u128> {
        either!(self, stream => stream.restore_state(at, words))
    }

    /// Lends the run's key; see [`NoiseStream::lend_run_key`].
    pub fn lend_run_key<T>(&self, send: impl FnOnce(&[u8; 32]) -> T) -> T {
        either!(self, stream => stream.lend_run_key(send))
    }

    /// A commitment to all noise of the stream; see [`NoiseStream::commitment`].
    pub fn commitment(&self) -> [u8; 32] {
        either!(self, stream => stream.commitment())
    }

    /// A digest of everything that the noise depends on apart from key and run; see
    /// [`NoiseStream::description`].
    pub fn description(&self) -> [u8; 32] {
        either!(self, stream => stream.description())
    }

    /// Random bits of the stream's run for another purpose; see [`NoiseStream::rng`].
    pub fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        either!(self, stream => stream.rng(purpose, step))
    }

    /// The step whose row comes next.
    pub fn step(&self) -> usize {
        either!(self, stream => stream.step())
    }

    /// Steps of the whole stream.
    pub fn steps(&self) -> usize {
        either!(self, stream => stream.steps())
    }

    /// Outputs a step.
    pub fn len(&self) -> usize {
        either!(self, stream => stream.len())
    }

    /// True when the shard has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chosen balance of memory and time.
    pub fn placement(&self) -> Placement {
        either!(self, stream => stream.placement())
    }
}
