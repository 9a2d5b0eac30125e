//! Running counts: a release in a folder. One file, since PyO3 requires the methods of a Python class in one
//! block.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use antinoise_input::InvalidParameter;
use antinoise_release::{
    Columns, Found, Handling, Late, Period, Query, Release, Settings, Status, published, query_while,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::errors::{Result, warn};
use crate::events;
use crate::held::Held;
use crate::key::no_copy;
use crate::process::interruptible;
use crate::table::Table;
use crate::values;
use crate::words::dict;

/// Private running counts, sums and histograms over a stream, in a folder: each period is frozen, then
/// published, and one (epsilon, delta) covers all periods together.
///
/// `RunningCounts.create` begins a release and `RunningCounts.open` continues one. Only one object of one
/// process may have a folder open; `close`, or the end of a `with` block, releases the folder.
#[pyclass(frozen, module = "antinoise")]
pub struct RunningCounts {
    folder: PathBuf,
    /// Whether every query publishes whole numbers.
    whole: bool,
    held: Held<Release>,
}

impl RunningCounts {
    fn of(release: Release) -> Self {
        let whole = release.settings().queries.iter().all(|(query, _)| query.is_whole());
        let folder = release.folder().to_path_buf();
        Self { folder, whole, held: Held::new("RunningCounts", "counts", release) }
    }
}

#[pymethods]
impl RunningCounts {
    /// Begins a release in a new folder: chooses the mechanism, takes a key from the operating system and
    /// writes both.
    ///
    /// `keys` are the public categories; `periods` is the maximum number of periods ever published. With unit
    /// `user`, at most `max_rows` rows of a user are counted in each of at most `max_periods` periods, and
    /// all these rows are protected together; with unit `event`, each row is protected by itself. `queries`
    /// is one query or a list: `counts`, `window:W`, `decay:G`, `sum:LO,HI`, `histogram:E1,E2,...`, as on the
    /// command line. With `left_out` and unit `user`, the release also publishes how much its bounds leave
    /// out: `users-at-bound` and `users-over-rows`, of all keys together (`key` is empty).
    #[staticmethod]
    #[pyo3(signature = (folder, keys, *, periods, epsilon, delta, unit="user", max_periods=None, max_rows=1, queries=None, weights=None,
        non_negative=false, monotone=false, left_out=true))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn create(
        py: Python<'_>,
        folder: PathBuf,
        keys: Vec<String>,
        periods: usize,
        epsilon: f64,
        delta: f64,
        unit: &str,
        max_periods: Option<usize>,
        max_rows: usize,
        queries: Option<Queries>,
        weights: Option<Vec<f64>>,
        non_negative: bool,
        monotone: bool,
        left_out: bool,
    ) -> Result<Self> {
        let unit = unit.parse()?;
        if unit == antinoise_release::Unit::User && max_periods.is_none() {
            let must_be = "given: the maximum number of periods in which a user is counted";
            return Err(InvalidParameter::new("max_periods", "absent", must_be).into());
        }
        let settings = Settings {
            epsilon,
            delta,
            max_periods: max_periods.unwrap_or(1),
            max_rows,
            queries: weighted(queries, weights)?,
            non_negative,
            monotone,
            ..Settings::new(keys, periods, unit)
        };
        let settings = if left_out { settings.with_left_out() } else { settings };
        let release = py.detach(|| Release::create(&folder, &settings))?;
        Ok(Self::of(release))
    }

    /// Continues the release in `folder`.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> Result<Self> {
        let release = interruptible(py, move || Release::open(&folder))??;
        Ok(Self::of(release))
    }

    /// Opens a folder that was copied or restored, whose original will never be used again: two folders that
    /// continue one release publish different data under the same noise.
    #[staticmethod]
    fn adopt(py: Python<'_>, folder: PathBuf) -> Result<Self> {
        let release = py.detach(|| Release::adopt(&folder))?;
        Ok(Self::of(release))
    }

    /// Counts the rows of `events` that lie in `period`, within the bounds of the release. A frozen period is
    /// final.
    ///
    /// `period` is the text that its times begin with (`"2026-11-21"`), a whole number t for the times from t
    /// to below t + 1, or a date (no datetime). `events` is a table with `__arrow_c_stream__` (pandas,
    /// polars, pyarrow, DuckDB), a dict of columns, or an iterable of dicts; `time`, `key`, `user` and
    /// `value` name its columns. Marginals name theirs; `key` may be absent if the release has marginals and
    /// one key.
    ///
    /// `late` says what happens to rows from before the period: `leave`, `next` (count them in this period)
    /// or `refuse`; `unknown` says it for rows with unknown keys or categories: `refuse` or `leave`. A user
    /// is text or a whole number, and one number is one user however it is written (7, 7.0, "7"). Names that
    /// differ only in case, spaces or Unicode form are different users, and a UserWarning lists some of them.
    /// An error changes nothing in the release.
    ///
    /// Refused, unless `yes` is true: a period that comes before a frozen one, differs in form from the
    /// first one or from times of the events, counts no row, or loses rows of skipped periods; a first period
    /// that loses rows before it, or is a number and counts rows of several dates. With `check`, nothing is
    /// changed.
    ///
    /// Returns a dict of exact numbers; with `check`, of `counted`, `left_out`, `lost`, `late`, `later` and
    /// `problems`. They are not private: only the operator of the release may see them.
    #[pyo3(signature = (period, events, *, time, key=None, user=None, value=None, late="leave", unknown="refuse",
        check=false, yes=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn freeze<'py>(
        &self,
        py: Python<'py>,
        period: &Bound<'py, PyAny>,
        events: &Bound<'py, PyAny>,
        time: String,
        key: Option<String>,
        user: Option<String>,
        value: Option<String>,
        late: &str,
        unknown: &str,
        check: bool,
        yes: bool,
    ) -> Result<Bound<'py, PyDict>> {
        let (period, handling) = (values::period(period)?, handling(late, unknown)?);
        self.held.with(|release| {
            let columns = Columns { time, user, key, value, ..Columns::default() }.of(release.settings())?;
            let names = release.problems_of_names(std::slice::from_ref(&period))?;
            confirm(&period, &names, yes || check)?;
            let mut freezing = py.detach(|| release.freeze_in_any_order(&period))?;
            let found = events::read(events, &columns, handling, &mut freezing)?;
            // The producer of the rows may have forked: only the parent process continues.
            self.held.check()?;
            if check {
                return Ok(dict(py, &freezing.check(&found))?);
            }
            confirm(&period, &freezing.problems(&found), yes)?;
            // A closure that runs without Python's lock must be `Send`, which an exclusive reference to the
            // value is and a shared one is not.
            let read = &mut freezing;
            warn(py, py.detach(move || read.similar_users())?.warning())?;
            let skipped = freezing.skipped();
            py.detach(|| freezing.commit())?;
            let report = dict(py, &found)?;
            report.set_item("skipped", skipped)?;
            Ok(report)
        })
    }

    /// Freezes counts that were bounded and computed elsewhere, for example in a warehouse: a dict with a
    /// count for each key; absent keys count 0. A release with `left_out` also needs the numbers of
    /// `users-at-bound` and `users-over-rows`. The bound on each user's contributions is then the caller's
    /// responsibility, and the privacy statement says so. For `yes` see `freeze`; here, a period after
    /// skipped ones is refused too.
    #[pyo3(signature = (period, counts, *, yes=false))]
    fn freeze_counts(
        &self,
        py: Python<'_>,
        period: &Bound<'_, PyAny>,
        counts: &Bound<'_, PyMapping>,
        yes: bool,
    ) -> Result<()> {
        let period = values::period(period)?;
        let mut given = Vec::new();
        for pair in counts.items()?.iter() {
            given.push(pair.extract::<(String, i64)>()?);
        }
        self.held.with(|release| {
            py.detach(|| {
                let (keys, names) = (release.settings().keys.len(), release.settings().count_names());
                let places: HashMap<&str, usize> =
                    names.iter().enumerate().map(|(place, key)| (key.as_str(), place)).collect();
                if let Some(absent) =
                    names[keys..].iter().find(|name| given.iter().all(|(key, _)| key != *name))
                {
                    let must_be = "given: the release counts users at their bounds; one begun with left_out=False does not";
                    return Err(InvalidParameter::new(absent.clone(), "absent", must_be).into());
                }
                let mut counts = vec![0; names.len()];
                for (key, count) in given {
                    let place = places.get(key.as_str()).copied().filter(|_| count >= 0);
                    let must_be = "one of the release's keys, with a count from 0 on";
                    let refused = || InvalidParameter::new("key", format!("{key:?} with {count}"), must_be);
                    counts[place.ok_or_else(refused)?] = count;
                }
                let freezing = release.freeze_counts_in_any_order(&period, &counts)?;
                confirm(&period, &freezing.problems(&Found::default()), yes)?;
                freezing.commit()?;
                Ok(())
            })
        })
    }

    /// Publishes every frozen period that is not yet published. Returns a table with `period`, `key`,
    /// `value`, the ends `lower` and `upper` of the 95% interval, `query`, and `bucket` for histograms. A
    /// period's figures are drawn once; after a crash, the next call draws the same figures.
    fn publish(&self, py: Python<'_>) -> Result<Table> {
        self.held.with(|release| {
            py.detach(|| {
                let mut stopped = None;
                let rows = release.publish_while(|| {
                    stopped = Python::attach(|py| py.check_signals()).err();
                    stopped.is_none()
                })?;
                match stopped {
                    Some(error) => Err(error.into()),
                    None if rows.is_empty() => {
                        Table::published(&rows, published(&self.folder)?.last(), self.whole)
                    }
                    None => Table::published(&rows, rows.last(), self.whole),
                }
            })
        })
    }

    /// All published figures, in the order of publication.
    fn published(&self, py: Python<'_>) -> Result<Table> {
        self.held.check()?;
        py.detach(|| {
            let rows = published(&self.folder)?;
            Table::published(&rows, rows.last(), self.whole)
        })
    }

    /// Runs one SELECT on the table `published(period, key, value, lower, upper, query, bucket)`; no other
    /// data of the release can be read.
    fn query(&self, py: Python<'_>, sql: &str) -> Result<Table> {
        self.held.check()?;
        let stopped = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&stopped);
        let go_on = move || {
            let error = Python::attach(|py| py.check_signals()).err();
            let go_on = error.is_none();
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = error;
            go_on
        };
        let answer = py.detach(|| query_while(&self.folder, sql, go_on));
        match stopped.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(PyErr::into(error)),
            None => Table::answer(&answer?),
        }
    }

    /// The privacy and the progress of the release: a dict with the fields of
    /// `antinoise release status --json`: the settings, the `frozen` and `published` periods, the `queries`
    /// with the largest standard deviation of their noise, and the `statement` in words. For a release
    /// without an end, `periods` is None, and queries have the standard deviation `after` several numbers of
    /// periods.
    fn status<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        self.held.check()?;
        let folder = self.folder.clone();
        let report = interruptible(py, move || Status::of(&folder)?.report())??;
        Ok(dict(py, &report)?)
    }

    /// The folder of the release.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Closes the folder, so that another process or object can open it. Published figures can still be read.
    fn close(&self, py: Python<'_>) -> Result<()> {
        self.held.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> Result<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("RunningCounts({:?})", self.folder.display().to_string())
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        no_copy("RunningCounts")
    }

    fn __reduce__(&self) -> PyResult<()> {
        no_copy("RunningCounts")
    }

    fn __copy__(&self) -> PyResult<()> {
        no_copy("RunningCounts")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_copy("RunningCounts")
    }
}

