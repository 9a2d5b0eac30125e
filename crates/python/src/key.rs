//! The secret key, and a record of the runs that it has served.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{Key as Secret, KeyedRng, Purpose, RunId};
use numpy::{PyArray1, PyArrayMethods, PyReadwriteArrayDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rand_core::Rng;
use zeroize::Zeroize;

use crate::errors::{Raised, Result};
use crate::process::Owner;
use crate::rows::Arrays;

/// The 256-bit secret from which a run's noise and batches are generated.
///
/// Under one run name a key serves one plan, and generates the noise of each coordinate once. A key is never
/// printed, copied or pickled, and stays in the process that made it.
#[pyclass(frozen, module = "antinoise")]
pub struct Key {
    secret: Secret,
    /// Whether the key was made from a number.
    guessable: bool,
    served: Mutex<HashMap<RunId, Served>>,
    owner: Owner,
}

/// The use of a key under one run name.
struct Served {
    plan: [u8; 32],
    /// The dimension, shared by all streams of the run, and the coordinates whose noise exists; `None` before
    /// the first stream.
    streams: Option<(usize, Vec<Range<u64>>)>,
}

impl Key {
    fn of(secret: Secret) -> Self {
        Self { secret, guessable: false, served: Mutex::default(), owner: Owner::this() }
    }

    /// Whether anyone can guess the key, so that its noise protects nothing.
    pub fn is_guessable(&self) -> bool {
        self.guessable
    }

    /// Random numbers for the sampler of a run of this plan.
    pub fn rng(&self, run: &RunId, plan: [u8; 32], purpose: Purpose, step: u64) -> Result<KeyedRng> {
        self.owner.check("Key")?;
        drop(self.serve(run, plan)?);
        Ok(KeyedRng::new(&self.secret, run, purpose, step))
    }

    /// Runs `build` on the secret, and records the run's coordinates as made; refused if one of them was made
    /// before.
    pub fn make_noise<T>(
        &self,
        run: &RunId,
        plan: [u8; 32],
        (dim, coordinates): (usize, Vec<Range<u64>>),
        build: impl FnOnce(&Secret) -> Result<T>,
    ) -> Result<T> {
        self.owner.check("Key")?;
        let mut served = self.serve(run, plan)?;
        let streams = &mut served.get_mut(run).expect("it was entered").streams;
        if let Some((same_dim, made)) = streams {
            let overlap = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
            if *same_dim != dim || made.iter().any(|a| coordinates.iter().any(|b| overlap(a, b))) {
                return Err(twice(
                    run,
                    "the key has already made noise of these coordinates under this name",
                ));
            }
        }
        let stream = build(&self.secret)?;
        streams.get_or_insert((dim, Vec::new())).1.extend(coordinates);
        Ok(stream)
    }

    /// Records that the run belongs to this plan; refused if it belongs to another.
    fn serve(&self, run: &RunId, plan: [u8; 32]) -> Result<MutexGuard<'_, HashMap<RunId, Served>>> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = served.entry(run.clone()).or_insert(Served { plan, streams: None });
        if entry.plan == plan {
            Ok(served)
        } else {
            Err(twice(run, "the key serves another plan under this name"))
        }
    }
}

fn twice<T: From<InvalidParameter>>(run: &RunId, why: &str) -> T {
    let must_be = format!(
        "a name that is new to this key, or use a new key: {why}, and reusing noise voids the privacy guarantee"
    );
    InvalidParameter::new("run", format!("{:?}", run.as_str()), must_be).into()
}

/// A caller's buffer of 32 bytes, for writing.
pub fn bytes_to_write<'py>(
    name: &'static str,
    given: &Bound<'py, PyAny>,
) -> Result<PyReadwriteArrayDyn<'py, u8>> {
    let bytes = Arrays::<u8>::one_to_write(name, given)?;
    let count = bytes.as_slice().map_err(Raised::failed)?.len();
    if count == 32 { Ok(bytes) } else { Err(not_a_key(name, count)) }
}

