//! DP-FedAvg of a character LSTM on plays, by speaker.
//!
//! ```text
//! cargo run --release -p antinoise-federated --example fedavg -- --data shakespeare.txt
//! ```
//!
//! `--data` names a text in which a line NAME: opens a speech and an empty line ends it. 80% of the speakers
//! train, selected by the hash of their names; 10% are for choosing settings, 10% for the reported figures.
//! `OPTIONS` lists the other options with their defaults. `--mechanism none` trains without privacy. Prints
//! one line of JSON per run, for each rate and seed.
//!
//! `--folder PATH` keeps one run there, with its ledger and checkpoints, under a key of its own: the same
//! command resumes it after a kill. Without a folder, keys are made from seeds and runs leave nothing: an
//! experiment, not a publication.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use antinoise_federated::lstm::{Lstm, UserTexts};
use antinoise_federated::plays::{Part, UserText, VOCAB_SIZE, chunked, parse_plays, part_of, truncated};
use antinoise_federated::{FederatedSetup, Federation, NonPrivateFederation};
use antinoise_federated::{LocalSteps, Population};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use antinoise_train::optimizer::{OptimizerConfig, Schedule, UpdateRule};
use rayon::prelude::*;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const OPTIONS: [(&str, &str); 26] = [
    ("data", ""),
    ("folder", ""),
    ("mechanism", "blt:4"),
    ("epsilon", "8"),
    ("delta", "1e-5"),
    ("users", "speakers"), // or stretches: each `characters` characters count as a user
    ("characters", "4000"),
    ("length", "40"),
    ("embedding", "16"),
    ("hidden", "64"),
    ("cohort", "40"),
    ("min-sep", "5"),
    ("max-participations", ""), // empty: the maximum that fits
    ("rounds", "200"),
    ("clip-norm", "1"),
    ("rates", "1"),
    ("momentum", "0.9"),
    ("schedule", "constant"), // of the server's rate: also cooldown:0.25,0.05 or steps:4,0.5
    ("weight-decay", "0"),
    ("zero-beyond", ""), // a user's update with a larger entry becomes 0; empty: no bound
    ("workload", ""),    // empty: the map of the server's optimizer; design: what its last iterate remembers
    ("local-rate", "1"),
    ("local-batch", "8"),
    ("local-steps", "4"),
    ("seeds", "1"),
    ("save-every", "50"),
];

struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, Failed> {
        let mut values: HashMap<String, String> =
            OPTIONS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").unwrap_or_default();
            let value = values.get_mut(name).ok_or_else(|| {
                format!("{word:?} is no option: {}", OPTIONS.map(|(name, _)| format!("--{name}")).join(" "))
            })?;
            *value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        }
        Ok(Self(values))
    }

    fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    fn get<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, Failed> {
        self.text(name).parse().map_err(|error| format!("--{name} {}: {error}", self.text(name)).into())
    }

    fn if_given<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Failed> {
        (!self.text(name).is_empty()).then(|| self.get(name)).transpose()
    }

    fn list<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<Vec<T>, Failed> {
        let each = |word: &str| word.parse().map_err(|error| format!("--{name} {word}: {error}").into());
        self.text(name).split(',').map(each).collect()
    }

    fn local(&self) -> Result<LocalSteps, Failed> {
        let (learning_rate, batch_size) = (self.get("local-rate")?, self.get("local-batch")?);
        let (most_steps, zero_beyond) = (self.get("local-steps")?, self.if_given("zero-beyond")?);
        Ok(LocalSteps { learning_rate, batch_size, epochs: 1, most_steps, zero_beyond })
    }

    fn optimizer(&self, learning_rate: f64) -> Result<OptimizerConfig, Failed> {
        let rule = UpdateRule::Sgd { learning_rate, momentum: self.get("momentum")? };
        let schedule = Schedule { warm_up: 0, decay: self.get("schedule")? };
        Ok(OptimizerConfig { schedule, weight_decay: self.get("weight-decay")?, ..rule.into() })
    }

    /// The plan of the mechanism, its RMS loss and the RMS loss of independent noise.
    fn plan(&self, population: &UserTexts) -> Result<(VerifiedPlan, f64, f64), Failed> {
        let max_participations = self.if_given("max-participations")?;
        let setting = Setting::Federated { min_sep: self.get("min-sep")?, max_participations };
        let rounds = self.get("rounds")?;
        let mut request =
            Request::new(population.users(), self.get("cohort")?, Length::Steps(rounds), setting);
        (request.unit, request.dim) = (PrivacyUnit::User, population.parameters());
        (request.epsilon, request.delta) = (self.get("epsilon")?, self.get("delta")?);
        request.clip_norm = self.get("clip-norm")?;
        let optimizer = self.optimizer(self.list("rates")?[0])?;
        request.workload = match self.text("workload") {
            "" => optimizer.workload(rounds),
            "design" => optimizer.design_workload(rounds),
            _ => self.get("workload")?,
        };
        request.specs = Some(vec![self.get("mechanism")?]);
        let choice = choose(&request)?;
        let named = choice.candidates.len() - 1;
        let loss = |i: usize| choice.candidates[i].rms_loss;
        Ok((choice.plan_of(&request, named)?, loss(named), loss(0)))
    }
}

/// Speakers' texts by part.
struct Parts {
    training: UserTexts,
    validation: UserTexts,
    test: UserTexts,
}

