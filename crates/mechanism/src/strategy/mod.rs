//! The strategies C, one file a class, and the one table that serialisation, the command line, the laws and
//! the benches read.
//!
//! A class enters by its file and one row of the table at the end of this module.

mod banded;
mod banded_inverse;
mod banded_toeplitz;
mod blt;
mod column_normalized;
mod dense;
mod form;
mod fourier;
mod fourier_optimal;
mod honaker_full;
mod honaker_online;
mod identity;
mod output;
mod restarted;
mod smooth_tree;
mod spec;
mod toeplitz;
mod tree;
mod weighted_tree;

use std::ops::Deref;

use antinoise_input::{at_least, between};
pub use banded::Banded;
pub use banded_inverse::BandedInverse;
pub use banded_toeplitz::BandedToeplitz;
pub use blt::Blt;
pub use column_normalized::ColumnNormalized;
pub use dense::Dense;
pub use form::Form;
pub use fourier::Fourier;
pub use fourier_optimal::FourierOptimal;
pub use honaker_full::HonakerFull;
pub use honaker_online::HonakerOnline;
pub use identity::Identity;
pub use output::OutputPerturbation;
pub use restarted::Restarted;
use serde::{Deserialize, Serialize};
pub use smooth_tree::SmoothTree;
pub use spec::StrategySpec;
pub use toeplitz::Toeplitz;
pub use tree::BinaryTree;
pub use weighted_tree::WeightedTree;

pub use crate::decoder::ErrorNorms;
use crate::optimize::{Objective, Solution};
use crate::sensitivity::{self, Sensitivity};
use crate::{Encoder, Participation, Recursion, Result, Workload, decoder};

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
        self.workload.check_steps(self.steps)?;
        self.participation.check(self.steps)
    }
}

/// A strategy matrix C (n x n, lower triangular, invertible).
pub trait Strategy {
    /// n.
    fn steps(&self) -> usize;

    /// Refuses a strategy whose numbers are not those of its class: what a file may hold.
    ///
    /// # Errors
    /// Names the field.
    fn check(&self) -> Result<()>;

    /// C itself.
    ///
    /// # Errors
    /// When n is too large to write out.
    fn encoder(&self) -> Result<Encoder>;

    /// sens(C, Pi), with its proof.
    ///
    /// # Errors
    /// When the schema does not fit, n is too large to write out, or the figure is not one that double precision
    /// can tell: it is never NaN, infinite or 0.
    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        sensitivity::of_encoder(&self.encoder()?, participation)
    }

    /// Norms of B = A C^-1.
    ///
    /// # Errors
    /// When the workload is not valid, n is too large to write out, or a norm is not one that double precision can
    /// tell: they are never NaN, infinite or 0.
    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        ErrorNorms::of_rows(&self.row_errors_squared(workload)?)
    }

    /// Squared norm of each row of B = A C^-1: the variance of each query's noise for seed noise of standard
    /// deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or n is too large to write out.
    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        let (steps, recursion) = (self.steps(), self.recursion()?);
        match self.encoder()? {
            Encoder::Toeplitz { coefficients, .. } => {
                decoder::rows_of_toeplitz(&coefficients, steps, workload, &recursion)
            }
            _ => decoder::rows_by_columns(&recursion, steps, workload),
        }
    }

    /// Norm of each row of B = A C^-1: the standard deviation of each query's noise for seed noise of standard
    /// deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or n is too large to write out.
    fn row_errors(&self, workload: &Workload) -> Result<Vec<f64>> {
        Ok(self.row_errors_squared(workload)?.into_iter().map(f64::sqrt).collect())
    }

    /// How C^-1 Z is made step by step.
    ///
    /// # Errors
    /// When n is too large to write out, or a coefficient is no number.
    fn recursion(&self) -> Result<Recursion>;
}

/// How a class finds its best strategy for a problem.
trait Design: Sized {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>>;
}

/// The one strategy of a class that has no size beside its steps.
fn without_size<M: Strategy>(spec: &StrategySpec, strategy: M) -> Result<Solution<M>> {
    spec.refuse_bands()?;
    spec.refuse_order()?;
    strategy.check()?;
    Ok(Solution::closed_form(strategy))
}

