//! The ledger of participation.

use std::path::PathBuf;

use antinoise_input::InvalidParameter;
use antinoise_ledger::{Charged, Ledger as Opened};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Result;
use crate::held::Held;
use crate::key::no_copy;
use crate::plan::Plan;

/// The ledger of a federated run, an SQLite file: which users took part in which step, and the last noisy
/// sum.
///
/// It belongs to one plan and run, and to one process at a time; only its owner can read it. Each change is
/// on the disk before the call returns. `run` names the run, by default "0". A file that was altered is
/// refused.
#[pyclass(frozen, module = "antinoise.flower")]
pub struct Ledger {
    path: PathBuf,
    held: Held<State>,
}

struct State {
    ledger: Opened,
    /// The proof that users were charged for the next step.
    charged: Option<Charged>,
}

/// The names of users; an error for one that is not a string or not valid UTF-8.
pub fn names(users: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    let name = |user: Bound<'_, PyAny>| -> Result<String> {
        user.extract().map_err(|_| {
            let got = user
                .call_method0("__repr__")
                .and_then(|repr| repr.call_method1("encode", ("ascii", "backslashreplace")));
            let got = got.and_then(|bytes| bytes.extract::<Vec<u8>>()).unwrap_or_default();
            let got = String::from_utf8_lossy(&got).into_owned();
            InvalidParameter::new("name of a user", got, "a string that can be encoded in UTF-8").into()
        })
    };
    users.try_iter()?.map(|user| name(user?)).collect()
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (path, plan, run=None))]
    fn new(py: Python<'_>, path: PathBuf, plan: &Plan, run: Option<String>) -> Result<Self> {
        let (run, inner) = (run.unwrap_or_else(|| "0".into()), plan.verified());
        let ledger = py.detach(|| Opened::open(&path, inner, &run))?;
        let charged = ledger.charged_before()?.map(|(charged, _)| charged);
        Ok(Self { path, held: Held::new("Ledger", "ledger", State { ledger, charged }) })
    }

    /// The path of the file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The next step; all earlier steps are finished.
    #[getter]
    fn step(&self) -> Result<usize> {
        self.held.with(|state| Ok(state.ledger.step()))
    }

    /// The users among these who may take part in the next step.
    fn eligible(&self, users: &Bound<'_, PyAny>) -> Result<Vec<String>> {
        let users = names(users)?;
        self.held.with(|state| {
            let found = state.ledger.eligible(users.iter().map(String::as_str));
            Ok(found.into_iter().map(String::from).collect())
        })
    }

    /// The users who were recorded for the next step before a failure, in the order of their names.
    fn charged(&self) -> Result<Vec<String>> {
        self.held.with(|state| Ok(state.ledger.participants(state.ledger.step())?))
    }

    /// Records that these users take part in the next step, before their updates are used. If one of them may
    /// not take part, nobody is recorded.
    fn charge(&self, py: Python<'_>, users: &Bound<'_, PyAny>) -> Result<()> {
        let users = names(users)?;
        self.held.with(|state| {
            let users: Vec<&str> = users.iter().map(String::as_str).collect();
            state.charged = Some(py.detach(|| state.ledger.charge(&users))?);
            Ok(())
        })
    }

    /// Records the noisy sum of the next step in place of the previous one. `step` must be the next step,
    /// whose users were charged; `base` is a digest of the model that the step started from.
    fn record_noisy_sum(&self, py: Python<'_>, step: usize, base: &str, noisy_sum: &[u8]) -> Result<()> {
        self.held.with(|state| {
            let next = state.ledger.step();
            if step != next {
                let must_be = format!("{next}, which comes next");
                return Err(InvalidParameter::new("step of a noisy sum", step, must_be).into());
            }
            let charged = state.charged.take().ok_or_else(|| {
                let must_be = "recorded before their updates are used: call charge first";
                InvalidParameter::new(format!("users of step {step}"), "not recorded", must_be)
            })?;
            Ok(py.detach(|| state.ledger.record_noisy_sum(charged, base, noisy_sum))?)
        })
    }

    /// The last noisy sum: its step, its base (a digest of the model that the step started from) and its
    /// bytes; None before the first one.
    fn last_noisy_sum<'py>(&self, py: Python<'py>) -> Result<Option<(usize, String, Bound<'py, PyBytes>)>> {
        self.held.with(|state| {
            let last = state.ledger.last_noisy_sum()?;
            Ok(last.map(|last| (last.step, last.base, PyBytes::new(py, &last.noisy_sum.unwrap_or_default()))))
        })
    }

    /// Records, once, a value to which the ledger belongs; refuses a value other than the recorded one.
    fn bind(&self, name: &str, value: &str) -> Result<()> {
        self.held.with(|state| Ok(state.ledger.bind(name, value)?))
    }

    /// Replaces a recorded value.
    fn rebind(&self, name: &str, value: &str) -> Result<()> {
        self.held.with(|state| Ok(state.ledger.rebind(name, value)?))
    }

    /// The recorded value of this name, if any.
    fn bound(&self, name: &str) -> Result<Option<String>> {
        self.held.with(|state| Ok(state.ledger.bound(name)?))
    }

    /// All pairs of user and step, ordered by user, then step.
    fn participations(&self) -> Result<Vec<(String, usize)>> {
        self.held.with(|state| Ok(state.ledger.participations()?))
    }

    /// Closes the file and releases its lock.
    fn close(&self, py: Python<'_>) -> Result<()> {
        self.held.close(py)
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        no_copy("Ledger")
    }

    fn __copy__(&self) -> PyResult<()> {
        no_copy("Ledger")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_copy("Ledger")
    }
}
