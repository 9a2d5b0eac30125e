//! The request for a plan, and the schedule that follows from it.

use std::fmt;

use antinoise_accounting::Neighbours;
use antinoise_input::{InvalidParameter, at_least, below_one, between, in_open_unit, positive};
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, AnyStrategy, PrivacyUnit, Workload};

use crate::arithmetic::in_single_precision;
use crate::plan::sampling;
use crate::schedule::checked_steps;
use crate::unit::check_unit;
use crate::{ArithmeticKind, Result, Schedule, Setting};

/// Length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Number of passes over the data.
    Epochs(usize),
    /// Number of steps.
    Steps(usize),
}

/// The maximum size at which Poisson batches are cut, so that all batches can be padded to one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxBatchSize {
    /// The smallest size for which cutting costs at most a hundredth of delta.
    Auto,
    /// This size.
    Of(usize),
}

impl fmt::Display for MaxBatchSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Of(size) => size.fmt(f),
        }
    }
}

/// The largest share of delta that cutting batches may cost at the size of [`MaxBatchSize::Auto`], and at any
/// other.
const AUTO_SHARE: f64 = 0.01;
const MAX_SHARE: f64 = 0.5;

/// The data, batches, privacy target and setting of a plan.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting};
/// let mut request = Request::new(60_000, 500, Length::Epochs(4), Setting::Cyclic);
/// (request.epsilon, request.delta) = (4.0, 1e-5);
/// let schedule = request.schedule()?;
/// assert_eq!((schedule.steps, schedule.participation.to_string()), (480, "cyclic:120,4".into()));
/// request.length = Length::Epochs(1_000_000_000);
/// assert!(request.schedule().unwrap_err().to_string().starts_with("steps is 120000000000 but must be"));
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// N: the number of examples, or of users if the unit is the user.
    pub examples: usize,
    /// B: expected batch size.
    pub batch_size: usize,
    /// Epochs or steps.
    pub length: Length,
    /// How batches are formed, or units participate.
    pub setting: Setting,
    /// Maximum size of Poisson batches, which are cut at it. Default `None`: their size is not bounded.
    pub max_batch_size: Option<MaxBatchSize>,
    /// Target epsilon. Default 1.
    pub epsilon: f64,
    /// Target delta. Default 1e-6.
    pub delta: f64,
    /// Whose data the statement protects. Default example.
    pub unit: PrivacyUnit,
    /// M: the maximum number of a user's examples in a step, which uses the mean of their gradients, clipped
    /// as one gradient. Default `None`; plans for users whose sampler forms batches need it.
    pub max_examples_per_user: Option<usize>,
    /// How neighbouring data sets differ. Default zero-out.
    pub adjacency: Adjacency,
    /// The workload A. Default prefix sums.
    pub workload: Workload,
    /// The loss to minimise. Default RMS.
    pub objective: Objective,
    /// Upper bound on the l2 norm of one example's gradient. Default 1.
    pub clip_norm: f64,
    /// m: the number of model parameters, from which the size of the noise state and the spacing of the grid
    /// follow. Default 0: unknown, with a grid for 2^30 coordinates.
    pub dim: usize,
    /// Upper bound on the spacing of the grid, except where large noise needs a coarser grid. Default `None`:
    /// as coarse as the clip norm and `dim` allow.
    pub spacing: Option<f64>,
    /// The arithmetic of noisy sums. Default on a grid.
    pub arithmetic: ArithmeticKind,
    /// Limit on the bytes of noise state; candidates above it are not chosen. Needs `dim`.
    pub memory: Option<u64>,
    /// Limit on the estimated seconds of one core for a step's noise; candidates above it are not chosen.
    /// Needs `dim`.
    pub noise_time: Option<f64>,
    /// Relative increase of the loss that is accepted for a smaller noise state. Default 0.05; with 0 the
    /// least loss is chosen.
    pub tolerance: f64,
    /// The mechanisms to compare with independent noise. Default `None`: those of `strategies` or, if there
    /// are none, those that fit the schema.
    pub specs: Option<Vec<StrategySpec>>,
    /// Finished strategies that compete, unchanged, with independent noise and with those of `specs`: from
    /// other libraries ([`AnyStrategy::of_matrix`]) or the caller's own code ([`AnyStrategy::of`]). Default
    /// none.
    pub strategies: Vec<AnyStrategy>,
    /// Whether the search includes mechanisms whose design or accounting takes seconds, and whose loss is up
    /// to a fifth smaller. Default true.
    pub thorough: bool,
}

