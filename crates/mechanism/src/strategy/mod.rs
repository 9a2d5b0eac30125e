//! The strategies C, one file a class, and the one table that serialisation, the command line, the laws and
//! the benches read.
//!
//! A class enters by its file and one row of the table at the end of this module.

mod banded_toeplitz;
mod blt;
mod identity;
mod output;
mod recipe;
mod toeplitz;

use antinoise_input::at_least;
pub use banded_toeplitz::BandedToeplitz;
pub use blt::Blt;
pub use identity::Identity;
pub use output::OutputPerturbation;
pub use recipe::Recipe;
use serde::{Deserialize, Serialize};
pub use toeplitz::Toeplitz;

use crate::optimize::{Objective, Solution};
use crate::sensitivity::{self, Sensitivity};
use crate::toeplitz::{divide, norm_squared};
use crate::{Participation, Recursion, Result, Workload};

/// What a strategy is designed for.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective};
/// let problem = Problem {
///     steps: 100,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Rms,
/// };
/// assert!(problem.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// n.
    pub steps: usize,
    /// A.
    pub workload: Workload,
    /// Pi.
    pub participation: Participation,
    /// The norm of B that is minimised.
    pub objective: Objective,
}

impl Problem {
    /// Refuses a workload or schema that is not valid for `steps`.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self) -> Result<()> {
        at_least("steps", self.steps, 1)?;
        self.workload.check()?;
        self.participation.check(self.steps)
    }
}

/// The norms of B = A C^-1 (n x n): the standard deviation of the worst query and the root mean square over
/// queries, for seed noise of standard deviation 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorNorms {
    /// ||B||_row.
    pub max: f64,
    /// ||B||_F / sqrt(n).
    pub rms: f64,
}

/// A strategy matrix C (n x n, lower triangular, invertible).
pub trait Mechanism {
    /// n.
    fn steps(&self) -> usize;

    /// Refuses a strategy whose numbers are not those of its class: what a file may hold.
    ///
    /// # Errors
    /// Names the field.
    fn check(&self) -> Result<()>;

    /// First column of C, n values, zeros at the end left out.
    ///
    /// # Errors
    /// When n is too large to write out.
    fn coefficients(&self) -> Result<Vec<f64>>;

    /// sens(C, Pi), with its proof.
    ///
    /// # Errors
    /// When the schema does not fit, or n is too large to write out.
    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        sensitivity::of_toeplitz(&self.coefficients()?, self.steps(), participation)
    }

    /// Norms of B = A C^-1.
    ///
    /// # Errors
    /// When the workload is not valid, or n is too large to write out.
    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        toeplitz_error(&self.coefficients()?, self.steps(), workload)
    }

    /// How C^-1 Z is made step by step.
    ///
    /// # Errors
    /// When n is too large to write out.
    fn recursion(&self) -> Result<Recursion>;
}

/// How a class finds its best strategy for a problem.
trait Design: Sized {
    fn design(recipe: &Recipe, problem: &Problem) -> Result<Solution<Self>>;
}

/// The most steps whose coefficients are written out: 10^8 numbers are 0.8 GB.
const MOST_WRITTEN_OUT: usize = 100_000_000;

fn can_write_out(steps: usize) -> Result<()> {
    antinoise_input::between("steps", steps, 1, MOST_WRITTEN_OUT, "the most that can be written out")?;
    Ok(())
}

/// Norms of B for Toeplitz A and C: its first column is w = C^-1 a, ||B||_row^2 = sum w_t^2 (the last query's)
/// and ||B||_F^2 = sum (n - t) w_t^2.
fn toeplitz_error(c: &[f64], steps: usize, workload: &Workload) -> Result<ErrorNorms> {
    can_write_out(steps)?;
    let w = divide(&workload.coefficients(steps)?, c, steps);
    let weighted: f64 = w.iter().enumerate().map(|(t, w)| (steps - t) as f64 * w * w).sum();
    Ok(ErrorNorms { max: norm_squared(&w).sqrt(), rms: (weighted / steps as f64).sqrt() })
}

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $class:ident($type:ty) = $name:literal;)*) => {
        /// The classes of strategies, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Class {
            $($(#[$doc])* #[serde(rename = $name)] $class,)*
        }

        impl Class {
            /// Every class.
            pub const ALL: &'static [Self] = &[$(Self::$class,)*];

            /// The name that files and the command line use.
            pub fn name(self) -> &'static str {
                match self { $(Self::$class => $name,)* }
            }

            fn design(self, recipe: &Recipe, problem: &Problem) -> Result<Solution<Strategy>> {
                match self {
                    $(Self::$class => Ok(<$type>::design(recipe, problem)?.map(Strategy::$class)),)*
                }
            }
        }

        /// A strategy of any class, as it is saved.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "class")]
        pub enum Strategy {
            $($(#[$doc])* #[serde(rename = $name)] $class($type),)*
        }

        impl Strategy {
            /// The class it belongs to.
            pub fn class(&self) -> Class {
                match self { $(Self::$class(_) => Class::$class,)* }
            }

            /// The matrix itself.
            pub fn mechanism(&self) -> &dyn Mechanism {
                match self { $(Self::$class(strategy) => strategy,)* }
            }
        }
    };
}

mechanisms! {
    /// C = I: independent noise, DP-SGD.
    Identity(Identity) = "identity";
    /// C = A: noise on each query's answer.
    Workload(OutputPerturbation) = "workload";
    /// n Toeplitz coefficients: the square root of A, or optimised.
    Toeplitz(Toeplitz) = "toeplitz";
    /// The first few Toeplitz coefficients only.
    BandedToeplitz(BandedToeplitz) = "banded-toeplitz";
    /// A few geometric sequences.
    Blt(Blt) = "blt";
}