/// The secret in a caller's buffer of 32 bytes.
pub fn secret_in(name: &'static str, given: &Bound<'_, PyAny>) -> Result<Secret> {
    let bytes = Arrays::<u8>::one(name, given)?;
    let bytes = bytes.as_slice().map_err(Raised::failed)?;
    if bytes.len() != 32 {
        return Err(not_a_key(name, bytes.len()));
    }
    if bytes.iter().all(|&byte| byte == bytes[0]) {
        return Err(InvalidParameter::new(name, "one byte over and over", "32 secret bytes").into());
    }
    Secret::from_reader(|secret| {
        secret.copy_from_slice(bytes);
        Ok(())
    })
}

fn not_a_key(name: &str, bytes: usize) -> Raised {
    InvalidParameter::new(name, format!("{bytes} bytes"), "32").into()
}

/// The public token of the run that `rng` belongs to.
pub fn token(mut rng: KeyedRng) -> String {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    hex(&bytes)
}

/// The run's name; "0" by default.
pub fn run_named(run: Option<&str>) -> Result<RunId> {
    Ok(run.map_or(Ok(RunId::default()), RunId::new)?)
}

/// The error for an attempt to copy an object of which only one may exist.
pub fn no_copy<T>(what: &str) -> PyResult<T> {
    Err(PyTypeError::new_err(format!(
        "a {what} cannot be pickled or copied: two of them would use the same noise twice"
    )))
}

#[pymethods]
impl Key {
    /// A fresh key from the operating system's random source, for one run.
    #[staticmethod]
    fn from_os() -> Result<Self> {
        Ok(Self::of(Secret::from_os()?))
    }

    /// The key in a file that only its owner can read: 32 random bytes, or 64 hexadecimal digits.
    #[staticmethod]
    fn from_file(path: PathBuf) -> Result<Self> {
        Ok(Self::of(Secret::from_file(path)?))
    }

    /// A key that anyone can guess from a number: for tests and examples, never for privacy. Each new stream
    /// made from such a key forgets which of its noise was used before.
    #[staticmethod]
    fn from_seed_insecure(seed: u64) -> Self {
        Self { guessable: true, ..Self::of(Secret::from_seed_insecure(seed)) }
    }

    /// One key for several processes that generate parts of the same noise. Each process calls
    /// `exchange(bytes)` with 32 bytes: the key's bytes in the process that passes `key`, zeros in the
    /// others. `exchange` must broadcast the key's bytes to all processes; they are wiped afterwards. The
    /// process that passes `key` gets the same key back.
    ///
    ///     key = Key.broadcast(lambda bytes: torch.distributed.broadcast(torch.from_numpy(bytes), 0), Key.from_os() if rank == 0 else None)
    #[staticmethod]
    #[pyo3(signature = (exchange, key=None))]
    fn broadcast(py: Python<'_>, exchange: &Bound<'_, PyAny>, key: Option<Py<Self>>) -> Result<Py<Self>> {
        let bytes = PyArray1::<u8>::zeros(py, 32, false);
        if let Some(key) = &key {
            key.get().owner.check("Key")?;
            let mut lent = bytes.readwrite();
            let room = lent.as_slice_mut().map_err(Raised::failed)?;
            key.get().secret.expose(|secret| room.copy_from_slice(secret));
        }
        let exchanged = exchange.call1((&bytes,)).map_err(Raised::from);
        let received = match (exchanged, key) {
            (Err(error), _) => Err(error),
            (Ok(_), Some(key)) => Ok(key),
            (Ok(_), None) => secret_in("bytes of the exchange", &bytes)
                .and_then(|secret| Ok(Py::new(py, Self::of(secret))?)),
        };
        // `exchange` may have made the array read-only.
        bytes.call_method1("setflags", (true,))?;
        bytes.try_readwrite().map_err(Raised::failed)?.as_slice_mut().map_err(Raised::failed)?.zeroize();
        received
    }

    fn __repr__(&self) -> &'static str {
        "Key(..)"
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        no_copy("Key")
    }

    fn __reduce__(&self) -> PyResult<()> {
        no_copy("Key")
    }

    fn __copy__(&self) -> PyResult<()> {
        no_copy("Key")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_copy("Key")
    }
}
