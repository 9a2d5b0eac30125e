//! The filter X^k / Q(X), k = 1, ..., d: one running sum M_k for each power of X.
//!
//! With Q(X) = 1 + sum_k feedback_k X^k, the sums M_k = X^k / Q(X) y of an input y are updated by
//! M_1 <- M_1 - sum_k feedback_k M_k + y and M_k <- M_k + M_{k-1} for k > 1, all from the old values.

use crate::numeric::vector::dot;

/// The running sums M_1, ..., M_d, 0 at the start.
pub(crate) struct RunningSums<'a> {
    feedback: &'a [f64],
    sums: Vec<f64>,
}

impl<'a> RunningSums<'a> {
    /// Starts the filter for Q(X) = 1 + sum_k feedback\[k - 1\] X^k.
    pub(crate) fn new(feedback: &'a [f64]) -> Self {
        Self { feedback, sums: vec![0.0; feedback.len()] }
    }

    /// Starts the filter with M_k = 1 for one k, counted from 0, and all others 0.
    pub(crate) fn from_unit(feedback: &'a [f64], k: usize) -> Self {
        let mut filter = Self::new(feedback);
        filter.sums[k] = 1.0;
        filter
    }

    /// Returns M_1, ..., M_d before the next input.
    pub(crate) fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Takes the next term of the input.
    pub(crate) fn push(&mut self, input: f64) {
        let Some(&first) = self.sums.first() else { return };
        let first = first - dot(self.feedback, &self.sums) + input;
        for k in (1..self.sums.len()).rev() {
            self.sums[k] += self.sums[k - 1];
        }
        self.sums[0] = first;
    }
}

/// Returns the first `steps` terms of 1 + sum_k gain\[k - 1\] X^k / Q(X). O(n d).
pub(crate) fn series(gain: &[f64], feedback: &[f64], steps: usize) -> Vec<f64> {
    let mut filter = RunningSums::new(feedback);
    let term = |t: usize| {
        let input = if t == 0 { 1.0 } else { 0.0 };
        let term = input + dot(gain, filter.sums());
        filter.push(input);
        term
    };
    (0..steps).map(term).collect()
}

/// Returns, for each k, the sum over t of weights_t M_k(t), where M_k is the running sum of `input` before
/// step t: the inner product of `weights` and X^k / Q(X) `input`. O(n d).
pub(crate) fn projections(feedback: &[f64], input: impl Iterator<Item = f64>, weights: &[f64]) -> Vec<f64> {
    let (mut filter, mut found) = (RunningSums::new(feedback), vec![0.0; feedback.len()]);
    for (weight, input) in weights.iter().zip(input) {
        found.iter_mut().zip(filter.sums()).for_each(|(sum, m)| *sum += weight * m);
        filter.push(input);
    }
    found
}

/// Returns the sum over steps of the magnitudes of sum_k gain_k M_k, if running sum `k` is 1 at the start and
/// there is no input.
pub(crate) fn remembered(gain: &[f64], feedback: &[f64], k: usize, steps: usize) -> f64 {
    let mut filter = RunningSums::from_unit(feedback, k);
    let read = |_| {
        let term = dot(gain, filter.sums()).abs();
        filter.push(0.0);
        term
    };
    (0..steps).map(read).sum()
}

/// Returns an upper bound on the sum of |1 - c^-1 * c|, where c^-1 is the inverse of the exact C of a
/// rational recursion and `c` its first column in double precision: what the recursion makes of `c`, and the
/// rounding of that computation. Every rounding error is followed through the running sums to the last step.
pub(crate) fn lost_by_series(gain: &[f64], feedback: &[f64], c: &[f64]) -> f64 {
    let (steps, operations) = (c.len(), feedback.len() as f64 + 3.0);
    let (mut filter, mut sums) = (RunningSums::new(feedback), vec![0.0; gain.len()]);
    let (mut residual, mut outputs) = (0.0, 0.0);
    for (t, c) in c.iter().enumerate() {
        sums.iter_mut().zip(filter.sums()).for_each(|(sum, m)| *sum += m.abs());
        let out = c - dot(gain, filter.sums());
        residual += (out - if t == 0 { 1.0 } else { 0.0 }).abs();
        outputs += out.abs();
        filter.push(out);
    }
    let sized = |weights: &[f64]| weights.iter().zip(&sums).map(|(w, sum)| w.abs() * sum).sum::<f64>();
    let read = operations * (sized(gain) + c.iter().map(|c| c.abs()).sum::<f64>() + outputs);
    let numerator: Vec<f64> = gain.iter().zip(feedback).map(|(g, e)| g + e).collect();
    let followed = (0..gain.len()).map(|k| {
        let rounded = match k {
            0 => read + operations * (sized(feedback) + sums[0] + outputs),
            _ => 2.0 * (sums[k] + sums[k - 1]),
        };
        remembered(gain, &numerator, k, steps) * rounded
    });
    residual + 2.0 * f64::EPSILON * (read + followed.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toeplitz::{divide, multiply};

    /// The oracle: powers of the series 0, 1, 1, 1, ..., multiplied and divided term by term.
    #[test]
    fn filters_are_quotients_of_power_series() {
        const STEPS: usize = 23;
        let delayed: Vec<f64> = (0..STEPS).map(|t| f64::from(u8::from(t > 0))).collect();
        for (gain, feedback) in
            [(vec![], vec![]), (vec![0.5], vec![0.25]), (vec![0.3, -0.2, 0.4], vec![1.5, 0.7, 0.1])]
        {
            let mut power = vec![1.0];
            let (mut numerator, mut denominator) = (vec![1.0], vec![1.0]);
            numerator.resize(STEPS, 0.0);
            denominator.resize(STEPS, 0.0);
            for (g, e) in gain.iter().zip(&feedback) {
                power = multiply(&power, &delayed, STEPS);
                for t in 0..STEPS {
                    numerator[t] += (g + e) * power[t];
                    denominator[t] += e * power[t];
                }
            }
            let expected = divide(&numerator, &denominator, STEPS);
            let found = series(&gain, &feedback, STEPS);
            assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-9 * (1.0 + y.abs())));
            let weights: Vec<f64> = (0..STEPS).map(|t| (t as f64).cos()).collect();
            let input = (0..STEPS).map(|t| if t == 0 { 1.0 } else { 0.0 });
            let by_power: f64 =
                projections(&feedback, input, &weights).iter().zip(&gain).map(|(m, g)| m * g).sum();
            assert!((by_power + weights[0] - dot(&found, &weights)).abs() < 1e-9);
        }
    }
}
