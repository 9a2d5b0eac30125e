//! The plan itself.

use antinoise_accounting::{
    BMinSep, BallsInBins, BlockCyclicPoisson, Bracket, Composition, Gdp, SampledGaussian,
    banded_to_sampled_upper,
};
use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::rounded;
use antinoise_mechanism::sensitivity::Sensitivity;
use antinoise_mechanism::{Adjacency, AnyStrategy, Encoder, Participation, Workload};
use serde::{Deserialize, Serialize};

use crate::error::{Figure, unsound};
use crate::min_sep::{self, Simulated};
use crate::release::{RunningNoise, SUM_ALLOWANCE};
use crate::{Accountant, Error, Privacy, Release, Result, Sampler, Scheme, bins};

/// Everything that a reader needs to believe the claim and a trainer needs to run it, as a file states it: not yet
/// verified. What runs a plan or speaks of it takes a [`VerifiedPlan`](crate::VerifiedPlan).
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
    /// How batches are formed, and whether that amplifies, which the plan states by its accountant.
    pub(crate) fn scheme(&self) -> Result<Scheme> {
        match (self.privacy.accountant, self.sampler) {
            (Accountant::Gdp, sampler) => {
                Ok(Scheme::Unamplified { sampler, participation: self.participation.clone() })
            }
            (Accountant::SampledGaussian, Sampler::Poisson { groups }) => match self.participation {
                Participation::Single => Ok(Scheme::Amplified { groups }),
                _ => Err(self.unkept_schema()),
            },
            (Accountant::BallsInBins, Sampler::BallsInBins { bins }) => {
                Ok(Scheme::BallsInBins { bins, participation: self.participation.clone() })
            }
            (Accountant::BMinSep, Sampler::BMinSep { min_sep }) => {
                Ok(Scheme::BMinSep { min_sep, participation: self.participation.clone() })
            }
            (Accountant::SampledGaussian, sampler) => {
                Err(unsound(Figure::Accountant, "sampled-gaussian", format!("sampler {sampler:?}")))
            }
            (Accountant::BallsInBins, sampler) => {
                Err(unsound(Figure::Accountant, "balls-in-bins", format!("sampler {sampler:?}")))
            }
            (Accountant::BMinSep, sampler) => {
                Err(unsound(Figure::Accountant, "b-min-sep", format!("sampler {sampler:?}")))
            }
        }
    }

    /// The error of a sampler that does not keep the schema.
    pub(crate) fn unkept_schema(&self) -> Error {
        unsound(Figure::Participation, &self.participation, format!("sampler {:?}", self.sampler))
    }

    /// epsilon at the plan's delta, by the accountant of its `scheme`; where that samples, without.
    pub(crate) fn account(&self, scheme: &Scheme) -> Result<Bracket> {
        let delta = self.privacy.delta;
        match *scheme {
            Scheme::Unamplified { .. } | Scheme::BallsInBins { .. } | Scheme::BMinSep { .. } => {
                let gdp = Gdp::from_noise_multiplier_upper(self.noise_multiplier)?;
                Ok(Bracket { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? })
            }
            Scheme::Amplified { groups } => {
                let run = Composition::new([self.sampled_run(groups)?])?;
                Ok(run.group_epsilon(delta, replaced(self.privacy.adjacency))?)
            }
        }
    }

    /// [`Plan::rounding_factor`], from the other numbers: `stated` is the sensitivity by zero-out adjacency, `noise` that of
    /// this release.
    pub(crate) fn needed_rounding_factor(&self, stated: f64, noise: &RunningNoise) -> Result<f64> {
        let (strategy, precision) = (&*self.strategy, self.release.kind().precision());
        let running = rounded::sensitivity_upper(strategy, &self.participation, precision)?;
        let column_norm = (self.participation == Participation::Single).then_some(running);
        let past = self.accounted_noise() * self.past_share(stated, noise, column_norm)?;
        let left = (1.0 - past).next_down();
        if !(0.5..=1.0).contains(&left) {
            let must_be = "one whose noise double precision can add up for this number of parameters and steps: use fewer \
                           bands, or a smaller --dim, the number of model parameters";
            let got =
                format!("one whose noise may have rounding errors of {:.1e} of the sensitivity", 1.0 - left);
            return Err(InvalidParameter::new("strategy", got, must_be).into());
        }
        let running = (running / stated).next_up().max(1.0);
        Ok((running / left * RECOMPUTED).next_up())
    }

    /// What double precision does to the past's share of the noise moves the mean of a run by at most this, in units of seed
    /// noise, whoever takes part. `column_norm` is the largest of the C that runs, where it is known.
    pub(crate) fn past_share(
        &self,
        stated: f64,
        noise: &RunningNoise,
        column_norm: Option<f64>,
    ) -> Result<f64> {
        match self.release {
            // It claims nothing about last bits.
            Release::PlainFloatingPoint => Ok(0.0),
            Release::Grid { spacing, dim } => {
                let (strategy, precision) = (&*self.strategy, self.release.kind().precision());
                let single = || rounded::sensitivity_upper(strategy, &Participation::Single, precision);
                let column_norm = column_norm.map_or_else(single, Ok)?;
                let noise_std = self.noise_multiplier * stated * self.clip_norm;
                Ok(noise.past_share(column_norm, spacing / noise_std, dim))
            }
        }
    }

    /// The DP-SGD run, under zero-out, that sampling in `groups` groups is at least as private as; its hypotheses are checked on
    /// the numbers.
    pub(crate) fn sampled_run(&self, groups: usize) -> Result<SampledGaussian> {
        self.sampled_run_of(groups, self.steps)
    }

    /// The same for the first `steps` steps.
    pub(crate) fn sampled_run_of(&self, groups: usize, steps: usize) -> Result<SampledGaussian> {
        between("groups", groups, 1, steps, "steps")?;
        // That of the C that runs as well: where C^-1 is what is rounded, C keeps no zero.
        let bands =
            self.strategy.encoder()?.bandwidth().max(self.strategy.recursion()?.bandwidth(self.steps));
        if bands > groups {
            return Err(unsound(Figure::Groups, groups, format!("{bands} bands, which need as many")));
        }
        let sampling = BlockCyclicPoisson {
            bands: groups,
            steps,
            batch_size: self.batch_size as f64,
            examples: self.examples,
        };
        Ok(banded_to_sampled_upper(&sampling, self.accounted_noise())?)
    }

    /// The noise multiplier that is accounted: where Poisson sampling amplifies that of zero-out, over whose sensitivity, half that of
    /// replace-one, noise is twice as large.
    fn accounted_noise(&self) -> f64 {
        let under_zero_out = self.privacy.accountant == Accountant::SampledGaussian;
        let factor = if under_zero_out { self.privacy.adjacency.sensitivity_factor() } else { 1.0 };
        self.noise_multiplier * factor
    }

    /// The mechanism whose claim is shown by sampling, where this is one.
    pub(crate) fn simulated(&self, scheme: &Scheme) -> Result<Option<Simulated>> {
        Ok(match *scheme {
            Scheme::BallsInBins { bins, .. } => Some(Simulated::Bins(self.in_bins(bins)?)),
            Scheme::BMinSep { min_sep, .. } => Some(Simulated::MinSep(self.in_min_sep(min_sep)?)),
            Scheme::Unamplified { .. } | Scheme::Amplified { .. } => None,
        })
    }

    /// The mechanism in so many bins, its hypotheses checked on the C that runs.
    pub(crate) fn in_bins(&self, bins: usize) -> Result<BallsInBins> {
        let (encoder, std) = self.running()?;
        bins::mechanism(&encoder, bins, std)
    }

    /// The mechanism under b-min-sep sampling, its hypotheses checked on the C that runs.
    pub(crate) fn in_min_sep(&self, min_sep: usize) -> Result<BMinSep> {
        let (encoder, std) = self.running()?;
        min_sep::mechanism(&encoder, min_sep, (self.batch_size, self.examples), std)
    }

    /// The C that runs, and its noise over the widened clip norm, less what double precision does to the past's share.
    fn running(&self) -> Result<(Encoder, f64)> {
        if self.privacy.adjacency != Adjacency::ZeroOut {
            let wanted = "zero-out, under which claims are shown by sampling";
            return Err(unsound(Figure::Adjacency, self.privacy.adjacency, wanted));
        }
        let (strategy, kind) = (&*self.strategy, self.release.kind());
        let (encoder, factor) = rounded::encoder_upper(strategy, kind.precision())?;
        let stated = strategy.sensitivity(&self.participation)?.value;
        let noise = kind.noise(&strategy.recursion()?, self.steps)?;
        let past = (self.noise_multiplier * self.past_share(stated, &noise, None)?).next_up();
        // Each product is rounded once.
        let std =
            self.noise_multiplier * self.sensitivity.value * self.rounding_factor * (1.0 - past) / factor;
        Ok((encoder, std * (1.0 - 8.0 * f64::EPSILON)))
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
}

/// How many units differ under zero-out where data sets are neighbours: to replace one is to zero it out, and then another.
pub(crate) fn replaced(adjacency: Adjacency) -> u64 {
    match adjacency {
        Adjacency::ZeroOut => 1,
        Adjacency::ReplaceOne => 2,
    }
}

/// A stated figure and the same figure recomputed on another machine may differ by this part.
pub(crate) const RECOMPUTED: f64 = 1.0 + 4e-9;
