//! The strategy that options name.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{CoefficientRule, Solution, StrategySpec};
use antinoise_mechanism::{AnyStrategy, Problem, Workload};
use antinoise_plan::read_strategy;
use clap::Args;

use crate::failure::Result;
use crate::numbers::count;

/// Source of a mechanism: a class to design, or a file.
#[derive(Debug, Clone)]
pub enum StrategySource {
    /// A class to design for the problem.
    StrategySpec(StrategySpec),
    /// A strategy in a file that `--out` saved, or a matrix.
    File(PathBuf),
}

impl StrategySource {
    /// The class to design, if it is one.
    pub fn spec(&self) -> Option<StrategySpec> {
        match self {
            Self::StrategySpec(spec) => Some(*spec),
            Self::File(_) => None,
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::StrategySpec(_) => None,
            Self::File(path) => Some(path),
        }
    }
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
    /// Strategy C: a class with an optional size and form (banded-toeplitz:16, blt:4, toeplitz+damped:0.01),
    /// or file:PATH for a strategy that --out saved or your own matrix C (.npy, .npz with the array C,
    /// .arrow, .toml). A wrong name lists the classes; docs/strategies.md explains them.
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: StrategySource,
    /// Number of bands of a banded strategy [default: 16, or the steps if fewer].
    #[arg(long, value_name = "N", value_parser = count)]
    pub bands: Option<usize>,
    /// Number of buffers of a BLT [default: buffers are added while each lowers the loss by a thousandth or
    /// more].
    #[arg(long, value_name = "D", value_parser = count)]
    pub order: Option<usize>,
    /// Use the coefficients of the square root of the workload, without optimising them.
    #[arg(long)]
    pub fixed: bool,
    /// Scale the strategy's columns to norm 1.
    #[arg(long)]
    pub column_normalize: bool,
    /// Cut the steps into S runs and restart the same strategy in each.
    #[arg(long, value_name = "S", value_parser = count)]
    pub restarts: Option<usize>,
}

impl StrategyOptions {
    /// Designs the strategy, or reads it and checks that it has the problem's number of steps.
    pub fn solve(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        problem.check()?;
        match &self.strategy {
            StrategySource::StrategySpec(spec) => Ok(self.merged(*spec)?.design(problem)?),
            StrategySource::File(path) => {
                self.refuse_with_file()?;
                Ok(Solution::closed_form(read(path, problem)?))
            }
        }
    }

    /// Workload whose loss the design minimises; `None` for a strategy from a file.
    pub fn designed_for(&self, problem: &Problem) -> Result<Option<Workload>> {
        match &self.strategy {
            StrategySource::StrategySpec(spec) => {
                Ok(Some(self.merged(*spec)?.design_workload(&problem.workload, problem.steps)))
            }
            StrategySource::File(_) => Ok(None),
        }
    }

    fn merged(&self, spec: StrategySpec) -> Result<StrategySpec> {
        let sized = spec.sized(self.bands, self.order, self.restarts)?;
        let rule = self.rule(spec)?;
        let column_normalize = self.column_normalize || spec.column_normalize;
        Ok(StrategySpec { rule, column_normalize, ..sized })
    }

    fn rule(&self, spec: StrategySpec) -> Result<CoefficientRule> {
        match spec.rule {
            _ if !self.fixed => Ok(spec.rule),
            CoefficientRule::Optimized | CoefficientRule::SquareRoot => Ok(CoefficientRule::SquareRoot),
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

fn read(path: &Path, problem: &Problem) -> Result<AnyStrategy> {
    let strategy = read_strategy(path, &problem.workload)?;
    if strategy.steps() != problem.steps {
        let must_be = format!("{}, as --steps says", problem.steps);
        let parameter = format!("steps of strategy file {}", path.display());
        return Err(InvalidParameter::new(parameter, strategy.steps(), must_be).into());
    }
    Ok(strategy)
}
