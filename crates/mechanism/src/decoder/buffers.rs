//! Squared norms of the rows of B = A C^-1 for BLTs whose weights vary by step, and their derivatives, in
//! O(n (d + s)^2) instead of the O(n^2 d) of an evaluation by columns.
//!
//! 1. The workload is a filter with s numbers of state: x <- F_t x + g_t z~_t, whose output is h . x.
//! 2. Noise z~_t = d_t y_t and the buffers M follow from y_t = z_t - u_t . M and M <- Lambda M + v_t y_t.
//!    With G = diag(F_t, Lambda), U = (0, u_t) and K = (d_t g_t, v_t), the state m = (x, M) becomes G m + K
//!    y, with y = z - U . m.
//! 3. So its covariance S becomes G S G^T - G a K^T - K a^T G^T + e K K^T, where a = S U and e = 1 + U . a.
//!    The variance of the output is h . S h.
//! 4. For rows that are listed, as of the last iterate, w = C^-T r takes O(n d) time: with rho_t = d_t r_t,
//!    w_t = rho_t - v_t . N_t and N_{t-1} = Lambda N_t + u_t w_t, from the last step to the first.
//! 5. The same operations in reverse order give the derivatives. Nothing is approximated.

use crate::numeric::vector::{add_scaled, dot, norm_squared, write_product};
use crate::workload::LastIterate;
use crate::{Result, Workload};

/// Maximum number s of the filter's state.
const MAX_STATE: usize = 8;

/// C diag(factors): ones on the diagonal and, below it, sum_i reads\[t, i\] decay\[i\]^(t-1-j) writes\[j,
/// i\].
#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    pub(crate) decay: Vec<f64>,
    pub(crate) reads: Vec<f64>,
    pub(crate) writes: Vec<f64>,
    pub(crate) factors: Vec<f64>,
}

/// The workload: rows that are listed, and those of a filter.
pub(crate) struct BufferErrors {
    steps: usize,
    listed: Vec<Vec<f64>>,
    filter: Filter,
    /// The output as a sum over the filter's state.
    output: Vec<f64>,
}

/// C^-T r for a listed row r, and N of each step.
struct Solved {
    w: Vec<f64>,
    later: Vec<f64>,
}

impl Buffers {
    /// Solves C^T w = r.
    fn solve(&self, row: &[f64]) -> Solved {
        let (d, steps) = (self.decay.len(), self.factors.len());
        let (mut w, mut later) = (vec![0.0; steps], vec![0.0; steps * d]);
        let mut n = vec![0.0; d];
        for t in (0..steps).rev() {
            let (u, v) = (&self.reads[t * d..][..d], &self.writes[t * d..][..d]);
            later[t * d..][..d].copy_from_slice(&n);
            w[t] = self.factors[t] * row[t] - dot(v, &n);
            let of_buffers = n.iter_mut().zip(&self.decay).zip(u);
            of_buffers.for_each(|((n, lambda), u)| *n = lambda * *n + u * w[t]);
        }
        Solved { w, later }
    }

    /// Returns C^-T r.
    pub(crate) fn solve_transposed(&self, row: &[f64]) -> Vec<f64> {
        self.solve(row).w
    }
}

enum Filter {
    /// x_0 is the input plus a sum over x, and x_i is the earlier x_{i-1}: the negative coefficients of the
    /// sum.
    Shift(Vec<f64>),
    /// Velocity and sum of velocities times rates.
    Schedule { rates: Vec<f64>, momentum: f64 },
}

/// The covariances S before each step and after the last one.
pub(crate) struct Covariances<'a> {
    of: &'a BufferErrors,
    buffers: &'a Buffers,
    /// For each listed row.
    solved: Vec<Solved>,
    /// Row by row, one matrix after the other.
    s: Vec<f64>,
}

/// Derivatives in `reads`, `writes` and `factors`.
pub(crate) struct BufferGradient {
    pub(crate) reads: Vec<f64>,
    pub(crate) writes: Vec<f64>,
    pub(crate) factors: Vec<f64>,
}

/// G, K and U of one step, and a, G a and e for the covariance before it.
struct Step {
    g: BlockDiagonal,
    input: Vec<f64>,
    k: Vec<f64>,
    u: Vec<f64>,
    a: Vec<f64>,
    moved: Vec<f64>,
    e: f64,
}

