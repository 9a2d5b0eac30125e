//! Computes w = C^-1 a for a BLT C with d buffers, where a is the first column of A, by a cascade of d
//! filters; also the weighted norm of w and its derivatives.
//!
//! 1 / c(x) = prod_i (1 - lambda_i x) / (1 - lambda^_i x), where c(x) is the power series of C's
//! coefficients. Each factor is one filter (a section). With delta = 1 - lambda_i and delta^ = 1 - lambda^_i,
//! adjacent nodes, it maps the signal in to the signal out:
//!
//! > out_t = in_t - in_{t-1} + delta in_{t-1} + (1 - delta^) out_{t-1}.
//!
//! Partial fractions would cancel if a decay of the workload were close to one of C; the cascade needs none.
//! O(n d) time. The states are stored once per block, so that memory is O(n d / BLOCK) in addition to a.

/// Steps between stored states.
const BLOCK: usize = 4096;

/// The last input and the last output of each section.
type States = Vec<(f64, f64)>;

/// A BLT, given by its nodes, and the workload whose first column it filters.
pub(crate) struct Cascade<'a> {
    /// delta_1, delta^_1, delta_2, ...: interlaced.
    pub(crate) nodes: &'a [f64],
    /// First column of A.
    pub(crate) workload: &'a [f64],
}

/// The weighted squared norm of w, the sum over t of weight_t w_t^2, and its derivatives in the nodes.
pub(crate) struct WeightedNorm {
    pub(crate) squared: f64,
    pub(crate) d_nodes: Vec<f64>,
}

impl Cascade<'_> {
    /// Visits w block by block: `visit` gets the block's first step, its terms of w, and the states before
    /// it.
    pub(crate) fn each_block(&self, mut visit: impl FnMut(usize, &[f64], &States)) {
        let mut states: States = vec![(0.0, 0.0); self.nodes.len() / 2];
        for (index, input) in self.workload.chunks(BLOCK).enumerate() {
            let before = states.clone();
            let mut signal = input.to_vec();
            for (pair, state) in self.nodes.chunks_exact(2).zip(&mut states) {
                section(pair, state, &mut signal);
            }
            visit(index * BLOCK, &signal, &before);
        }
    }

    /// Returns the column w = C^-1 a.
    pub(crate) fn column(&self) -> Vec<f64> {
        let mut w = Vec::with_capacity(self.workload.len());
        self.each_block(|_, block, _| w.extend_from_slice(block));
        w
    }

    /// Returns the weighted squared norm of w, for one weight per step.
    pub(crate) fn weighted_norm(&self, weights: &[f64]) -> WeightedNorm {
        let (mut squared, mut kept) = (0.0, Vec::new());
        self.each_block(|first, w, before| {
            squared += w.iter().zip(&weights[first..]).map(|(w, weight)| weight * w * w).sum::<f64>();
            kept.push(before.clone());
        });
        let mut norm = WeightedNorm { squared, d_nodes: vec![0.0; self.nodes.len()] };
        // The derivative in the state of each section, from the later blocks.
        let mut later = vec![0.0; self.nodes.len() / 2];
        for (index, states) in kept.into_iter().enumerate().rev() {
            let first = index * BLOCK;
            let end = (first + BLOCK).min(self.workload.len());
            self.block_backwards(first..end, states, &mut later, weights, &mut norm.d_nodes);
        }
        norm
    }

    fn block_backwards(
        &self,
        steps: std::ops::Range<usize>,
        states: States,
        later: &mut [f64],
        weights: &[f64],
        d_nodes: &mut [f64],
    ) {
        let mut signals = vec![self.workload[steps.clone()].to_vec()];
        for (pair, before) in self.nodes.chunks_exact(2).zip(&states) {
            let mut signal = signals[signals.len() - 1].clone();
            section(pair, &mut before.clone(), &mut signal);
            signals.push(signal);
        }
        let w = signals[signals.len() - 1].iter();
        let mut adjoint: Vec<f64> = w.zip(&weights[steps]).map(|(w, weight)| 2.0 * weight * w).collect();
        for (i, before) in states.iter().enumerate().rev() {
            let (keep, keep_hat) = (1.0 - self.nodes[2 * i], 1.0 - self.nodes[2 * i + 1]);
            let (input, output) = (&signals[i], &signals[i + 1]);
            let (mut of_input, mut of_output, mut u) = (0.0, 0.0, later[i]);
            for t in (0..adjoint.len()).rev() {
                let next = u;
                u = adjoint[t] + keep_hat * next;
                let (past_in, past_out) = if t > 0 { (input[t - 1], output[t - 1]) } else { *before };
                of_input += u * past_in;
                of_output += u * past_out;
                adjoint[t] = u - keep * next;
            }
            later[i] = u;
            d_nodes[2 * i] += of_input;
            d_nodes[2 * i + 1] -= of_output;
        }
    }
}

/// Applies one section of the cascade to `signal`, in place.
fn section(pair: &[f64], state: &mut (f64, f64), signal: &mut [f64]) {
    let (delta, keep_hat) = (pair[0], 1.0 - pair[1]);
    let (mut past_in, mut past_out) = *state;
    for x in signal {
        let input = *x;
        past_out = (input - past_in) + delta * past_in + keep_hat * past_out;
        past_in = input;
        *x = past_out;
    }
    *state = (past_in, past_out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blt_closed_form::coefficients;
    use crate::blt_closed_form::interlaced::residues;
    use crate::testing::{Tolerance, assert_gradient};
    use crate::toeplitz::divide;

    #[test]
    fn the_cascade_divides_and_its_derivatives_are_finite_differences() {
        let nodes = [0.01, 0.02, 0.1, 0.3];
        let n = 2 * BLOCK + 17;
        let a: Vec<f64> = (0..n).map(|t| 0.99f64.powi(t as i32) + (t % 3) as f64 * 0.1).collect();
        let weights: Vec<f64> = (0..n).map(|t| 1.0 / (1.0 + t as f64)).collect();
        let alpha: Vec<f64> = residues(&nodes).into_iter().step_by(2).collect();
        let want = divide(&a, &coefficients(&alpha, &[0.01, 0.1], n), n);
        let w = Cascade { nodes: &nodes, workload: &a }.column();
        assert!(w.iter().zip(&want).all(|(w, want)| (w - want).abs() < 1e-11 * want.abs().max(1.0)));
        let norm = |nodes: &[f64]| Cascade { nodes, workload: &a }.weighted_norm(&weights);
        let found = norm(&nodes);
        let squared: f64 = w.iter().zip(&weights).map(|(w, weight)| weight * w * w).sum();
        assert!((found.squared / squared - 1.0).abs() < 1e-12);
        let f = |nodes: &[f64]| norm(nodes).squared;
        let tolerance = Tolerance { absolute: 0.0, relative: 1e-6 };
        assert_gradient("cascade", f, &nodes, &found.d_nodes, 1e-7, tolerance);
    }
}
