//! `antinoise batches`: the examples of each step of a run.

use std::fmt;
use std::path::PathBuf;

use antinoise_input::{InvalidParameter, between};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches, OwnedExamples, Plan, Sampler};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::count;
use crate::source::{load_plan, owned_examples};

/// Print which examples each step of a run uses, as its trainer forms the batches.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  head -c 32 /dev/urandom > key && chmod 600 key
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-6 --setting cyclic --out plan.toml
  antinoise batches --plan plan.toml --key-file key --count 3
  antinoise batches --plan plan.toml --key-file key --run second \\
      --from 100 --count 1 --json
  printf 'ada,bob\\nada\\nbob,cy\\ncy,dan\\ndan\\n' > owners.txt
  antinoise plan --owners owners.txt --batch-size 2 --steps 6 --epsilon 8 \\
      --setting federated --min-sep 2 --out owners.toml
  antinoise batches --plan owners.toml --key-file key --owners owners.txt

Examples are numbered from 0. Batches are a function of key, run and the plan's
sampler, not of the model. Where sampling amplifies privacy, they are as secret as
the key: do not publish them.

--owners is for examples of several persons, such as messages: owners.toml protects each
of the four persons with all of their examples. Who owns which example is not protected,
only the contents."
)]
pub struct Arguments {
    /// Plan whose sampler forms the batches.
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// File with the run's key, readable only by its owner: 32 random bytes, or 64 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Examples with several owners, for a plan of --setting federated: a text file with the owners of each
    /// example, one example a line, names separated by commas. No two examples of a batch share an owner, and
    /// each owner takes part as rarely as the plan assumes.
    #[arg(long, value_name = "FILE")]
    owners: Option<PathBuf>,
    /// Name of the run.
    #[arg(long, value_name = "NAME", default_value_t)]
    run: RunId,
    /// First step to print.
    #[arg(long, value_name = "T", value_parser = count, default_value = "0")]
    from: usize,
    /// Number of steps to print [default: all following ones].
    #[arg(long, value_name = "K", value_parser = count)]
    count: Option<usize>,
}

/// Output of `antinoise batches`.
#[derive(Debug, Serialize)]
pub struct DrawnBatches {
    run: String,
    from: usize,
    /// The examples of each step.
    batches: Vec<Vec<usize>>,
    /// What the claim of a plan for owners assumes about these batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumption: Option<&'static str>,
}

/// Forms the batches.
pub fn run(arguments: &Arguments) -> Result<DrawnBatches> {
    let plan = load_plan(&arguments.plan)?;
    plan.check_draws_no_users()?;
    let Plan { steps, examples, batch_size, sampler, .. } = *plan;
    let from = between("from", arguments.from, 0, steps - 1, "steps - 1")?;
    let rest = steps - from;
    let rows = between("count", arguments.count.unwrap_or(rest), 1, rest, "steps - from")?;
    let key = Key::from_file(&arguments.key_file)?;
    let rng = |purpose, step| KeyedRng::new(&key, &arguments.run, purpose, step);
    let mut order = rng(Purpose::DataOrder, 0);
    let batches = match &arguments.owners {
        Some(path) => owned_examples(path)?.batches(&plan, &mut order)?[from..from + rows].to_vec(),
        None if sampler == Sampler::External => {
            let must_be = "given, or the plan's setting not federated: batches of users who take part on their own \
                           initiative are formed by the program that runs the plan";
            return Err(InvalidParameter::new("owners", "absent", must_be).into());
        }
        None => {
            let batches = Batches::new(sampler, examples, batch_size, steps, &mut order)?;
            let batch = |step: usize| batches.at(step, &mut rng(Purpose::BatchSampling, step as u64));
            (from..from + rows).map(batch).collect()
        }
    };
    let assumption = arguments.owners.as_ref().map(|_| OwnedExamples::ASSUMPTION);
    Ok(DrawnBatches { run: arguments.run.to_string(), from, batches, assumption })
}

impl fmt::Display for DrawnBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, batch) in (self.from..).zip(&self.batches) {
            let examples: Vec<String> = batch.iter().map(usize::to_string).collect();
            writeln!(f, "step {step}: {}", examples.join(" "))?;
        }
        self.assumption
            .map_or(Ok(()), |assumption| writeln!(f, "The plan's claim assumes that {assumption}."))
    }
}
