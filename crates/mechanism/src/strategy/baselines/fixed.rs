//! Strategies that depend on the number of steps alone: trees and the Fourier mechanism.

use antinoise_input::between;
use antinoise_linear::{Matrix, lower_inverse};
use serde::{Deserialize, Serialize};

use super::estimate::Estimator;
use super::fourier;
use super::least_squares::LeastSquares;
use crate::circulant::circulant_entry;
use crate::decoder::{finite, rows_by_columns, sum_over_columns};
use crate::numeric::limits::{
    MAX_STORED_DENSE, check_dense_rows_storable, check_materializable, check_rows_listable,
};
use crate::numeric::vector::norm_squared;
use crate::strategy::contract::Strategy;
use crate::tree::Tree;
use crate::tree::smooth;
use crate::{Encoder, Recursion, Result, Workload};

/// The formulas of a class that has one strategy for each number of steps.
trait Formula {
    /// Returns C.
    fn encoder(steps: usize) -> Encoder;

    /// Returns the squared norms of the rows of B = A N.
    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>>;

    /// Returns the recursion that computes the noise N Z.
    fn recursion(steps: usize) -> Result<Recursion>;
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $class:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $class {
            steps: usize,
        }

        impl $class {
            pub(crate) fn new(steps: usize) -> Result<Self> {
                let strategy = Self { steps };
                strategy.check()?;
                Ok(strategy)
            }
        }

        impl Strategy for $class {
            fn steps(&self) -> usize {
                self.steps
            }

            fn check(&self) -> Result<()> {
                check_materializable(self.steps)
            }

            fn encoder(&self) -> Result<Encoder> {
                Ok(<Self as Formula>::encoder(self.steps))
            }

            fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
                <Self as Formula>::row_errors_squared(self.steps, workload)
            }

            fn recursion(&self) -> Result<Recursion> {
                <Self as Formula>::recursion(self.steps)
            }
        }

    )*};
}

fixed! {
    /// Tree aggregation: every node of the binary tree over the steps has noise, and a prefix sum is the sum
    /// of the nodes of its dyadic partition. The last step releases the prefix of n or more steps that has
    /// the least variance in the complete tree. Noise: O(log n) seed vectors a step, two on average, and
    /// O(log n) vectors of state.
    ///
    /// # Source
    /// Monograph, Section 2.7; multi-epoch paper, Appendix D.3 for numbers of steps that are no power of two.
    BinaryTree;
    /// Honaker's estimate from below: the nodes of [`BinaryTree`], with each subtree of a prefix estimated by
    /// the weighted average of its levels that has the least variance. Noise: O(log n) seed vectors a step on
    /// average, O(n) at the steps where a large subtree is complete; no state if seeds are regenerated.
    ///
    /// # Source
    /// Multi-epoch paper, Appendix D.3, with tree completion and without noise for steps past the last.
    HonakerOnline;
    /// Honaker's full estimate: the nodes of [`BinaryTree`] with the optimal decoder A C_tree^+. It is
    /// streamed as the lower-triangular C' with C'^T C' = C_tree^T C_tree, which has the same errors and
    /// sensitivity. Noise: O(n m) time a step with regenerated seed noise.
    ///
    /// ```
    /// use antinoise_mechanism::design::StrategySpec;
    /// use antinoise_mechanism::Problem;
    /// let problem = Problem::prefix(8);
    /// let tree = "honaker-full".parse::<StrategySpec>()?.design(&problem)?.value;
    /// let sensitivity = tree.sensitivity(&problem.participation)?.value;
    /// assert_eq!(sensitivity, 2.0); // a step is below four nodes
    /// assert_eq!(format!("{:.3}", sensitivity * tree.error(&problem.workload)?.rms), "1.656");
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    ///
    /// # Source
    /// Monograph, Section 2.12, B*_tree; multi-epoch paper, Appendix D.4.
    HonakerFull;
    /// The smooth binary tree: a tree whose nodes are chosen so that every prefix sum reads the same number
    /// of them. Over many steps its max loss is half of that of the plain tree. Noise: two seed vectors a
    /// step on average, and O(log n) vectors of state.
    ///
    /// # Source
    /// Andersson and Pagh, 2023; monograph, Section 2.12.
    SmoothTree;
    /// The Fourier mechanism: C_F is the first n columns of the square root of a circulant (2n x 2n) whose
    /// upper-left block is A_pre, and the decoder is the first n rows of that square root. Noise: every step
    /// uses all 2n seed vectors, which must be stored or regenerated from the first step on; O(log n) time a
    /// step if fast Fourier transforms compute all steps together.
    ///
    /// # Source
    /// Multi-epoch paper, Section 4 and Appendix K, mechanism 1.
    Fourier;
    /// The Fourier mechanism with its optimal decoder, A C_F^+: C_F^T C_F is Toeplitz, so that Durbin's
    /// recursion gives the inverse of the lower-triangular C' with C'^T C' = C_F^T C_F in O(n^2). Noise: O(n
    /// m) time a step with regenerated seed noise.
    ///
    /// # Source
    /// Multi-epoch paper, Appendix K, mechanism 2.
    FourierOptimal;
}

