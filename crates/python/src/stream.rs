//! The noise of a plan, row by row. One long file, since PyO3 requires the methods of a Python class in one
//! block.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{
    BLOCK_WEIGHTS, Key as Secret, KeyedRng, NoiseStream as Stream, Placement, Purpose, RunId, State, StateAt,
    block_factor,
};
use numpy::{Element, PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{Raised, Result};
use crate::key::{Key, bytes_to_write, no_copy, token};
use crate::plan::Plan;
use crate::process::{Owner, threaded};
use crate::rows::{Arrays, refuse_overlap};
use crate::uses::{Use, Uses};
use crate::wanted::{Speed, Wanted};

/// Intended duration of one part of a seek; Ctrl-C is handled after each part.
const PART: Duration = Duration::from_millis(50);

/// The noise of a plan's run: one row for each step of the plan, with `dim` coordinates, or only the
/// coordinates of `shard`.
///
/// Rows are written into the caller's memory: NumPy arrays of float32, CPU tensors, any object with the
/// buffer protocol, or a list of such objects that hold a row in consecutive parts.
#[pyclass(frozen, module = "antinoise")]
pub struct NoiseStream {
    noise: Mutex<Stream>,
    own_threads: bool,
    owner: Owner,
    uses: Uses,
    run: RunId,
    steps: usize,
    len: usize,
    placement: Placement,
    description: [u8; 32],
    plan: [u8; 32],
}

type Longs<'py> = Bound<'py, PyArray1<i64>>;

/// The properties of a stream apart from its noise.
pub struct Made {
    pub run: RunId,
    pub coordinates: Vec<Range<u64>>,
    pub own_threads: bool,
    /// Whether anyone can guess the key, so that the noise protects nothing.
    pub guessable: bool,
}

impl NoiseStream {
    /// Wraps a stream that was made in this process.
    pub fn of(noise: Stream, plan: &Plan, Made { run, coordinates, own_threads, guessable }: Made) -> Self {
        let same = (token(noise.rng(Purpose::Token, 0)), noise.description());
        let (steps, len, placement, description) =
            (noise.steps(), noise.len(), noise.placement(), noise.description());
        Self {
            noise: Mutex::new(noise),
            own_threads,
            owner: Owner::this(),
            uses: Uses::of(same, coordinates, guessable),
            run,
            steps,
            len,
            placement,
            description,
            plan: plan.digest_bytes(),
        }
    }

    /// Runs `work` on the stream while other Python threads run.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Stream) -> Result<T> + Send) -> Result<T> {
        self.owner.check("NoiseStream")?;
        py.detach(|| {
            let noise = &mut *self.locked()?;
            threaded(self.own_threads, || work(noise))?
        })
    }

    /// Records that the next row is handed out.
    fn take_row(&self, noise: &Stream) -> Result<()> {
        if noise.step() == self.steps { Ok(()) } else { self.uses.take(noise.step(), Use::HandedOut) }
    }

    /// Refuses any plan except the one of this stream.
    pub fn check_plan(&self, plan: &Plan) -> Result<()> {
        if plan.digest_bytes() == self.plan {
            return Ok(());
        }
        Err(InvalidParameter::new("plan", "another one", "the plan from which the noise was made").into())
    }

    /// The run's name.
    pub fn run_id(&self) -> RunId {
        self.run.clone()
    }

    /// Random numbers of the run.
    pub fn rng(&self, purpose: Purpose, step: u64) -> Result<KeyedRng> {
        self.owner.check("NoiseStream")?;
        Ok(self.locked()?.rng(purpose, step))
    }

    fn committed(&self) -> Result<[u8; 32]> {
        self.owner.check("NoiseStream")?;
        Ok(self.locked()?.commitment())
    }

    fn locked(&self) -> Result<MutexGuard<'_, Stream>> {
        self.noise.lock().map_err(|_| Raised::failed("an earlier call failed half way"))
    }

    fn check_length(&self, name: &str, got: usize) -> Result<()> {
        if got == self.len {
            return Ok(());
        }
        Err(InvalidParameter::new(format!("{name}'s length"), got, format!("the shard's {}", self.len))
            .into())
    }

    /// Writes the next row in whole points, after `before` accepted it.
    fn points_into(
        &self,
        out: &Bound<'_, PyAny>,
        before: impl FnOnce(&Stream) -> Result<()> + Send,
    ) -> Result<()> {
        let mut points = Arrays::<i32>::one_to_write("out", out)?;
        let points = points.as_slice_mut().map_err(Raised::failed)?;
        self.check_length("out", points.len())?;
        self.with(out.py(), |noise| {
            if noise.grid().is_none() {
                let must_be = "grid: plain noise has no points";
                return Err(InvalidParameter::new("arithmetic of the plan", "plain", must_be).into());
            }
            before(noise)?;
            Ok(noise.next_points_into(points)?)
        })
    }

    /// Runs `work` on the stream and on the caller's arrays for a row.
    fn fill<T: Element + Send>(
        &self,
        out: &Bound<'_, PyAny>,
        name: &'static str,
        work: impl FnOnce(&mut Stream, &mut [&mut [T]]) -> Result<()> + Send,
    ) -> Result<()> {
        let arrays = Arrays::<T>::of(name, out)?;
        refuse_overlap(name, arrays.spans())?;
        let mut arrays = arrays.writable()?;
        let places = arrays.iter_mut().map(|array| array.as_slice_mut().map_err(Raised::failed));
        let mut places = places.collect::<Result<Vec<_>>>()?;
        self.check_length(name, places.iter().map(|place| place.len()).sum())?;
        self.with(out.py(), move |noise| work(noise, &mut places))
    }
}