/// The most steps whose coefficients are written out: 10^8 numbers are 0.8 GB.
const MOST_WRITTEN_OUT: usize = 100_000_000;

pub(crate) fn can_write_out(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_WRITTEN_OUT, "the most that can be written out")?;
    Ok(())
}

/// The most steps whose sparse noise rows are listed: about 40 terms of 16 bytes a step at this size.
const MOST_LISTED: usize = 1 << 20;

fn can_list_rows(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_LISTED, "the most whose noise can be listed row by row")?;
    Ok(())
}

/// The most steps whose dense noise rows are stored: n^2 / 2 terms of 16 bytes are 0.13 GB; 2 n^2, for the
/// Fourier mechanism, 0.5 GB.
pub(crate) const MOST_STORED_DENSE: usize = 4096;

fn can_store_dense(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_STORED_DENSE, "the most for which dense noise rows are stored")?;
    Ok(())
}

impl Class {
    /// Whether a design optimises Toeplitz coefficients against those of the workload.
    fn needs_toeplitz_workload(self) -> bool {
        matches!(self, Self::Toeplitz | Self::BandedToeplitz | Self::Blt | Self::BandedInverse)
    }
}

macro_rules! classes {
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

            fn design(self, spec: &StrategySpec, problem: &Problem) -> Result<Solution<AnyStrategy>> {
                match self {
                    $(Self::$class => Ok(<$type>::design(spec, problem)?.map(AnyStrategy::$class)),)*
                }
            }
        }

        /// A strategy of any class, as it is saved.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "class")]
        #[non_exhaustive]
        pub enum AnyStrategy {
            $($(#[$doc])* #[serde(rename = $name)] $class($type),)*
            /// Another strategy with its columns scaled to norm 1.
            #[serde(rename = "column-normalized")]
            ColumnNormalized(ColumnNormalized),
            /// Another strategy, started anew again and again.
            #[serde(rename = "restarted")]
            Restarted(Restarted),
        }

        impl AnyStrategy {
            /// The class it belongs to; that of the strategy inside where it is one made from another.
            pub fn class(&self) -> Class {
                match self {
                    $(Self::$class(_) => Class::$class,)*
                    Self::ColumnNormalized(strategy) => strategy.inner().class(),
                    Self::Restarted(strategy) => strategy.run().class(),
                }
            }

        }

        /// The strategy of its class: its matrix, sensitivity, errors and noise.
        impl Deref for AnyStrategy {
            type Target = dyn Strategy;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$class(strategy) => strategy,)*
                    Self::ColumnNormalized(strategy) => strategy,
                    Self::Restarted(strategy) => strategy,
                }
            }
        }
    };
}

classes! {
    /// C = I: independent noise, DP-SGD.
    Identity(Identity) = "identity";
    /// C = A: noise on each query's answer.
    Workload(OutputPerturbation) = "workload";
    /// n Toeplitz coefficients: the square root of A, or optimised.
    Toeplitz(Toeplitz) = "toeplitz";
    /// The first few Toeplitz coefficients only.
    BandedToeplitz(BandedToeplitz) = "banded-toeplitz";
    /// A few free entries a column, columns of norm 1.
    Banded(Banded) = "banded";
    /// A few coefficients of C^-1.
    BandedInverse(BandedInverse) = "banded-inverse";
    /// A few geometric sequences.
    Blt(Blt) = "blt";
    /// Every entry free.
    Dense(Dense) = "dense";
    /// A binary tree over the steps, decoded by the dyadic partition.
    Tree(BinaryTree) = "tree";
    /// The tree, decoded by averages of the levels that are complete.
    HonakerOnline(HonakerOnline) = "honaker-online";
    /// The tree with its best decoder.
    HonakerFull(HonakerFull) = "honaker-full";
    /// A tree whose prefixes all read as many nodes.
    SmoothTree(SmoothTree) = "smooth-tree";
    /// The tree decoded from below, with an optimised weight a height.
    WeightedTree(WeightedTree) = "weighted-tree";
    /// The square root of a circulant that holds prefix sums.
    Fourier(Fourier) = "fourier";
    /// The same with its best decoder.
    FourierOptimal(FourierOptimal) = "fourier-optimal";
}
