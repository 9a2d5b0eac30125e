//! The noise of a plan, row by row. One file, and a long one: the methods of a class of Python are one block.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{
    AnyStream, BLOCK_WEIGHTS, Key as Secret, KeyedRng, Placement, Purpose, RunId, State, StateAt,
    block_factor,
};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{Raised, Result};
use crate::key::{Key, bytes_to_write, no_copy, token};
use crate::plan::Plan;
use crate::process::{Owner, threaded};
use crate::released::{Released, Use};
use crate::rows::{Arrays, refuse_overlap};
use crate::wanted::{Speed, Wanted};

/// How long a part of a seek should take: Ctrl-C waits for its end.
const PART: Duration = Duration::from_millis(50);

/// The noise of a plan's run: a row a step, of `dim` coordinates or of those in `shard`, never past the plan's last step.
///
/// Rows are written into the caller's memory: NumPy arrays of float32, CPU tensors, any object with the buffer protocol,
/// or a list of these that holds a row in parts.
#[pyclass(frozen, module = "antinoise")]
pub struct NoiseStream {
    noise: Mutex<AnyStream>,
    own_threads: bool,
    owner: Owner,
    released: Released,
    run: RunId,
    steps: usize,
    len: usize,
    placement: Placement,
    description: [u8; 32],
    plan: [u8; 32],
}

type Longs<'py> = Bound<'py, PyArray1<i64>>;

/// What a stream is of, apart from its noise.
pub struct Made {
    pub run: RunId,
    pub coordinates: Vec<Range<u64>>,
    pub own_threads: bool,
    /// Its key hides nothing.
    pub guessable: bool,
}

impl NoiseStream {
    /// A stream that was made in this process.
    pub fn of(
        noise: AnyStream,
        plan: &Plan,
        Made { run, coordinates, own_threads, guessable }: Made,
    ) -> Self {
        let same = (token(noise.rng(Purpose::Token, 0)), noise.description());
        let (steps, len, placement, description) =
            (noise.steps(), noise.len(), noise.placement(), noise.description());
        Self {
            noise: Mutex::new(noise),
            own_threads,
            owner: Owner::this(),
            released: Released::of(same, coordinates, guessable),
            run,
            steps,
            len,
            placement,
            description,
            plan: plan.digest_bytes(),
        }
    }

