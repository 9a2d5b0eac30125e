//! The squared error of the last iterate for Toeplitz C, with its derivative in the first column of C^-1.
//!
//! With p the first column of C^-1, the row C^-T u of B for the response u of a curvature holds, from its end
//! to its start, what SGD with momentum on that curvature makes of the noise p_0, p_1, ...: the response is
//! that of a recursion with two numbers of state (`workload::last_iterate`). So the row takes O(n) time, and
//! so does its derivative, by the same recursion backwards. Eight curvatures are computed together.

use crate::numeric::lanes::{LANES, Lanes, sum_over_groups};
use crate::numeric::vector::add;
use crate::workload::LastIterate;

/// Numbers of state below this are replaced by zero: they no longer matter, and small ones are slow.
const NEGLIGIBLE: f64 = 1e-150;

/// The sum over responses u of ||C^-T u||^2, and over prefix sums.
pub(crate) struct LastIterateError {
    pub(super) steps: usize,
    momentum: f64,
    curvatures: Vec<f64>,
    /// The square of the factor of the responses.
    squared_scale: f64,
    /// The square of the factor of the prefix sums.
    squared_prefix_factor: f64,
}

impl LastIterateError {
    pub(crate) fn new(last: LastIterate, steps: usize) -> Self {
        Self {
            steps,
            momentum: last.momentum,
            squared_scale: last.scale.powi(2),
            squared_prefix_factor: last.prefix_factor.powi(2),
            curvatures: last.curvatures,
        }
    }

    /// Returns the number of terms that an evaluation computes.
    pub(super) fn terms(&self) -> usize {
        (1 + self.curvatures.len()) * self.steps
    }

    /// Returns the value and its gradient in every coefficient of the first column `p` of C^-1.
    pub(crate) fn of_inverse(&self, p: &[f64]) -> (f64, Vec<f64>) {
        let groups = self.curvatures.len();
        // The last entry is the value.
        let mut total =
            sum_over_groups(groups, p.len() + 1, self.terms(), |first, sum| self.add(first, p, sum));
        add(&mut total, &self.of_prefix_sums(p));
        let value = total.pop().expect("the value is last");
        (value, total)
    }

    /// Adds the gradient and the value of eight curvatures from number `first` on.
    fn add(&self, first: usize, p: &[f64], sum: &mut [f64]) {
        let (beta, rate) = (self.momentum, 1.0 - self.momentum);
        let h: Lanes = std::array::from_fn(|lane| self.curvatures.get(first + lane).copied().unwrap_or(0.0));
        let weight: Lanes =
            std::array::from_fn(
                |lane| if first + lane < self.curvatures.len() { self.squared_scale } else { 0.0 },
            );
        let mut moved = vec![[0.0; LANES]; self.steps];
        let (mut velocity, mut x, mut squared) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for (t, moved) in moved.iter_mut().enumerate() {
            let noise = p.get(t).copied().unwrap_or(0.0);
            for lane in 0..LANES {
                velocity[lane] = kept(beta * velocity[lane] - h[lane] * x[lane] + noise);
                x[lane] = kept(x[lane] + rate * velocity[lane]);
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
                d_x[lane] = kept(d_x[lane] - h[lane] * d_velocity[lane] + 2.0 * weight[lane] * moved[lane]);
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
        for (steps, text) in [
            (1, "last-iterate"),
            (2, "last-iterate:0.9"),
            (40, "last-iterate:0.6,3"),
            (700, "last-iterate:0.95"),
        ] {
            let workload: Workload = text.parse().unwrap();
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
