//! The quick choices for a request at batch sizes around its own, and their figures: bands, and noise.

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_plan::{Candidate, Choice, Request, choose};
use serde::Serialize;

use crate::figures::{PLOT_HEIGHT, svg};

/// Batch sizes are the request's times these powers of 2.
const POWERS: std::ops::RangeInclusive<i32> = -3..=3;

/// The choices at several batch sizes.
#[derive(Serialize)]
pub(crate) struct Batches {
    rows: Vec<Row>,
    figures: Vec<String>,
}

/// The choice at one batch size.
#[derive(Serialize)]
struct Row {
    batch_size: usize,
    steps: usize,
    name: String,
    accountant: &'static str,
    class: &'static str,
    /// Number of bands of C: all steps for a class without bands.
    bands: usize,
    /// The loss relative to that of the reference.
    share: f64,
    /// Whether the reference is DP-SGD, and not independent noise without amplification.
    is_dp_sgd: bool,
}

/// DP-SGD, if it is possible, and else independent noise without amplification.
pub(crate) fn reference(choice: &Choice) -> &Candidate {
    let independent = &choice.candidates[0];
    let mut all = std::iter::once(independent).chain(&choice.baselines);
    all.find(|candidate| candidate.is_amplified()).unwrap_or(independent)
}

/// The choices at batch sizes around that of `request`. Other sizes that have no plan are left out.
pub(crate) fn around(request: &Request) -> antinoise_plan::Result<Batches> {
    let row = |size| match row(request, size) {
        Err(error) => (size == request.batch_size).then_some(Err(error)),
        found => Some(found),
    };
    let rows = sizes(request).filter_map(row).collect::<antinoise_plan::Result<Vec<_>>>()?;
    let figures = [bands(&rows), noise(&rows)].into_iter().filter_map(|chart| svg(chart, PLOT_HEIGHT).ok());
    Ok(Batches { figures: figures.collect(), rows })
}

/// The batch sizes, in increasing order.
fn sizes(request: &Request) -> impl Iterator<Item = usize> {
    let (own, examples) = (request.batch_size, request.examples);
    let size = move |power: i32| match power {
        ..0 => own >> power.unsigned_abs(),
        0.. => own.saturating_mul(1 << power),
    };
    POWERS.map(size).filter(move |&size| size == own || (1..=examples).contains(&size))
}

fn row(request: &Request, batch_size: usize) -> antinoise_plan::Result<Row> {
    let request = Request { batch_size, thorough: false, ..request.clone() };
    let choice = choose(&request)?;
    let (chosen, reference) = (&choice.candidates[choice.chosen], reference(&choice));
    let steps = chosen.schedule.steps;
    Ok(Row {
        batch_size,
        steps,
        name: chosen.name(),
        accountant: chosen.schedule.accountant().name(),
        class: chosen.spec.class.name(),
        bands: chosen.strategy.encoder().map_or(steps, |encoder| encoder.bandwidth().min(steps)),
        share: chosen.objective(request.objective) / reference.objective(request.objective),
        is_dp_sgd: reference.is_amplified(),
    })
}

/// An axis of the batch sizes that were planned.
fn axis(rows: &[Row]) -> Axis {
    Axis::logarithmic("batch size").ticks_at(rows.iter().map(|row| row.batch_size as f64))
}

/// The number of bands that is chosen, in a colour for each class.
fn bands(rows: &[Row]) -> Chart {
    let mut classes: Vec<_> = rows.iter().map(|row| row.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let series = classes.into_iter().map(|class| {
        let of = rows.iter().filter(|row| row.class == class);
        Series::new(class, LineStyle::Points, of.map(|row| (row.batch_size as f64, row.bands as f64)))
    });
    let steps = rows.iter().map(|row| (row.batch_size as f64, row.steps as f64));
    Chart {
        title: "Bands that the planner chooses".into(),
        x: axis(rows),
        y: Axis::logarithmic("bands of C").covering(1.0),
        series: series.chain([Series::new("all steps", LineStyle::Dotted, steps)]).collect(),
    }
}

/// The noise of the choice, relative to the reference.
fn noise(rows: &[Row]) -> Chart {
    let name = if rows.iter().all(|row| row.is_dp_sgd) { "DP-SGD" } else { "independent noise" };
    let shares = rows.iter().map(|row| (row.batch_size as f64, row.share));
    Chart {
        title: format!("Noise of the plan, {name} with the same batch size = 1"),
        x: axis(rows),
        y: Axis::linear("noise").covering(0.0).covering(1.0),
        series: vec![Series::new("noise", LineStyle::Marked, shares)],
    }
}

#[cfg(test)]
mod tests {
    use antinoise_plan::{Length, Setting};

    use super::*;

    #[test]
    fn rows_are_the_choices_of_the_planner() {
        let users = Setting::Federated { min_sep: 4, max_participations: None };
        // For some sizes there is no plan.
        let settings = [Setting::Cyclic, Setting::Single, Setting::Stream, users];
        for (setting, batch_size) in
            settings.map(|setting| (setting, 10)).into_iter().chain([(Setting::Poisson, 40)])
        {
            let mut request = Request::new(60, batch_size, Length::Steps(6), setting);
            request.epsilon = 2.0;
            let found = around(&request).unwrap();
            assert_eq!(found.figures.len(), 2);
            let mut rows = found.rows.iter();
            for power in -3..=3 {
                let batch_size = if power < 0 { batch_size >> -power } else { batch_size << power };
                let Ok(choice) = choose(&Request { batch_size, thorough: false, ..request.clone() }) else {
                    continue;
                };
                let (row, chosen) = (rows.next().unwrap(), &choice.candidates[choice.chosen]);
                assert_eq!((row.batch_size, &row.name), (batch_size, &chosen.name()));
                assert_eq!(row.steps, choice.plan.steps);
                assert!(row.bands == chosen.spec.bands.unwrap_or(row.bands) && row.bands <= row.steps);
            }
            assert!(rows.next().is_none());
        }
    }

    #[test]
    fn a_request_that_is_refused_stays_refused() {
        let request = Request::new(10, 20, Length::Epochs(1), Setting::Cyclic);
        assert_eq!(around(&request).err().unwrap().to_string(), choose(&request).unwrap_err().to_string());
    }
}
