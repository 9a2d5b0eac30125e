//! The dense design for disjoint patterns: single participation and every cyclic schema, for the RMS or the
//! max loss and any workload.
//!
//! > minimise tr(P A X^-1 A^T), maximised over P = diag(p) of trace 1 for the max loss and with P = I for
//! > RMS, subject to X\[t, tau\] = 0 for co-participating t != tau and sum of X\[t, t\] over each pattern at
//! > most 1.
//!
//! 1. Dual: maximise ||P^1/2 A Lambda^1/2||_*^2 / (sum_u v_u sum p) over p >= 0 and Lambda block diagonal by
//!    pattern, with positive semi-definite blocks of constant diagonals v_u.
//! 2. With Lambda = G G^T and p_i = z_i^2 the dual is smooth and unconstrained (see `queries` for p).
//! 3. For K = G^T A^T P A G the primal is X = G^-T K^1/2 G^-1, made feasible by a congruence that is the
//!    identity at the optimum.
//! 4. An evaluation takes one symmetric eigendecomposition: O(n^3) time, O(n^2) space.
//!
//! Any C whose sensitivity to vectors is at most 1 has <X_u, R> <= 1 for every correlation matrix R, so the
//! bound holds for all of them: orthogonal co-participating columns are not a restriction (see
//! docs/conjecture-4-7.md).
//!
//! # Source
//! Denisov et al., Section 4 (single participation); multi-epoch paper, Section 4 (dual). The variables are
//! our own.

use std::cell::OnceCell;

use antinoise_linear::{Matrix, product};

use super::blocks::{Blocks, divided, inverses};
use super::certified::{Dual, Evaluation, ascend};
use super::newton::{self, Direction};
use super::queries::Queries;
use super::settings::DenseSettings;
use super::spectrum::{FLOOR, Spectrum, certified_nuclear_norm};
use crate::solution::Solution;
use crate::{Problem, Result};

pub(super) struct Disjoint {
    queries: Queries,
    blocks: Blocks,
    /// Square of the number by which A was divided.
    scale_squared: f64,
    floor: OnceCell<f64>,
}

impl Disjoint {
    pub(super) fn new(queries: Queries, blocks: Blocks, scale: f64) -> Self {
        Self { queries, blocks, scale_squared: scale * scale, floor: OnceCell::new() }
    }

    /// Returns the initial variables: equal weights p of the queries, and multipliers v from the diagonal of
    /// the square root of A^T A.
    fn start(&self) -> Result<Vec<f64>> {
        let rows = self.queries.variables();
        let z = vec![1.0 / (rows.max(1) as f64).sqrt(); rows];
        let gram = self.queries.gram(&self.queries.weights(&z)).into_owned();
        let spectrum = Spectrum::new(gram, 0.0)?;
        Ok([z, self.blocks.start(&spectrum.root_diagonal())].concat())
    }

    fn floor(&self, k: &Matrix) -> f64 {
        *self.floor.get_or_init(|| FLOOR * (0..k.nrows()).map(|t| k[(t, t)]).sum::<f64>())
    }
}

impl Dual for Disjoint {
    type State = Spectrum;

    fn evaluate(&self, x: &[f64]) -> Result<Evaluation<Spectrum>> {
        let (z, x) = x.split_at(self.queries.variables());
        let (factors, p) = (self.blocks.factors(x), self.queries.weights(z));
        let k = self.blocks.congruence(&self.queries.gram(&p), &factors);
        let floor = self.floor(&k);
        let spectrum = Spectrum::new(k, floor)?;
        let trace = spectrum.trace();
        let multipliers = &x[..self.blocks.groups().len()];
        let sum: f64 = multipliers.iter().map(|y| y * y).sum();
        let weight = if p.is_empty() { 1.0 } else { p.iter().sum() };

        // d(-2 ln T)/dG = -2/T X G, block by block.
        let mut d =
            divided(&inverses(&factors), self.blocks.of_spectrum(&spectrum.vectors, &spectrum.slopes()));
        d.iter_mut().for_each(|block| scale(block, -2.0 / trace));
        let mut of_blocks = self.blocks.gradient(x, &d);
        of_blocks.iter_mut().zip(multipliers).for_each(|(g, y)| *g += 2.0 * y / sum);
        let mut gradient = if z.is_empty() {
            Vec::new()
        } else {
            let mut map = spectrum.vectors.clone();
            let transposed: Vec<Matrix> = factors.iter().map(|g| g.transpose().to_owned()).collect();
            self.blocks.left(&transposed, &mut map);
            self.queries.gradient(z, &p, map, &spectrum)
        };
        gradient.append(&mut of_blocks);

        let value = f64::ln(weight) + sum.ln() - 2.0 * trace.ln();
        let bound = self.scale_squared * spectrum.certified_trace().powi(2) / (sum * weight);
        Ok(Evaluation { value, gradient, bound, state: spectrum })
    }

    fn soften(&mut self, softness: f64) {
        self.queries.soften(softness);
    }

    fn has_newton(&self) -> bool {
        self.queries.variables() == 0 && newton::is_affordable(&self.blocks)
    }

    fn rounding(&self, spectrum: &Spectrum) -> f64 {
        (spectrum.trace() / spectrum.certified_trace()).powi(2) - 1.0
    }

    /// The nuclear norm of A G from the singular values of A G itself: the eigenvalues of G^T A^T A G lose
    /// twice the digits.
    fn sharp_bound(&self, x: &[f64]) -> Result<f64> {
        let sum: f64 = x[..self.blocks.groups().len()].iter().map(|y| y * y).sum();
        let map = self.blocks.right(self.queries.matrix(), &self.blocks.factors(x));
        Ok(self.scale_squared * certified_nuclear_norm(&map)?.powi(2) / sum)
    }

    fn newton(&self, x: &[f64], spectrum: &Spectrum) -> Option<Direction> {
        newton::direction(&self.blocks, x, spectrum)
    }

    fn gram(&self, x: &[f64], spectrum: &Spectrum) -> Result<Matrix> {
        let factors = self.blocks.factors(&x[self.queries.variables()..]);
        let mut half = spectrum.half();
        self.blocks.left(&inverses(&factors), &mut half);
        let gram = product(&half, half.transpose());
        drop(half);
        self.blocks.made_feasible(&gram)
    }
}

fn scale(block: &mut Matrix, factor: f64) {
    (0..block.ncols()).for_each(|j| block.column_mut(j).iter_mut().for_each(|x| *x *= factor));
}

pub(super) fn minimize(
    dual: Disjoint,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    let start = dual.start()?;
    ascend(dual, start, problem, settings)
}
