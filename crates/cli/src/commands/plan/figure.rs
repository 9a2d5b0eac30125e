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
    let chart = |title: &str, x: &str, cost: &dyn Fn(&Candidate) -> f64| {
        let point =
            |&i: &usize| (cost(&choice.candidates[i]), choice.candidates[i].objective(request.objective));
        let others: Vec<usize> = (0..choice.candidates.len()).filter(|i| !front.contains(i)).collect();
        Chart {
            title: title.into(),
            x: Axis::logarithmic(x),
            y: loss_axis(request),
            series: vec![
                Series::new("least loss for its state", LineStyle::Marked, front.iter().map(point)),
                Series::new("others", LineStyle::Points, others.iter().map(point)),
                Series::new("chosen", LineStyle::Points, [point(&choice.chosen)]),
            ],
        }
    };
    // No state is drawn as one vector's thousandth, to have a place on a logarithmic axis.
    let mebibytes =
        |c: &Candidate| c.state_bytes.max(request.dim.max(1) as u64 / 256) as f64 / f64::from(1 << 20);
    let milliseconds = |c: &Candidate| 1e3 * c.noise_seconds.max(1e-9);
    let charts = [
        chart("Loss against state", "noise state (MiB)", &mebibytes),
        chart("Loss against time", "noise of a step, estimated (ms of one core)", &milliseconds),
    ];
    plot::file(charts.into_iter().map(|chart| vec![chart.into()]).collect())
}
