//! A strategy of any class, and strategies built from another one: columns scaled to norm 1, and restarts.
//!
//! Scaled columns: C D with a diagonal D. Noise takes the same time, since (C D)^-1 = D^-1 C^-1, and for
//! Toeplitz and BLT strategies the loss is smaller, because every step gets the same share of the
//! sensitivity. Restarts: a block-diagonal C.

use std::ops::Deref;

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::class::{Class, for_each_class};
use super::contract::Strategy;
use crate::numeric::limits::{check_materializable, norm_in_range};
use crate::{Encoder, Recursion, Result};

macro_rules! define_any_strategy {
    ($($(#[$doc:meta])* $class:ident($type:ident) = $name:literal;)*) => {
        /// A strategy of any class, in the form in which files hold it.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "class")]
        #[non_exhaustive]
        pub enum AnyStrategy {
            $($(#[$doc])* #[serde(rename = $name)] $class(super::$type),)*
            /// An inner strategy with its columns scaled to norm 1.
            #[serde(rename = "column-normalized")]
            ColumnNormalized(ColumnNormalized),
            /// An inner strategy, restarted periodically.
            #[serde(rename = "restarted")]
            Restarted(Restarted),
        }

        impl AnyStrategy {
            /// Returns the class, which is that of the inner strategy if columns are scaled or there are
            /// restarts.
            pub fn class(&self) -> Class {
                match self {
                    $(Self::$class(_) => Class::$class,)*
                    Self::ColumnNormalized(strategy) => strategy.inner.class(),
                    Self::Restarted(strategy) => strategy.run.class(),
                }
            }
        }

        /// Calls the methods of [`Strategy`] on the strategy of the class.
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

for_each_class!(define_any_strategy);

/// A strategy with the columns of `inner`, scaled to norm 1.
///
/// ```
/// use antinoise_mechanism::{Strategy, Participation, AnyStrategy, strategy::{ColumnNormalized, Toeplitz}};
/// let inner = AnyStrategy::Toeplitz(Toeplitz::new(8, vec![1.0, 0.5, 0.25])?);
/// let normalized = ColumnNormalized::new(inner)?;
/// assert!((normalized.sensitivity(&Participation::Single)?.value - 1.0).abs() < 1e-15);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnNormalized {
    inner: Box<AnyStrategy>,
}

impl ColumnNormalized {
    /// Normalises the columns of `inner`.
    ///
    /// # Errors
    /// When `inner` is not valid, or too large.
    pub fn new(inner: AnyStrategy) -> Result<Self> {
        let strategy = Self { inner: Box::new(inner) };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the strategy whose columns are scaled.
    pub fn inner(&self) -> &AnyStrategy {
        &self.inner
    }
}

/// A strategy over `steps` steps that restarts `run` every `run.steps()` steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarted {
    steps: usize,
    run: Box<AnyStrategy>,
}

impl Restarted {
    /// Creates the strategy over `steps` steps that restarts `run` whenever it ends.
    ///
    /// # Errors
    /// When `run` is not valid or longer than `steps`, or `steps` is too large.
    pub fn new(steps: usize, run: AnyStrategy) -> Result<Self> {
        let strategy = Self { steps, run: Box::new(run) };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the strategy of one run between restarts.
    pub fn run(&self) -> &AnyStrategy {
        &self.run
    }
}

impl Strategy for ColumnNormalized {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn check(&self) -> Result<()> {
        self.inner.check()?;
        check_materializable(self.steps())?;
        let norms = self.inner.encoder()?.column_norms();
        match norms.iter().position(|&norm| !norm_in_range(norm)) {
            Some(step) => {
                let got = format!("a column of norm {:e} at step {step}", norms[step]);
                Err(InvalidParameter::new("inner", got, "of columns with norms from 1e-140 to 1e150").into())
            }
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        let inner = self.inner.encoder()?;
        if !matches!(inner, Encoder::Toeplitz { .. } | Encoder::Scaled { .. } | Encoder::Banded { .. }) {
            check_materializable(self.steps().saturating_mul(self.steps()))?;
        }
        Ok(inner.with_unit_columns())
    }

    fn recursion(&self) -> Result<Recursion> {
        let factors = self.inner.encoder()?.column_norms();
        Ok(Recursion::Scaled { inner: Box::new(self.inner.recursion()?), factors })
    }
}

impl Strategy for Restarted {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_materializable(self.steps)?;
        self.run.check()?;
        at_least("steps", self.steps, self.run.steps())?;
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::BlockDiagonal {
            block: Box::new(self.run.encoder()?),
            period: self.run.steps(),
            steps: self.steps,
        })
    }

    fn recursion(&self) -> Result<Recursion> {
        let inner = Box::new(self.run.recursion()?);
        Ok(Recursion::Restarted { inner, period: self.run.steps() })
    }
}
