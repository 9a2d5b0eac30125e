//! The squared error of the last iterate for Toeplitz C, with its derivative in the first column of C^-1.
//!
//! With p the first column of C^-1, the row C^-T u of B for the response u of a curvature holds, from its end
//! to its start, the convolution of p with the reversed u.
//!
//! 1. For a constant learning rate, the reversed u is the impulse response of a recursion with two numbers of
//!    state (`workload::last_iterate`). So the row takes O(n) time, and so does its derivative, by the same
//!    recursion backwards. Eight curvatures are computed together.
//! 2. For a schedule, the row and its derivative are computed by transforms, in O(n log n) time.

use realfft::num_complex::Complex;

use crate::numeric::lanes::{LANES, Lanes, sum_over_groups};
use crate::numeric::parallel;
use crate::numeric::transform::{Transform, fast_length};
use crate::numeric::vector::{add, norm_squared};
use crate::workload::{ConstantRate, LastIterate};

/// Numbers of state below this are replaced by zero: they no longer matter, and small ones are slow.
const NEGLIGIBLE: f64 = 1e-150;

/// The sum over responses u of ||C^-T u||^2, and over prefix sums.
pub(crate) struct LastIterateError {
    pub(super) steps: usize,
    responses: Responses,
    /// The square of the factor of the prefix sums.
    squared_prefix_factor: f64,
}

enum Responses {
    /// Those of a constant learning rate.
    Recursion(ConstantRate),
    /// Those of a schedule, by the spectra of the reversed responses.
    Spectra(Transform, Vec<Vec<Complex<f64>>>),
}

impl LastIterateError {
    pub(crate) fn new(last: LastIterate, steps: usize) -> Self {
        let responses = match last.recursion {
            Some(recursion) => Responses::Recursion(recursion),
            None => {
                let transform = Transform::new(fast_length(2 * steps));
                let reversed = |u: &Vec<f64>| u.iter().rev().copied().collect::<Vec<f64>>();
                let spectra = last.responses.iter().map(|u| transform.forward(&reversed(u))).collect();
                Responses::Spectra(transform, spectra)
            }
        };
        Self { steps, responses, squared_prefix_factor: last.prefix_factor.powi(2) }
    }

    /// Returns the number of terms that an evaluation computes: those of the rows of all responses, and of
    /// the prefix sums.
    pub(super) fn terms(&self) -> usize {
        let responses = match &self.responses {
            Responses::Recursion(recursion) => recursion.curvatures.len(),
            Responses::Spectra(_, spectra) => spectra.len(),
        };
        (1 + responses) * self.steps
    }

    /// Returns the value and its gradient in every coefficient of the first column `p` of C^-1.
    pub(crate) fn of_inverse(&self, p: &[f64]) -> (f64, Vec<f64>) {
        // The last entry is the value.
        let mut total = match &self.responses {
            Responses::Recursion(recursion) => {
                let groups = recursion.curvatures.len();
                let add_group = |first: usize, sum: &mut [f64]| self.add(recursion, first, p, sum);
                sum_over_groups(groups, p.len() + 1, self.terms(), add_group)
            }
            Responses::Spectra(transform, spectra) => self.by_transforms(transform, spectra, p),
        };
        add(&mut total, &self.of_prefix_sums(p));
        let value = total.pop().expect("the value is last");
        (value, total)
    }

    /// Returns the gradient and the value of all responses from their spectra.
    fn by_transforms(&self, transform: &Transform, spectra: &[Vec<Complex<f64>>], p: &[f64]) -> Vec<f64> {
        let of_inverse = transform.forward(p);
        // Three transforms for each response.
        let work = 3 * self.steps.ilog2() as usize * self.terms();
        let parts = parallel::map(spectra.len(), work, |i| {
            let mut row = transform.product(&spectra[i], &of_inverse);
            row.truncate(self.steps);
            row.reverse();
            let slopes = transform.product(&spectra[i], &transform.forward(&row));
            let backwards = slopes[..self.steps].iter().rev().take(p.len());
            backwards.map(|slope| 2.0 * slope).chain([norm_squared(&row)]).collect::<Vec<f64>>()
        });
        let mut total = vec![0.0; p.len() + 1];
        parts.iter().for_each(|part| add(&mut total, part));
        total
    }

