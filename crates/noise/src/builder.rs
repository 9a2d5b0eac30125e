//! What a stream makes, and how: everything that is chosen before it starts.

use std::path::Path;

use antinoise_input::{at_least, between};
use antinoise_mechanism::Recursion;
use rayon::ThreadPoolBuilder;

use crate::correlator::Step;
use crate::engine::Engine;
use crate::placement::{self, Limits};
use crate::run::{RunId, RunKey, describe};
use crate::stream::{Core, NoiseStream};
use crate::{Cipher, Grid, Key, NoiseError, SeedNoise, Shard, range};

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
    pub(crate) fn new(recursion: Recursion, steps: usize, dim: usize, noise_std: f64) -> Self {
        let shard = Shard::of_range(0..dim as u64);
        let plan = Plan { recursion, steps, dim, noise_std, shard, cipher: Cipher::default(), grid: None };
        Self {
            plan,
            run: RunId::default(),
            context: [0; 32],
            memory_budget: None,
            look_ahead: usize::MAX,
            threads: None,
        }
    }

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
        range::noise_std(plan.noise_std)?;
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
