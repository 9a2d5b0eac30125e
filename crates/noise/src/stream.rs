//! The stream: rows of C^-1 Z, one a step, never past the last.

use std::fmt;
use std::path::Path;

use antinoise_input::{at_least, between, positive};
use antinoise_mechanism::Recursion;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::correlator::{Emit, Step};
use crate::engine::Engine;
use crate::placement::Limits;
use crate::run::{RunId, RunKey, describe};
use crate::{
    Cipher, Grid, Key, KeyedRng, NoiseError, Placement, Purpose, SeedNoise, Shard, checkpoint, placement,
};

/// A stream of correlated noise nu C^-1 Z, a vector of the shard's coordinates a step.
///
/// It refuses to run past its steps and cannot be cloned: two copies would release the same noise twice, and the
/// difference of the two releases would have none.
#[derive(Debug)]
pub struct NoiseStream(Core<f32>);

/// What a stream makes, and how; see [`NoiseStream::builder`].
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Cipher, Key, NoiseStream, Shard};
/// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
/// let stream = NoiseStream::builder(recursion, 100, 1_000_000, 1.0)
///     .shard(Shard::part(3, 7, 1_000_000)?)
///     .cipher(Cipher::ChaCha20)
///     .memory_budget(1 << 30)
///     .threads(1)
///     .build(Key::from_os()?)?;
/// assert_eq!(stream.placement().vectors, 1);
/// # Ok::<(), antinoise_noise::NoiseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StreamBuilder {
    plan: Plan,
    run: RunId,
    context: [u8; 32],
    memory_budget: Option<u64>,
    look_ahead: usize,
    threads: Option<usize>,
}

/// What the noise of a stream is a function of, apart from its key and its run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) recursion: Recursion,
    pub(crate) steps: usize,
    pub(crate) dim: usize,
    pub(crate) noise_std: f64,
    pub(crate) shard: Shard,
    pub(crate) cipher: Cipher,
    pub(crate) grid: Option<Grid>,
}