/// Refuses a period with `problems`, unless the operator confirmed it with `yes`.
fn confirm(period: &Period, problems: &[String], yes: bool) -> Result<()> {
    if yes || problems.is_empty() {
        return Ok(());
    }
    let must_be = format!("confirmed by yes=True or corrected: {}. Nothing was frozen", problems.join("; "));
    Err(InvalidParameter::new("period", period, must_be).into())
}

/// One query, or several.
#[derive(FromPyObject)]
enum Queries {
    One(String),
    Several(Vec<String>),
}

fn weighted(queries: Option<Queries>, weights: Option<Vec<f64>>) -> Result<Vec<(Query, f64)>> {
    let named = match queries {
        None => vec!["counts".into()],
        Some(Queries::One(name)) => vec![name],
        Some(Queries::Several(names)) => names,
    };
    let weights = weights.unwrap_or_else(|| vec![1.0; named.len()]);
    if weights.len() != named.len() {
        let must_be = format!("one for each of {} queries", named.len());
        return Err(InvalidParameter::new("weights", weights.len(), must_be).into());
    }
    named.iter().zip(weights).map(|(name, weight)| Ok((name.parse()?, weight))).collect()
}

fn handling(late: &str, unknown: &str) -> Result<Handling> {
    let refused =
        |name: &str, got: &str, must_be: &str| InvalidParameter::new(name, format!("{got:?}"), must_be);
    Ok(Handling {
        late: match late {
            "leave" => Late::Leave,
            "next" => Late::Include,
            "refuse" => Late::Refuse,
            _ => return Err(refused("late", late, "leave, next or refuse").into()),
        },
        leave_unknown_keys: match unknown {
            "refuse" => false,
            "leave" => true,
            _ => return Err(refused("unknown", unknown, "refuse or leave").into()),
        },
    })
}
