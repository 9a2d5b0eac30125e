//! What a release says of itself, as a dict: the same as `antinoise release status --json`.

use std::path::Path;

use antinoise_release::{HORIZONS, Query, Settings, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Result;

/// What a release promises, how far it is and the errors of its queries.
pub struct Told {
    status: Status,
    deviations: Vec<Deviations>,
}

/// The standard deviations of a query's noise.
enum Deviations {
    /// The largest over all periods.
    Largest(f64),
    /// Of a release without an end: after so many periods.
    After(Vec<(usize, f64)>),
}

impl Deviations {
    fn of(status: &Status, query: &Query) -> Result<Self> {
        if status.settings.links.is_none() {
            return Ok(Self::Largest(status.errors(query)?.into_iter().fold(0.0, f64::max)));
        }
        let after = |periods| Ok((periods, status.error(query, periods - 1)?));
        Ok(Self::After(HORIZONS.into_iter().map(after).collect::<Result<_>>()?))
    }

    fn dict<'py>(&self, py: Python<'py>, query: &Query) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(py);
        told.set_item("query", query.to_string())?;
        match self {
            Self::Largest(deviation) => told.set_item("largest_standard_deviation", deviation)?,
            Self::After(deviations) => {
                let mut after = Vec::new();
                for (periods, deviation) in deviations {
                    let told = PyDict::new(py);
                    told.set_item("periods", periods)?;
                    told.set_item("standard_deviation", deviation)?;
                    after.push(told);
                }
                told.set_item("after", after)?;
            }
        }
        Ok(told)
    }
}

impl Told {
    /// Of the release in `folder`.
    pub fn of(folder: &Path) -> Result<Self> {
        let status = Status::of(folder)?;
        let queries = status.settings.queries.iter();
        let deviations = queries.map(|(query, _)| Deviations::of(&status, query)).collect::<Result<_>>()?;
        Ok(Self { status, deviations })
    }

    /// As a dict.
    pub fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Status { settings, plan, frozen, published, .. } = &self.status;
        let Settings { periods, keys, queries, unit, max_periods, max_rows, links, .. } = settings;
        let report = PyDict::new(py);
        report.set_item("periods", links.is_none().then_some(periods))?;
        report.set_item("frozen", frozen)?;
        report.set_item("published", published)?;
        report.set_item("keys", keys)?;
        let queries = queries.iter().zip(&self.deviations);
        let queries = queries.map(|((query, _), deviations)| deviations.dict(py, query));
        report.set_item("queries", queries.collect::<PyResult<Vec<_>>>()?)?;
        report.set_item("unit", unit.to_string())?;
        report.set_item("max_periods", max_periods)?;
        report.set_item("max_rows", max_rows)?;
        report.set_item("epsilon", self.status.epsilon())?;
        report.set_item("delta", plan.privacy.delta)?;
        report.set_item("noise_multiplier", plan.noise_multiplier)?;
        report.set_item("strategy", plan.strategy.class().name())?;
        report.set_item("statement", self.status.statement().to_string())?;
        Ok(report)
    }
}