#[pymethods]
impl NoiseStream {
    /// `run` names the run, by default "0"; `shard` is a list of (start, stop) ranges of coordinates in the
    /// order of the output; `threads`, `memory` (bytes) and `look_ahead` (steps) change speed and no bit.
    /// `state_in_memory` stores the past rows wherever the mechanism allows it, whatever the memory. All
    /// shardings then have the same number of state words per coordinate, and each can continue from the
    /// state of another.
    #[new]
    #[pyo3(signature = (
        plan, dim, key, *, run=None, shard=None, threads=None, memory=None, look_ahead=None, state_in_memory=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        dim: usize,
        key: &Key,
        run: Option<&str>,
        shard: Option<Vec<(u64, u64)>>,
        threads: Option<usize>,
        memory: Option<u64>,
        look_ahead: Option<usize>,
        state_in_memory: bool,
    ) -> Result<Self> {
        let speed = Speed { threads, memory, look_ahead, state_in_memory };
        let wanted = Wanted::new(plan, dim, run, shard, speed)?;
        let grid = plan.verified().arithmetic.grid()?;
        let digest = plan.digest_bytes();
        let Wanted { builder, coordinates, run, own_threads } = wanted;
        let build = |secret: &Secret| threaded(own_threads, || builder.grid(grid).build(secret));
        let made = (dim, coordinates.clone());
        let noise = py.detach(|| key.make_noise(&run, digest, made, |secret| Ok(build(secret)??)))?;
        Ok(Self::of(noise, plan, Made { run, coordinates, own_threads, guessable: key.is_guessable() }))
    }

    /// Restores the stream that `save` wrote to `path`. The file holds the run's key; the other arguments
    /// must be those of the saved stream.
    #[staticmethod]
    #[pyo3(signature = (path, plan, dim, *, run=None, shard=None, threads=None, memory=None, look_ahead=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn resume(
        py: Python<'_>,
        path: PathBuf,
        plan: &Plan,
        dim: usize,
        run: Option<&str>,
        shard: Option<Vec<(u64, u64)>>,
        threads: Option<usize>,
        memory: Option<u64>,
        look_ahead: Option<usize>,
    ) -> Result<Self> {
        let speed = Speed { threads, memory, look_ahead, state_in_memory: false };
        let wanted = Wanted::new(plan, dim, run, shard, speed)?;
        let grid = plan.verified().arithmetic.grid()?;
        let Wanted { builder, coordinates, run, own_threads } = wanted;
        let noise = py.detach(|| threaded(own_threads, || builder.grid(grid).resume(path)))??;
        Ok(Self::of(noise, plan, Made { run, coordinates, own_threads, guessable: false }))
    }

    /// Number of 4-byte words in the state of each coordinate.
    #[getter]
    fn state_words(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |noise| Ok(noise.state_words()))
    }

    /// Writes the state by coordinate into the first `state_words` vectors of `words`, and the run's key into
    /// `run_key`, 32 bytes. `words` is int32 and holds consecutive vectors of the shard's length; vectors
    /// after the state are the caller's own, saved and checked together with the state.
    ///
    /// Returns `steps`, the pair of the next step and the step that the state was made up to, and the keyed
    /// sum of `words` (`sum_of_words`). Streams of other shards at the same step write the words of their
    /// coordinates. `SavedState` restores the state, checked by the `state_commitment` of the total of all
    /// sums. The words and the run's key are as secret as the key.
    fn state(&self, words: &Bound<'_, PyAny>, run_key: &Bound<'_, PyAny>) -> Result<((usize, usize), u128)> {
        let mut words = Arrays::<i32>::one_to_write("words", words)?;
        let words = words.as_slice_mut().map_err(Raised::failed)?;
        let mut key = bytes_to_write("run_key", run_key)?;
        let key = key.as_slice_mut().map_err(Raised::failed)?;
        self.with(run_key.py(), |noise| {
            let (at, sum) = noise.state(words)?;
            noise.expose_run_key(|secret| key.copy_from_slice(secret));
            Ok(((at.step, at.made), sum))
        })
    }

    /// The keyed sum of arbitrary words by coordinate, int32, in consecutive vectors of the shard's length: a
    /// number below 2^128 that depends on every word, on the run's key and on `purpose`. The total of the
    /// sums of processes with different coordinates, modulo 2^128, does not depend on how the coordinates are
    /// split. Different words have the same total with probability below 2^-96. The sum is as secret as the
    /// key.
    fn sum_of_words(&self, py: Python<'_>, purpose: &str, words: &Bound<'_, PyAny>) -> Result<u128> {
        let words = Arrays::<i32>::one("words", words)?;
        let words = words.as_slice().map_err(Raised::failed)?;
        self.with(py, |noise| Ok(noise.sum_of_words(purpose, words)?))
    }

    /// The 32 bytes by which `SavedState.resume` recognises a state: a digest, keyed by the run's key, of the
    /// plan, the steps, the `total` of the sums of all processes, and `extra`: other data saved with the
    /// state, or a digest of them.
    #[pyo3(signature = (steps, total, *, extra=b"".as_slice()))]
    fn state_commitment<'py>(
        &self,
        py: Python<'py>,
        steps: (usize, usize),
        total: u128,
        extra: &[u8],
    ) -> Result<Bound<'py, PyBytes>> {
        self.owner.check("NoiseStream")?;
        let at = StateAt { step: steps.0, made: steps.1 };
        Ok(PyBytes::new(py, &self.locked()?.state_commitment(at, total, extra)))
    }

    /// A commitment to run, plan and step: a digest keyed by the run's key, which reveals nothing about the
    /// key. Stored in another file of a checkpoint, it shows that the noise belongs to that file. The words
    /// of a state are covered by `state_commitment` alone.
    #[getter]
    fn commitment(&self) -> Result<String> {
        Ok(hex(&self.committed()?))
    }

    /// A public token of the run that reveals nothing about its key; batches of the same run have the same
    /// token.
    #[getter]
    fn token(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |noise| Ok(token(noise.rng(Purpose::Token, 0))))
    }

    /// Writes the next row into `out`, float32: the noise alone; on a grid, the noisy sum of zeros.
    /// Since the sum that the caller adds is unknown, the same row is not handed out again in this process.
    fn next_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        self.fill(out, "out", |noise, places| {
            self.take_row(noise)?;
            Ok(noise.next_into_slices(places)?)
        })
    }

    /// Writes the next row, which the caller must not use before `_noisy_sum_made` has recorded its noisy
    /// sum.
    fn _make_ahead_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        if self.with(out.py(), |noise| Ok(noise.grid().is_none()))? {
            return self.fill(out, "out", |noise, places| Ok(noise.next_into_slices(places)?));
        }
        self.points_into(out, |_| Ok(()))
    }

    /// Records `digest` as the noisy sum of a step whose row was made ahead; refused if the row is in use.
    fn _noisy_sum_made(&self, step: usize, digest: u64) -> Result<()> {
        self.owner.check("NoiseStream")?;
        self.uses.take(step, Use::InNoisySum(digest))
    }

    /// Forgets the noisy sums from `step` on, as `seek` does with `reuse_noise_unprotected`.
    fn _forget_noisy_sums(&self, step: usize) {
        self.uses.forget(step);
    }

    /// For digests computed outside this library: the weight of each output within a block, and the factors
    /// of the sums of the blocks `first` to `last` - 1.
    #[staticmethod]
    fn _digest_numbers(py: Python<'_>, first: usize, last: usize) -> (Longs<'_>, Longs<'_>) {
        let factors: Vec<i64> = (first..last).map(|block| block_factor(block).cast_signed()).collect();
        (BLOCK_WEIGHTS.map(i64::from).to_pyarray(py), factors.to_pyarray(py))
    }

    /// Writes the next row in whole points of the plan's grid into `out`, int32. For a caller that does the
    /// work of `add_to_sum` itself, for example on another device: rounds a sum to the grid, adds the points
    /// in int64 and multiplies by `grid_spacing`. The same row is not handed out again in this process.
    fn next_points_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        self.points_into(out, |noise| self.take_row(noise))
    }

    /// Adds `scale` times the next row to `gradient`, float32. Only for plans with arithmetic `plain`; on a
    /// grid, `add_to_sum` makes noisy sums. If the gradient is refused, because it is not finite or the
    /// step's noise is in use, it is set to zeros.
    #[pyo3(signature = (gradient, scale=1.0))]
    fn add_next_into(&self, gradient: &Bound<'_, PyAny>, scale: f32) -> Result<()> {
        self.fill(gradient, "gradient", move |noise, places| {
            if noise.grid().is_some() {
                let must_be =
                    "plain; on a grid, add_to_sum(sum, out) adds the sum and the noise in whole numbers";
                return Err(InvalidParameter::new("arithmetic of the plan", "grid", must_be).into());
            }
            let step = noise.step();
            let accept = |digest| self.uses.take(step, Use::InNoisySum(digest));
            noise.add_next_into_slices_if(places, scale, accept)
        })
    }

    /// Writes `sum`, float64, plus the step's noise into `out`, float32: on a grid, sum and noise are rounded
    /// to the grid and added in whole numbers; a plain sum is added in double precision. Divide the result by
    /// the expected batch size. Without `out`, each noisy sum takes the place of its sum: the same numbers,
    /// without further memory.
    ///
    /// A step has one noisy sum. In this process another sum for the same step is refused, whether by this
    /// stream or by another stream with the same noise. A sum that is not finite, or too large for the grid,
    /// is refused too. After a refusal `out`, or `sum` in its place, is zeros and the step has not advanced.
    #[pyo3(signature = (sum, out=None))]
    fn add_to_sum(&self, sum: &Bound<'_, PyAny>, out: Option<&Bound<'_, PyAny>>) -> Result<()> {
        let Some(out) = out else {
            return self.fill(sum, "sum", move |noise, places| {
                let step = noise.step();
                noise.add_to_sum_in_place_if(places, |digest| self.uses.take(step, Use::InNoisySum(digest)))
            });
        };
        let sums = Arrays::<f64>::of("sum", sum)?;
        refuse_overlap("out", [sums.spans(), Arrays::<f32>::of("out", out)?.spans()].concat())?;
        let sums = sums.readable()?;
        let sums =
            sums.iter().map(|array| array.as_slice().map_err(Raised::failed)).collect::<Result<Vec<_>>>()?;
        self.check_length("sum", sums.iter().map(|sum| sum.len()).sum())?;
        self.fill(out, "out", move |noise, places| {
            let step = noise.step();
            noise.add_to_sum_slices_if(&sums, places, |digest| self.uses.take(step, Use::InNoisySum(digest)))
        })
    }

    /// Makes `step` the next step. Ctrl-C stops the seek at an intermediate step, which the attribute `step`
    /// then gives; `progress(step, of)` is called from time to time.
    ///
    /// Seeking backwards regenerates noise that was already returned. A second sum under the same
    /// noise would void the privacy of both noisy sums. It is refused in this process. With
    /// `reuse_noise_unprotected=True` the stream forgets the noisy sums from `step` on, and allows it: only
    /// for noisy sums that nobody has seen.
    #[pyo3(signature = (step, *, progress=None, reuse_noise_unprotected=false))]
    fn seek(
        &self,
        py: Python<'_>,
        step: usize,
        progress: Option<&Bound<'_, PyAny>>,
        reuse_noise_unprotected: bool,
    ) -> Result<()> {
        let mut at = self.with(py, |noise| Ok(noise.rebuild_start(step)))?;
        // The first part seeks to the step from which state is rebuilt, and refuses a step beyond the last.
        let (mut next, mut stride) = (if step > self.steps { step } else { at }, 1);
        loop {
            let start = Instant::now();
            at = self.with(py, |noise| {
                // `self.uses` decides what may be reused: it knows which noisy sums are repeated, and the
                // steps of other streams.
                noise.seek_and_reuse_noise_unprotected(next)?;
                Ok(noise.step())
            })?;
            py.check_signals()?;
            if let Some(progress) = progress {
                progress.call1((at, step))?;
            }
            if at == step {
                if reuse_noise_unprotected {
                    self.uses.forget(step);
                }
                return Ok(());
            }
            let took = start.elapsed();
            stride = if took < PART { stride * 2 } else { (stride / 2).max(1) };
            next = step.min(at + stride);
        }
    }

    /// Saves the run's key, the step and the state to a file that only its owner can read, atomically;
    /// replaces an existing file. A reader of the file can compute all noise of the run.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.with(py, |noise| Ok(noise.save(path)?))
    }

    /// The next step, from 0; after the last step it equals `steps`.
    #[getter]
    fn step(&self, py: Python<'_>) -> Result<usize> {
        self.owner.check("NoiseStream")?;
        // The step is read several times per step: without releasing Python's lock if the stream is free.
        match self.noise.try_lock() {
            Ok(noise) => Ok(noise.step()),
            Err(_) => py.detach(|| Ok(self.locked()?.step())),
        }
    }

    #[getter]
    fn steps(&self) -> usize {
        self.steps
    }

    /// The run's name.
    #[getter]
    fn run(&self) -> &str {
        self.run.as_str()
    }

    /// The chosen trade-off between memory and time: a dict with `state`, `look_ahead`, `vectors` and
    /// `bytes`.
    #[getter]
    fn placement<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Placement { state, look_ahead, vectors, bytes, .. } = self.placement;
        let state = match state {
            State::Stored => "stored",
            State::Regenerated => "regenerated",
            State::Replayed => "replayed",
        };
        let report = PyDict::new(py);
        report.set_item("state", state)?;
        report.set_item("look_ahead", look_ahead)?;
        report.set_item("vectors", vectors)?;
        report.set_item("bytes", bytes)?;
        Ok(report)
    }

    /// A digest of everything that the noise depends on apart from key and run. Processes that generate parts
    /// of one stream must agree on it.
    #[getter]
    fn description(&self) -> String {
        hex(&self.description)
    }

    /// Number of coordinates of a row.
    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        format!(
            "NoiseStream(run={:?}, steps={}, coordinates={}, {})",
            self.run.as_str(),
            self.steps,
            self.len,
            self.placement
        )
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        no_copy("NoiseStream")
    }

    fn __reduce__(&self) -> PyResult<()> {
        no_copy("NoiseStream")
    }

    fn __copy__(&self) -> PyResult<()> {
        no_copy("NoiseStream")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_copy("NoiseStream")
    }
}
