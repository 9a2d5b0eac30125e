//! `antinoise advise`: settings for someone who knows the number of examples, epsilon and the compute budget.

use std::fmt;

use antinoise_accounting::three_digits_up;
use antinoise_input::{InvalidParameter, short, short_up};
use antinoise_mechanism::bounds::NoisyDescent;
use antinoise_plan::{Accountant, Budget, ByExamples, Proposal, Setting, advise, by_examples_in_words};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::{bytes, count, real};
use crate::output;
use crate::progress::Progress;

/// Propose delta, batch size, passes over the data and sampling, for a compute budget.
///
/// All proposals have 1000 steps, or fewer for small data. A larger budget gives larger batches, over which
/// the same noise is averaged. Delta is the power of ten at or below 0.1 / N, at most 1e-5.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise advise --examples 60000 --epsilon 4
  antinoise advise --examples 1e6 --epsilon 2 --dim 1e8 --memory 4e9 \\
      --time 36000 --examples-per-second 500"
)]
pub struct Arguments {
    /// Number of examples.
    #[arg(long, value_name = "N", value_parser = count)]
    examples: usize,
    /// Target epsilon.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: f64,
    /// Number of model parameters, which decides the size of the noise's state. With it, a bound on the
    /// regret of convex training is printed.
    #[arg(long, value_name = "M", value_parser = count, default_value = "0", hide_default_value = true)]
    dim: usize,
    /// Maximum size of the noise's state, in bytes; needs --dim.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<usize>,
    /// Maximum duration of a training, in seconds [default: that of 16 passes over the data].
    #[arg(long, value_name = "SECONDS", value_parser = real, requires = "examples_per_second")]
    time: Option<f64>,
    /// Number of clipped gradients computed per second; Opacus and antinoise print it.
    #[arg(long, value_name = "R", value_parser = real, requires = "time")]
    examples_per_second: Option<f64>,
}

/// Makes the proposals.
pub fn run(arguments: &Arguments) -> Result<Advice> {
    let mut budget = Budget::new(arguments.examples, arguments.epsilon);
    budget.dim = arguments.dim;
    budget.memory = arguments.memory.map(|bytes| bytes as u64);
    if let Some(epochs) = arguments.epochs()? {
        budget.epochs = epochs;
    }
    let progress = Progress::endless("planning");
    let proposals = advise(&budget)?;
    drop(progress);
    let rows = proposals.iter().map(|proposal| Row::new(proposal, &proposals[0])).collect::<Result<_>>()?;
    // Without sampling these figures follow from epsilon and delta: they are those of every such proposal.
    let cyclic = proposals.iter().find(|proposal| !proposal.candidate.is_amplified());
    let epsilon_by_examples =
        cyclic.map_or_else(|| Ok(Vec::new()), |proposal| proposal.plan.stated_epsilon_by_examples())?;
    Ok(Advice { proposals: rows, epsilon_by_examples, has_dim: arguments.dim > 0 })
}

impl Arguments {
    /// Maximum number of passes over the data in the given time.
    fn epochs(&self) -> Result<Option<f64>> {
        let (Some(time), Some(rate)) = (self.time, self.examples_per_second) else { return Ok(None) };
        for (name, got) in [("time", time), ("examples_per_second", rate)] {
            antinoise_input::positive(name, got)?;
        }
        let epochs = time * rate / self.examples as f64;
        if epochs < 1.0 {
            let must_be =
                format!("at least {:.0} s, for one pass over the data", self.examples as f64 / rate);
            return Err(InvalidParameter::new("time", time, must_be).into());
        }
        Ok(Some(epochs))
    }
}

/// What the column of regrets shows.
const REGRET: &str = "\
Regret: how much larger the mean loss of the models along the way is than that of the best model, in expectation and at
most, over clip norm times the distance of that model from the first one. It is for convex losses on these examples with
gradients below the clip norm, and plain gradient descent at the best rate. In one pass without sampling it is also a bound
on the excess risk, that is on new examples.";

/// Advice for what a plan leaves open.
const NO_PRIVACY: &str = "\
At no cost in privacy, because no private row is looked at:
- Batch size: the largest for which there is time. Noise in the mean gradient falls as 1 / batch size where batches are
  not sampled; where they are, more slowly, since larger batches hide less: `antinoise plan --sweep batch-size`.
- Clip norm: a length that most gradients exceed, 1 for the models of `antinoise train`. Noise is proportional to it, and
  while most gradients are clipped, only its product with the learning rate matters.
- Learning rate: by default `antinoise train` computes one from the plan's noise, the model's size and the public scale of
  the data (docs/models.md). Otherwise search on public data of the same kind, not on the private rows.";

