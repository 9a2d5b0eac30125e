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

/// Loss against state and against the time of noise; a line joins the candidates on the Pareto front.
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
    // No state has no place on a logarithmic axis: it is drawn as a quarter of the smallest one.
    let states = || choice.candidates.iter().map(|c| c.state_bytes).filter(|&bytes| bytes > 0);
    let least = states().min().unwrap_or(4) / 4;
    let (unit, bytes) = match states().max().unwrap_or(0) {
        most if most >= 1 << 30 => ("GiB", 1u64 << 30),
        most if most >= 1 << 20 => ("MiB", 1 << 20),
        _ => ("KiB", 1 << 10),
    };
    let state = |c: &Candidate| c.state_bytes.max(least) as f64 / bytes as f64;
    let none =
        if choice.candidates.iter().any(|c| c.state_bytes == 0) { ", none at the left end" } else { "" };
    let milliseconds = |c: &Candidate| 1e3 * c.noise_seconds.max(1e-9);
    let charts = [
        chart("Loss against state", &format!("noise state ({unit}{none})"), &state),
        chart("Loss against time", "noise of a step, estimated (ms of one core)", &milliseconds),
    ];
    plot::file(charts.into_iter().map(|chart| vec![chart.into()]).collect())
}
