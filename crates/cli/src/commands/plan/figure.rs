//! The figures of a choice and of a sweep.

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_plan::{Candidate, Choice, Request};

use crate::failure::Result;
use crate::plot;

/// The loss axis of all figures of plans.
pub fn loss_axis(request: &Request) -> Axis {
    let name = plot::name(request.objective);
    Axis::logarithmic(format!("{name} (standard deviation of the averaged queries)"))
}

/// Loss against state and, for a model of known size, against the time of noise; a line joins the candidates
/// on the Pareto front.
pub fn front(choice: &Choice, request: &Request) -> Result<String> {
    let front = choice.pareto_front(request);
    let name = |&i: &usize| choice.candidates[i].name();
    let chart = |title: &str, x: &str, cost: &dyn Fn(&Candidate) -> f64| {
        let point =
            |&i: &usize| (cost(&choice.candidates[i]), choice.candidates[i].objective(request.objective));
        let others: Vec<usize> = (0..choice.candidates.len()).filter(|i| !front.contains(i)).collect();
        Chart {
            title: title.into(),
            x: Axis::logarithmic(x),
            y: loss_axis(request),
            series: vec![
                Series::new("least loss for its state", LineStyle::Marked, front.iter().map(point))
                    .labelled(front.iter().map(name)),
                Series::new("others", LineStyle::Points, others.iter().map(point))
                    .labelled(others.iter().map(name)),
                Series::new("chosen", LineStyle::Points, [point(&choice.chosen)])
                    .labelled([name(&choice.chosen)]),
            ],
        }
    };
    let (unit, of): (&str, f64) = match choice.candidates.iter().map(|c| c.state_bytes).max().unwrap_or(0) {
        _ if request.dim == 0 => ("vectors of the model's size", 1.0),
        most if most >= 1 << 30 => ("GiB", (1u64 << 30) as f64),
        most if most >= 1 << 20 => ("MiB", (1 << 20) as f64),
        _ => ("KiB", (1 << 10) as f64),
    };
    let state = |c: &Candidate| match request.dim {
        0 => c.state_vectors as f64,
        _ => c.state_bytes as f64 / of,
    };
    // No state has no place on a logarithmic axis: it is drawn as a quarter of the smallest one.
    let states = || choice.candidates.iter().map(state);
    let least = states().filter(|&state| state > 0.0).fold(f64::INFINITY, f64::min).min(4.0) / 4.0;
    let none = if states().any(|state| state == 0.0) { ", none at the left end" } else { "" };
    let by_state =
        chart("Loss against state", &format!("noise state ({unit}{none})"), &|c| state(c).max(least));
    let milliseconds = |c: &Candidate| 1e3 * c.noise_seconds.max(1e-9);
    let by_time = || chart("Loss against time", "noise of a step, estimated (ms of one core)", &milliseconds);
    let charts = [Some(by_state), (request.dim > 0).then(by_time)];
    plot::file(charts.into_iter().flatten().map(|chart| vec![chart.into()]).collect())
}