impl Parts {
    fn read(options: &Options) -> Result<Self, Failed> {
        let path = options.text("data");
        let plays = std::fs::read_to_string(path).map_err(|error| format!("--data {path:?}: {error}"))?;
        let model = Lstm::new(VOCAB_SIZE, options.get("embedding")?, options.get("hidden")?)?;
        let (length, most) = (options.get("length")?, options.get("characters")?);
        let speakers = parse_plays(&plays)?;
        let of = |part| -> Vec<UserText> {
            speakers.iter().filter(|text| part_of(&text.user) == part).cloned().collect()
        };
        let training = match options.text("users") {
            "speakers" => truncated(of(Part::Training), most)?,
            "stretches" => chunked(&of(Part::Training), most)?,
            other => return Err(format!("--users {other}: speakers or stretches").into()),
        };
        let [validation, test] =
            [Part::Validation, Part::Test].map(|part| UserTexts::new(model, of(part), length));
        Ok(Self { training: UserTexts::new(model, training, length)?, validation: validation?, test: test? })
    }
}

/// A run that is done. Without privacy, shares and counts are not measured.
struct Run {
    parameters: Vec<f32>,
    /// The share of clipped updates.
    clipped: f64,
    /// The mean number of users in a round.
    came: f64,
    /// The number of updates that became 0, by round.
    zeroed: Vec<usize>,
}

fn trained(
    options: &Options,
    population: &UserTexts,
    plan: Option<&VerifiedPlan>,
    (rate, seed): (f64, u64),
) -> Result<Run, Failed> {
    let (local, optimizer) = (options.local()?, options.optimizer(rate)?);
    let key = Key::from_seed_insecure(seed);
    let start = population.model().initial_parameters(&mut KeyedRng::new(
        &key,
        &RunId::default(),
        Purpose::Initialization,
        0,
    ));
    let Some(plan) = plan else {
        let reference = NonPrivateFederation {
            population,
            local,
            optimizer,
            cohort: options.get("cohort")?,
            rounds: options.get("rounds")?,
            min_sep: options.get("min-sep")?,
            clip_norm: Some(options.get("clip-norm")?),
        };
        let parameters = reference.train(start, &key)?;
        return Ok(Run { parameters, clipped: f64::NAN, came: f64::NAN, zeroed: Vec::new() });
    };
    let setup = FederatedSetup { plan, population, local, optimizer };
    let temporary = match Path::new("/dev/shm") {
        memory if memory.is_dir() => tempfile::tempdir_in(memory)?,
        _ => tempfile::tempdir()?,
    };
    let (folder, kept) = match options.text("folder") {
        "" => (temporary.path(), false),
        folder => (Path::new(folder), true),
    };
    let mut run = if kept && folder.join("checkpoint.toml").exists() {
        Federation::resume(setup, folder, RunId::default())?
    } else {
        // A run that is kept needs noise of its own.
        let key = if kept { Key::from_os()? } else { key };
        Federation::begin(setup, folder, RunId::default(), start, key)?
    };
    let (every, mut came, mut zeroed) = (options.get::<usize>("save-every")?, 0, Vec::new());
    while run.step_count() < plan.steps {
        let round = run.round(|_, _| true)?;
        came += round.cohort.len();
        zeroed.push(round.zeroed);
        if run.step_count() == plan.steps || kept && run.step_count().is_multiple_of(every) {
            run.save()?;
        }
    }
    let shares = &run.history().clipped_shares;
    let clipped = shares.iter().sum::<f64>() / shares.len() as f64;
    let came = came as f64 / plan.steps as f64;
    Ok(Run { parameters: run.parameters().to_vec(), clipped, came, zeroed })
}

fn main() -> Result<(), Failed> {
    let options = &Options::read()?;
    let parts = &Parts::read(options)?;
    let training = &parts.training;
    let planned = match options.text("mechanism") {
        "none" => None,
        _ => Some(options.plan(training)?),
    };
    if let Some((plan, ..)) = &planned {
        eprintln!("{}", plan.statement());
    }
    let (rates, seeds) = (options.list::<f64>("rates")?, options.list::<u64>("seeds")?);
    if !options.text("folder").is_empty() && rates.len() * seeds.len() > 1 {
        return Err("--folder keeps one run: one of --rates and one of --seeds".into());
    }
    let runs: Vec<(f64, u64)> =
        rates.iter().flat_map(|&rate| seeds.iter().map(move |&seed| (rate, seed))).collect();
    runs.par_iter().try_for_each(|&(rate, seed)| {
        let clock = Instant::now();
        let plan = planned.as_ref().map(|(plan, ..)| plan);
        let Run { parameters, clipped, came, zeroed } = trained(options, training, plan, (rate, seed))?;
        let seconds = clock.elapsed().as_secs_f64();
        let [validation, test] = [&parts.validation, &parts.test].map(|part| part.evaluate(&parameters));
        let number = |x: f64| if x.is_finite() { format!("{x:.6}") } else { "null".into() };
        let (rms, independent) = planned.as_ref().map_or((f64::NAN, f64::NAN), |(_, rms, independent)| (*rms, *independent));
        println!(
            "{{\"mechanism\": {:?}, \"rate\": {rate}, \"seed\": {seed}, \"users\": {}, \"parameters\": {}, \"accuracy\": {}, \
             \"loss\": {}, \"validation_accuracy\": {}, \"validation_loss\": {}, \"clipped\": {}, \"came\": {}, \"zeroed\": {zeroed:?}, \
             \"rms_loss\": {}, \"independent_rms_loss\": {}, \"seconds\": {seconds:.1}}}",
            options.text("mechanism"),
            training.users(),
            parameters.len(),
            number(test.accuracy),
            number(test.loss),
            number(validation.accuracy),
            number(validation.loss),
            number(clipped),
            number(came),
            number(rms),
            number(independent),
        );
        Ok(())
    })
}
