//! A saved state by coordinate, before it is checked against its commitment.

use std::ops::Range;
use std::sync::Mutex;

use antinoise_input::InvalidParameter;
use antinoise_noise::{Restored, RunId, StateAt};
use pyo3::prelude::*;

use crate::errors::{Raised, Result};
use crate::key::secret_in;
use crate::plan::Plan;
use crate::process::{Owner, threaded};
use crate::rows::Arrays;
use crate::stream::{Made, NoiseStream};
use crate::wanted::{Speed, Wanted};

/// A state that `NoiseStream.state` wrote; `resume` restores the stream from it, in the same sharding or
/// another.
///
/// `words` holds the words of the coordinates in `shard`; `steps` and `run_key` are those that `state`
/// returned and wrote; `plan` and `dim` must be those of the original stream. `run` is only a label here:
/// `run_key` is already specific to the run. `threads` and `look_ahead` change speed and no bit.
#[pyclass(frozen, module = "antinoise")]
pub struct SavedState {
    restored: Mutex<Option<Restored>>,
    sum: u128,
    plan: Py<Plan>,
    run: RunId,
    coordinates: Vec<Range<u64>>,
    own_threads: bool,
    owner: Owner,
}

#[pymethods]
impl SavedState {
    #[new]
    #[pyo3(signature = (words, steps, run_key, plan, dim, *, run=None, shard=None, threads=None, look_ahead=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        words: &Bound<'_, PyAny>,
        steps: (usize, usize),
        run_key: &Bound<'_, PyAny>,
        plan: Py<Plan>,
        dim: usize,
        run: Option<&str>,
        shard: Option<Vec<(u64, u64)>>,
        threads: Option<usize>,
        look_ahead: Option<usize>,
    ) -> Result<Self> {
        let speed = Speed { threads, memory: None, look_ahead, state_in_memory: true };
        let Wanted { builder, coordinates, run, own_threads } =
            Wanted::new(plan.get(), dim, run, shard, speed)?;
        let grid = plan.get().verified().arithmetic.grid()?;
        let words = Arrays::<i32>::one("words", words)?;
        let words = words.as_slice().map_err(Raised::failed)?;
        let at = StateAt { step: steps.0, made: steps.1 };
        let secret = secret_in("run_key", run_key)?;
        let restored = threaded(own_threads, || builder.grid(grid).resume_state(secret, at, words))??;
        let sum = restored.sum();
        let (restored, owner) = (Mutex::new(Some(restored)), Owner::this());
        Ok(Self { restored, sum, plan, run, coordinates, own_threads, owner })
    }

    /// The keyed sum of these words. Processes that hold parts of a state add up their sums, modulo 2^128.
    #[getter]
    fn sum(&self) -> u128 {
        self.sum
    }

    /// Restores the stream; works once. RuntimeError unless `commitment` is what `state_commitment` returned
    /// for this state: for the same plan, run key and steps, for words with this `total` over all processes
    /// (by default the sum of these words alone), and for the same `extra`.
    #[pyo3(signature = (commitment, *, total=None, extra=b"".as_slice()))]
    fn resume(
        &self,
        py: Python<'_>,
        commitment: &[u8],
        total: Option<u128>,
        extra: &[u8],
    ) -> Result<NoiseStream> {
        self.owner.check("SavedState")?;
        let restored = self.restored.lock().map_err(Raised::failed)?.take();
        let Some(restored) = restored else {
            let must_be = "the first one: two streams of one state would use the same noise twice";
            return Err(InvalidParameter::new("call of resume", "a second one", must_be).into());
        };
        let noise = restored.checked(total.unwrap_or(self.sum), extra, commitment)?;
        let (run, coordinates) = (self.run.clone(), self.coordinates.clone());
        let made = Made { run, coordinates, own_threads: self.own_threads, guessable: false };
        Ok(NoiseStream::of(noise, self.plan.bind(py).get(), made))
    }
}
