//! Proposed requests for a number of examples, a target epsilon and a compute budget.

use antinoise_input::{InvalidParameter, at_least, positive};

use super::candidate::Candidate;
use super::choice::{Rejected, choose};
use crate::{Length, Request, Result, Setting, VerifiedPlan};

/// The data, the target epsilon and the compute budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// N: the number of examples.
    pub examples: usize,
    /// Target epsilon.
    pub epsilon: f64,
    /// m: the number of model parameters; 0 if unknown.
    pub dim: usize,
    /// Limit on the bytes of noise state. Needs `dim`.
    pub memory: Option<u64>,
    /// Limit on the passes over the data. Default 16.
    pub epochs: f64,
}

impl Budget {
    /// The budget for this number of examples and epsilon, with defaults for the other fields.
    pub fn new(examples: usize, epsilon: f64) -> Self {
        Self { examples, epsilon, dim: 0, memory: None, epochs: 16.0 }
    }
}

/// A proposed request, and the mechanism chosen for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Proposal {
    /// The request for [`choose`].
    pub request: Request,
    /// Expected passes over the data.
    pub epochs: f64,
    /// The mechanism of least loss among those whose design takes less than a few seconds.
    pub candidate: Candidate,
    /// The plan of that mechanism.
    pub plan: VerifiedPlan,
    /// Loss relative to DP-SGD with Poisson sampling and batches of the same size.
    pub relative_to_dp_sgd: f64,
    /// Mechanisms that were excluded for reasons other than their loss.
    pub rejected: Vec<Rejected>,
}

/// Number of steps of a proposal. It is enough for an optimizer, so that a larger compute budget gives larger
/// batches instead of more steps.
const STEPS: usize = 1000;
/// Minimum batch size; small data sets get fewer steps instead of smaller batches.
const MIN_BATCH: usize = 16;
/// Proposed passes over the data, below the budget.
const EPOCHS: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

/// Returns proposals in the order of increasing passes over the data; for each number of passes, first with
/// sampled and then with cyclic batches.
///
/// All proposals have 1000 steps, or fewer for small data, and delta is [`default_delta`].
/// A larger budget gives larger batches, over which the same noise is averaged: Ponomareva et al. (2023),
/// "How to DP-fy ML", section 5.
///
/// # Errors
/// When a number is out of range; names the parameter.
///
/// ```
/// use antinoise_plan::{Budget, advise};
/// let proposals = advise(&Budget::new(60_000, 4.0))?;
/// let (least, most) = (&proposals[0], &proposals[proposals.len() - 1]);
/// assert_eq!((least.request.batch_size, most.request.batch_size), (60, 960));
/// assert!(most.candidate.rms_loss < least.candidate.rms_loss);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn advise(budget: &Budget) -> Result<Vec<Proposal>> {
    at_least("examples", budget.examples, 2 * MIN_BATCH)?;
    positive("epsilon", budget.epsilon)?;
    if !(1.0..=1e6).contains(&budget.epochs) {
        let must_be = "from 1 to 1000000: time for one pass over the data at least";
        return Err(InvalidParameter::new("epochs", budget.epochs, must_be).into());
    }
    let below = EPOCHS.iter().copied().filter(|&epochs| epochs < 0.9 * budget.epochs);
    let mut proposals = Vec::new();
    for epochs in below.chain([budget.epochs]) {
        for setting in [Setting::Poisson, Setting::Cyclic] {
            proposals.push(proposal(budget, epochs, setting)?);
        }
    }
    Ok(proposals)
}

fn proposal(budget: &Budget, epochs: f64, setting: Setting) -> Result<Proposal> {
    let gradients = epochs * budget.examples as f64;
    let batch_size = ((gradients / STEPS as f64) as usize).clamp(MIN_BATCH, budget.examples);
    // Cyclic batches can be slightly larger than requested, since together they have all examples.
    let largest = budget.examples as f64 / (budget.examples / batch_size) as f64;
    let steps = (gradients / largest) as usize;
    let mut request =
        Request::new(budget.examples, batch_size, Length::Steps(steps.clamp(1, STEPS)), setting);
    request.epsilon = budget.epsilon;
    request.delta = default_delta(budget.examples);
    (request.dim, request.memory, request.thorough) = (budget.dim, budget.memory, false);
    let choice = choose(&request)?;
    let loss = |candidate: &Candidate| candidate.objective(request.objective);
    let candidate = choice.candidates[choice.chosen].clone();
    let dp_sgd = choice.candidates.iter().take(1).chain(&choice.baselines).find(|c| c.is_amplified());
    let epochs = candidate.gradients(&request) / budget.examples as f64;
    let relative_to_dp_sgd = dp_sgd.map_or(1.0, |dp_sgd| loss(&candidate) / loss(dp_sgd));
    Ok(Proposal {
        request,
        epochs,
        candidate,
        plan: choice.plan,
        relative_to_dp_sgd,
        rejected: choice.rejected,
    })
}

/// The default delta for N units: the largest power of ten that is at most 0.1 / N, and at most 1e-5.
///
/// ```
/// use antinoise_plan::default_delta;
///
/// assert_eq!((default_delta(60_000), default_delta(20)), (1e-6, 1e-5));
/// ```
pub fn default_delta(units: usize) -> f64 {
    let digits = ((units.max(1) as f64).log10().ceil() as i32 + 1).max(5);
    // Parsed, since decimal literals are rounded correctly, and `10f64.powi(-digits)` is not.
    format!("1e-{digits}").parse().expect("a decimal literal")
}
