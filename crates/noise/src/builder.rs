//! The builder of a stream, with all of its options.

use std::borrow::Borrow;
use std::path::Path;

use antinoise_input::{at_least, between};
use antinoise_mechanism::{Grid, Recursion};
use rayon::ThreadPoolBuilder;

use crate::either::EitherEngine;
use crate::key::RunKey;
use crate::placement::{self, Limits};
use crate::spec::Spec;
use crate::stream::fingerprint;
use crate::used_steps::Used;
use crate::{Cipher, Key, NoiseStream, Restored, Result, RunId, SeedNoise, Shard, StateAt, range};

/// The description and the options of a stream; see [`NoiseStream::builder`].
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
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StreamBuilder {
    spec: Spec,
    run: RunId,
    context: [u8; 32],
    memory_budget: Option<u64>,
    state_in_memory: bool,
    look_ahead: usize,
    threads: Option<usize>,
}

impl NoiseStream {
    /// The stream of `steps` rows of noise_std C^-1 Z over `dim` coordinates, on all threads of rayon's pool.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) names the parameter that cannot be used.
    pub fn new(recursion: Recursion, steps: usize, dim: usize, noise_std: f64, key: Key) -> Result<Self> {
        Self::builder(recursion, steps, dim, noise_std).build(key)
    }

    /// A builder for a stream with options, which are checked when it is built.
    pub fn builder(recursion: Recursion, steps: usize, dim: usize, noise_std: f64) -> StreamBuilder {
        let (shard, cipher) = (Shard::of_range(0..dim as u64), Cipher::default());
        StreamBuilder {
            spec: Spec { recursion, steps, dim, noise_std, shard, cipher, grid: None },
            run: RunId::default(),
            context: [0; 32],
            memory_budget: None,
            state_in_memory: false,
            look_ahead: usize::MAX,
            threads: None,
        }
    }
}