/// diag(F, Lambda).
struct BlockDiagonal {
    /// F, row by row.
    filter: Vec<f64>,
    decay: Vec<f64>,
    state: usize,
}

impl BufferErrors {
    /// Returns `None` for workloads without a short recursion.
    ///
    /// # Errors
    /// When listed rows do not fit in memory.
    pub(crate) fn new(workload: &Workload, steps: usize) -> Result<Option<Self>> {
        if let Some(LastIterate { responses, prefix_factor, .. }) = workload.summed_rows(steps)? {
            let prefix = Self::new(&Workload::Prefix, steps)?;
            return Ok(prefix.map(|prefix| Self {
                listed: responses,
                output: vec![prefix_factor],
                ..prefix
            }));
        }
        if let Some((numerator, denominator)) = workload.rational(steps) {
            let state = numerator.len().max(denominator.len() - 1).max(1);
            let padded = |x: &[f64]| -> Vec<f64> {
                x.iter().copied().chain(std::iter::repeat(0.0)).take(state).collect()
            };
            let filter = Filter::Shift(padded(&denominator[1..]).iter().map(|x| -x).collect());
            let found = Self { steps, listed: Vec::new(), filter, output: padded(&numerator) };
            return Ok((state <= MAX_STATE).then_some(found));
        }
        let of_schedule = |(rates, momentum)| {
            let filter = Filter::Schedule { rates, momentum };
            Self { steps, listed: Vec::new(), filter, output: vec![0.0, 1.0] }
        };
        Ok(workload.schedule(steps).map(of_schedule))
    }

    /// Writes F_t, row by row, and g_t.
    fn write_transition(&self, t: usize, f: &mut [f64], g: &mut [f64]) {
        match &self.filter {
            Filter::Shift(feedback) => {
                let s = feedback.len();
                f.fill(0.0);
                f[..s].copy_from_slice(feedback);
                (1..s).for_each(|i| f[i * s + i - 1] = 1.0);
                g[0] = 1.0;
            }
            Filter::Schedule { rates, momentum } => {
                f.copy_from_slice(&[*momentum, 0.0, rates[t] * momentum, 1.0]);
                g.copy_from_slice(&[1.0, rates[t]]);
            }
        }
    }

    /// Computes the covariance before and after each step.
    pub(crate) fn covariances<'a>(&'a self, buffers: &'a Buffers) -> Covariances<'a> {
        let mut step = Step::new(self.output.len(), buffers);
        let n = step.k.len();
        let mut s = vec![0.0; (self.steps + 1) * n * n];
        let mut space = vec![0.0; n * n];
        for t in 0..self.steps {
            let (before, after) = s[t * n * n..][..2 * n * n].split_at_mut(n * n);
            step.load(self, buffers, t, before);
            step.g.congruence(before, &mut space, after);
            let Step { k, moved, e, .. } = &step;
            for (i, row) in after.chunks_exact_mut(n).enumerate() {
                let (of_k, of_moved) = (e * k[i] - moved[i], -k[i]);
                for ((x, k), moved) in row.iter_mut().zip(k).zip(moved) {
                    *x += of_k * k + of_moved * moved;
                }
            }
        }
        let solved = self.listed.iter().map(|row| buffers.solve(row)).collect();
        Covariances { of: self, buffers, solved, s }
    }
}

impl Step {
    fn new(state: usize, buffers: &Buffers) -> Self {
        let n = state + buffers.decay.len();
        let zeros = || vec![0.0; n];
        let g = BlockDiagonal { filter: vec![0.0; state * state], decay: buffers.decay.clone(), state };
        let input = vec![0.0; state];
        Self { g, input, k: zeros(), u: zeros(), a: zeros(), moved: zeros(), e: 0.0 }
    }

    /// Sets the numbers of step t, where `s` is the covariance before it.
    fn load(&mut self, errors: &BufferErrors, buffers: &Buffers, t: usize, s: &[f64]) {
        let (state, order) = (self.input.len(), buffers.decay.len());
        errors.write_transition(t, &mut self.g.filter, &mut self.input);
        self.k.iter_mut().zip(&self.input).for_each(|(k, g)| *k = g * buffers.factors[t]);
        self.k[state..].copy_from_slice(&buffers.writes[t * order..][..order]);
        self.u[state..].copy_from_slice(&buffers.reads[t * order..][..order]);
        write_product(s, &self.u, &mut self.a);
        self.e = 1.0 + dot(&self.u, &self.a);
        self.g.write_product(&self.a, &mut self.moved);
    }
}

