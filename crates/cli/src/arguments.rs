//! Options that several commands share, and how their values are read.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_mechanism::optimize::{Objective, Solution};
use antinoise_mechanism::strategy::{Form, StrategySpec};
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Workload};
use antinoise_plan::ReleaseKind;
use clap::{Args, ValueEnum};

use crate::failure::{Failure, Result};
use crate::numbers::count;

/// Where a mechanism comes from: a class to design, or a file.
#[derive(Debug, Clone)]
pub enum StrategySource {
    /// Designed for the problem.
    StrategySpec(StrategySpec),
    /// As `--out` saved it.
    File(PathBuf),
}

impl std::str::FromStr for StrategySource {
    type Err = antinoise_mechanism::Error;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text.strip_prefix("file:") {
            Some(path) => Ok(Self::File(path.into())),
            None => text.parse().map(Self::StrategySpec),
        }
    }
}

/// The mechanism and its size.
#[derive(Debug, Args)]
pub struct StrategyOptions {
    /// Class of mechanism, with its size and form if you like (banded-toeplitz:16, blt:4, toeplitz+damped:0.01), or
    /// file:PATH for one that --out saved. A wrong name lists the classes; docs/strategies.md explains them.
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: StrategySource,
    /// Number of bands of a banded strategy [default: 16, or the steps if fewer].
    #[arg(long, value_name = "N", value_parser = count)]
    pub bands: Option<usize>,
    /// Number of buffers of a BLT [default: as many as each lower the loss by a thousandth].
    #[arg(long, value_name = "D", value_parser = count)]
    pub order: Option<usize>,
    /// Use square-root coefficients as they are instead of optimising.
    #[arg(long)]
    pub fixed: bool,
    /// Scale the strategy's columns to norm 1.
    #[arg(long)]
    pub column_normalize: bool,
    /// Cut the steps into this many runs of the same strategy, each started anew.
    #[arg(long, value_name = "S", value_parser = count)]
    pub restarts: Option<usize>,
}

impl StrategyOptions {
    /// Designs the strategy, or reads it and checks that it is one for the problem's steps.
    pub fn solve(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        problem.check()?;
        match &self.strategy {
            StrategySource::StrategySpec(spec) => Ok(self.merged(*spec)?.design(problem)?),
            StrategySource::File(path) => {
                self.refuse_with_file()?;
                Ok(Solution::closed_form(read_strategy(path, problem.steps)?))
            }
        }
    }

    /// The workload that the design minimises the loss of; nothing is known of a strategy from a file.
    pub fn designed_for(&self, problem: &Problem) -> Result<Option<Workload>> {
        match &self.strategy {
            StrategySource::StrategySpec(spec) => {
                Ok(Some(self.merged(*spec)?.design_workload(&problem.workload, problem.steps)))
            }
            StrategySource::File(_) => Ok(None),
        }
    }

    fn merged(&self, spec: StrategySpec) -> Result<StrategySpec> {
        let pick = |name: &str, in_name: Option<usize>, option: Option<usize>| match (in_name, option) {
            (Some(a), Some(b)) if a != b => {
                Err(InvalidParameter::new(name, b, format!("left out, or {a} as the strategy's name says")))
            }
            _ => Ok(option.or(in_name)),
        };
        Ok(StrategySpec {
            bands: pick("bands", spec.bands, self.bands)?,
            order: pick("order", spec.order, self.order)?,
            form: self.form(spec)?,
            column_normalize: self.column_normalize || spec.column_normalize,
            restarts: pick("restarts", spec.restarts, self.restarts)?,
            ..spec
        })
    }

    fn form(&self, spec: StrategySpec) -> Result<Form> {
        match spec.form {
            _ if !self.fixed => Ok(spec.form),
            Form::Optimized | Form::SquareRoot => Ok(Form::SquareRoot),
            form => {
                let must_be = format!("left out: the strategy's name says {form}");
                Err(InvalidParameter::new("fixed", "true", must_be).into())
            }
        }
    }