impl StreamBuilder {
    /// The coordinates for which noise is made; default: all.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Self {
        self.spec.shard = shard;
        self
    }

    /// The cipher; default: AES-256 in counter mode.
    #[must_use]
    pub fn cipher(mut self, cipher: Cipher) -> Self {
        self.spec.cipher = cipher;
        self
    }

    /// The run that the noise is for; default: "0". Under one key, two runs share no bit of noise and no
    /// random number of a sampler. A checkpoint of another run is refused.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, RunId};
    /// let row = |run: u64| {
    ///     let builder = NoiseStream::builder(Recursion::Independent, 1, 4, 1.0).run(RunId::from(run));
    ///     let mut row = [0.0; 4];
    ///     builder.build(Key::from_seed_insecure(7))?.next_into(&mut row)?;
    ///     Ok::<_, antinoise_noise::Error>(row)
    /// };
    /// assert_ne!(row(0)?, row(1)?);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    #[must_use]
    pub fn run(mut self, run: RunId) -> Self {
        self.run = run;
        self
    }

    /// A digest of the rest of the run, such as its plan, data and model; default: zeros. It is part of
    /// [`NoiseStream::commitment`] and changes no bit of noise. A checkpoint made with another digest is
    /// refused.
    #[must_use]
    pub fn context(mut self, digest: [u8; 32]) -> Self {
        self.context = digest;
        self
    }

    /// The maximum number of bytes for the past and for rows made ahead; default: half of the free memory. If
    /// the past needs more, it is recomputed instead of stored, which takes time and changes no bit.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Stores the past whenever that is possible, however much memory it takes. Then a state has the same
    /// number of [words](NoiseStream::state_words) per output in every sharding of the stream, and one
    /// sharding can continue from the state of another.
    #[must_use]
    pub fn state_in_memory(mut self) -> Self {
        self.state_in_memory = true;
        self
    }

    /// The maximum number of steps in a window; default: the fastest number. If the past is stored, tiles
    /// look ahead at different steps, so that every step takes about the same time. Streams of few tiles with
    /// a long window, and all streams that recompute their past, make a whole window when its first step is
    /// requested ([`Placement::together`](crate::Placement::together)).
    #[must_use]
    pub fn look_ahead(mut self, steps: usize) -> Self {
        self.look_ahead = steps;
        self
    }

    /// The number of threads of a thread pool that only this stream uses; default: rayon's global pool.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The grid of the noisy sums; default: none, floating-point noise.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Grid, Key, NoiseStream};
    /// let grid = Grid::for_clip_norm(1.0, 3, 1e-3)?;
    /// let builder = NoiseStream::builder(Recursion::Independent, 10, 3, 1.0).grid(grid);
    /// assert_eq!(builder.build(Key::from_os()?)?.grid(), Some(grid));
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    #[must_use]
    pub fn grid(mut self, grid: impl Into<Option<Grid>>) -> Self {
        self.spec.grid = grid.into();
        self
    }

    /// Builds the stream, at step 0. A borrowed key can serve several runs: the caller must make sure that no
    /// run is used twice.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream, RunId};
    /// let (key, builder) = (Key::from_os()?, NoiseStream::builder(Recursion::Independent, 10, 4, 1.0));
    /// let streams = [1, 2].map(|run| builder.clone().run(RunId::from(run)).build(&key));
    /// assert!(streams.iter().all(Result::is_ok));
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) names the parameter that cannot be used. On a grid, these
    /// are also: a sum of seeds with linearly dependent rows, retained seeds that exceed the memory budget,
    /// and a spacing below 2^-36 times the standard deviation of a step's fresh noise.
    pub fn build(self, key: impl Borrow<Key>) -> Result<NoiseStream> {
        let key = RunKey::new(key.borrow(), &self.run);
        self.start(key)
    }

    /// The seed noise of the stream: the Z of noise_std C^-1 Z. Plain streams use it in single precision
    /// ([`SeedNoise::fill`]), streams on a grid in double precision ([`SeedNoise::fill_f64`]).
    pub fn seed_noise(self, key: impl Borrow<Key>) -> SeedNoise {
        let key = RunKey::new(key.borrow(), &self.run).of_noise(&self.spec.describe());
        SeedNoise::of(&key, self.spec.cipher)
    }

    /// Resumes a stream from the checkpoint that [`NoiseStream::save`] wrote to `path`: its next rows have
    /// the same bits as those of the saved stream. The builder must describe the same stream, run and
    /// context; budget and threads may differ.
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if the file is of another stream, run, context or
    /// version, truncated or altered; [`Error::Io`](crate::Error::Io) if it cannot be read; those of
    /// [`StreamBuilder::build`].
    pub fn resume(self, path: impl AsRef<Path>) -> Result<NoiseStream> {
        self.resume_from(path.as_ref())
    }

    /// Resumes a stream from the `words` that [`NoiseStream::state`] wrote at the steps `at`, in the same
    /// sharding or another. `run_key` is the key that [`expose_run_key`](crate::NoiseStream::expose_run_key)
    /// exposed. The stream makes rows only after [`Restored::checked`] has verified that the state is the
    /// saved one.
    ///
    /// # Errors
    /// As [`StreamBuilder::build`]; [`Error::Invalid`](crate::Error::Invalid) if the number of words is
    /// wrong, or if this stream cannot have a state at these steps.
    pub fn resume_state(self, run_key: Key, at: StateAt, words: &[i32]) -> Result<Restored> {
        Restored::new(self.start(RunKey::restored(run_key))?, at, words)
    }

    fn start(self, key: RunKey) -> Result<NoiseStream> {
        let Self { spec, run, context, .. } = self;
        range::noise_std(spec.noise_std)?;
        between("dim", spec.dim, 1, 1usize.checked_shl(56).unwrap_or(usize::MAX), "2^56")?;
        if let Some(threads) = self.threads {
            between("threads", threads, 1, 1 << 12, "2^12")?;
        }
        let pool = match self.threads {
            Some(threads) if threads > 1 => Some(ThreadPoolBuilder::new().num_threads(threads).build()?),
            _ => None,
        };
        let threads = self.threads.unwrap_or_else(rayon::current_num_threads);
        let bytes = self.memory_budget.unwrap_or_else(placement::default_budget);
        let look_ahead = at_least("look_ahead", self.look_ahead, 1)?;
        let limits = Limits { bytes, look_ahead, stored: self.state_in_memory };
        let description = spec.describe();
        let engine = EitherEngine::new(&spec, &key.of_noise(&description), limits, threads)?;
        Ok(NoiseStream { spec, run, context, description, key, engine, pool, used: Used::before(0) })
    }

    fn resume_from(self, path: &Path) -> Result<NoiseStream> {
        let mut reader = EitherEngine::open(self.spec.grid, path)?;
        let label = &reader.label;
        if label.run != self.run.as_str() {
            return Err(reader.refuse(format!("it is of run {:?}, not {:?}", label.run, self.run.as_str())));
        }
        if label.stream != fingerprint(&self.spec, self.spec.describe()) {
            return Err(reader.refuse(
                "it was written for another recursion, steps, dim, noise_std, grid, shard or cipher",
            ));
        }
        let (start, step, steps) = (label.start, label.step, self.spec.steps);
        if step > steps || start > steps {
            return Err(reader.refuse(format!("its step {step} or {start} is not from 0 to {steps}")));
        }
        let key = RunKey::restored(reader.key()?);
        let mut stream = self.start(key)?;
        stream.restore(reader)?;
        Ok(stream)
    }
}