    /// Lets `work` have the stream while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyStream) -> Result<T> + Send,
    ) -> Result<T> {
        self.owner.check("NoiseStream")?;
        py.detach(|| {
            let noise = &mut *self.locked()?;
            threaded(self.own_threads, || work(noise))?
        })
    }

    /// Takes the next row, which the caller gets as it is.
    fn take_row(&self, noise: &AnyStream) -> Result<()> {
        if noise.step() == self.steps { Ok(()) } else { self.released.take(noise.step(), Use::HandedOut) }
    }

    /// Refuses another plan than the one that this is the noise of.
    pub fn check_plan(&self, plan: &Plan) -> Result<()> {
        if plan.digest_bytes() == self.plan {
            return Ok(());
        }
        Err(InvalidParameter::new("plan", "another one", "the plan that the noise was made by").into())
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

    fn locked(&self) -> Result<MutexGuard<'_, AnyStream>> {
        self.noise.lock().map_err(|_| Raised::failed("an earlier call failed half way"))
    }

    fn check_length(&self, name: &str, got: usize) -> Result<()> {
        if got == self.len {
            return Ok(());
        }
        Err(InvalidParameter::new(format!("{name}'s length"), got, format!("the shard's {}", self.len))
            .into())
    }

    /// Writes the next row in whole points, if `before` lets it.
    fn points_into(
        &self,
        out: &Bound<'_, PyAny>,
        before: impl FnOnce(&AnyStream) -> Result<()> + Send,
    ) -> Result<()> {
        let mut points = Arrays::<i32>::one_to_write("out", out)?;
        let points = points.as_slice_mut().map_err(Raised::failed)?;
        self.check_length("out", points.len())?;
        self.with(out.py(), |noise| {
            if let AnyStream::Plain(_) = noise {
                let must_be = "grid: plain noise has no points";
                return Err(InvalidParameter::new("release of the plan", "plain", must_be).into());
            }
            before(noise)?;
            let AnyStream::OnGrid(stream) = noise else { unreachable!("plain streams were refused") };
            Ok(stream.next_points_into(points)?)
        })
    }

    /// Hands the caller's places for a row to `work`.
    fn fill(
        &self,
        out: &Bound<'_, PyAny>,
        name: &'static str,
        work: impl FnOnce(&mut AnyStream, &mut [&mut [f32]]) -> Result<()> + Send,
    ) -> Result<()> {
        let arrays = Arrays::<f32>::of(name, out)?;
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
    /// `run` names the run, "0" if left out; `shard` is a list of (start, stop) ranges of coordinates in the order of the output;
    /// `threads`, `memory` (bytes) and `look_ahead` (steps) change speed and no bit. `state_in_memory` stores the past wherever it can be
    /// stored, whatever memory it takes. Then every sharding has the same number of words of state per coordinate, and can continue from the state of another.
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
        let grid = plan.verified().release.grid()?;
        let digest = plan.digest_bytes();
        let Wanted { builder, coordinates, run, own_threads } = wanted;
        let build = |secret: &Secret| threaded(own_threads, || builder.build_any(grid, secret));
        let made = (dim, coordinates.clone());
        let noise = py.detach(|| key.make_noise(&run, digest, made, |secret| Ok(build(secret)??)))?;
        Ok(Self::of(noise, plan, Made { run, coordinates, own_threads, guessable: key.is_guessable() }))
    }

    /// The stream as it was when `save` wrote `path`, which holds its key; the other arguments must be those that it was made with.
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
        let grid = plan.verified().release.grid()?;
        let Wanted { builder, coordinates, run, own_threads } = wanted;
        let noise = py.detach(|| threaded(own_threads, || builder.resume_any(grid, path)))??;
        Ok(Self::of(noise, plan, Made { run, coordinates, own_threads, guessable: false }))
    }

    /// Numbers of 4 bytes that `state` has for each coordinate.
    #[getter]
    fn state_words(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |noise| Ok(noise.state_words()))
    }

    /// Writes the state by coordinate into the first `state_words` vectors of `words`, int32, of the shard's length one after the other, and the
    /// run's key into `run_key`, 32 bytes. Vectors after those of the state are the caller's own, saved and checked with it.
    ///
    /// Returns the step that comes next and the one that the state was made to, as `steps`, and the keyed sum of `words` (`sum_of_words`). Streams
    /// of other shards at the same step write the words of their coordinates. With `state_commitment` of the total of all sums, the state is
    /// continued by `SavedState`. Words and run's key are as secret as the key.
    fn state(&self, words: &Bound<'_, PyAny>, run_key: &Bound<'_, PyAny>) -> Result<((usize, usize), u128)> {
        let mut words = Arrays::<i32>::one_to_write("words", words)?;
        let words = words.as_slice_mut().map_err(Raised::failed)?;
        let mut key = bytes_to_write("run_key", run_key)?;
        let key = key.as_slice_mut().map_err(Raised::failed)?;
        self.with(run_key.py(), |noise| {
            let (at, sum) = noise.state(words)?;
            noise.lend_run_key(|secret| key.copy_from_slice(secret));
            Ok(((at.step, at.made), sum))
        })
    }

    /// The keyed sum of any words by coordinate, int32, vectors of the shard's length one after the other: a number below 2^128 that depends on
    /// every word, on the run's key and on `purpose`. The sums of processes that have different coordinates, added up modulo 2^128, are the
    /// same however coordinates are split over them. Other words have the same total with a probability below 2^-96. As secret as the key.
    fn sum_of_words(&self, py: Python<'_>, purpose: &str, words: &Bound<'_, PyAny>) -> Result<u128> {
        let words = Arrays::<i32>::one("words", words)?;
        let words = words.as_slice().map_err(Raised::failed)?;
        self.with(py, |noise| Ok(noise.sum_of_words(purpose, words)?))
    }

    /// The 32 bytes by which `SavedState.resume` knows a state: a digest, keyed by the run's key, of plan, steps, the `total` of the sums of
    /// all processes, and `extra`, what else is saved beside it, or a digest of that.
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

    /// A commitment to run, plan and step: a digest keyed by the run's key, which reveals nothing about the key. Stored in another file of a
    /// checkpoint, it shows that the noise belongs to that file. It does not cover a state's words: `state_commitment` does.
    #[getter]
    fn commitment(&self) -> Result<String> {
        Ok(hex(&self.committed()?))
    }

    /// A public token of the run that reveals nothing about its key; batches of the same run have the same token.
    #[getter]
    fn token(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |noise| Ok(token(noise.rng(Purpose::Token, 0))))
    }

    /// Writes the next row into `out`, float32: the noise alone; on a grid, the release of a sum of zeros. What it is added to is not known here, so that
    /// the same row is not handed out again in this process.
    fn next_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        self.fill(out, "out", |noise, places| {
            self.take_row(noise)?;
            Ok(noise.next_into_places(places)?)
        })
    }

    /// The next row, which the caller does not use before `_release_made` took its release.
    fn _make_ahead_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        if self.with(out.py(), |noise| Ok(matches!(noise, AnyStream::Plain(_))))? {
            return self.fill(out, "out", |noise, places| Ok(noise.next_into_places(places)?));
        }
        self.points_into(out, |_| Ok(()))
    }

    /// Says that this is the digest of the release of a step whose row was made ahead; refused where the row is in use.
    fn _release_made(&self, step: usize, digest: u64) -> Result<()> {
        self.owner.check("NoiseStream")?;
        self.released.take(step, Use::Released(digest))
    }

    /// Forgets what was released from `step` on, as `seek` does where it is asked to.
    fn _forget_released(&self, step: usize) {
        self.released.forget(step);
    }

    /// For digests that are made elsewhere: the weight of each output of a block, and what the sums of the blocks `first` to `last` - 1 are
    /// multiplied by.
    #[staticmethod]
    fn _digest_numbers(py: Python<'_>, first: usize, last: usize) -> (Longs<'_>, Longs<'_>) {
        let factors: Vec<i64> = (first..last).map(|block| block_factor(block).cast_signed()).collect();
        (BLOCK_WEIGHTS.map(i64::from).to_pyarray(py), factors.to_pyarray(py))
    }

    /// Writes the next row in whole points of the plan's grid into `out`, int32: for a caller that rounds a sum to the grid, adds the points in
    /// int64 and multiplies by `grid_spacing` itself, on another device say. `release` does the same. The same row is not handed out again in this process.
    fn next_points_into(&self, out: &Bound<'_, PyAny>) -> Result<()> {
        self.points_into(out, |noise| self.take_row(noise))
    }

    /// Adds `scale` times the next row to `gradient`, float32. For plans with release `plain`; sums are released on a grid by
    /// `release`. A gradient that is refused, since it is not finite or the step's noise is in use, is zeros then.
    #[pyo3(signature = (gradient, scale=1.0))]
    fn add_next_into(&self, gradient: &Bound<'_, PyAny>, scale: f32) -> Result<()> {
        self.fill(gradient, "gradient", move |noise, places| match noise {
            AnyStream::Plain(stream) => {
                let step = stream.step();
                let accept = |digest| self.released.take(step, Use::Released(digest));
                stream.add_next_into_places_if(places, scale, accept)
            }
            AnyStream::OnGrid(_) => {
                let must_be =
                    "plain: on a grid sum and noise are added in whole numbers, by release(sum, out)";
                Err(InvalidParameter::new("release of the plan", "grid", must_be).into())
            }
        })
    }

    /// Writes the step's release of `sum`, float64, into `out`, float32: on a grid sum and noise are rounded to it and added in whole
    /// numbers; a plain sum is added in double precision. Divide the result by the expected batch size.
    ///
    /// A step releases one sum: another one is refused in this process, by this stream or another that makes the same noise. So is a sum that is not finite, or too
    /// large for the grid. `out` is zeros then, and the step still to come.
    fn release(&self, sum: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> Result<()> {
        let sums = Arrays::<f64>::of("sum", sum)?;
        refuse_overlap("out", [sums.spans(), Arrays::<f32>::of("out", out)?.spans()].concat())?;
        let sums = sums.readable()?;
        let sums =
            sums.iter().map(|array| array.as_slice().map_err(Raised::failed)).collect::<Result<Vec<_>>>()?;
        self.check_length("sum", sums.iter().map(|sum| sum.len()).sum())?;
        self.fill(out, "out", move |noise, places| {
            let step = noise.step();
            noise.release_places_if(&sums, places, |digest| self.released.take(step, Use::Released(digest)))
        })
    }

    /// Makes `step` the next one. Ctrl-C stops it on the way, at the step that `step` then tells; `progress(step, of)` is called
    /// now and then.
    ///
    /// Seeking backwards makes noise again that was already returned. Released with another sum, it would void the privacy of both releases: that is
    /// refused, in this process, unless `reuse_noise_unprotected` is True, which forgets what was released from `step` on. It is for releases that nobody saw.
    #[pyo3(signature = (step, *, progress=None, reuse_noise_unprotected=false))]
    fn seek(
        &self,
        py: Python<'_>,
        step: usize,
        progress: Option<&Bound<'_, PyAny>>,
        reuse_noise_unprotected: bool,
    ) -> Result<()> {
        let mut at = self.with(py, |noise| Ok(noise.sought_from(step)))?;
        // The first part goes to where the past begins, and refuses a step that there is not.
        let (mut next, mut stride) = (if step > self.steps { step } else { at }, 1);
        loop {
            let start = Instant::now();
            at = self.with(py, |noise| {
                noise.seek(next)?;
                Ok(noise.step())
            })?;
            py.check_signals()?;
            if let Some(progress) = progress {
                progress.call1((at, step))?;
            }
            if at == step {
                if reuse_noise_unprotected {
                    self.released.forget(step);
                }
                return Ok(());
            }
            let took = start.elapsed();
            stride = if took < PART { stride * 2 } else { (stride / 2).max(1) };
            next = step.min(at + stride);
        }
    }

    /// Saves the run's key, the step and the state to a file that only its owner can read, whole or not at all; what was there is
    /// replaced. Whoever reads the file knows all noise of the run.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.with(py, |noise| Ok(noise.save(path)?))
    }

    /// The step that comes next, from 0; after the last it is `steps`.
    #[getter]
    fn step(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |noise| Ok(noise.step()))
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

    /// The choice between memory and time: a dict with `state`, `look_ahead`, `vectors` and `bytes`.
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

    /// A digest of everything that the noise depends on apart from key and run. Processes that make parts of one stream must agree on it.
    #[getter]
    fn description(&self) -> String {
        hex(&self.description)
    }

    /// Coordinates of a row.
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
