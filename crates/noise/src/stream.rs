//! Noise streams, which return the rows of C^-1 Z, one a step.

use std::fmt;
use std::path::Path;

use antinoise_input::{between, hex};
use antinoise_mechanism::Grid;
use rayon::ThreadPool;
use sha2::{Digest, Sha256};

use crate::checkpoint::{Label, Reader, Snapshot};
use crate::either::{EitherEngine, either};
use crate::key::RunKey;
use crate::spec::Spec;
use crate::used_steps::Used;
use crate::{KeyedRng, Placement, Purpose, Result, RunId};

/// A stream of correlated noise noise_std C^-1 Z, which returns one row over the shard's coordinates a step:
/// either plain noise in single precision, or noisy sums on a [`Grid`].
///
/// A stream ends after its steps and cannot be cloned: two copies would use the same noise twice, and the
/// difference of two noisy sums with the same noise has no noise.
///
/// Floating-point sums G + noise leak information: which sums are representable depends on G. On a grid, sum
/// and noise are rounded to multiples of a spacing, and the rounding error is fed back, so that the noisy
/// sums are a function of C G + Z only; `docs/noise.md` has the proof.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Grid, Key, NoiseStream};
/// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
/// let grid = Grid::for_clip_norm(1.0, 3, 1e-6)?;
/// let mut stream = NoiseStream::builder(recursion, 10, 3, 1.0).grid(grid).build(Key::from_os()?)?;
/// let (gradient_sum, mut noisy_sum) = ([0.25, -1.0, 0.1], [0f32; 3]);
/// stream.add_to_sum(&gradient_sum, &mut noisy_sum)?;
/// assert!(noisy_sum.iter().all(|&x| f64::from(x) % grid.spacing() == 0.0));
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
pub struct NoiseStream {
    pub(crate) spec: Spec,
    pub(crate) run: RunId,
    pub(crate) context: [u8; 32],
    /// The digest of the specification.
    pub(crate) description: [u8; 32],
    pub(crate) key: RunKey,
    pub(crate) engine: EitherEngine,
    pub(crate) pool: Option<ThreadPool>,
    pub(crate) used: Used,
}

impl NoiseStream {
    /// Moves to `step`, the next step to be returned.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let mut stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// stream.seek(7)?;
    /// assert_eq!(stream.step(), 7);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// O(step) per coordinate if the past has to be rebuilt, else O(1).
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a step above the number of steps, and for a step whose
    /// noise, or later noise, was handed out by this stream or by the stream from which it was resumed: the
    /// difference of two sums with the same noise has no noise. The stream is then unchanged.
    pub fn seek(&mut self, step: usize) -> Result<()> {
        between("step", step, 0, self.spec.steps, "steps")?;
        self.used.go(self.step(), step)?;
        self.go_to(step);
        Ok(())
    }

    /// As [`seek`](Self::seek), but also to a step whose noise was handed out. This is **not private** if
    /// anybody saw an earlier noisy sum with that noise. Use it only if earlier noisy sums were discarded
    /// before anybody saw them, or to compute the same noisy sum once more.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let mut stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// let (mut row, mut again) = ([0.0; 4], [0.0; 4]);
    /// stream.next_into(&mut row)?;
    /// assert!(stream.seek(0).unwrap_err().to_string().starts_with("step is 0 but must be at least 1"));
    /// stream.seek_and_reuse_noise_unprotected(0)?;
    /// stream.next_into(&mut again)?;
    /// assert_eq!(row, again);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a step above the number of steps.
    pub fn seek_and_reuse_noise_unprotected(&mut self, step: usize) -> Result<()> {
        between("step", step, 0, self.spec.steps, "steps")?;
        self.used.forget_from(self.step(), step);
        self.go_to(step);
        Ok(())
    }

    /// Moves to `step`, without the checks of [`NoiseStream::seek`].
    pub(crate) fn go_to(&mut self, step: usize) {
        let engine = &mut self.engine;
        in_pool(self.pool.as_ref(), || either!(engine, engine => engine.seek(step)));
    }

    /// The step from which [`seek`](NoiseStream::seek) to `step` rebuilds the past, or `step` itself (limited
    /// to the number of steps) if nothing has to be rebuilt. A caller can seek from there in several shorter
    /// jumps, and stop between them.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
    /// let mut stream = NoiseStream::new(recursion, 1000, 4, 1.0, Key::from_os()?)?;
    /// stream.seek(600)?;
    /// assert_eq!((stream.rebuild_start(900), stream.rebuild_start(500)), (600, 0));
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    pub fn rebuild_start(&self, step: usize) -> usize {
        either!(&self.engine, engine => engine.rebuild_start(step.min(self.spec.steps)))
    }

