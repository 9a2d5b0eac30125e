//! Minimise the loss of prefix sums over the weights of a binary tree, one for each height of its nodes.
//! Noise is decoded from below, as in Honaker online.

use super::class::{Design, loss_of};
use super::coefficient_rule::CoefficientRule;
use super::spec::StrategySpec;
use crate::numeric::lbfgs;
use crate::numeric::limits::check_materializable;
use crate::numeric::softmax::soft_maximum;
use crate::problem::{Objective, Problem};
use crate::solution::{Solution, Status};
use crate::strategy::WeightedTree;
use crate::strategy::baselines::precisions;
use crate::tree::Tree;
use crate::{Participation, Result, Separation};

/// Exponents, for successive solves, of the p-norm that replaces the maxima over patterns and over prefixes.
const EXPONENTS: [f64; 3] = [16.0, 256.0, 4096.0];
/// Relative step of the finite differences that replace derivatives, which suffice for few weights.
const DIFFERENCE: f64 = 1e-6;

/// The loss of prefix sums as a function of the weights' logarithms.
struct WeightedLoss<'a> {
    tree: Tree,
    objective: Objective,
    /// For each pattern and height, the number of ordered pairs of participations below a common node.
    pairs: &'a [Vec<f64>],
    exponent: f64,
}

impl WeightedLoss<'_> {
    fn value(&self, logarithms: &[f64]) -> f64 {
        let weights: Vec<f64> = logarithms.iter().map(|x| x.exp()).collect();
        let squares: Vec<f64> = weights.iter().map(|w| w * w).collect();
        let of_pattern = |pairs: &Vec<f64>| pairs.iter().zip(&squares).map(|(n, w)| n * w).sum::<f64>();
        let norms: Vec<f64> = self.pairs.iter().map(of_pattern).collect();
        let variances: Vec<f64> = precisions(&weights).into_iter().map(f64::recip).collect();
        soft_maximum(&norms, self.exponent).0.ln() + self.error(&variances).ln()
    }

    /// Returns the squared error, except that the last of the n rows is left out, where the completed tree is
    /// used.
    fn error(&self, variances: &[f64]) -> f64 {
        let last = self.tree.steps.saturating_sub(1).max(1);
        match self.objective {
            Objective::Rms => {
                let sum: f64 = variances.iter().enumerate().map(|(h, v)| ones_up_to(last, h) * v).sum();
                sum / last as f64
            }
            Objective::Max => soft_maximum(&worst_prefixes(last, variances), self.exponent).0,
        }
    }

    fn value_and_gradient(&self, logarithms: &[f64]) -> (f64, Vec<f64>) {
        let mut moved = logarithms.to_vec();
        let slope = |i: usize| {
            let mut at = |x: f64| {
                moved[i] = x;
                self.value(&moved)
            };
            let (up, down) = (at(logarithms[i] + DIFFERENCE), at(logarithms[i] - DIFFERENCE));
            moved[i] = logarithms[i];
            (up - down) / (2.0 * DIFFERENCE)
        };
        (self.value(logarithms), (0..logarithms.len()).map(slope).collect())
    }
}

/// Returns how many of the numbers 1..=last have the binary digit `height` set.
fn ones_up_to(last: usize, height: usize) -> f64 {
    let period = 1usize << (height + 1);
    let (whole, rest) = ((last + 1) / period, (last + 1) % period);
    (whole * (period / 2) + rest.saturating_sub(period / 2)) as f64
}

/// Returns the variances of some prefixes, among which is the largest variance of all prefixes 1..=last:
/// those of `last` itself, and of each number that `last` becomes if one of its binary digits is cleared and
/// all lower digits are set.
fn worst_prefixes(last: usize, variances: &[f64]) -> Vec<f64> {
    let digit = |height: usize| last >> height & 1 == 1;
    let above = |height: usize| -> f64 {
        (height..variances.len()).filter(|&h| digit(h)).map(|h| variances[h]).sum()
    };
    let cleared = |height: usize| above(height + 1) + variances[..height].iter().sum::<f64>();
    let smaller = (0..variances.len()).filter(|&height| digit(height)).map(cleared);
    std::iter::once(above(0)).chain(smaller).filter(|&variance| variance > 0.0).collect()
}

