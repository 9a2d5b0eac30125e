//! The plan itself.

use std::path::Path;

use antinoise_accounting::{BlockCyclicPoisson, Bracket, Composition, Gdp, banded_to_sampled_upper};
use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::sensitivity::{Sensitivity, of_running};
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, PrivacyUnit, Workload};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::unsound;
use crate::release::{RunningNoise, SUM_ALLOWANCE};
use crate::verify::{VERSION, check_version};
use crate::{Error, Release, ReleaseKind, Request, Result, Sampler, Schedule, write_atomically};

/// How epsilon was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accountant {
    /// 1/sigma-GDP, exact: no amplification is claimed.
    Gdp,
    /// Privacy loss distributions of the DP-SGD run that banded noise under block-cyclic Poisson sampling is at
    /// least as private as: amplified.
    SampledGaussian,
}

/// The privacy claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// Never below the truth.
    pub epsilon: f64,
    /// No epsilon below it follows by this accountant at this noise multiplier.
    pub epsilon_lower: f64,
    /// Failure probability.
    pub delta: f64,
    /// Whose data are protected.
    pub unit: PrivacyUnit,
    /// Which datasets are compared.
    pub adjacency: Adjacency,
    /// How epsilon was computed.
    pub accountant: Accountant,
}

/// Everything that a reader needs to believe the claim and a trainer needs to run it.
///
/// ```
/// use antinoise_plan::{Length, Plan, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// assert_eq!(Plan::from_toml(&plan.to_toml())?, plan);
/// assert!(plan.noise_std() >= plan.noise_multiplier * plan.sensitivity.value * plan.clip_norm);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub(crate) version: u32,
    /// N.
    pub examples: usize,
    /// B, as it was asked for.
    pub batch_size: usize,
    /// n.
    pub steps: usize,
    /// Most l2 norm of one example's gradient.
    pub clip_norm: f64,
    /// sigma: noise standard deviation over `sensitivity`, for clip norm 1.
    pub noise_multiplier: f64,
    /// What `sensitivity` is multiplied by for the C that runs: that of the coefficients as the release's stream keeps
    /// them, in single precision (plain) or in double precision; and on a grid for what double precision does to the
    /// past's share of the noise. At least 1.
    pub rounding_factor: f64,
    /// The loss that the strategy was chosen for.
    pub objective: Objective,
    /// The claim.
    pub privacy: Privacy,
    /// How noisy sums are released.
    pub release: Release,
    /// How batches are formed.
    pub sampler: Sampler,
    /// Pi: what the sampler keeps and the sensitivity is for. Where sampling amplifies it is single: the accountant
    /// composes a unit's participations, of which each is released by itself.
    pub participation: Participation,
    /// A: what the strategy was chosen for.
    pub workload: Workload,
    /// sens(C, Pi) under the adjacency, with its proof; the largest column norm where sampling amplifies.
    pub sensitivity: Sensitivity,
    /// C.
    pub strategy: AnyStrategy,
}

impl Plan {
    /// The plan that runs `strategy` on `schedule` with noise multiplier `noise_multiplier`.
    pub(crate) fn new(
        request: &Request,
        schedule: &Schedule,
        strategy: AnyStrategy,
        noise_multiplier: f64,
    ) -> Result<Self> {
        let mechanism = &*strategy;
        let sensitivity = mechanism.sensitivity(&schedule.participation)?;
        let (stated, sensitivity) = (sensitivity.value, sensitivity.under(request.adjacency));
        let noise = request.release.noise(&mechanism.recursion()?, schedule.steps)?;
        let release = match request.release {
            ReleaseKind::Grid => {
                // Rounding, which the release's own noise covers later, less than doubles the noise.
                let std_per_clip_norm = 2.0 * noise_multiplier * sensitivity.value;
                Release::on_grid(request.clip_norm, request.dim, std_per_clip_norm, &noise)?
            }
            ReleaseKind::PlainFloatingPoint => Release::PlainFloatingPoint,
        };
        let mut plan = Self {
            version: VERSION,
            examples: request.examples,
            batch_size: request.batch_size,
            steps: schedule.steps,
            clip_norm: request.clip_norm,
            noise_multiplier,
            rounding_factor: 1.0,
            objective: request.objective,
            privacy: Privacy {
                epsilon: f64::MAX,
                epsilon_lower: 0.0,
                delta: request.delta,
                unit: request.unit,
                adjacency: request.adjacency,
                accountant: schedule.accountant(),
            },
            release,
            sampler: schedule.sampler,
            participation: schedule.participation.clone(),
            workload: request.workload.clone(),
            sensitivity,
            strategy,
        };
        plan.rounding_factor = plan.needed_rounding_factor(stated, &noise)?;
        let Bracket { lower, upper } = plan.account()?;
        (plan.privacy.epsilon, plan.privacy.epsilon_lower) = (upper, lower);
        plan.verify()?;
        Ok(plan)
    }

