//! Options that several commands share, and parsers of their values.

mod files;
mod strategy;

use antinoise_mechanism::design::Objective;
use antinoise_mechanism::{Adjacency, Participation, Problem, Workload};
use antinoise_plan::{ArithmeticKind, Length, Setting};
use clap::builder::PossibleValue;
#[cfg(feature = "train")]
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::numbers::count;
pub use files::{participation, workload};
pub use strategy::{StrategyOptions, StrategySource};

/// A parser for clap that keeps the library's error message.
pub fn parsed<T: std::str::FromStr<Err = antinoise_mechanism::Error>>(
    text: &str,
) -> std::result::Result<T, antinoise_mechanism::Error> {
    text.parse()
}

/// A parser of the values of `all`, each with its name and its meaning as help.
#[cfg(feature = "train")]
pub fn one_of<T: Copy + Send + Sync>(
    all: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|&(_, name, meaning)| PossibleValue::new(name).help(meaning));
    let value = |name: String| all.iter().find(|of| of.1 == name).expect("clap takes these names alone").0;
    PossibleValuesParser::new(names).map(value)
}

/// The names of the settings that `has` accepts, with their meanings as help.
pub fn settings(has: fn(Setting) -> bool) -> impl Iterator<Item = PossibleValue> {
    let accepted = Setting::ALL.iter().filter(move |(setting, _)| has(*setting));
    accepted.map(|(setting, meaning)| {
        PossibleValue::new(setting.name()).help(meaning.trim().trim_end_matches('.'))
    })
}

/// Arithmetic of noisy sums.
#[derive(Debug, Clone, Args)]
pub struct ArithmeticOptions {
    /// Arithmetic of noisy sums: grid or plain [default: grid].
    ///
    /// grid: sums and noise are rounded to multiples of a power of two and added in whole numbers, so that no
    /// bit of a noisy sum reveals more than the privacy statement says. This needs about 1/2000 more noise.
    ///
    /// plain: floating-point noise is added to floating-point sums. It is faster, and some mechanisms (trees,
    /// dense, Fourier) need less memory, but the set of possible noisy sums then depends on the data: the
    /// statement holds only for an observer who does not use the last bits of the noisy sums, and says so.
    #[arg(long = "release", value_enum)]
    pub arithmetic: Option<ArithmeticName>,
}

/// The names of the arithmetics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArithmeticName {
    /// Whole numbers on a grid: the statement covers every bit.
    Grid,
    /// Plain floating point: the statement holds for an observer who does not use the last bits.
    Plain,
}

impl ArithmeticOptions {
    /// Converts to the library's type.
    pub fn kind(&self) -> ArithmeticKind {
        match self.arithmetic {
            Some(ArithmeticName::Plain) => ArithmeticKind::PlainFloatingPoint,
            Some(ArithmeticName::Grid) | None => ArithmeticKind::Grid,
        }
    }
}

/// Workload and adjacency.
#[derive(Debug, Args)]
pub struct ProblemOptions {
    /// Workload A, the linear map from gradients to results: prefix (sums of all gradients so far),
    /// momentum:BETA[,WEIGHT_DECAY], nesterov:BETA, decay:GAMMA, window:WIDTH, cooldown:START_STEP,FINAL,
    /// schedule:PATH[,MOMENTUM] (a file with the learning rate of each step),
    /// last-iterate[:BETA[,SHARE[,PATH]]] (the noise that SGD with this momentum still remembers at its end,
    /// for losses of all curvatures, and a share of prefix sums; PATH is a file with the learning rate of
    /// each step), learned:PATH (the same with the weights that `antinoise probe` has fitted) or file:PATH
    /// (one number per line: Toeplitz coefficients; rows of 1, 2, 3, ... numbers: a lower-triangular matrix;
    /// rows of equal length: a batch of queries on all steps).
    #[arg(long, default_value = "prefix", value_parser = workload)]
    pub workload: Workload,
    /// How neighbouring data sets differ: zero-out (one unit contributes nothing) or replace-one.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    pub adjacency: Adjacency,
}

/// Problem for which a mechanism is designed and measured.
#[derive(Debug, Args)]
pub struct DesignOptions {
    /// Number of steps.
    #[arg(long, value_name = "N", value_parser = count)]
    pub steps: usize,
    #[command(flatten)]
    pub problem: ProblemOptions,
    /// Loss that an optimised strategy minimises: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    pub objective: Objective,
    /// Participation schema, the steps in which one unit may take part: single, full-batch, cyclic:B,K (K
    /// times, exactly B steps apart), min-sep:B,K (at most K times, at least B steps apart), each-epoch:B
    /// (once in each B steps) or file:PATH (one pattern of steps per line).
    #[arg(long, default_value = "single", value_parser = participation)]
    pub participation: Participation,
}

impl DesignOptions {
    /// Converts to the library's problem.
    pub fn problem(&self) -> Problem {
        Problem {
            steps: self.steps,
            workload: self.problem.workload.clone(),
            participation: self.participation.clone(),
            objective: self.objective,
        }
    }
}

/// How long to train.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct LengthOptions {
    /// Number of passes over the data.
    #[arg(long, value_name = "K", value_parser = count)]
    epochs: Option<usize>,
    /// Number of steps.
    #[arg(long, value_name = "n", value_parser = count)]
    steps: Option<usize>,
}

impl LengthOptions {
    /// Converts to the library's run length.
    pub fn length(&self) -> Length {
        match (self.epochs, self.steps) {
            (Some(epochs), _) => Length::Epochs(epochs),
            (None, steps) => Length::Steps(steps.unwrap_or(0)),
        }
    }
}