    /// Saves the run's key, step and state to a file that only its owner can read, atomically; see
    /// [`antinoise_input::files`] for the file that a killed process may leave next to it.
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
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// Anyone who reads the file knows all noise of the run. Two streams resumed from one file make the same
    /// noise.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        either!(&self.engine, engine => {
            let (past, rows) = engine.memory();
            Snapshot { label: self.label(), key: self.key.bytes(), past, rows }.write(path.as_ref())
        })
    }

    /// A commitment by which other files of a run can be matched to its noise: a digest, keyed by the run's
    /// key, of run, description, [context](crate::StreamBuilder::context) and [step](NoiseStream::step). It
    /// reveals nothing about the key. Store it in the checkpoint of model and optimizer. That checkpoint
    /// belongs to the noise if a stream that was [resumed](crate::StreamBuilder::resume) and moved to the
    /// checkpoint's step has the same commitment.
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
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    pub fn commitment(&self) -> [u8; 32] {
        self.key.commitment(&self.description, &self.context, self.step())
    }

    /// A digest of everything that determines the noise, apart from key and run. It must be equal in
    /// processes that make parts of the same stream.
    pub fn description(&self) -> [u8; 32] {
        self.description
    }

    /// Random numbers for the sampler of the run: they are derived from the run's key, so that the sampler
    /// resumes together with the noise, and share no bit with the noise.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, Purpose};
    /// use rand_core::Rng;
    /// let stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// let draw = |step| stream.rng(Purpose::BatchSampling, step).next_u64();
    /// assert!(draw(3) == draw(3) && draw(3) != draw(4));
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    pub fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        KeyedRng::of(&self.key, purpose, step)
    }

    /// The next step to be returned, counted from 0; after the last step, the number of steps.
    pub fn step(&self) -> usize {
        either!(&self.engine, engine => engine.stagger.next)
    }

    /// Number of steps of the stream.
    pub fn steps(&self) -> usize {
        self.spec.steps
    }

    /// Number of outputs per step.
    pub fn len(&self) -> usize {
        either!(&self.engine, engine => engine.tiles.outputs)
    }

    /// Whether the shard has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the stream stores and what it recomputes.
    pub fn placement(&self) -> Placement {
        either!(&self.engine, engine => engine.placement)
    }

    /// The grid of the noisy sums; `None` for a plain stream.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let stream = NoiseStream::new(Recursion::Independent, 10, 4, 1.0, Key::from_os()?)?;
    /// assert!(stream.grid().is_none());
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    pub fn grid(&self) -> Option<Grid> {
        self.spec.grid
    }

    /// The metadata of a checkpoint of this stream.
    fn label(&self) -> Label {
        Label {
            run: self.run.to_string(),
            stream: fingerprint(&self.spec, self.description),
            commitment: hex(&self.commitment()),
            placement: self.placement().to_string(),
            step: self.step(),
            start: either!(&self.engine, engine => engine.stagger.start),
        }
    }

    /// Restores the state of a checkpoint in a stream that was just built.
    pub(crate) fn restore(&mut self, reader: Reader<'_>) -> Result<()> {
        let refused = reader.refuse("it was written in another context: for another plan, data set or model");
        let step = reader.label.step;
        let commitment = reader.label.commitment.clone();
        if self.placement().to_string() == reader.label.placement {
            self.engine.read(reader)?;
        } else {
            // With another memory budget other vectors are stored; they are recomputed from the key.
            self.engine.skip(reader)?;
            self.go_to(step);
        }
        self.used = Used::before(step);
        if hex(&self.commitment()) == commitment { Ok(()) } else { Err(refused) }
    }
}

/// Runs `work` on the threads of a stream.
pub(crate) fn in_pool<T: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Returns a digest of everything that determines the outputs of a shard, apart from key and run.
pub(crate) fn fingerprint(spec: &Spec, description: [u8; 32]) -> String {
    hex(&Sha256::new().chain_update(description).chain_update(spec.shard.describe()).finalize())
}

impl fmt::Debug for NoiseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { steps, dim, .. } = self.spec;
        write!(f, "Stream(step {} of {steps}, dim {dim}, {})", self.step(), self.placement())
    }
}
