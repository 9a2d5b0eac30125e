//! The figures of a choice: errors by step, losses of the candidates, and the columns of C and C^-1.

use antinoise_chart::{Axis, Chart, Error, Figure, LineStyle, Series};
use antinoise_plan::{Candidate, Choice, Request};

/// Width of a figure, and height of what its axes enclose, in pixels.
const WIDTH: u32 = 520;
pub(crate) const PLOT_HEIGHT: u32 = 220;
/// Height of a row of an axis of names.
const NAME_HEIGHT: u32 = 22;
/// Maximum number of steps whose errors are drawn, since each is computed.
const MAX_STEPS: usize = 1 << 16;
/// Maximum number of points of a line, and of entries of a column.
const MAX_POINTS: usize = 300;
const MAX_ENTRIES: usize = 128;

/// The figures as SVG, in the order of the page.
pub(crate) fn all(choice: &Choice, request: &Request) -> Result<Vec<String>, Error> {
    let chosen = &choice.candidates[choice.chosen];
    let columns = columns(chosen).into_iter().map(|chart| svg(chart, PLOT_HEIGHT));
    let losses = svg(losses(choice, request), NAME_HEIGHT * choice.candidates.len().max(2) as u32);
    let errors = errors(choice, request).map(|chart| svg(chart, PLOT_HEIGHT));
    errors.into_iter().chain([losses]).chain(columns).collect()
}

/// One chart as SVG.
pub(crate) fn svg(chart: Chart, plot_height: u32) -> Result<String, Error> {
    Figure { width: WIDTH, plot_height, background: false, rows: vec![vec![chart.into()]] }.svg()
}

/// The error of each prefix sum, and those of independent noise in the same batches and in others.
fn errors(choice: &Choice, request: &Request) -> Option<Chart> {
    let independent = &choice.candidates[0];
    let same = if independent.is_amplified() { "DP-SGD" } else { "independent noise, same batches" };
    let other = if independent.is_amplified() { "independent noise, cyclic batches" } else { "DP-SGD" };
    let chosen = (choice.chosen > 0).then(|| ("this plan", &choice.candidates[choice.chosen]));
    let all = chosen.into_iter().chain([(same, independent)]);
    let all = all.chain(choice.baselines.first().map(|baseline| (other, baseline)));
    let curve = |(name, candidate): (&str, &Candidate)| {
        Some(Series::new(name, LineStyle::Line, error_by_step(candidate, request)?))
    };
    Some(Chart {
        title: "Noise in the sum of all steps so far".into(),
        x: Axis::linear("step").whole().covering(1.0),
        y: Axis::linear("standard deviation, as a mean gradient").covering(0.0),
        series: all.map(curve).collect::<Option<_>>()?,
    })
}

/// (step, standard deviation of the error of the sum up to it); `None` for runs that are too long.
fn error_by_step(candidate: &Candidate, request: &Request) -> Option<Vec<(f64, f64)>> {
    if candidate.schedule.steps > MAX_STEPS {
        return None;
    }
    let rows = candidate.strategy.row_errors(&request.workload).ok()?;
    let scale = candidate.max_loss / candidate.unit_loss.max_error;
    let stride = rows.len().div_ceil(MAX_POINTS);
    let last = rows.len() - 1;
    let shown = rows.iter().enumerate().filter(|(i, _)| i % stride == 0 || *i == last);
    Some(shown.map(|(i, row)| ((i + 1) as f64, row * scale)).collect())
}

/// The loss of every candidate, relative to that of independent noise.
fn losses(choice: &Choice, request: &Request) -> Chart {
    let loss = |i: usize| choice.candidates[i].objective(request.objective);
    let mut order: Vec<usize> = (0..choice.candidates.len()).collect();
    order.sort_by(|&i, &j| loss(i).total_cmp(&loss(j)));
    let places = |of: &dyn Fn(usize) -> bool| -> Vec<(f64, f64)> {
        let placed = order.iter().enumerate().filter(|(_, i)| of(**i));
        placed.map(|(place, &i)| (choice.candidates[i].relative_to_independent, place as f64)).collect()
    };
    Chart {
        title: "Noise of the mechanisms tried, independent noise = 1".into(),
        x: Axis::linear("noise").covering(0.0),
        y: Axis::named("mechanism", order.iter().map(|&i| choice.candidates[i].name())).reversed(),
        series: vec![
            Series::new("tried", LineStyle::Points, places(&|i| i != choice.chosen)),
            Series::new("chosen", LineStyle::Points, places(&|i| i == choice.chosen)),
        ],
    }
}

/// The first columns of C and of C^-1.
fn columns(candidate: &Candidate) -> Vec<Chart> {
    let steps = candidate.schedule.steps;
    let c = candidate.strategy.encoder().ok().map(|encoder| encoder.column(0));
    let inverse = candidate.strategy.recursion().ok().map(|recursion| {
        let seeds = recursion.seeds(steps);
        recursion.apply(steps, &(0..seeds).map(|seed| f64::from(seed == 0)).collect::<Vec<_>>())
    });
    let named = [
        ("First column of C: how a step enters later sums", c),
        ("First column of C\u{207b}\u{b9}: how a step's seed enters later noise", inverse),
    ];
    let chart = |(title, entries): (&str, Option<Vec<f64>>)| {
        let shown = entries?.into_iter().take(MAX_ENTRIES);
        Some(Chart {
            title: title.into(),
            x: Axis::linear("steps later").whole().covering(0.0),
            y: Axis::linear("entry (no unit)").covering(0.0),
            series: vec![Series::new(title, LineStyle::Points, (0..).map(f64::from).zip(shown))],
        })
    };
    named.into_iter().filter_map(chart).collect()
}
