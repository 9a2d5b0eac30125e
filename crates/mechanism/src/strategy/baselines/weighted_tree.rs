//! The binary tree with an optimised weight for each height, which gives more useful heights a larger share
//! of the sensitivity. It is decoded from below, like Honaker's online estimate. Noise: as for
//! `honaker-online`.

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::estimate::Estimator;
use super::weights::Factors;
use crate::numeric::limits::{check_materializable, check_rows_listable};
use crate::strategy::contract::Strategy;
use crate::tree::Tree;
use crate::{Encoder, Recursion, Result, Workload};

/// The binary tree over the steps in which the noise of a node of height h has variance 1 / weights\[h\]^2.
///
/// ```
/// use antinoise_mechanism::{Problem, design::StrategySpec};
/// let problem = Problem::prefix(1024);
/// let loss = |name: &str| -> Result<f64, antinoise_mechanism::Error> {
///     let tree = name.parse::<StrategySpec>()?.design(&problem)?.value;
///     let sensitivity = tree.sensitivity(&problem.participation)?;
///     Ok(sensitivity.value * tree.error(&problem.workload)?.rms)
/// };
/// assert!(loss("weighted-tree")? < loss("honaker-online")?);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Li, Hay, Miklau and Wang, 2014 (monograph, Section 4.6), with the decoder of the multi-epoch paper,
/// Appendix D.3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedTree {
    steps: usize,
    /// One weight for each height, from the leaves up: ceil(log2 n) + 1 numbers above 0.
    weights: Vec<f64>,
}

/// The valid weights; sums of squares of other weights could be out of the range of double precision.
const IN_RANGE: std::ops::RangeInclusive<f64> = 1e-60..=1e60;

impl WeightedTree {
    /// Creates the tree over `steps` steps with these weights.
    ///
    /// # Errors
    /// When there is not one weight per height, or a weight is not between 1e-60 and 1e60.
    pub fn new(steps: usize, weights: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, weights };
        strategy.check()?;
        Ok(strategy)
    }
}

impl Strategy for WeightedTree {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        at_least("steps", self.steps, 1)?;
        check_materializable(self.steps)?;
        let heights = Tree::new(self.steps).height as usize + 1;
        if self.weights.len() != heights {
            let must_be = format!("{heights}: one per height of the tree over {} steps", self.steps);
            return Err(InvalidParameter::new("number of weights", self.weights.len(), must_be).into());
        }
        match self.weights.iter().position(|weight| !IN_RANGE.contains(weight)) {
            Some(height) => {
                let got = format!("{:?} at height {height}", self.weights[height]);
                Err(InvalidParameter::new("weights", got, "from 1e-60 to 1e60 everywhere").into())
            }
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Tree { steps: self.steps, weights: self.weights.clone() })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        Estimator::Weighted(&Factors::new(&self.weights)).rows(Tree::new(self.steps), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        check_rows_listable(self.steps)?;
        Ok(Estimator::Weighted(&Factors::new(&self.weights)).recursion(Tree::new(self.steps)))
    }
}