impl Request {
    /// A request with the documented default for every other field.
    pub fn new(examples: usize, batch_size: usize, length: Length, setting: Setting) -> Self {
        Self {
            examples,
            batch_size,
            length,
            setting,
            max_batch_size: None,
            epsilon: 1.0,
            delta: 1e-6,
            unit: PrivacyUnit::Example,
            max_examples_per_user: None,
            adjacency: Adjacency::ZeroOut,
            workload: Workload::Prefix,
            objective: Objective::Rms,
            clip_norm: 1.0,
            dim: 0,
            spacing: None,
            arithmetic: ArithmeticKind::Grid,
            memory: None,
            noise_time: None,
            tolerance: 0.05,
            specs: None,
            strategies: Vec::new(),
            thorough: true,
        }
    }

    /// The same request with another setting.
    pub(crate) fn under(&self, setting: Setting) -> Self {
        let max_batch_size = self.max_batch_size.filter(|_| setting == Setting::Poisson);
        Self { setting, max_batch_size, ..self.clone() }
    }

    /// `schedule` under amplified block-cyclic Poisson sampling with `groups` groups. Batches are cut at the
    /// maximum size, if the request has one; it is refused where this costs half of delta.
    pub(crate) fn sampled(&self, schedule: &Schedule, groups: usize) -> Result<Schedule> {
        let sampled = schedule.with_poisson(groups);
        let Some(wanted) = self.max_batch_size else { return Ok(sampled) };
        let sizes = (self.batch_size, self.examples);
        let run = sampling(sampled.sampler, groups, sampled.steps, sizes).run(1.0, Neighbours::ZeroOut)?;
        let least = |share: f64| -> Result<usize> {
            let of_group = self.examples.div_ceil(groups) as u64;
            Ok((run.least_max_batch_size(of_group, share * self.delta)? as usize).max(self.batch_size))
        };
        let size = match wanted {
            MaxBatchSize::Auto => least(AUTO_SHARE)?,
            MaxBatchSize::Of(size) => {
                let least = least(MAX_SHARE)?;
                if !(least..=self.examples).contains(&size) {
                    let must_be = format!(
                        "from {least} to {}: at a smaller size, cutting batches costs more than half of delta",
                        self.examples
                    );
                    return Err(InvalidParameter::new("max_batch_size", size, must_be).into());
                }
                size
            }
        };
        Ok(sampled.with_truncated_poisson(groups, size))
    }

    /// Whether the request names the mechanisms from which to choose.
    pub(crate) fn names_mechanisms(&self) -> bool {
        self.specs.is_some() || !self.strategies.is_empty()
    }

    pub(crate) fn check(&self) -> Result<()> {
        at_least("examples", self.examples, 1)?;
        between("batch_size", self.batch_size, 1, self.examples, "examples")?;
        positive("epsilon", self.epsilon)?;
        in_open_unit("delta", self.delta)?;
        in_single_precision("clip_norm", self.clip_norm)?;
        self.workload.check()?;
        if let Some(wanted) = self.max_batch_size.filter(|_| self.setting != Setting::Poisson) {
            let must_be = format!("left out: {}", self.setting.why_not_cut());
            return Err(InvalidParameter::new("max_batch_size", wanted, must_be).into());
        }
        let is_external = matches!(self.setting, Setting::Federated { .. });
        check_unit(self.unit, is_external, self.max_examples_per_user)?;
        below_one("tolerance", self.tolerance)?;
        if let Some(seconds) = self.noise_time {
            positive("noise_time", seconds)?;
        }
        if let Some(spacing) = self.spacing {
            positive("spacing", spacing)?;
        }
        let without = [("memory", self.memory.is_some()), ("noise_time", self.noise_time.is_some())];
        if let Some((budget, _)) = without.into_iter().find(|(_, given)| *given && self.dim == 0) {
            let must_be = format!("the number of model parameters, which a limit on {budget} needs");
            return Err(InvalidParameter::new("dim", 0, must_be).into());
        }
        match self.length {
            Length::Epochs(epochs) => at_least("epochs", epochs, 1)?,
            Length::Steps(steps) => at_least("steps", steps, 1)?,
        };
        Ok(())
    }

    /// Steps, sampler and schema.
    ///
    /// An epoch has floor(N / B) steps. A run that ends within one epoch has single participation. In the
    /// Poisson and b-min-sep settings this is the schedule without amplification, from which
    /// [`Schedule::with_poisson`] starts.
    ///
    /// # Errors
    /// When a number is out of range or the numbers do not fit together; names the parameter.
    pub fn schedule(&self) -> Result<Schedule> {
        self.check()?;
        let groups = self.examples / self.batch_size;
        let steps = match self.length {
            Length::Steps(steps) => steps,
            Length::Epochs(epochs) => epochs.checked_mul(groups).ok_or_else(|| {
                InvalidParameter::new("epochs", epochs, "few enough that the steps can be counted")
            })?,
        };
        checked_steps(steps)?;
        let (sampler, participation) = self.setting.batches(steps, groups)?;
        participation.check(steps)?;
        Ok(Schedule::new(steps, sampler, participation))
    }
}
