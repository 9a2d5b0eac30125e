//! The stream: rows of C^-1 Z, one a step, never past the last.

use std::fmt;
use std::path::Path;

use antinoise_input::between;
use antinoise_mechanism::Recursion;
use rayon::ThreadPool;

use crate::builder::{Plan, StreamBuilder};
use crate::correlator::{Emit, Step};
use crate::engine::Engine;
use crate::run::{RunId, RunKey};
use crate::{Key, KeyedRng, NoiseError, Placement, Purpose, checkpoint, range};

/// A stream of correlated noise nu C^-1 Z, a vector of the shard's coordinates a step.
///
/// It refuses to run past its steps and cannot be cloned: two copies would release the same noise twice, and the
/// difference of the two releases would have none.
#[derive(Debug)]
pub struct NoiseStream(pub(crate) Core<f32>);

impl NoiseStream {
    /// The stream of `steps` rows of noise_std C^-1 Z over `dim` coordinates, on all threads of rayon's pool.
    ///
    /// # Errors
    /// [`NoiseError::Input`] names the parameter that cannot be used.
    pub fn new(
        recursion: Recursion,
        steps: usize,
        dim: usize,
        noise_std: f64,
        key: Key,
    ) -> Result<Self, NoiseError> {
        Self::builder(recursion, steps, dim, noise_std).build(key)
    }

    /// The same with options, which are checked when the stream is built.
    pub fn builder(recursion: Recursion, steps: usize, dim: usize, noise_std: f64) -> StreamBuilder {
        StreamBuilder::new(recursion, steps, dim, noise_std)
    }

    /// Writes the next row into `out`, which has one place for each output of the shard.
    ///
    /// # Errors
    /// [`NoiseError::Input`] for another length, [`NoiseError::Exhausted`] after the last step; the stream and
    /// `out` are then unchanged.
    pub fn next_into(&mut self, out: &mut [f32]) -> Result<(), NoiseError> {
        self.0.emit(out, Emit::Write)
    }

    /// Adds `scale` times the next row to `gradient`, in the same pass over memory that makes it.
    ///
    /// # Errors
    /// As [`NoiseStream::next_into`], and [`NoiseError::Input`] for a `scale` that is not finite, or for which
    /// single precision has no room: |scale| noise_std must be 0 or from 2^-100 to 2^100.
    pub fn add_next_into(&mut self, gradient: &mut [f32], scale: f32) -> Result<(), NoiseError> {
        range::scale(scale, self.0.parts().0.noise_std)?;
        self.0.emit(gradient, Emit::Add(scale))
    }

    /// Makes `step` the next one.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let mut stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// stream.seek(7)?;
    /// assert_eq!(stream.step(), 7);
    /// # Ok::<(), antinoise_noise::NoiseError>(())
    /// ```
    ///
    /// O(step) per coordinate where the past has to be built, else O(1).
    ///
    /// Going back makes noise again that was handed out before. Releasing it twice, with different gradients, would
    /// void the privacy of both.
    ///
    /// # Errors
    /// [`NoiseError::Input`] for a step above the number of steps.
    pub fn seek(&mut self, step: usize) -> Result<(), NoiseError> {
        self.0.seek(step)
    }

