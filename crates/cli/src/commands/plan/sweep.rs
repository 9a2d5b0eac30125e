//! The plan at other batch sizes or epsilons: the gain from more compute or less privacy.

use std::fmt;

use antinoise_accounting::Markup;
use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_input::InvalidParameter;
use antinoise_plan::{Length, Request, Setting, choose};
use clap::ValueEnum;
use serde::Serialize;

use super::figure::loss_axis;
use super::report::named;
use crate::failure::Result;
use crate::progress::Progress;
use crate::{output, plot};

/// Quantity that a sweep varies, from an eighth to eight times the given value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sweep {
    /// The batch size, at a fixed number of steps: the number of gradients grows with it.
    BatchSize,
    /// The target epsilon.
    Epsilon,
}

/// The choice at each point.
#[derive(Debug, Serialize)]
pub struct Swept {
    sweep: Sweep,
    steps: usize,
    objective: &'static str,
    points: Vec<Point>,
    #[serde(skip)]
    request: Request,
    #[serde(skip)]
    markup: Markup,
}

#[derive(Debug, Serialize)]
struct Point {
    batch_size: usize,
    epsilon: f64,
    /// Passes over the data.
    epochs: f64,
    /// Total number of gradients of examples.
    gradients: f64,
    strategy: String,
    amplified: bool,
    noise_multiplier: f64,
    max_loss: f64,
    rms_loss: f64,
    relative_to_independent: f64,
    state_bytes: u64,
    /// Strategy and sampler.
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    loss: f64,
    /// Loss of independent noise with the same sampler.
    #[serde(skip)]
    independent: f64,
}

const FACTORS: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

impl Sweep {
    /// Plans at every point that has a plan.
    pub fn run(self, request: &Request, markup: Markup) -> Result<Swept> {
        let steps = request.schedule()?.steps;
        let points = self.requests(request, steps);
        let progress = Progress::new("planning", "plans", points.len() as u64);
        let mut found = Vec::new();
        for request in points {
            found.push(Point::new(&request)?);
            progress.advance(1);
        }
        drop(progress);
        if found.len() < 2 {
            let must_be = "one with a valid plan for at least two points of the sweep, from an eighth to eight times its value";
            return Err(InvalidParameter::new("batch_size", request.batch_size, must_be).into());
        }
        Ok(Swept {
            sweep: self,
            steps,
            objective: plot::name(request.objective),
            points: found,
            request: request.clone(),
            markup,
        })
    }

    /// The requests of the points; batch sizes above the number of examples, or for which the steps do not
    /// fit, are left out.
    fn requests(self, request: &Request, steps: usize) -> Vec<Request> {
        let mut points: Vec<Request> = Vec::new();
        for factor in FACTORS {
            let mut point = Request { length: Length::Steps(steps), ..request.clone() };
            match self {
                Self::BatchSize => point.batch_size = (factor * request.batch_size as f64).round() as usize,
                Self::Epsilon => point.epsilon = factor * request.epsilon,
            }
            let is_new = points.last().is_none_or(|last| *last != point);
            if is_new && point.schedule().is_ok() {
                points.push(point);
            }
        }
        points
    }
}

impl Point {
    fn new(request: &Request) -> Result<Self> {
        let choice = choose(request)?;
        let chosen = &choice.candidates[choice.chosen];
        let gradients = chosen.gradients(request);
        Ok(Self {
            batch_size: request.batch_size,
            epsilon: request.epsilon,
            epochs: gradients / request.examples as f64,
            gradients,
            strategy: chosen.spec.to_string(),
            amplified: chosen.is_amplified(),
            noise_multiplier: chosen.noise_multiplier,
            max_loss: chosen.max_loss,
            rms_loss: chosen.rms_loss,
            relative_to_independent: chosen.relative_to_independent,
            state_bytes: chosen.state_bytes,
            name: named(chosen, request.setting == Setting::Poisson),
            loss: chosen.objective(request.objective),
            independent: choice.candidates[0].objective(request.objective),
        })
    }
}

impl Swept {
    /// Loss against compute, or against epsilon.
    pub fn figure(&self) -> Result<String> {
        let (x, title): (fn(&Point) -> f64, _) = match self.sweep {
            Sweep::BatchSize => (|p| p.gradients, "total number of gradients of examples"),
            Sweep::Epsilon => (|p| p.epsilon, "epsilon"),
        };
        let curve = |name: &str, loss: fn(&Point) -> f64| {
            Series::new(name, LineStyle::Marked, self.points.iter().map(|point| (x(point), loss(point))))
        };
        let chart = Chart {
            title: format!("Loss of the chosen mechanism over {} steps", self.steps),
            x: Axis::logarithmic(title).ticks_at(self.points.iter().map(x)),
            y: loss_axis(&self.request),
            series: vec![curve("chosen", |p| p.loss), curve("independent noise", |p| p.independent)],
        };
        plot::file(vec![vec![chart.into()]])
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "batch size",
            "epsilon",
            "epochs",
            "gradients",
            self.objective,
            "vs independent",
            "strategy",
            "noise state",
        ];
        // Without a number of parameters, states are not known.
        let shown = header.len() - usize::from(self.request.dim == 0);
        let rows: Vec<Vec<String>> = self
            .points
            .iter()
            .map(|p| {
                vec![
                    p.batch_size.to_string(),
                    p.epsilon.to_string(),
                    format!("{:.2}", p.epochs),
                    format!("{:.2e}", p.gradients),
                    format!("{:.3e}", p.loss),
                    format!("{:.3}", p.relative_to_independent),
                    p.name.clone(),
                    output::bytes(p.state_bytes),
                ][..shown]
                    .to_vec()
            })
            .collect();
        writeln!(f, "{} steps. Losses are standard deviations of the averaged queries.\n", self.steps)?;
        writeln!(f, "{}", output::marked_table(self.markup, &header[..shown], &rows))
    }
}
