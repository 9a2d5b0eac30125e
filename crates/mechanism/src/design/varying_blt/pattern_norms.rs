//! Norms of sums of columns of T over patterns of participations, where T has ones on its diagonal and, below
//! it, T\[t, j\] = u_t . Lambda^(t-1-j) v_j.
//!
//! No entry of T is negative, so that the sensitivity is the largest of these norms. With Q_j the sum over
//! t > j of Lambda^(t-1-j) u_t u_t^T Lambda^(t-1-j), and s_j what earlier participations of a pattern left in
//! the buffers before step j, a pattern's squared norm is the sum over its steps j of
//!
//! > 1 + v_j . Q_j v_j + 2 s_j . u_j + 2 (Lambda s_j) . Q_j v_j.
//!
//! O(n d^2) time, for any number of participations.

use crate::Separation;
use crate::decoder::Buffers;
use crate::numeric::vector::{dot, write_product};

/// Disjoint patterns: steps that are `min_sep` apart, at most `max_participations` of them, one pattern after
/// the other. Under min-sep, a unit may also take part at the end of one and at the start of the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct DisjointPatterns {
    min_sep: usize,
    /// Number of steps from the first step of a pattern to that of the next in the same phase.
    length: usize,
}

impl DisjointPatterns {
    pub(super) fn new(Separation { min_sep, max_participations }: Separation) -> Self {
        Self { min_sep, length: min_sep.saturating_mul(max_participations) }
    }

    /// The pattern of a step.
    fn of(self, t: usize) -> usize {
        t / self.length * self.min_sep + t % self.length % self.min_sep
    }

    /// The step before t in its pattern.
    fn before(self, t: usize) -> Option<usize> {
        (t % self.length >= self.min_sep).then(|| t - self.min_sep)
    }
}

/// The squared norm of each pattern, and what its derivatives need.
pub(super) struct PatternNorms {
    patterns: DisjointPatterns,
    squared: Vec<f64>,
    /// Q_j, step by step.
    read_later: Vec<f64>,
    /// s_j, step by step.
    left: Vec<f64>,
}

/// Lambda^b and Lambda^(b-1) for b = `min_sep`: what remains of a buffer, and of what was written first.
struct Fade {
    kept: Vec<f64>,
    written: Vec<f64>,
}

impl Fade {
    fn new(decay: &[f64], min_sep: usize) -> Self {
        let power = |by: usize| decay.iter().map(|lambda| lambda.powf(by as f64)).collect();
        Self { kept: power(min_sep), written: power(min_sep - 1) }
    }
}

impl PatternNorms {
    pub(super) fn new(patterns: DisjointPatterns, buffers: &Buffers) -> Self {
        let Buffers { decay, reads, writes, factors } = buffers;
        let (d, steps) = (decay.len(), factors.len());
        let mut read_later = vec![0.0; steps * d * d];
        for j in (0..steps.saturating_sub(1)).rev() {
            let (here, later) = read_later[j * d * d..(j + 2) * d * d].split_at_mut(d * d);
            let u = &reads[(j + 1) * d..][..d];
            for i in 0..d {
                for l in 0..d {
                    here[i * d + l] = decay[i] * decay[l] * later[i * d + l] + u[i] * u[l];
                }
            }
        }
        let fade = Fade::new(decay, patterns.min_sep);
        let (mut left, mut q) = (vec![0.0; steps * d], vec![0.0; d]);
        let mut squared = vec![0.0; steps.div_ceil(patterns.length) * patterns.min_sep];
        for j in 0..steps {
            if let Some(before) = patterns.before(j) {
                for i in 0..d {
                    let kept = fade.kept[i] * left[before * d + i];
                    left[j * d + i] = kept + fade.written[i] * writes[before * d + i];
                }
            }
            let (u, v, s) = (&reads[j * d..][..d], &writes[j * d..][..d], &left[j * d..][..d]);
            write_product(&read_later[j * d * d..][..d * d], v, &mut q);
            let both: f64 = (0..d).map(|i| (v[i] + 2.0 * decay[i] * s[i]) * q[i]).sum();
            squared[patterns.of(j)] += 1.0 + both + 2.0 * dot(s, u);
        }
        Self { patterns, squared, read_later, left }
    }

    /// Returns the norm of each step's pattern.
    pub(super) fn of_steps(&self, steps: usize) -> Vec<f64> {
        (0..steps).map(|t| self.squared[self.patterns.of(t)].sqrt()).collect()
    }

    /// Adds the derivatives in `reads` and `writes`, from `of_steps`, the derivatives in each step's norm.
    pub(super) fn add_gradient(
        &self,
        buffers: &Buffers,
        of_steps: &[f64],
        (reads, writes): (&mut [f64], &mut [f64]),
    ) {
        let decay = &buffers.decay;
        let (d, steps) = (decay.len(), of_steps.len());
        let mut weights = vec![0.0; self.squared.len()];
        of_steps.iter().enumerate().for_each(|(t, of_step)| weights[self.patterns.of(t)] += of_step);
        weights.iter_mut().zip(&self.squared).for_each(|(weight, squared)| *weight /= squared.sqrt());
        let mut d_left = vec![0.0; steps * d];
        let mut d_later = vec![0.0; d * d];
        let (mut faded, mut q, mut r) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        for j in 0..steps {
            let weight = weights[self.patterns.of(j)];
            let (u, v) = (&buffers.reads[j * d..][..d], &buffers.writes[j * d..][..d]);
            let s = &self.left[j * d..][..d];
            // The derivative in Q_{j-1}, which reads u_j.
            write_product(&d_later, u, &mut r);
            (0..d).for_each(|i| reads[j * d + i] += 2.0 * r[i] + weight * s[i]);
            (0..d).for_each(|i| faded[i] = decay[i] * s[i]);
            let later = &self.read_later[j * d * d..][..d * d];
            write_product(later, v, &mut q);
            write_product(later, &faded, &mut r);
            for i in 0..d {
                writes[j * d + i] += weight * (q[i] + r[i]);
                d_left[j * d + i] = weight * (u[i] + decay[i] * q[i]);
                for l in 0..d {
                    let here = v[i] * v[l] + faded[i] * v[l] + v[i] * faded[l];
                    let at = i * d + l;
                    d_later[at] = decay[i] * decay[l] * d_later[at] + 0.5 * weight * here;
                }
            }
        }
        let fade = Fade::new(decay, self.patterns.min_sep);
        for j in (0..steps).rev() {
            let Some(before) = self.patterns.before(j) else { continue };
            for i in 0..d {
                let of_left = d_left[j * d + i];
                d_left[before * d + i] += fade.kept[i] * of_left;
                writes[before * d + i] += fade.written[i] * of_left;
            }
        }
    }
}
