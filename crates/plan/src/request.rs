//! What is wanted of a plan, and the schedule that follows from it.

use antinoise_input::{InvalidParameter, at_least, below_one, between, in_open_unit, positive};
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, Participation, PrivacyUnit, Workload};

use crate::range::in_single_precision;
use crate::{ReleaseKind, Result, Sampler, Schedule, Scheme};

/// How long to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Passes over the data.
    Epochs(usize),
    /// Steps.
    Steps(usize),
}

/// How privacy units come to take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Each example at most once.
    Single,
    /// Data are shuffled once and cut into batches, which take turns.
    Cyclic,
    /// One pass over data in their given order, neither shuffled nor sampled: at most floor(N / B) steps.
    Stream,
    /// Units come by themselves, at least `min_sep` steps apart, at most `max_participations` times.
    Federated {
        /// b.
        min_sep: usize,
        /// k; as many as fit when not given.
        max_participations: Option<usize>,
    },
    /// Every example joins each batch with the same probability, on its own, or, where the strategy has bands,
    /// those of its group's turns: block-cyclic Poisson sampling, which amplifies.
    Poisson,
    /// Every example joins each batch with the same probability, on its own, but sits out the next `bands - 1` after one that it took
    /// part in: b-min-sep sampling, which amplifies more. For strategies with bands.
    BMinSep,
}

/// What a plan is made for.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let mut request = Request::new(60_000, 500, Length::Epochs(4), Setting::Cyclic);
/// (request.epsilon, request.delta) = (4.0, 1e-5);
/// let schedule = request.schedule()?;
/// assert_eq!((schedule.steps, schedule.scheme.participation().to_string()), (480, "cyclic:120,4".into()));
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// N: examples, or users where the unit is the user.
    pub examples: usize,
    /// B: expected examples in a batch.
    pub batch_size: usize,
    /// Epochs or steps.
    pub length: Length,
    /// How units take part.
    pub setting: Setting,
    /// Target epsilon. Default 1.
    pub epsilon: f64,
    /// Target delta. Default 1e-6.
    pub delta: f64,
    /// Whose data the statement protects. Default example.
    pub unit: PrivacyUnit,
    /// Which datasets it compares. Default zero-out.
    pub adjacency: Adjacency,
    /// A. Default prefix sums.
    pub workload: Workload,
    /// The loss that is compared. Default RMS.
    pub objective: Objective,
    /// Most l2 norm of one example's gradient. Default 1.
    pub clip_norm: f64,
    /// m: model parameters, for the size of the noise's state and the spacing of the grid. Default 0: sizes are not
    /// told, and the grid is made for 2^30 coordinates.
    pub dim: usize,
    /// How noisy sums are released. Default on a grid.
    pub release: ReleaseKind,
    /// Most bytes of noise state; candidates above it are not chosen. Needs `dim`.
    pub memory: Option<u64>,
    /// Most seconds of one core for a step's noise, as estimated; candidates above it are not chosen. Needs `dim`.
    pub noise_time: Option<f64>,
    /// How much more loss than the least is taken for a smaller state, as a share. Default 0.05; 0 for the least loss.
    pub tolerance: f64,
    /// The mechanisms to compare with independent noise, or those that fit the schema.
    pub specs: Option<Vec<StrategySpec>>,
    /// Where none are named: whether to try those too that take seconds to optimise or to account for, better by up to a fifth. Default true.
    pub thorough: bool,
}

impl Request {
    /// A request with the defaults told at its fields.
    pub fn new(examples: usize, batch_size: usize, length: Length, setting: Setting) -> Self {
        Self {
            examples,
            batch_size,
            length,
            setting,
            epsilon: 1.0,
            delta: 1e-6,
            unit: PrivacyUnit::Example,
            adjacency: Adjacency::ZeroOut,
            workload: Workload::Prefix,
            objective: Objective::Rms,
            clip_norm: 1.0,
            dim: 0,
            release: ReleaseKind::Grid,
            memory: None,
            noise_time: None,
            tolerance: 0.05,
            specs: None,
            thorough: true,
        }
    }

    /// The same in another setting.
    pub(crate) fn under(&self, setting: Setting) -> Self {
        Self { setting, ..self.clone() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        at_least("examples", self.examples, 1)?;
        between("batch_size", self.batch_size, 1, self.examples, "examples")?;
        positive("epsilon", self.epsilon)?;
        in_open_unit("delta", self.delta)?;
        in_single_precision("clip_norm", self.clip_norm)?;
        self.workload.check()?;
        below_one("tolerance", self.tolerance)?;
        if let Some(seconds) = self.noise_time {
            positive("noise_time", seconds)?;
        }
        let without = [("memory", self.memory.is_some()), ("noise_time", self.noise_time.is_some())];
        if let Some((budget, _)) = without.into_iter().find(|(_, given)| *given && self.dim == 0) {
            let must_be = format!("the number of parameters, for which {budget} is a budget");
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
    /// An epoch has floor(N / B) steps. A run that ends within one epoch has single participation. Under Poisson
    /// sampling this is the schedule without amplification, as [`Schedule::amplified`] starts from it.
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
        let cyclic = Sampler::Cyclic { groups };
        if matches!(self.setting, Setting::Single | Setting::Stream) {
            between("steps", steps, 1, groups, "one epoch's steps, examples / batch_size")?;
        }
        let (sampler, participation) = match self.setting {
            Setting::Single => (cyclic, Participation::Single),
            Setting::Stream => (Sampler::Stream, Participation::Single),
            Setting::Cyclic if steps <= groups => (cyclic, Participation::Single),
            Setting::Cyclic => {
                let max_participations = steps.div_ceil(groups);
                (cyclic, Participation::Cyclic { min_sep: groups, max_participations })
            }
            Setting::Federated { min_sep, max_participations } => {
                between("min_sep", min_sep, 1, steps, "steps")?;
                let most = (steps - 1) / min_sep + 1;
                let max_participations = max_participations.unwrap_or(most);
                (Sampler::External, Participation::MinSep { min_sep, max_participations })
            }
            Setting::Poisson | Setting::BMinSep => (Sampler::Poisson { groups: 1 }, Participation::FullBatch),
        };
        participation.check(steps)?;
        Ok(Schedule { steps, scheme: Scheme::Unamplified { sampler, participation } })
    }
}
