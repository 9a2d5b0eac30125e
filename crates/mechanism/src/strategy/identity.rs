//! C = I: fresh noise at every step (DP-SGD, input perturbation). Noise: O(m) time, no state.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::decoder::{ErrorNorms, error_of_toeplitz};
use crate::sensitivity::Sensitivity;
use crate::{Encoder, Participation, Recursion, Result, Workload};

/// The identity over `steps` steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    steps: usize,
}

impl Identity {
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps }
    }
}

impl Strategy for Identity {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        antinoise_input::at_least("steps", self.steps, 1)?;
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: vec![1.0] })
    }

    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        participation.check(self.steps)?;
        let k = participation.separation(self.steps).max_participations;
        Sensitivity::exact((k as f64).sqrt(), "sqrt(k) for k orthogonal unit columns")
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        let n = self.steps as f64;
        match workload {
            Workload::Prefix => ErrorNorms::new(n.sqrt(), (0.5 * (n + 1.0)).sqrt()),
            _ => error_of_toeplitz(&[1.0], self.steps, workload, &Recursion::Independent),
        }
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::Independent)
    }
}
