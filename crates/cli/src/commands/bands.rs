//! `antinoise bands`: how many bands to take, with and without amplification by sampling.

use std::fmt;
use std::path::PathBuf;

use antinoise_chart::{Axis, Chart, Look, Series};
use antinoise_input::InvalidParameter;
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{PrivacyUnit, Workload};
use antinoise_plan::{Bands, Candidate, Length, Request, Setting, by_bands, default_bands, unamplified};
use clap::Args;
use serde::Serialize;

use super::plan::LengthOptions;
use crate::arguments::{parsed, workload};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::output;
use crate::plot;
use crate::progress::Progress;

/// Print the noise and the loss for each number of bands, with and without amplification by sampling.
///
/// Few bands leave more amplification (one band is DP-SGD), many leave more correlation (examples / batch size of
/// them are the multi-epoch mechanism). Strategies are banded Toeplitz; amplified batches are block-cyclic Poisson
/// samples, the others take turns.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise bands --examples 2048000 --batch-size 1000 --epochs 8 \\
      --epsilon 1,4,8 --delta 1e-8 --plot bands.svg
  antinoise bands --examples 4096 --batch-size 16,64,256,1024 --steps 2048 \\
      --epsilon 1,10 --delta 1e-6 --objective max --plot batches.svg
  antinoise bands --examples 60000 --batch-size 500 --epochs 4 --epsilon 2 \\
      --delta 1e-5 --against blt:4,tree"
)]
pub struct Arguments {
    /// Number of examples.
    #[arg(long, value_name = "N", value_parser = count)]
    examples: usize,
    /// Expected number of examples in a batch; several, parted by commas, need --steps.
    #[arg(long, value_name = "B", value_parser = count, value_delimiter = ',', required = true)]
    batch_size: Vec<usize>,
    #[command(flatten)]
    length: LengthOptions,
    /// Target epsilons, parted by commas.
    #[arg(long, value_name = "E", value_delimiter = ',', required = true, value_parser = real)]
    epsilon: Vec<f64>,
    /// Target delta.
    #[arg(long, value_name = "D", value_parser = real)]
    delta: f64,
    /// Numbers of bands, parted by commas [default: powers of 2 up to examples / batch size or 4096].
    #[arg(long, value_name = "LIST", value_parser = count, value_delimiter = ',')]
    bands: Vec<usize>,
    /// Mechanisms to set beside them, without amplification, parted by commas (blt:4, tree, dense+x4).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parsed::<StrategySpec>)]
    against: Vec<StrategySpec>,
    /// What is released, as for `antinoise loss`.
    #[arg(long, default_value = "prefix", value_parser = workload)]
    workload: Workload,
    /// The loss that is optimised and compared: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    objective: Objective,
    /// Draw the losses to this SVG file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    examples: usize,
    steps: usize,
    delta: f64,
    objective: Objective,
    targets: Vec<Target>,
}

/// One batch size and epsilon.
#[derive(Debug, Serialize)]
struct Target {
    batch_size: usize,
    epsilon: f64,
    rows: Vec<Row>,
    /// Index of the least amplified loss.
    best: usize,
    /// Without amplification.
    against: Vec<Figures>,
    #[serde(skip)]
    objective: Objective,
}

#[derive(Debug, Serialize)]
struct Row {
    bands: usize,
    amplified: Figures,
    unamplified: Figures,
}

#[derive(Debug, Serialize)]
struct Figures {
    strategy: String,
    noise_multiplier: f64,
    sensitivity: f64,
    max_loss: f64,
    rms_loss: f64,
    #[serde(skip)]
    loss: f64,
}

impl Figures {
    fn new(candidate: &Candidate, objective: Objective) -> Self {
        Self {
            strategy: candidate.spec.to_string(),
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            loss: candidate.objective(objective),
        }
    }
}

/// Designs a strategy for each number of bands and calibrates it for each target.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let plot = arguments.overwriting.figure("plot", &arguments.plot)?;
    let requests = arguments.requests()?;
    let bands = match &arguments.bands[..] {
        [] => default_bands(requests.iter().min_by_key(|request| request.batch_size).expect("one at least"))?,
        named => named.to_vec(),
    };
    let fewest = bands.iter().copied().min().unwrap_or(1);
    let largest = arguments.batch_size.iter().copied().max().unwrap_or(1);
    if fewest.saturating_mul(largest) > arguments.examples {
        let most = format!("at most examples / batch_size = {}", arguments.examples / largest);
        return Err(InvalidParameter::new("bands", fewest, most).into());
    }
    let progress = Progress::endless(&format!("designing {} numbers of bands", bands.len()));
    let mut targets = Vec::new();
    for (request, rows) in requests.iter().zip(by_bands(&requests, &bands)?) {
        targets.push(Target::new(request, &rows, &unamplified(request, &arguments.against)?));
    }
    drop(progress);
    output::warn_of_delta(arguments.delta, arguments.examples, PrivacyUnit::Example);
    let report = Report {
        examples: arguments.examples,
        steps: requests[0].schedule()?.steps,
        delta: arguments.delta,
        objective: arguments.objective,
        targets,
    };
    if let Some(plot) = &plot {
        plot.write(report.figure()?.as_bytes())?;
    }
    Ok(report)
}

