//! A strategy of any class, and strategies built from another one: columns scaled to norm 1, and restarts.
//!
//! Scaled columns: C D. The noise costs the same, (C D)^-1 = D^-1 C^-1, and for Toeplitz and BLT strategies
//! the loss falls, because every step gets the same share of the sensitivity. Restarts: a block-diagonal C.

use std::ops::Deref;

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::class::{Class, for_each_class};
use super::contract::Strategy;
use crate::numeric::limits::{check_materializable, norm_in_range};
use crate::{Encoder, Recursion, Result};

macro_rules! define_any_strategy {
    ($($(#[$doc:meta])* $class:ident($type:ident) = $name:literal;)*) => {
        /// A strategy of any class; this is the form in files.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "class")]
        #[non_exhaustive]
        pub enum AnyStrategy {
            $($(#[$doc])* #[serde(rename = $name)] $class(super::$type),)*
            /// Another strategy with its columns scaled to norm 1.
            #[serde(rename = "column-normalized")]
            ColumnNormalized(ColumnNormalized),
            /// Another strategy, restarted periodically.
            #[serde(rename = "restarted")]
            Restarted(Restarted),
        }

        impl AnyStrategy {
            /// Returns the class; of a strategy built from another one, the class of the inner strategy.
            pub fn class(&self) -> Class {
                match self {
                    $(Self::$class(_) => Class::$class,)*
                    Self::ColumnNormalized(strategy) => strategy.inner.class(),
                    Self::Restarted(strategy) => strategy.run.class(),
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

for_each_class!(define_any_strategy);

/// `inner` with columns of norm 1.
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

    /// The strategy whose columns are scaled.
    pub fn inner(&self) -> &AnyStrategy {
        &self.inner
    }
}

/// `run`, restarted every `run.steps()` steps, over `steps` steps in total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarted {
    steps: usize,
    run: Box<AnyStrategy>,
}

impl Restarted {
    /// Repeats `run` for `steps` steps in total.
    ///
    /// # Errors
    /// When `run` is not valid or longer than `steps`, or `steps` is too large.
    pub fn new(steps: usize, run: AnyStrategy) -> Result<Self> {
        let strategy = Self { steps, run: Box::new(run) };
        strategy.check()?;
        Ok(strategy)
    }

    /// The strategy of one run.
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