    /// Adds the gradient and the value of eight curvatures from number `first` on.
    fn add(&self, recursion: &ConstantRate, first: usize, p: &[f64], sum: &mut [f64]) {
        let ConstantRate { momentum, weight_decay, curvatures, scales } = recursion;
        let (beta, rate, shrunk) = (*momentum, 1.0 - momentum, 1.0 - weight_decay);
        let lanes =
            |x: &[f64]| -> Lanes { std::array::from_fn(|lane| x.get(first + lane).copied().unwrap_or(0.0)) };
        let (h, weight) = (lanes(curvatures), lanes(scales).map(|scale| scale * scale));
        let mut moved = vec![[0.0; LANES]; self.steps];
        let (mut velocity, mut x, mut squared) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for (t, moved) in moved.iter_mut().enumerate() {
            let noise = p.get(t).copied().unwrap_or(0.0);
            for lane in 0..LANES {
                velocity[lane] = kept(beta * velocity[lane] - h[lane] * x[lane] + noise);
                x[lane] = kept(shrunk * x[lane] + rate * velocity[lane]);
                squared[lane] += x[lane] * x[lane];
            }
            *moved = x;
        }
        let (slopes, value) = sum.split_at_mut(p.len());
        value[0] += squared.iter().zip(weight).map(|(squared, weight)| weight * squared).sum::<f64>();
        // Derivatives of the value in x and in the velocity of each step.
        let (mut d_velocity, mut d_x) = ([0.0; LANES], [0.0; LANES]);
        for (t, moved) in moved.iter().enumerate().rev() {
            for lane in 0..LANES {
                let by_next = shrunk * d_x[lane] - h[lane] * d_velocity[lane];
                d_x[lane] = kept(by_next + 2.0 * weight[lane] * moved[lane]);
                d_velocity[lane] = kept(beta * d_velocity[lane] + rate * d_x[lane]);
            }
            if let Some(slope) = slopes.get_mut(t) {
                *slope += d_velocity.iter().sum::<f64>();
            }
        }
    }

    /// Returns the gradient and the value for prefix sums: entry t of the first column of B is in n - t rows.
    fn of_prefix_sums(&self, p: &[f64]) -> Vec<f64> {
        let (mut sum, mut value) = (0.0, 0.0);
        let mut slopes: Vec<f64> = (0..self.steps)
            .map(|t| {
                sum += p.get(t).copied().unwrap_or(0.0);
                let weighted = self.squared_prefix_factor * (self.steps - t) as f64 * sum;
                value += weighted * sum;
                2.0 * weighted
            })
            .collect();
        for t in (1..self.steps).rev() {
            slopes[t - 1] += slopes[t];
        }
        slopes.truncate(p.len());
        slopes.push(value);
        slopes
    }
}

#[inline(always)]
fn kept(x: f64) -> f64 {
    if x.abs() < NEGLIGIBLE { 0.0 } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::testing::{Tolerance, assert_gradient};
    use crate::toeplitz::correlate;

    #[test]
    fn the_value_is_that_of_the_rows_and_the_gradient_the_finite_difference() {
        let falling = |steps: usize| (0..steps).map(|t| 1.0 - t as f64 / steps as f64).collect::<Vec<_>>();
        for (steps, text, decay, rates, weights) in [
            (1, "last-iterate", 0.0, vec![], vec![]),
            (2, "last-iterate:0.9", 0.5, vec![], vec![]),
            (40, "last-iterate:0.6,3", 0.0, vec![], vec![3.0, 0.0, 1.0, 2.0, 0.0, 0.0, 7.0, 1.0]),
            (700, "last-iterate:0.95", 0.01, vec![], vec![]),
            (2, "last-iterate", 0.0, falling(2), vec![1.0, 0.0, 2.0, 1.0]),
            (45, "last-iterate:0.6,3", 0.1, falling(45), vec![]),
            (700, "last-iterate:0.95", 0.0, falling(700), vec![]),
        ] {
            let Ok(Workload::LastIterate { momentum, prefix_share, .. }) = text.parse() else {
                unreachable!("{text}")
            };
            let workload =
                Workload::LastIterate { momentum, weight_decay: decay, prefix_share, rates, weights };
            let last = || workload.last_iterate_rows(steps).unwrap().unwrap();
            let (rows, error) = (last(), LastIterateError::new(last(), steps));
            for length in [1, 5, 300].map(|length: usize| length.min(steps)) {
                let p: Vec<f64> = (0..length).map(|t| (-0.7f64).powi(t as i32) / (1.0 + t as f64)).collect();
                let squares = |x: Vec<f64>| x.iter().map(|x| x * x).sum::<f64>();
                let responses: f64 = rows.responses.iter().map(|u| squares(correlate(u, &p, steps))).sum();
                let mut sum = 0.0;
                let prefix: f64 = (0..steps)
                    .map(|t| {
                        sum += p.get(t).copied().unwrap_or(0.0);
                        (steps - t) as f64 * sum * sum
                    })
                    .sum();
                let known = responses + rows.prefix_factor.powi(2) * prefix;
                let (value, slopes) = error.of_inverse(&p);
                assert!((value / known - 1.0).abs() < 1e-12, "{text} {steps} {length}: {value} {known}");
                let slopes: Vec<f64> = slopes.iter().map(|d| d / value).collect();
                let f = |p: &[f64]| error.of_inverse(p).0.ln();
                assert_gradient("inverse", f, &p, &slopes, 1e-5, Tolerance::absolute(1e-7));
            }
        }
    }
}