    /// Saves the run's key, step and state to a file that only its owner can read, whole or not at all; see
    /// [`antinoise_input::file`] for what a killed process may leave beside it.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("noise.safetensors");
    /// let builder = NoiseStream::builder(Recursion::Independent, 10, 4, 1.0);
    /// let mut stream = builder.clone().build(Key::from_os()?)?;
    /// stream.next_into(&mut [0.0; 4])?;
    /// stream.save(&file)?;
    /// let (mut row, mut resumed_row) = ([0.0; 4], [0.0; 4]);
    /// stream.next_into(&mut row)?;
    /// builder.resume(&file)?.next_into(&mut resumed_row)?;
    /// assert_eq!(row, resumed_row);
    /// # Ok::<(), antinoise_noise::NoiseError>(())
    /// ```
    ///
    /// Whoever reads the file knows all noise of the run. Two streams resumed from one file make the same noise.
    ///
    /// # Errors
    /// [`NoiseError::Io`] when it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), NoiseError> {
        self.0.save(path.as_ref())
    }

    /// What ties files to each other: a digest, keyed by the run's key, of run, description,
    /// [context](StreamBuilder::context) and [step](NoiseStream::step). It tells nothing of the key. A checkpoint
    /// of the rest of the run that stores it can tell, after [`StreamBuilder::resume`] and a seek to its own
    /// step, that the noise is its own.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let start = |context| {
    ///     let builder = NoiseStream::builder(Recursion::Independent, 10, 4, 1.0).context(context);
    ///     builder.build(Key::from_seed_insecure(7))
    /// };
    /// let mut stream = start([1; 32])?;
    /// assert_eq!(stream.commitment(), start([1; 32])?.commitment());
    /// assert_ne!(stream.commitment(), start([2; 32])?.commitment());
    /// stream.seek(3)?;
    /// assert_ne!(stream.commitment(), start([1; 32])?.commitment());
    /// # Ok::<(), antinoise_noise::NoiseError>(())
    /// ```
    pub fn commitment(&self) -> [u8; 32] {
        self.0.commitment()
    }

    /// A digest of what the noise is a function of beside key and run: processes that make parts of one stream must
    /// agree on it.
    pub fn description(&self) -> [u8; 32] {
        self.0.description()
    }

    /// Random numbers from the run's key, other bits than its noise: for the sampler of the run that the noise
    /// is for, which thereby resumes with it.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, Purpose};
    /// use rand_core::Rng;
    /// let stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// let draw = |step| stream.rng(Purpose::BatchSampling, step).next_u64();
    /// assert!(draw(3) == draw(3) && draw(3) != draw(4));
    /// # Ok::<(), antinoise_noise::NoiseError>(())
    /// ```
    pub fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        self.0.rng(purpose, step)
    }

    /// The step that comes next, from 0; after the last it is the number of steps.
    pub fn step(&self) -> usize {
        self.0.step()
    }

    /// Steps of the whole stream.
    pub fn steps(&self) -> usize {
        self.0.plan.steps
    }

    /// Outputs a step.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when the shard has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The choice between memory and time that was made.
    pub fn placement(&self) -> Placement {
        self.0.placement()
    }
}

/// A stream in the precision of its noise: single, or double on a grid.
pub(crate) struct Core<T: Step> {
    pub(crate) plan: Plan,
    pub(crate) run: RunId,
    pub(crate) context: [u8; 32],
    /// Of the plan.
    pub(crate) description: [u8; 32],
    pub(crate) key: RunKey,
    pub(crate) engine: Engine<T>,
    pub(crate) pool: Option<ThreadPool>,
}

impl<T: Step> Core<T> {
    pub(crate) fn emit(&mut self, out: &mut [f32], emit: Emit<'_>) -> Result<(), NoiseError> {
        if out.len() != self.len() {
            return Err(NoiseError::input("output length", out.len(), format!("the shard's {}", self.len())));
        }
        if self.step() == self.plan.steps {
            return Err(NoiseError::Exhausted { steps: self.plan.steps });
        }
        let engine = &mut self.engine;
        match &self.pool {
            Some(pool) => pool.install(|| engine.emit(out, emit)),
            None => engine.emit(out, emit),
        }
        Ok(())
    }

    pub(crate) fn seek(&mut self, step: usize) -> Result<(), NoiseError> {
        between("step", step, 0, self.plan.steps, "steps")?;
        let engine = &mut self.engine;
        match &self.pool {
            Some(pool) => pool.install(|| engine.seek(step)),
            None => engine.seek(step),
        }
        Ok(())
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), NoiseError> {
        checkpoint::write(path, self)
    }

    pub(crate) fn resume(builder: StreamBuilder, path: &Path) -> Result<Self, NoiseError> {
        checkpoint::read(path, builder)
    }

    pub(crate) fn step(&self) -> usize {
        self.engine.turns().next()
    }

    pub(crate) fn len(&self) -> usize {
        self.engine.outputs()
    }

    pub(crate) fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        KeyedRng::of(&self.key, purpose, step)
    }

    pub(crate) fn commitment(&self) -> [u8; 32] {
        self.key.commitment(&self.description, &self.context, self.step())
    }

    pub(crate) fn description(&self) -> [u8; 32] {
        self.description
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) fn placement(&self) -> Placement {
        self.engine.placement()
    }

    pub(crate) fn parts(&self) -> (&Plan, &RunKey, &Engine<T>) {
        (&self.plan, &self.key, &self.engine)
    }

    pub(crate) fn restore(&mut self, start: usize, step: usize) -> (&mut [T], &mut [T::Row]) {
        self.engine.restore(start, step)
    }
}

impl<T: Step> fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { steps, dim, .. } = self.plan;
        write!(f, "step {} of {steps}, dim {dim}, {}", self.step(), self.placement())
    }
}
