//! The squared sensitivity sens(C, Pi)^2 of Toeplitz C as a function of magnitudes m >= |c|, with its
//! gradient.
//!
//! It is the squared norm of the sum of m shifted by each step of the densest pattern. It is exact if m = c
//! is non-negative (cyclic) or non-negative and non-increasing (min-sep), and otherwise an upper bound for
//! every c with |c| <= m.

use crate::numeric::softmax::soft_maximum;
use crate::numeric::vector::{dot, norm_squared};
use crate::sensitivity::{orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};
use crate::{Participation, Result, Separation};

/// Exponent of the p-norm that replaces the maximum over listed patterns.
const PATTERN_EXPONENT: f64 = 256.0;

/// The squared sensitivity as a function of m.
pub(crate) struct Sums {
    steps: usize,
    pub(crate) separation: Separation,
    /// The patterns of a listed schema, none of which is the densest for every m.
    listed: Option<Vec<Vec<usize>>>,
}

impl Sums {
    pub(crate) fn new(steps: usize, participation: &Participation) -> Result<Self> {
        participation.check(steps)?;
        let listed = match participation {
            Participation::Patterns { patterns } => Some(patterns.clone()),
            _ => None,
        };
        Ok(Self { steps, separation: participation.separation(steps), listed })
    }

    /// Returns whether columns with `bands` coefficients are orthogonal within each pattern, whatever their
    /// signs.
    pub(crate) fn orthogonal(&self, bands: usize) -> bool {
        self.separation.is_orthogonal(bands)
    }

    /// Returns whether the sensitivity is the norm of C's first column.
    pub(super) fn is_norm(&self) -> bool {
        self.separation.max_participations == 1 && self.listed.is_none()
    }

    /// Returns the squared sensitivity and its gradient in every m_t.
    pub(crate) fn squared(&self, m: &[f64]) -> (f64, Vec<f64>) {
        if let Some(patterns) = &self.listed {
            return self.of_patterns(m, patterns);
        }
        if self.orthogonal(m.len()) {
            let counts = orthogonal_counts(m.len(), self.steps, self.separation);
            let gradient: Vec<f64> = m.iter().zip(&counts).map(|(m, count)| 2.0 * count * m).collect();
            return (0.5 * dot(&gradient, m), gradient);
        }
        let sum = sum_of_columns(m, self.steps, self.separation);
        let mut gradient = sum_of_columns_adjoint(&sum, m.len(), self.separation);
        gradient.iter_mut().for_each(|g| *g *= 2.0);
        (norm_squared(&sum), gradient)
    }

    fn of_patterns(&self, m: &[f64], patterns: &[Vec<usize>]) -> (f64, Vec<f64>) {
        let orthogonal = self.orthogonal(m.len());
        let sums: Vec<Vec<Vec<f64>>> =
            patterns.iter().map(|pattern| self.sums(m, pattern, orthogonal)).collect();
        let norms: Vec<f64> =
            sums.iter().map(|sums| sums.iter().map(|sum| norm_squared(sum)).sum()).collect();
        let (value, weights) = soft_maximum(&norms, PATTERN_EXPONENT);
        let mut gradient = vec![0.0; m.len()];
        for ((pattern, sums), weight) in patterns.iter().zip(&sums).zip(&weights) {
            for (i, &t) in pattern.iter().enumerate() {
                let sum = &sums[if orthogonal { i } else { 0 }];
                gradient.iter_mut().zip(&sum[t..]).for_each(|(g, s)| *g += 2.0 * weight * s);
            }
        }
        (value, gradient)
    }

    /// Returns the vectors whose squared norms add up to the squared sensitivity of a pattern: its columns if
    /// they are orthogonal, otherwise their sum.
    fn sums(&self, m: &[f64], pattern: &[usize], orthogonal: bool) -> Vec<Vec<f64>> {
        let groups: Vec<&[usize]> = if orthogonal { pattern.chunks(1).collect() } else { vec![pattern] };
        let add = |group: &[usize]| {
            let mut sum = vec![0.0; self.steps];
            group.iter().for_each(|&t| sum[t..].iter_mut().zip(m).for_each(|(s, m)| *s += m));
            sum
        };
        groups.into_iter().map(add).collect()
    }
}