/// Maximum number of patterns that a design considers; of more phases, evenly spaced ones are used.
const MAX_PATTERNS: usize = 4096;

/// Returns, for each pattern and height, the number of ordered pairs of participations below a common node of
/// that height. For a min-sep schema, the cyclic patterns with the same separation are used.
fn common_pairs(tree: Tree, participation: &Participation) -> Vec<Vec<f64>> {
    let Separation { min_sep: b, max_participations: k } = participation.separation(tree.steps);
    let of = |pattern: &mut dyn Iterator<Item = usize>| -> Vec<f64> {
        let steps: Vec<usize> = pattern.collect();
        let at = |height: usize| {
            let nodes = steps.chunk_by(|t, tau| t >> height == tau >> height);
            nodes.map(|below| (below.len() * below.len()) as f64).sum()
        };
        (0..=tree.height as usize).map(at).collect()
    };
    if let Participation::Patterns { patterns } = participation {
        return patterns.iter().map(|pattern| of(&mut pattern.iter().copied())).collect();
    }
    let phases = if k == 1 { 1 } else { b.min(tree.steps) };
    let some = (0..phases).step_by(phases.div_ceil(MAX_PATTERNS));
    some.map(|phase| of(&mut (phase..tree.steps).step_by(b.max(1)).take(k))).collect()
}

/// Returns the weights of least loss for prefix sums.
fn minimize(tree: Tree, participation: &Participation, objective: Objective) -> Result<Solution<Vec<f64>>> {
    participation.check(tree.steps)?;
    let pairs = common_pairs(tree, participation);
    let mut found = Solution::closed_form(vec![0.0; tree.height as usize + 1]);
    for exponent in EXPONENTS {
        let loss = WeightedLoss { tree, objective, pairs: &pairs, exponent };
        // Finite differences have half of the digits of double precision.
        let settings = lbfgs::Settings {
            gradient_tolerance: 1e-7,
            decrease_tolerance: 1e-10,
            ..lbfgs::Settings::default()
        };
        let next = lbfgs::minimize(|x| loss.value_and_gradient(x), found.value, &settings);
        found = Solution { iterations: found.iterations + next.iterations, ..next };
    }
    let scale = found.value[0];
    Ok(found.map(|x| x.iter().map(|x| (x - scale).exp()).collect()))
}

impl Design for WeightedTree {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_order()?;
        check_materializable(problem.steps)?;
        let tree = Tree::new(problem.steps);
        let equal = Self::new(problem.steps, tree.equal_weights())?;
        if spec.rule == CoefficientRule::SquareRoot {
            return Ok(Solution::closed_form(equal));
        }
        let found = minimize(tree, &problem.participation, problem.objective)?;
        let optimized = Self::new(problem.steps, found.value.clone())?;
        let (best, plain) = (loss_of(&optimized, problem)?, loss_of(&equal, problem)?);
        if best < plain {
            return Ok(Solution { improved: true, ..found.map(|_| optimized) });
        }
        Ok(Solution {
            value: equal,
            status: Status::Stalled,
            gap: None,
            iterations: found.iterations,
            improved: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_digit_by_digit() {
        for last in [1usize, 2, 5, 12, 31, 32, 100] {
            for height in 0..8 {
                let count = (1..=last).filter(|m| m >> height & 1 == 1).count();
                assert_eq!(ones_up_to(last, height), count as f64, "{last} {height}");
            }
            let variances: Vec<f64> = (0..8).map(|h| 1.0 + 0.3 * f64::from(h % 3)).collect();
            let of = |m: usize| (0..8).filter(|h| m >> h & 1 == 1).map(|h| variances[h]).sum::<f64>();
            let worst = (1..=last).map(of).fold(0.0, f64::max);
            let found = worst_prefixes(last, &variances).into_iter().fold(0.0, f64::max);
            assert!((found - worst).abs() < 1e-12, "{last}: {found} {worst}");
        }
    }
}