/// Output of `antinoise advise`.
#[derive(Debug, Serialize)]
pub struct Advice {
    proposals: Vec<Row>,
    /// The epsilon of persons with several examples, in batches that are not sampled.
    epsilon_by_examples: Vec<ByExamples>,
    #[serde(skip)]
    has_dim: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    setting: &'static str,
    batch_size: usize,
    epochs: f64,
    steps: usize,
    epsilon: f64,
    delta: f64,
    strategy: String,
    noise_multiplier: f64,
    rms_loss: f64,
    relative_to_dp_sgd: f64,
    state_bytes: u64,
    /// Upper bound on the regret at the best rate, over clip norm times distance; null without --dim.
    regret_at_most: Option<f64>,
    reason: String,
    /// Command that plans this proposal.
    command: String,
}

impl Row {
    fn new(proposal: &Proposal, first: &Proposal) -> Result<Self> {
        let (request, candidate) = (&proposal.request, &proposal.candidate);
        let setting = request.setting.name();
        let steps = candidate.schedule.steps;
        let mut command = format!(
            "antinoise plan --examples {} --batch-size {} --steps {steps} --epsilon {} --delta {:e} --setting {setting} --quick",
            request.examples, request.batch_size, request.epsilon, request.delta
        );
        if request.dim > 0 {
            command += &format!(" --dim {}", request.dim);
        }
        if let Some(memory) = request.memory {
            command += &format!(" --memory {memory}");
        }
        let regret = |dim: usize| {
            // A sampled batch varies in size: the mean square of its gradient is at most 1 + 1 / B.
            let square = if candidate.is_amplified() { 1.0 / request.batch_size as f64 } else { 0.0 };
            let (lipschitz, distance, noise) = ((1.0 + square).sqrt(), 1.0, candidate.rms_loss);
            let descent = NoisyDescent { lipschitz, distance, steps, dim, noise };
            descent.regret_at_most(descent.best_rate()?)
        };
        Ok(Self {
            setting,
            batch_size: request.batch_size,
            epochs: proposal.epochs,
            steps,
            epsilon: request.epsilon,
            delta: request.delta,
            strategy: candidate.spec.to_string(),
            noise_multiplier: candidate.noise_multiplier,
            rms_loss: candidate.rms_loss,
            relative_to_dp_sgd: proposal.relative_to_dp_sgd,
            state_bytes: candidate.state_bytes,
            regret_at_most: (request.dim > 0).then(|| regret(request.dim)).transpose()?,
            reason: reason(proposal, first),
            command,
        })
    }
}

/// Reasons for this proposal.
fn reason(proposal: &Proposal, first: &Proposal) -> String {
    let batches = match (proposal.candidate.is_amplified(), proposal.request.setting) {
        (true, _) if proposal.candidate.schedule.accountant() == Accountant::BallsInBins => {
            "for examples that can be put in bins at random"
        }
        (true, _) => "for examples that can be sampled anew at every step",
        (false, Setting::Poisson) => "sampling would not help here: cyclic batches",
        (false, _) => "for data that are shuffled once and cut into cyclic batches",
    };
    let (work, steps) = (proposal.epochs / first.epochs, proposal.candidate.schedule.steps);
    let cost = if proposal == first {
        "the least to compute".into()
    } else if steps == first.candidate.schedule.steps {
        let times = proposal.candidate.rms_loss / first.candidate.rms_loss;
        format!("{times:.2} times the noise of the first proposal for {} times the gradients", short(work, 4))
    } else {
        format!("{} times the gradients of the first proposal, in {steps} steps", short(work, 4))
    };
    format!("{batches}; {cost}")
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "setting",
            "batch size",
            "epochs",
            "delta",
            "RMS loss",
            "vs DP-SGD",
            "noise state",
            "regret",
            "strategy",
        ];
        // Losses over different numbers of steps cannot be compared.
        let steps = self.proposals[0].steps;
        let rows: Vec<Vec<String>> = self
            .proposals
            .iter()
            .map(|row| {
                vec![
                    row.setting.into(),
                    row.batch_size.to_string(),
                    format!("{:.2}", row.epochs),
                    three_digits_up(row.delta),
                    if row.steps == steps { format!("{:.3e}", row.rms_loss) } else { "-".into() },
                    format!("{:.2}", row.relative_to_dp_sgd),
                    if self.has_dim { output::bytes(row.state_bytes) } else { "-".into() },
                    row.regret_at_most.map_or("-".into(), |regret| short_up(regret, 3)),
                    row.strategy.clone(),
                ]
            })
            .collect();
        writeln!(
            f,
            "Losses are standard deviations of the averaged queries over {steps} steps, in clip norms.\n"
        )?;
        writeln!(f, "{}", output::table(&header, &rows))?;
        if self.has_dim {
            writeln!(f, "{REGRET}\n")?;
        }
        for (i, row) in self.proposals.iter().enumerate() {
            writeln!(f, "{}. {}.\n   {}", i + 1, row.reason, row.command)?;
        }
        if !self.epsilon_by_examples.is_empty() {
            let by = by_examples_in_words(&self.epsilon_by_examples);
            writeln!(
                f,
                "\nEpsilon is that of one example. For a person with several examples, in cyclic batches, it is\n{by};"
            )?;
            writeln!(f, "--max-examples-per-user M in these commands plans for persons.")?;
        }
        writeln!(f, "\n{NO_PRIVACY}")
    }
}
