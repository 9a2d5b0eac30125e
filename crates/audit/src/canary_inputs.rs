//! Inputs whose gradients the audit chooses exactly.
//!
//! With parameters 0, a linear model of two classes has the gradient (p - e_y) (x) (features, 1) with p =
//! (1/2, 1/2). So the gradient of an example with one large feature j is clipped to clip_norm u_j or
//! -clip_norm u_j, depending on its label, where u_j = (e_j of class 0 - e_j of class 1) / sqrt(2). Each unit
//! has a feature of its own, so that one run is many experiments.

use antinoise_mechanism::Adjacency;

use crate::random::Random;
use crate::worst_case::Sequence;
use crate::{AuditInputs, Error};

/// Number of examples that take part in every step, in addition to the units.
const OTHERS: usize = 3;
/// The value of a unit's feature, in clip norms. The bias's part of the clipped gradient is the inverse of
/// this.
const LARGE: f64 = 65_536.0;

/// A linear model and its examples: for each unit an example of either sign, followed by the other examples.
#[derive(Debug)]
pub(crate) struct CanaryInputs {
    pub(crate) inputs: AuditInputs,
    units: usize,
}

/// The experiment of a unit: the sequence that it follows, and the runs in which it takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arm {
    /// Index of the sequence that the unit follows.
    pub(crate) attack: usize,
    /// Whether the unit takes part in runs with even numbers. If so, it takes no part in runs with odd
    /// numbers, and vice versa.
    pub(crate) even: bool,
}

impl Arm {
    pub(crate) fn takes_part(self, run: usize) -> bool {
        self.even == run.is_multiple_of(2)
    }
}

impl CanaryInputs {
    /// Creates the inputs for `units` units, for gradients that are clipped to `clip_norm`.
    pub(crate) fn new(units: usize, clip_norm: f64, random: &mut Random) -> Result<Self, Error> {
        let mut features = vec![0.0f32; (2 * units + OTHERS) * units];
        let large = (LARGE * clip_norm).clamp(1e-30, 1e15) as f32;
        for j in 0..units {
            features[2 * j * units + j] = large;
            features[(2 * j + 1) * units + j] = large;
        }
        // The first of the other examples has a long gradient, and that of the last is too short to be
        // clipped.
        for (other, row) in features[2 * units * units..].chunks_exact_mut(units).enumerate() {
            let size = clip_norm * [100.0, 1.0, 0.01][other % 3];
            row.iter_mut().for_each(|x| *x = (random.sign() * size) as f32);
        }
        let labels = (0..2 * units + OTHERS).map(|i| (i % 2) as u32).collect();
        let parameters = vec![0.0; 2 * (units + 1)];
        Ok(Self { inputs: AuditInputs::new(units, parameters, features, labels)?, units })
    }

    /// Number of coordinates of a noisy sum.
    pub(crate) fn dim(&self) -> usize {
        self.inputs.dim()
    }

    /// The component of `noisy_sum` along u_j.
    pub(crate) fn along(&self, noisy_sum: &[f64], j: usize) -> f64 {
        (noisy_sum[j] - noisy_sum[self.units + j]) * std::f64::consts::FRAC_1_SQRT_2
    }

    /// The examples that take part in every step, in addition to the units.
    pub(crate) fn others(&self) -> Vec<usize> {
        (2 * self.units..2 * self.units + OTHERS).collect()
    }

    /// The batch of each step of run `run`. For replace-one neighbours, the replacement of a unit has the
    /// opposite sign.
    pub(crate) fn batches(
        &self,
        run: usize,
        steps: usize,
        adjacency: Adjacency,
        attacks: &[Sequence],
        arms: &[Arm],
    ) -> Vec<Vec<usize>> {
        let mut batches = vec![self.others(); steps];
        for (j, arm) in arms.iter().enumerate() {
            let sign = match (arm.takes_part(run), adjacency) {
                (true, _) => 1.0,
                (false, Adjacency::ReplaceOne) => -1.0,
                (false, Adjacency::ZeroOut) => continue,
            };
            for &(t, s) in &attacks[arm.attack] {
                batches[t].push(2 * j + usize::from(sign * s > 0.0));
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::clipped_sum;

    /// A unit moves the sum by the clip norm along its own direction and not along others.
    #[test]
    fn gradients_are_steered() {
        for clip_norm in [0.02, 1.0, 37.0] {
            let canaries = CanaryInputs::new(5, clip_norm, &mut Random(1)).unwrap();
            for (example, j, sign) in [(0, 0, -1.0), (1, 0, 1.0), (8, 4, -1.0), (9, 4, 1.0)] {
                let sum = clipped_sum(&canaries.inputs, &[example], clip_norm).unwrap();
                let along = canaries.along(&sum, j);
                assert!((along / (sign * clip_norm) - 1.0).abs() < 2e-6, "{along}");
                let rest: f64 = sum.iter().map(|x| x * x).sum::<f64>() - along * along;
                assert!(rest.abs() < 1e-6 * clip_norm * clip_norm, "{rest}");
            }
        }
    }
}