impl BlockDiagonal {
    /// Writes G x.
    fn write_product(&self, x: &[f64], out: &mut [f64]) {
        let (filter, buffers) = out.split_at_mut(self.state);
        let rows = self.filter.chunks_exact(self.state);
        filter.iter_mut().zip(rows).for_each(|(out, row)| *out = dot(row, &x[..self.state]));
        let rest = self.decay.iter().zip(&x[self.state..]);
        buffers.iter_mut().zip(rest).for_each(|(out, (lambda, x))| *out = lambda * x);
    }

    /// Replaces G by G^T.
    fn transpose(&mut self) {
        let s = self.state;
        (0..s).for_each(|i| (0..i).for_each(|j| self.filter.swap(i * s + j, j * s + i)));
    }

    /// Writes G S G^T, for a symmetric S.
    fn congruence(&self, s: &[f64], space: &mut [f64], out: &mut [f64]) {
        let n = self.state + self.decay.len();
        for (row, half) in s.chunks_exact(n).zip(space.chunks_exact_mut(n)) {
            self.write_product(row, half);
        }
        let (filter, buffers) = out.split_at_mut(self.state * n);
        for (row, out) in self.filter.chunks_exact(self.state).zip(filter.chunks_exact_mut(n)) {
            out.fill(0.0);
            row.iter().zip(space.chunks_exact(n)).for_each(|(f, half)| add_scaled(out, *f, half));
        }
        let halves = space.chunks_exact(n).skip(self.state);
        for ((lambda, half), out) in self.decay.iter().zip(halves).zip(buffers.chunks_exact_mut(n)) {
            out.iter_mut().zip(half).for_each(|(out, x)| *out = lambda * x);
        }
    }
}

impl Covariances<'_> {
    /// Returns the squared norm of each row of B.
    pub(crate) fn rows(&self) -> Vec<f64> {
        let h = &self.of.output;
        let n = h.len() + self.buffers.decay.len();
        let variance =
            |s: &[f64]| h.iter().enumerate().map(|(i, x)| x * dot(h, &s[i * n..][..h.len()])).sum::<f64>();
        let listed = self.solved.iter().map(|Solved { w, .. }| norm_squared(w));
        listed.chain(self.s.chunks_exact(n * n).skip(1).map(variance)).collect()
    }

    /// Returns the derivatives of the weighted sum of the squared row norms.
    pub(crate) fn gradient(&self, weights: &[f64]) -> BufferGradient {
        let (h, steps, order) = (&self.of.output, self.of.steps, self.buffers.decay.len());
        let (state, n) = (h.len(), h.len() + order);
        let of_weights = || vec![0.0; steps * order];
        let mut found =
            BufferGradient { reads: of_weights(), writes: of_weights(), factors: vec![0.0; steps] };
        let (of_listed, weights) = weights.split_at(self.solved.len());
        for ((row, solved), weight) in self.of.listed.iter().zip(&self.solved).zip(of_listed) {
            self.add_gradient_of(row, solved, *weight, &mut found);
        }
        let mut step = Step::new(state, self.buffers);
        // The derivative in S after the step, a symmetric matrix; and in K, G a and a.
        let (mut after, mut before, mut space) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n * n]);
        let (mut of_k, mut of_moved, mut d_a, mut from_a) =
            (vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for t in (0..steps).rev() {
            for i in 0..state {
                (0..state).for_each(|j| after[i * n + j] += weights[t] * h[i] * h[j]);
            }
            let s = &self.s[t * n * n..][..n * n];
            step.load(self.of, self.buffers, t, s);
            write_product(&after, &step.k, &mut of_k);
            write_product(&after, &step.moved, &mut of_moved);
            let (d_e, e) = (dot(&step.k, &of_k), step.e);
            let d_k = |i: usize| 2.0 * (e * of_k[i] - of_moved[i]);
            found.factors[t] += step.input.iter().enumerate().map(|(i, g)| g * d_k(i)).sum::<f64>();
            let writes = found.writes[t * order..][..order].iter_mut();
            writes.enumerate().for_each(|(i, to)| *to += d_k(state + i));
            step.g.transpose();
            step.g.write_product(&of_k, &mut d_a);
            d_a.iter_mut().for_each(|x| *x *= -2.0);
            write_product(s, &d_a, &mut from_a);
            let reads = found.reads[t * order..][..order].iter_mut().enumerate();
            reads.for_each(|(i, to)| *to += 2.0 * d_e * step.a[state + i] + from_a[state + i]);
            step.g.congruence(&after, &mut space, &mut before);
            for (i, row) in before.chunks_exact_mut(n).enumerate() {
                let (of_u, of_a) = (d_e * step.u[i] + 0.5 * d_a[i], 0.5 * step.u[i]);
                for ((x, u), d_a) in row.iter_mut().zip(&step.u).zip(&d_a) {
                    *x += of_u * u + of_a * d_a;
                }
            }
            std::mem::swap(&mut after, &mut before);
        }
        found
    }
}