    /// epsilon at the plan's delta, by its accountant.
    pub(crate) fn account(&self) -> Result<Bracket> {
        let delta = self.privacy.delta;
        match self.privacy.accountant {
            Accountant::Gdp => {
                let gdp = Gdp::from_noise_multiplier_upper(self.noise_multiplier)?;
                Ok(Bracket { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? })
            }
            Accountant::SampledGaussian => {
                let run = banded_to_sampled_upper(&self.sampling()?, self.noise_multiplier)?;
                Ok(Composition::new([run])?.epsilon(delta)?)
            }
        }
    }

    /// [`Plan::rounding_factor`], from the other numbers: `stated` is the sensitivity by zero-out adjacency, `noise` that of
    /// this release.
    pub(crate) fn needed_rounding_factor(&self, stated: f64, noise: &RunningNoise) -> Result<f64> {
        let (mechanism, precision) = (&*self.strategy, self.release.kind().precision());
        let of = |participation| of_running(mechanism, participation, precision);
        let running = of(&self.participation)?;
        let past = match self.release {
            // It claims nothing about last bits.
            Release::PlainFloatingPoint => 0.0,
            Release::Grid { spacing, dim } => {
                let column_norm = if self.participation == Participation::Single {
                    running
                } else {
                    of(&Participation::Single)?
                };
                let noise_std = self.noise_multiplier * stated * self.clip_norm;
                self.noise_multiplier * noise.past_share(column_norm, spacing / noise_std, dim)
            }
        };
        let left = (1.0 - past).next_down();
        if !(0.5..=1.0).contains(&left) {
            let must_be = "one whose noise double precision can add up for so many parameters and steps: fewer bands, \
                           or a smaller --dim, the number of model parameters";
            let got = format!("one whose past's share may add {:.1e} of the sensitivity", 1.0 - left);
            return Err(InvalidParameter::new("strategy", got, must_be).into());
        }
        let running = (running / stated).next_up().max(1.0);
        Ok((running / left * RECOMPUTED).next_up())
    }

    /// The sampling that amplifies, its hypotheses checked on the numbers.
    pub(crate) fn sampling(&self) -> Result<BlockCyclicPoisson> {
        let Sampler::Poisson { groups } = self.sampler else {
            return Err(unsound("accountant", "sampled-gaussian", format!("sampler {:?}", self.sampler)));
        };
        if self.privacy.adjacency != Adjacency::ZeroOut {
            return Err(unsound(
                "adjacency",
                self.privacy.adjacency,
                "zero-out, under which sampling amplifies",
            ));
        }
        between("groups", groups, 1, self.steps, "steps")?;
        let mechanism = &*self.strategy;
        // That of the C that runs as well: where C^-1 is what is rounded, C keeps no zero.
        let bands = mechanism.encoder()?.bandwidth().max(mechanism.recursion()?.bandwidth(self.steps));
        if bands > groups {
            return Err(unsound("sampler's groups", groups, format!("{bands} bands, which need as many")));
        }
        Ok(BlockCyclicPoisson {
            bands: groups,
            steps: self.steps,
            batch_size: self.batch_size as f64,
            examples: self.examples,
        })
    }

    /// nu = sigma sens(C, Pi) w, rounded up, where w is [`Plan::widened_clip_norm`] and the sensitivity is enlarged by
    /// [`Plan::rounding_factor`]: the standard deviation of seed noise. It goes on the *sum* of clipped gradients.
    pub fn noise_std(&self) -> f64 {
        let sensitivity = (self.sensitivity.value * self.rounding_factor).next_up();
        ((self.noise_multiplier * sensitivity).next_up() * self.widened_clip_norm()).next_up()
    }