impl StreamBuilder {
    /// Only these coordinates; all of them if not called.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Self {
        self.plan.shard = shard;
        self
    }

    /// The cipher; AES-256 in counter mode if not called.
    #[must_use]
    pub fn cipher(mut self, cipher: Cipher) -> Self {
        self.plan.cipher = cipher;
        self
    }

    /// The run that the noise is for; "0" if not called. Under one key, runs share no bit, of noise or of samples. A
    /// checkpoint of another run is refused.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, RunId};
    /// let row = |run: u64| {
    ///     let builder = NoiseStream::builder(Recursion::Independent, 1, 4, 1.0).run(RunId::from(run));
    ///     let mut row = [0.0; 4];
    ///     builder.build(Key::from_seed_insecure(7))?.next_into(&mut row)?;
    ///     Ok::<_, antinoise_noise::NoiseError>(row)
    /// };
    /// assert_ne!(row(0)?, row(1)?);
    /// # Ok::<(), antinoise_noise::NoiseError>(())
    /// ```
    #[must_use]
    pub fn run(mut self, run: RunId) -> Self {
        self.run = run;
        self
    }

    /// A digest of what else belongs to the run (its plan, data and model, say); zeros if not called. It enters
    /// [`NoiseStream::commitment`] and no bit of noise; a checkpoint made with another one is refused.
    #[must_use]
    pub fn context(mut self, digest: [u8; 32]) -> Self {
        self.context = digest;
        self
    }

    /// Most bytes that past and coming noise may take; half of the memory that is free if not called. Below what the
    /// recursion's state takes, noise is made again instead of stored, which costs time and changes no bit.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Most steps made in one pass over the state; as many as pay if not called. Where the state is stored, parts of
    /// the shard take turns, so that every step takes about the same time; seed noise made again is made for all
    /// steps of a pass when the first of them is asked for.
    #[must_use]
    pub fn look_ahead(mut self, steps: usize) -> Self {
        self.look_ahead = steps;
        self
    }

    /// Threads of the stream's own; those of rayon's global pool if not called.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The stream at step 0.
    ///
    /// # Errors
    /// [`NoiseError::Input`] names the parameter that cannot be used.
    pub fn build(self, key: Key) -> Result<NoiseStream, NoiseError> {
        self.on(None).core(key).map(NoiseStream)
    }

    /// The stream's seed noise itself: the Z of noise_std C^-1 Z, in single precision.
    pub fn seed_noise(self, key: Key) -> SeedNoise {
        self.on(None).seeds(&key)
    }

    /// The stream as it was when [`NoiseStream::save`] wrote `path`: the next step gives the same bits as it would
    /// have given there. The builder must describe the same stream, run and context; budget and threads may differ.
    ///
    /// # Errors
    /// [`NoiseError::Checkpoint`] for a file of another stream, run, context or version, a truncated or an altered one;
    /// [`NoiseError::Io`] when it cannot be read; those of [`StreamBuilder::build`].
    pub fn resume(self, path: impl AsRef<Path>) -> Result<NoiseStream, NoiseError> {
        Core::resume(self.on(None), path.as_ref()).map(NoiseStream)
    }

    pub(crate) fn on(mut self, grid: Option<Grid>) -> Self {
        self.plan.grid = grid;
        self
    }

    pub(crate) fn seeds(&self, key: &Key) -> SeedNoise {
        SeedNoise::of(&RunKey::new(key, &self.run).of_noise(&describe(&self.plan)), self.plan.cipher)
    }

    pub(crate) fn core<T: Step>(self, key: Key) -> Result<Core<T>, NoiseError> {
        let key = RunKey::new(&key, &self.run);
        self.core_of(key)
    }

    pub(crate) fn core_of<T: Step>(self, key: RunKey) -> Result<Core<T>, NoiseError> {
        let Self { plan, run, context, .. } = self;
        positive("noise_std", plan.noise_std)?;
        between("dim", plan.dim, 1, 1 << 56, "2^56")?;
        if let Some(threads) = self.threads {
            between("threads", threads, 1, 1 << 12, "2^12")?;
        }
        let pool = match self.threads {
            Some(threads) if threads > 1 => Some(ThreadPoolBuilder::new().num_threads(threads).build()?),
            _ => None,
        };
        let threads = self.threads.unwrap_or_else(rayon::current_num_threads);
        let bytes = self.memory_budget.unwrap_or_else(placement::default_budget);
        let limits = Limits { bytes, look_ahead: at_least("look_ahead", self.look_ahead, 1)? };
        let description = describe(&plan);
        let engine = Engine::new(&plan, &key.of_noise(&description), limits, threads)?;
        Ok(Core { plan, run, context, description, key, engine, pool })
    }

    /// What is described, for which run.
    pub(crate) fn parts(&self) -> (&Plan, &RunId) {
        (&self.plan, &self.run)
    }
}

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
        let shard = Shard::of_range(0..dim as u64);
        let plan = Plan { recursion, steps, dim, noise_std, shard, cipher: Cipher::default(), grid: None };
        StreamBuilder {
            plan,
            run: RunId::default(),
            context: [0; 32],
            memory_budget: None,
            look_ahead: usize::MAX,
            threads: None,
        }
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
    /// As [`NoiseStream::next_into`], and [`NoiseError::Input`] for a `scale` that is not finite.
    pub fn add_next_into(&mut self, gradient: &mut [f32], scale: f32) -> Result<(), NoiseError> {
        if !scale.is_finite() {
            return Err(NoiseError::input("scale", scale, "finite"));
        }
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
    plan: Plan,
    run: RunId,
    context: [u8; 32],
    /// Of the plan.
    description: [u8; 32],
    key: RunKey,
    engine: Engine<T>,
    pool: Option<ThreadPool>,
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