impl Covariances<'_> {
    /// Adds the derivatives of weight ||C^-T r||^2.
    fn add_gradient_of(&self, row: &[f64], solved: &Solved, weight: f64, to: &mut BufferGradient) {
        let Buffers { decay, reads, writes, .. } = self.buffers;
        let d = decay.len();
        // The derivative in N of the step before.
        let mut of_later = vec![0.0; d];
        for (t, &w) in solved.w.iter().enumerate() {
            let (u, v) = (&reads[t * d..][..d], &writes[t * d..][..d]);
            let of_w = 2.0 * weight * w + dot(u, &of_later);
            to.factors[t] += row[t] * of_w;
            for i in 0..d {
                to.reads[t * d + i] += w * of_later[i];
                to.writes[t * d + i] -= of_w * solved.later[t * d + i];
                of_later[i] = decay[i] * of_later[i] - v[i] * of_w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recursion;
    use crate::decoder::rows_by_columns;
    use crate::testing::{Tolerance, assert_gradient};

    fn somewhere(steps: usize) -> Buffers {
        let wave = |at: usize, by: f64| 0.4 + 0.3 * (by * at as f64).sin();
        Buffers {
            decay: vec![0.95, 0.5],
            reads: (0..2 * steps).map(|at| wave(at, 1.3)).collect(),
            writes: (0..2 * steps).map(|at| wave(at, 0.7)).collect(),
            factors: (0..steps).map(|t| 1.0 + 0.2 * (t as f64).cos()).collect(),
        }
    }

    const WORKLOADS: [&str; 7] = [
        "prefix",
        "momentum:0.6,0.1",
        "nesterov:0.5",
        "decay:0.7",
        "window:4",
        "cooldown:5,0.2",
        "last-iterate:0.9",
    ];

    #[test]
    fn rows_are_those_of_the_columns() {
        let steps = 40;
        let buffers = somewhere(steps);
        let Buffers { decay, reads, writes, factors } = buffers.clone();
        let inner = Box::new(Recursion::VaryingBlt { decay, reads, writes });
        let recursion = Recursion::Scaled { inner, factors };
        for text in WORKLOADS {
            let workload: Workload = text.parse().unwrap();
            let errors = BufferErrors::new(&workload, steps).unwrap().unwrap();
            let found = errors.covariances(&buffers).rows();
            let known = rows_by_columns(&recursion, steps, &workload).unwrap();
            let off = found.iter().zip(&known).map(|(x, y)| (x / y - 1.0).abs()).fold(0.0, f64::max);
            assert!(off < 1e-11, "{text}: {off}");
        }
        assert!(BufferErrors::new(&"window:30".parse().unwrap(), steps).unwrap().is_none());
    }

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let steps = 9;
        let start = somewhere(steps);
        let v = [&start.reads[..], &start.writes, &start.factors].concat();
        for text in WORKLOADS {
            let errors = BufferErrors::new(&text.parse().unwrap(), steps).unwrap().unwrap();
            let rows = errors.listed.len() + steps;
            let weights: Vec<f64> = (0..rows).map(|i| 1.0 + 0.1 * i as f64).collect();
            let at = |v: &[f64]| Buffers {
                decay: start.decay.clone(),
                reads: v[..2 * steps].to_vec(),
                writes: v[2 * steps..4 * steps].to_vec(),
                factors: v[4 * steps..].to_vec(),
            };
            let f = |v: &[f64]| dot(&errors.covariances(&at(v)).rows(), &weights);
            let found = errors.covariances(&start).gradient(&weights);
            let gradient = [found.reads, found.writes, found.factors].concat();
            let tolerance = Tolerance { absolute: 1e-6, relative: 1e-6 };
            assert_gradient(text, f, &v, &gradient, 1e-5, tolerance);
        }
    }
}
