//! The trait of classes that can be designed, its dispatch, and the classes whose strategy is given by a
//! formula.

use super::spec::StrategySpec;
use crate::solution::Solution;
use crate::strategy::{
    AnyStrategy, BinaryTree, Class, Fourier, FourierOptimal, HonakerFull, HonakerOnline, Identity,
    OutputPerturbation, SmoothTree, for_each_class,
};
use crate::{Problem, Result, Strategy};

/// A class of strategies that can design its best member for a problem.
pub(super) trait Design: Sized {
    /// Designs the best strategy of the class for `problem`, with the options of `spec`.
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>>;
}

macro_rules! define_design {
    ($($(#[$doc:meta])* $class:ident($type:ident) = $name:literal;)*) => {
        /// Designs the best strategy of the class of `spec`.
        pub(super) fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<AnyStrategy>> {
            match spec.class {
                $(Class::$class => {
                    Ok(crate::strategy::$type::design(spec, problem)?.map(AnyStrategy::$class))
                })*
            }
        }
    };
}

for_each_class!(define_design);

/// Implements `Design` for classes that hold a single strategy for each problem.
macro_rules! closed_form {
    ($($type:ident: $new:expr;)*) => {$(
        impl Design for $type {
            fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
                spec.refuse_bands()?;
                spec.refuse_order()?;
                let new: fn(&Problem) -> Result<Self> = $new;
                Ok(Solution::closed_form(new(problem)?))
            }
        }
    )*};
}

closed_form! {
    Identity: |problem| Ok(Self::new(problem.steps));
    OutputPerturbation: |problem| Self::new(problem.steps, problem.workload.clone());
    BinaryTree: |problem| Self::new(problem.steps);
    HonakerOnline: |problem| Self::new(problem.steps);
    HonakerFull: |problem| Self::new(problem.steps);
    SmoothTree: |problem| Self::new(problem.steps);
    Fourier: |problem| Self::new(problem.steps);
    FourierOptimal: |problem| Self::new(problem.steps);
}

/// Returns the loss ||A C^-1|| sens(C, Pi) that the problem minimises.
pub(super) fn loss_of(strategy: &dyn Strategy, problem: &Problem) -> Result<f64> {
    let error = strategy.error(&problem.workload)?.of(problem.objective);
    Ok(error * strategy.sensitivity(&problem.participation)?.value)
}
