//! Settings for someone who knows the number of examples, epsilon and the compute budget.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::candidate::Candidate;
use crate::choose::{LeftOut, choose};
use crate::{Length, Request, Result, Setting};

/// The data, the target epsilon and the compute budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    /// N.
    pub examples: usize,
    /// Target epsilon.
    pub epsilon: f64,
    /// m: model parameters; 0 when not known.
    pub dim: usize,
    /// Most bytes of noise state. Needs `dim`.
    pub memory: Option<u64>,
    /// Most passes over the data that there is time for. Default 16.
    pub epochs: f64,
}

impl Means {
    /// Nothing but the number of examples and epsilon.
    pub fn new(examples: usize, epsilon: f64) -> Self {
        Self { examples, epsilon, dim: 0, memory: None, epochs: 16.0 }
    }
}

/// A proposed request, and the mechanism that it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The request for [`choose`].
    pub request: Request,
    /// Passes over the data, expected.
    pub epochs: f64,
    /// The mechanism of least loss among those that are optimised in less than seconds.
    pub candidate: Candidate,
    /// Its loss over that of DP-SGD with Poisson sampling and batches of the same size.
    pub relative_to_dp_sgd: f64,
    /// Mechanisms that could not be chosen.
    pub left_out: Vec<LeftOut>,
}

/// Steps of a proposal: enough for an optimizer, so that a larger compute budget goes into larger batches.
const STEPS: usize = 1000;
/// The fewest examples in a batch; with fewer data there are fewer steps.
const LEAST_BATCH: usize = 16;
/// Passes over the data that are proposed; the last is the most.
const EPOCHS: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

/// Proposals by the passes over the data that they cost: first with sampled batches, then with cyclic batches.
///
/// All proposals have 1000 steps, or fewer for small data, and delta is the power of ten at or below 0.1 / N. A larger budget gives
/// larger batches, over which the same noise is averaged, as Ponomareva et al. (2023), "How to DP-fy ML", section 5, advise.
///
/// # Errors
/// When a number is out of range; names the parameter.
///
/// ```
/// use antinoise_plan::{Means, advise};
/// let proposals = advise(&Means::new(60_000, 4.0))?;
/// let (least, most) = (&proposals[0], &proposals[proposals.len() - 1]);
/// assert_eq!((least.request.batch_size, most.request.batch_size), (60, 960));
/// assert!(most.candidate.rms_loss < least.candidate.rms_loss);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn advise(means: &Means) -> Result<Vec<Proposal>> {
    at_least("examples", means.examples, 2 * LEAST_BATCH)?;
    positive("epsilon", means.epsilon)?;
    if !(1.0..=1e6).contains(&means.epochs) {
        let must_be = "from 1 to 1000000: time for one pass over the data at least";
        return Err(InvalidParameter::new("epochs", means.epochs, must_be).into());
    }
    let below = EPOCHS.iter().copied().filter(|&epochs| epochs < 0.9 * means.epochs);
    let mut proposals = Vec::new();
    for epochs in below.chain([means.epochs]) {
        for setting in [Setting::Poisson, Setting::Cyclic] {
            proposals.push(proposal(means, epochs, setting)?);
        }
    }
    Ok(proposals)
}

fn proposal(means: &Means, epochs: f64, setting: Setting) -> Result<Proposal> {
    let gradients = epochs * means.examples as f64;
    let batch_size = ((gradients / STEPS as f64) as usize).clamp(LEAST_BATCH, means.examples);
    // Batches in turn share out all examples: they are a little larger than what is asked for.
    let largest = means.examples as f64 / (means.examples / batch_size) as f64;
    let steps = (gradients / largest) as usize;
    let mut request = Request::new(means.examples, batch_size, Length::Steps(steps.clamp(1, STEPS)), setting);
    request.epsilon = means.epsilon;
    request.delta = delta(means.examples);
    (request.dim, request.memory, request.thorough) = (means.dim, means.memory, false);
    let choice = choose(&request)?;
    let loss = |candidate: &Candidate| candidate.objective(request.objective);
    let candidate = choice.candidates[choice.chosen].clone();
    let dp_sgd = choice.candidates.iter().take(1).chain(&choice.references).find(|c| c.is_amplified());
    let epochs = candidate.gradients(&request) / means.examples as f64;
    let relative_to_dp_sgd = dp_sgd.map_or(1.0, |dp_sgd| loss(&candidate) / loss(dp_sgd));
    Ok(Proposal { request, epochs, candidate, relative_to_dp_sgd, left_out: choice.left_out })
}

/// The power of ten at or below 0.1 / N.
fn delta(examples: usize) -> f64 {
    let digits = (examples as f64).log10().ceil() as i32 + 1;
    format!("1e-{digits}").parse().expect("a number")
}
