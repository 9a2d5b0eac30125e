//! The figure of the losses.

use antinoise_chart::{Axis, Chart, LineStyle, Series};

use super::report::{BandSweep, Row, Target};
use crate::failure::Result;
use crate::plot;

/// A curve's name and its value at a target.
type Kind = (&'static str, fn(&Target) -> Option<f64>);

impl BandSweep {
    /// One chart for each target. With several batch sizes: one chart for each epsilon, then charts of the
    /// best number of bands by batch size.
    pub fn figure(&self) -> Result<String> {
        let charts: Vec<Chart> =
            if self.targets.iter().all(|target| target.batch_size == self.targets[0].batch_size) {
                self.targets.iter().map(|target| self.by_bands(target)).collect()
            } else {
                let by_epsilon = self.epsilons().into_iter().map(|epsilon| self.amplified_by_bands(epsilon));
                by_epsilon.chain(self.by_batch_size()).collect()
            };
        plot::file(charts.into_iter().map(|chart| vec![chart.into()]).collect())
    }

    fn epsilons(&self) -> Vec<f64> {
        let mut epsilons: Vec<f64> = self.targets.iter().map(|target| target.epsilon).collect();
        epsilons.sort_by(f64::total_cmp);
        epsilons.dedup();
        epsilons
    }

    fn loss_axis(&self) -> Axis {
        Axis::logarithmic(format!(
            "{} (standard deviation of the averaged queries, in clip norms)",
            plot::name(self.objective)
        ))
    }

    fn bands_axis(&self) -> Axis {
        let rows = self.targets.first().map_or(&[][..], |target| &target.rows);
        Axis::logarithmic("bands of the strategy (steps)").ticks_at(rows.iter().map(|row| row.bands as f64))
    }

    /// Losses at one target, with a curve for each kind of loss and mechanism.
    fn by_bands(&self, target: &Target) -> Chart {
        let curve = |name: &str, look: LineStyle, of: &dyn Fn(&Row) -> f64| {
            Series::new(name, look, target.rows.iter().map(|row| (row.bands as f64, of(row))))
        };
        let mut series = vec![
            curve("amplified bands", LineStyle::Marked, &|row| row.amplified.loss),
            curve("unamplified bands", LineStyle::Marked, &|row| row.unamplified.loss),
        ];
        series.extend(target.against.iter().map(|other| {
            let name = format!("{}, unamplified", other.strategy);
            curve(&name, LineStyle::Line, &|_| other.loss)
        }));
        let title = format!("Loss by number of bands at epsilon {}, {} steps", target.epsilon, self.steps);
        Chart { title, x: self.bands_axis(), y: self.loss_axis(), series }
    }

    /// Losses with amplification at one epsilon, with a curve for each batch size.
    fn amplified_by_bands(&self, epsilon: f64) -> Chart {
        let targets = self.targets.iter().filter(|target| target.epsilon == epsilon);
        let series = targets.map(|target| {
            let points = target.rows.iter().map(|row| (row.bands as f64, row.amplified.loss));
            Series::new(format!("batch size {}", target.batch_size), LineStyle::Marked, points)
        });
        let title = format!("Amplified loss by number of bands at epsilon {epsilon}, {} steps", self.steps);
        Chart { title, x: self.bands_axis(), y: self.loss_axis(), series: series.collect() }
    }

    fn by_batch_size(&self) -> [Chart; 2] {
        let epsilons = self.epsilons();
        let series = |kinds: &[Kind]| -> Vec<Series> {
            let of = |epsilon: f64, (name, value): &Kind| {
                let targets = self.targets.iter().filter(|target| target.epsilon == epsilon);
                let points = targets.filter_map(|target| Some((target.batch_size as f64, value(target)?)));
                Series::new(format!("{name}, epsilon {epsilon}"), LineStyle::Marked, points)
            };
            epsilons.iter().flat_map(|&epsilon| kinds.iter().map(move |kind| of(epsilon, kind))).collect()
        };
        let sizes = || {
            let sizes = self.targets.iter().map(|target| target.batch_size as f64);
            Axis::logarithmic("expected batch size (examples)").ticks_at(sizes)
        };
        let best = |target: &Target| Some(target.best()?.bands as f64);
        let numbers = self.targets.iter().filter_map(best);
        [
            Chart {
                title: "Loss at the best number of bands".into(),
                x: sizes(),
                y: self.loss_axis(),
                series: series(&[
                    ("amplified", |target| Some(target.best()?.amplified.loss)),
                    ("unamplified", |target| Some(target.least_unamplified())),
                    ("DP-SGD", |target| Some(target.independent()?.amplified.loss)),
                    ("DP-SGD, unamplified", |target| Some(target.independent()?.unamplified.loss)),
                ]),
            },
            Chart {
                title: "Best number of bands with amplification".into(),
                x: sizes(),
                y: Axis::logarithmic("bands of the strategy (steps)").ticks_at(numbers),
                series: series(&[("amplified", best)]),
            },
        ]
    }
}