impl Formula for BinaryTree {
    fn encoder(steps: usize) -> Encoder {
        Encoder::tree(steps)
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        Estimator::Dyadic.rows(Tree::new(steps), workload)
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        check_rows_listable(steps)?;
        Ok(Estimator::Dyadic.recursion(Tree::new(steps)))
    }
}

impl Formula for HonakerOnline {
    fn encoder(steps: usize) -> Encoder {
        Encoder::tree(steps)
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        Estimator::FromBelow.rows(Tree::new(steps), workload)
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        check_rows_listable(steps)?;
        Ok(Estimator::FromBelow.recursion(Tree::new(steps)))
    }
}

impl Formula for HonakerFull {
    fn encoder(steps: usize) -> Encoder {
        Encoder::CholeskyOf(Box::new(Encoder::tree(steps)))
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        LeastSquares::new(Tree::new(steps)).rows(workload)
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        check_dense_rows_storable(steps)?;
        let inverse = lower_inverse(&<Self as Formula>::encoder(steps).to_dense());
        Ok(Recursion::of_lower_triangular(&inverse))
    }
}

impl Formula for SmoothTree {
    fn encoder(steps: usize) -> Encoder {
        Encoder::SmoothTree { steps }
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return Ok(vec![f64::from(smooth::SmoothLabels::new(steps).ones()); steps]);
        }
        rows_by_columns(&<Self as Formula>::recursion(steps)?, steps, workload)
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        check_rows_listable(steps)?;
        Ok(smooth::SmoothLabels::new(steps).recursion())
    }
}

impl Formula for Fourier {
    fn encoder(steps: usize) -> Encoder {
        Encoder::Circulant { steps, coefficients: fourier::coefficients(steps) }
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        let root = fourier::coefficients(steps);
        if *workload == Workload::Prefix {
            return Ok(vec![norm_squared(&root); steps]);
        }
        sum_over_columns(2 * steps, steps, workload, |_, seed| {
            (0..steps).map(|t| circulant_entry(&root, t, seed)).collect()
        })
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        let root = fourier::coefficients(steps);
        if steps > MAX_STORED_DENSE {
            return Ok(Recursion::Circulant { root });
        }
        let row = |t: usize| (0..2 * steps).map(|seed| (seed, circulant_entry(&root, t, seed))).collect();
        Ok(Recursion::SeedCombination { rows: (0..steps).map(row).collect() })
    }
}

/// Maximum number of steps for which errors are summed in O(n^2) time; this takes about a minute.
const MAX_SUMMED_STEPS: usize = 1 << 18;

impl FourierOptimal {
    /// Returns C'^-1, where C' is lower triangular with C'^T C' = C_F^T C_F.
    fn inverse(steps: usize) -> Result<Matrix> {
        check_dense_rows_storable(steps)?;
        fourier::inverse_factor(&fourier::autocorrelation(steps))
    }

    /// Returns the squared row norms of A C'^-1 for prefix sums, computed column by column in O(n) memory.
    fn prefix_errors_squared(steps: usize) -> Result<Vec<f64>> {
        between("steps", steps, 1, MAX_SUMMED_STEPS, "the maximum for which errors are summed")?;
        let mut squared = vec![0.0; steps];
        fourier::each_inverse_column(&fourier::autocorrelation(steps), |column, entries| {
            let mut sum = 0.0;
            for (squared, entry) in squared[column..].iter_mut().zip(entries) {
                sum += entry;
                *squared += sum * sum;
            }
        })?;
        finite(squared)
    }
}

impl Formula for FourierOptimal {
    fn encoder(steps: usize) -> Encoder {
        Encoder::CholeskyOf(Box::new(<Fourier as Formula>::encoder(steps)))
    }

    fn row_errors_squared(steps: usize, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return Self::prefix_errors_squared(steps);
        }
        let inverse = Self::inverse(steps)?;
        sum_over_columns(steps, steps, workload, |_, j| inverse.column(j).to_vec())
    }

    fn recursion(steps: usize) -> Result<Recursion> {
        Ok(Recursion::of_lower_triangular(&Self::inverse(steps)?))
    }
}
