//! The figure of a comparison.

use antinoise_chart::{Axis, Chart, LineStyle, Series};

use super::report::{BoundCurve, ComparedStrategies};
use crate::failure::Result;
use crate::plot;

/// Number of points of a curve of bounds.
const BOUND_POINTS: u32 = 64;

impl ComparedStrategies {
    /// Losses over the steps or, for one number of steps, by strategy.
    pub(super) fn figure(&self) -> Result<String> {
        if let Some(errors) = &self.query_errors {
            return self.by_query(errors);
        }
        let (least, most) = (self.steps.iter().min(), self.steps.iter().max());
        match (least, most) {
            (Some(&least), Some(&most)) if least < most => self.by_steps(least, most),
            _ => self.by_strategy(),
        }
    }

    fn loss_title(&self) -> String {
        if self.total {
            return "total loss (variances of the noise, summed over the steps, at clip norm 1)".into();
        }
        format!("{} (standard deviations of noise at clip norm 1)", plot::name(self.objective))
    }

    /// Excess of the loss of strategy `j` over the smallest loss, in percent.
    fn excess(&self, i: usize, j: usize) -> Option<f64> {
        let least = self.losses[i].iter().flatten().copied().fold(f64::INFINITY, f64::min);
        Some(100.0 * (self.losses[i][j]? / least - 1.0))
    }

    /// One curve for each strategy, and the curves of the bounds.
    fn by_steps(&self, least: usize, most: usize) -> Result<String> {
        let steps = || {
            let steps = self.steps.iter().map(|&n| n as f64);
            Axis::logarithmic("training steps").ticks_at(steps)
        };
        let series = |value: &dyn Fn(usize, usize) -> Option<f64>| -> Vec<Series> {
            let row = |j: usize| {
                (0..self.steps.len()).filter_map(move |i| Some((self.steps[i] as f64, value(i, j)?)))
            };
            let named = self.strategies.iter().enumerate();
            named.map(|(j, name)| Series::new(name.clone(), LineStyle::Marked, row(j))).collect()
        };
        let mut losses = series(&|i, j| self.losses[i][j]);
        let ratio = most as f64 / least as f64;
        let between = (0..=BOUND_POINTS).map(|i| f64::from(i) / f64::from(BOUND_POINTS));
        let at: Vec<usize> =
            between.map(|share| (least as f64 * ratio.powf(share)).round() as usize).collect();
        for bound in &self.known.0 {
            let points = at.iter().map(|&n| Ok((n as f64, bound.at(n)?)));
            losses.push(drawn(bound, points.collect::<antinoise_mechanism::Result<_>>()?));
        }
        let excess = series(&|i, j| self.excess(i, j).filter(|&excess| excess <= 100.0));
        let charts = [
            Chart {
                title: "Loss by number of steps".into(),
                x: steps(),
                y: Axis::logarithmic(self.loss_title()),
                series: losses,
            },
            Chart {
                title: "Excess over the least of these losses, up to 100 percent".into(),
                x: steps(),
                y: Axis::linear("excess (percent)").covering(0.0),
                series: excess,
            },
        ];
        plot::file(charts.into_iter().map(|chart| vec![chart.into()]).collect())
    }

    /// The noise of each step's query, one line for each strategy.
    fn by_query(&self, errors: &[Option<Vec<f64>>]) -> Result<String> {
        let line = |(name, errors): (&String, &Option<Vec<f64>>)| {
            let points = (1..).map(f64::from).zip(errors.as_ref()?.iter().copied());
            Some(Series::new(name.clone(), LineStyle::Line, points))
        };
        let chart = Chart {
            title: "Noise of each query, at one privacy".into(),
            x: Axis::linear("training step").whole().covering(1.0),
            y: Axis::linear("standard deviation of the noise at clip norm 1 and noise multiplier 1")
                .covering(0.0),
            series: self.strategies.iter().zip(errors).filter_map(line).collect(),
        };
        plot::file(vec![vec![chart.into()]])
    }

    /// One row for each strategy, and the bounds as lines across the rows.
    fn by_strategy(&self) -> Result<String> {
        let count = self.strategies.len();
        let steps = self.steps.first().copied().unwrap_or(0);
        let names = || Axis::named("strategy", self.strategies.iter().map(String::as_str)).reversed();
        let row = |value: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, f64)> {
            (0..count).filter_map(|j| Some((value(j)?, j as f64))).collect()
        };
        let mut losses = vec![Series::new("loss", LineStyle::Points, row(&|j| self.losses[0][j]))];
        let (top, bottom) = (-0.5, count as f64 - 0.5);
        for bound in &self.known.0 {
            let value = bound.at(steps)?;
            losses.push(drawn(bound, vec![(value, top), (value, bottom)]));
        }
        let excess = vec![Series::new("excess", LineStyle::Points, row(&|j| self.excess(0, j)))];
        let charts = [
            Chart {
                title: format!("Loss at {steps} steps"),
                x: Axis::logarithmic(self.loss_title()),
                y: names(),
                series: losses,
            },
            Chart {
                title: "Excess over the least of these losses".into(),
                x: Axis::linear("excess (percent)").covering(0.0),
                y: names(),
                series: excess,
            },
        ];
        plot::file_of_names(count, charts.map(Into::into))
    }
}

/// A bound as a line.
fn drawn(bound: &BoundCurve, points: Vec<(f64, f64)>) -> Series {
    let style = if bound.is_lower { LineStyle::Dashed } else { LineStyle::Dotted };
    Series::new(bound.name, style, points)
}