    /// w: the most that one unit can move a step's released sum by, in l2 norm: clip_norm (1 + [`SUM_ALLOWANCE`]), and
    /// spacing sqrt(dim) more on a grid; rounded up.
    ///
    /// NaN where the release's numbers are out of range, which no verified plan's are.
    ///
    /// [`SUM_ALLOWANCE`]: crate::SUM_ALLOWANCE
    pub fn widened_clip_norm(&self) -> f64 {
        self.release.widened(self.clip_norm).unwrap_or(f64::NAN)
    }

    /// The most that floating point may add to a unit's effect on a clipped sum, in l2 norm: whoever computes sums
    /// must stay below it.
    pub fn sum_allowance(&self) -> f64 {
        self.clip_norm * SUM_ALLOWANCE
    }

    /// Refuses a model of `dim` parameters where the grid was made for fewer.
    ///
    /// # Errors
    /// Names `dim` and the most that the plan allows.
    pub fn check_dim(&self, dim: usize) -> Result<()> {
        match self.release {
            Release::Grid { dim: most, .. } => between("dim", dim, 1, most, "the plan's dim").map(|_| ()),
            Release::PlainFloatingPoint => at_least("dim", dim, 1).map(|_| ()),
        }
        .map_err(Error::from)
    }

    /// What the noisy sum is divided by.
    pub fn expected_batch_size(&self) -> f64 {
        self.sampler.expected_batch_size(self.examples, self.batch_size)
    }

    /// The plan as TOML, every number to its last digit.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only strings, numbers, lists and tables")
    }

    /// The plan in `text`, verified.
    ///
    /// # Errors
    /// When it is not a plan, or its claim does not follow from its numbers.
    pub fn from_toml(text: &str) -> Result<Self> {
        /// What is read first: another version has other fields.
        #[derive(Deserialize)]
        struct Header {
            version: u32,
        }
        if let Ok(Header { version }) = toml::from_str(text) {
            check_version(version)?;
        }
        let plan: Self = toml::from_str(text).map_err(|error| {
            InvalidParameter::new("plan", "text that cannot be read", format!("a plan in TOML: {error}"))
        })?;
        let (written, read) = (text.parse::<toml::Table>(), plan.to_toml().parse::<toml::Table>());
        if let (Ok(written), Ok(read)) = (written, read)
            && let Some(field) = unknown_field(&written, &read)
        {
            let field = field.replace('\n', " ");
            return Err(InvalidParameter::new("plan's field", field, "one that plans have").into());
        }
        plan.verify()?;
        Ok(plan)
    }

    /// Writes the plan to `path`, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomically(path, self.to_toml().as_bytes())
    }

    /// Reads and verifies the plan at `path`.
    ///
    /// # Errors
    /// As [`Plan::from_toml`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::Format { path: path.to_path_buf(), reason };
        // Before it is opened: a pipe would wait for its writer, a device never end.
        let found = std::fs::metadata(path).map_err(Error::io(path))?;
        if !found.is_file() {
            return Err(refused("it is no regular file".into()));
        }
        if found.len() > MOST_BYTES {
            return Err(refused(format!("it has {} bytes, and plans at most {MOST_BYTES}", found.len())));
        }
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
        Self::from_toml(&text).map_err(|error| match error {
            Error::Invalid(error) => refused(error.to_string()),
            other => other,
        })
    }

    /// SHA-256 of the TOML: what a checkpoint holds to know its plan again.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_toml().as_bytes()).into()
    }
}

/// A stated figure and the same figure recomputed on another machine may differ by this part.
const RECOMPUTED: f64 = 1.0 + 4e-9;

/// A dense strategy of as many steps as there may be takes less.
const MOST_BYTES: u64 = 1 << 33;

/// A field of `written` that `read` has not: it would be dropped, whatever its writer meant by it.
fn unknown_field(written: &toml::Table, read: &toml::Table) -> Option<String> {
    written.iter().find_map(|(name, value)| match (value, read.get(name)) {
        (_, None) => Some(name.clone()),
        (toml::Value::Table(written), Some(toml::Value::Table(read))) => unknown_field(written, read),
        _ => None,
    })
}