    fn refuse_with_file(&self) -> Result<()> {
        let given = [
            ("bands", self.bands.map(|x| x.to_string())),
            ("order", self.order.map(|x| x.to_string())),
            ("fixed", self.fixed.then(|| "true".into())),
            ("column_normalize", self.column_normalize.then(|| "true".into())),
            ("restarts", self.restarts.map(|x| x.to_string())),
        ];
        match given.into_iter().find_map(|(name, got)| Some((name, got?))) {
            Some((name, got)) => Err(InvalidParameter::new(
                name,
                got,
                "left out: a strategy read from a file is used as it is",
            )
            .into()),
            None => Ok(()),
        }
    }
}

fn read_strategy(path: &Path, steps: usize) -> Result<AnyStrategy> {
    let refused = |reason: String| Failure::input(format!("strategy: {}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let strategy: AnyStrategy =
        toml::from_str(&text).map_err(|error| refused(format!("not a strategy: {error}")))?;
    strategy.check().map_err(|error| refused(error.to_string()))?;
    if strategy.steps() != steps {
        let got = strategy.steps();
        return Err(refused(format!("steps is {got} but must be {steps}, as --steps says")));
    }
    Ok(strategy)
}

/// A parser for clap that keeps this project's own message.
pub fn parsed<T: std::str::FromStr<Err = antinoise_mechanism::Error>>(
    text: &str,
) -> std::result::Result<T, antinoise_mechanism::Error> {
    text.parse()
}

/// A workload by name, or from a file of numbers.
pub fn workload(text: &str) -> std::result::Result<Workload, antinoise_mechanism::Error> {
    match (text.strip_prefix("file:"), text.strip_prefix("schedule:")) {
        (Some(path), _) => Ok(read_workload(path)?),
        (None, Some(path)) => Ok(read_schedule(path)?),
        (None, None) => text.parse(),
    }
}

/// PATH or PATH,MOMENTUM.
fn read_schedule(text: &str) -> std::result::Result<Workload, InvalidParameter> {
    let number = |(path, number): (_, &str)| Some((path, number.trim().parse::<f64>().ok()?));
    let (path, momentum) = text.rsplit_once(',').and_then(number).unwrap_or((text, 0.0));
    let refused = |got: String| {
        InvalidParameter::new(
            format!("schedule file {path}"),
            got,
            "a file of numbers: one learning rate a step",
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let rates = numbers::<f64>(&text).map_err(refused)?.concat();
    Ok(Workload::Schedule { rates, momentum })
}

fn read_workload(path: &str) -> std::result::Result<Workload, InvalidParameter> {
    let refused = |got: String| {
        let must_be = "a file of numbers: one a line, the rows of a lower-triangular matrix, or queries of equal length";
        InvalidParameter::new(format!("workload file {path}"), got, must_be)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let rows = numbers::<f64>(&text).map_err(refused)?;
    if rows.iter().all(|row| row.len() == 1) && rows.len() > 1 {
        return Ok(Workload::Toeplitz { coefficients: rows.concat() });
    }
    let size = rows.len();
    let is_lower = |(i, row): (usize, &Vec<f64>)| {
        row.len() == i + 1 || row.len() == size && row[i + 1..].iter().all(|&x| x == 0.0)
    };
    if rows.iter().enumerate().all(is_lower) {
        let lower = |(i, row): (usize, Vec<f64>)| row[..=i].to_vec();
        return Ok(Workload::Matrix { rows: rows.into_iter().enumerate().map(lower).collect() });
    }
    let length = rows[0].len();
    match rows.iter().position(|row| row.len() != length) {
        Some(i) => Err(refused(format!("a row {i} of {} numbers after one of {length}", rows[i].len()))),
        None => Ok(Workload::Queries { rows }),
    }
}

/// A schema by name, or from a file that lists its patterns.
pub fn participation(text: &str) -> std::result::Result<Participation, antinoise_mechanism::Error> {
    let Some(path) = text.strip_prefix("file:") else { return text.parse() };
    let refused = |got: String| {
        let must_be = "a file with one pattern a line: steps from 0, in increasing order";
        InvalidParameter::new(format!("participation file {path}"), got, must_be)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    Ok(Participation::Patterns { patterns: numbers(&text).map_err(refused)? })
}

/// Rows of numbers, parted by commas or blanks; what follows # and empty lines are left out.
fn numbers<T: std::str::FromStr>(text: &str) -> std::result::Result<Vec<Vec<T>>, String> {
    let mut rows = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or("");
        let words = content.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
        let row: Vec<T> = words
            .map(|word| word.parse().map_err(|_| format!("{word:?} on line {}", line + 1)))
            .collect::<std::result::Result<_, _>>()?;
        if !row.is_empty() {
            rows.push(row);
        }
    }
    if rows.is_empty() { Err("empty".into()) } else { Ok(rows) }
}

/// How noisy sums leave the machine.
#[derive(Debug, Args)]
pub struct ReleaseOptions {
    /// How noisy sums are released: grid or plain [default: grid].
    ///
    /// grid: sums and noise are rounded to multiples of a power of two and added in whole numbers, so that no bit of a
    /// release tells more than the privacy statement says. Noise grows by a two-thousandth for it.
    ///
    /// plain: floating-point noise is added to floating-point sums. It is faster, and needs no memory for sums of seeds
    /// (trees, dense and Fourier mechanisms), but which numbers can come out then depends on the data: the statement
    /// holds only for an observer who does not use the last bits of what is released, and says so.
    #[arg(long, value_enum)]
    pub release: Option<ReleaseName>,
}

/// The names of the releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReleaseName {
    /// On a grid: every bit is covered by the statement.
    Grid,
    /// Plain floating point: the statement holds for an observer who does not use the last bits.
    Plain,
}

impl ReleaseOptions {
    /// The same as the library takes it.
    pub fn kind(&self) -> ReleaseKind {
        match self.release {
            Some(ReleaseName::Plain) => ReleaseKind::PlainFloatingPoint,
            Some(ReleaseName::Grid) | None => ReleaseKind::Grid,
        }
    }
}

/// What is released and how units are compared.
#[derive(Debug, Args)]
pub struct ProblemOptions {
    /// What is released: prefix, momentum:BETA[,WEIGHT_DECAY], nesterov:BETA, decay:GAMMA, window:WIDTH,
    /// cooldown:START_STEP,FINAL, schedule:PATH[,MOMENTUM] (a learning rate a step) or file:PATH (one number a line:
    /// Toeplitz coefficients; rows of 1, 2, 3, ... numbers: a lower-triangular matrix; rows of equal length: a batch of
    /// queries on all steps).
    #[arg(long, default_value = "prefix", value_parser = workload)]
    pub workload: Workload,
    /// Which datasets the sensitivity compares: zero-out or replace-one.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    pub adjacency: Adjacency,
}

/// What a mechanism is designed for and measured under.
#[derive(Debug, Args)]
pub struct DesignOptions {
    /// Number of training steps.
    #[arg(long, value_name = "N", value_parser = count)]
    pub steps: usize,
    #[command(flatten)]
    pub released: ProblemOptions,
    /// What an optimised strategy minimises: max or rms loss.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    pub objective: Objective,
    /// When one unit may take part: single, full-batch, cyclic:B,K, min-sep:B,K or file:PATH
    /// (one pattern of steps a line).
    #[arg(long, default_value = "single", value_parser = participation)]
    pub participation: Participation,
}

impl DesignOptions {
    /// The same as the library takes it.
    pub fn problem(&self) -> Problem {
        Problem {
            steps: self.steps,
            workload: self.released.workload.clone(),
            participation: self.participation.clone(),
            objective: self.objective,
        }
    }
}