impl Arguments {
    /// A request for each batch size and epsilon, in that order.
    fn requests(&self) -> Result<Vec<Request>> {
        let length = self.length.length();
        if matches!(length, Length::Epochs(_)) && self.batch_size.len() > 1 {
            let must_be = "one number with --epochs: several share their strategies, and need --steps";
            let got = self.batch_size.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            return Err(InvalidParameter::new("batch_size", got, must_be).into());
        }
        let mut requests = Vec::new();
        for &batch_size in &self.batch_size {
            for &epsilon in &self.epsilon {
                let request = Request {
                    epsilon,
                    delta: self.delta,
                    workload: self.workload.clone(),
                    objective: self.objective,
                    ..Request::new(self.examples, batch_size, length, Setting::Poisson)
                };
                request.schedule()?;
                requests.push(request);
            }
        }
        Ok(requests)
    }
}

impl Target {
    fn new(request: &Request, rows: &[Bands], against: &[Candidate]) -> Self {
        let figures = |candidate: &Candidate| Figures::new(candidate, request.objective);
        let rows: Vec<Row> = rows
            .iter()
            .map(|row| Row {
                bands: row.bands,
                amplified: figures(&row.amplified),
                unamplified: figures(&row.unamplified),
            })
            .collect();
        let best = (0..rows.len()).min_by(|&i, &j| rows[i].amplified.loss.total_cmp(&rows[j].amplified.loss));
        Self {
            batch_size: request.batch_size,
            epsilon: request.epsilon,
            best: best.unwrap_or(0),
            rows,
            against: against.iter().map(figures).collect(),
            objective: request.objective,
        }
    }

    fn best(&self) -> Option<&Row> {
        self.rows.get(self.best)
    }

    /// The least loss without amplification, of bands and of the others.
    fn least_unamplified(&self) -> f64 {
        let bands = self.rows.iter().map(|row| row.unamplified.loss);
        bands.chain(self.against.iter().map(|other| other.loss)).fold(f64::INFINITY, f64::min)
    }
}

/// A curve's name and its value at a target.
type Kind = (&'static str, fn(&Target) -> Option<f64>);

impl Report {
    fn figure(&self) -> Result<String> {
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

    /// All curves of one target.
    fn by_bands(&self, target: &Target) -> Chart {
        let curve = |name: &str, look: Look, of: &dyn Fn(&Row) -> f64| {
            Series::new(name, look, target.rows.iter().map(|row| (row.bands as f64, of(row))))
        };
        let mut series = vec![
            curve("amplified bands", Look::Marked, &|row| row.amplified.loss),
            curve("unamplified bands", Look::Marked, &|row| row.unamplified.loss),
        ];
        series.extend(target.against.iter().map(|other| {
            let name = format!("{}, unamplified", other.strategy);
            curve(&name, Look::Line, &|_| other.loss)
        }));
        let title = format!("Loss by number of bands at epsilon {}, {} steps", target.epsilon, self.steps);
        Chart { title, x: self.bands_axis(), y: self.loss_axis(), series }
    }

    /// The amplified curves of one epsilon, by batch size.
    fn amplified_by_bands(&self, epsilon: f64) -> Chart {
        let targets = self.targets.iter().filter(|target| target.epsilon == epsilon);
        let series = targets.map(|target| {
            let points = target.rows.iter().map(|row| (row.bands as f64, row.amplified.loss));
            Series::new(format!("batch size {}", target.batch_size), Look::Marked, points)
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
                Series::new(format!("{name}, epsilon {epsilon}"), Look::Marked, points)
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
                    ("DP-SGD", |target| Some(target.rows.iter().find(|row| row.bands == 1)?.amplified.loss)),
                ]),
            },
            Chart {
                title: "The best number of bands, amplified".into(),
                x: sizes(),
                y: Axis::logarithmic("bands of the strategy (steps)").ticks_at(numbers),
                series: series(&[("amplified", best)]),
            },
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} steps, {} examples, delta {:e}. Losses are standard deviations of the averaged queries.",
            self.steps, self.examples, self.delta
        )?;
        self.targets.iter().try_for_each(|target| write!(f, "\n{target}"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "epsilon {}, batch size {}\n", self.epsilon, self.batch_size)?;
        let loss = format!("{} loss", self.objective);
        let header = ["bands", "amplified: noise", &loss, "unamplified: noise", &loss, ""];
        let cells =
            |figures: &Figures| [format!("{:.4}", figures.noise_multiplier), format!("{:.6e}", figures.loss)];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            let [sigma, loss] = cells(&row.amplified);
            let [without, its_loss] = cells(&row.unamplified);
            let mark = if i == self.best { "<- least amplified" } else { "" };
            rows.push(vec![row.bands.to_string(), sigma, loss, without, its_loss, mark.into()]);
        }
        for other in &self.against {
            let [sigma, loss] = cells(other);
            rows.push(vec![other.strategy.clone(), String::new(), String::new(), sigma, loss, String::new()]);
        }
        write!(f, "{}", output::table(&header, &rows))
    }
}
