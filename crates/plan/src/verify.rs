//! A plan's claim, recomputed from its numbers, and the range that every number must keep.

use std::ops::Deref;

use antinoise_accounting::{BMinSep, BallsInBins, Bracket, Gdp};
use antinoise_input::{InvalidParameter, between, in_open_unit, non_negative, positive};
use antinoise_mechanism::RowNorms;
use antinoise_mechanism::sensitivity::Sensitivity;
use serde::{Deserialize, Serialize};

use crate::error::{Figure, unsound};
use crate::min_sep::Simulated;
use crate::range::in_single_precision;
use crate::{Error, Plan, Result, Scheme};

/// The version of the file format.
pub(crate) const VERSION: u32 = 2;
/// Relative difference that rounding may cause between a stated figure and the same figure recomputed on
/// another machine.
const ROUNDING: f64 = 1e-9;
/// Steps, examples and coordinates up to here are whole numbers in double precision too.
const MOST_COUNTED: usize = match 1usize.checked_shl(53) {
    Some(most) => most,
    None => usize::MAX,
};
/// The norms of the noise's rows are added up step by step.
const MOST_STEPS: usize = 100_000_000;

/// A plan whose claim follows from its numbers: only [`Plan::verify`], which reading a plan ends with, makes one.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// let mut altered = plan.into_plan();
/// altered.noise_multiplier *= 0.9;
/// assert!(altered.verify().is_err());
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Plan")]
pub struct VerifiedPlan(Plan);

impl VerifiedPlan {
    /// The plan, to alter; what comes of it is to be verified anew.
    pub fn into_plan(self) -> Plan {
        self.0
    }

    /// How batches are formed, and whether that amplifies.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme().expect("it was found when the plan was verified")
    }
}

impl VerifiedPlan {
    /// The plan's mechanism as if its examples were put in so many bins: what [`Privacy::epsilon`] follows from where they are.
    ///
    /// # Errors
    /// When there are too many bins or steps, C is not lower triangular or has a negative entry, or the adjacency is not zero-out.
    ///
    /// [`Privacy::epsilon`]: crate::Privacy::epsilon
    pub fn balls_in_bins(&self, bins: usize) -> Result<BallsInBins> {
        self.in_bins(bins)
    }

    /// The plan's mechanism as if its examples were sampled at least so many steps apart: what [`Privacy::epsilon`] follows from where they
    /// are.
    ///
    /// # Errors
    /// When there are too many steps, C is not lower triangular, has a negative entry or more bands than `min_sep`, so many batches have more
    /// examples than there are, or the adjacency is not zero-out.
    ///
    /// [`Privacy::epsilon`]: crate::Privacy::epsilon
    pub fn b_min_sep(&self, min_sep: usize) -> Result<BMinSep> {
        self.in_min_sep(min_sep)
    }
}

impl Deref for VerifiedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl TryFrom<Plan> for VerifiedPlan {
    type Error = Error;

    fn try_from(plan: Plan) -> Result<Self> {
        plan.verify()
    }
}

impl Plan {
    /// Recomputes the claim from the numbers.
    ///
    /// # Errors
    /// When a number is out of range, the sampler does not keep the schema or draws other units than the claim is
    /// for, sums cannot be released as the plan says, the sensitivity is understated or epsilon is below what the
    /// noise gives.
    pub fn verify(self) -> Result<VerifiedPlan> {
        self.check()?;
        Ok(VerifiedPlan(self))
    }

    fn check(&self) -> Result<()> {
        self.check_numbers()?;
        let scheme = self.scheme()?;
        self.check_sampler(&scheme)?;
        self.check_unit()?;
        self.strategy.check()?;
        if self.strategy.steps() != self.steps {
            return Err(unsound(Figure::Steps, self.strategy.steps(), self.steps));
        }
        let found = self.strategy.sensitivity(&self.participation)?;
        let noise = self.release.kind().noise(&self.strategy.recursion()?, self.steps)?;
        let rounding = self.needed_rounding_factor(found.value, &noise)?;
        let covers = self.rounding_factor >= rounding * (1.0 - ROUNDING);
        if !covers {
            return Err(unsound(Figure::RoundingFactor, self.rounding_factor, rounding));
        }
        let found = found.under(self.privacy.adjacency);
        let stated = &self.sensitivity;
        let same_proof = stated.kind == found.kind && stated.source == found.source;
        let covers = stated.value >= found.value * (1.0 - ROUNDING);
        if !covers || !same_proof {
            let text = |s: &Sensitivity| format!("{} ({:?}: {})", s.value, s.kind, s.source);
            return Err(unsound(Figure::Sensitivity, text(stated), text(&found)));
        }
        self.check_range(noise.norms)?;
        self.release.check(self.noise_std(), &noise)?;
        self.check_claim(&scheme)
    }

    fn check_claim(&self, scheme: &Scheme) -> Result<()> {
        let privacy = &self.privacy;
        let failure = privacy.accountant.failure();
        if privacy.failure != failure {
            return Err(unsound(Figure::Failure, format!("{:?}", privacy.failure), format!("{failure:?}")));
        }
        if let Some(mechanism) = self.simulated(scheme)? {
            return self.check_simulated_claim(&mechanism);
        }
        let Bracket { lower, upper } = self.account(scheme)?;
        // As what is wanted, so that no comparison takes what is no number.
        let (covers, reached) =
            (privacy.epsilon >= upper * (1.0 - ROUNDING), privacy.epsilon_lower <= lower * (1.0 + ROUNDING));
        if !covers {
            return Err(unsound(Figure::Epsilon, privacy.epsilon, upper));
        }
        if !reached {
            return Err(unsound(Figure::EpsilonLower, privacy.epsilon_lower, lower));
        }
        Ok(())
    }

    /// Both ends of epsilon on samples that follow from the numbers, so that no file can choose them; nothing is allowed for rounding.
    fn check_simulated_claim(&self, mechanism: &Simulated) -> Result<()> {
        let privacy = &self.privacy;
        let unsampled =
            Gdp::from_noise_multiplier_upper(self.noise_multiplier)?.epsilon_upper(privacy.delta)?;
        let needs_no_sampling = privacy.epsilon >= unsampled;
        if !needs_no_sampling {
            let found = mechanism.claimed_delta_upper(privacy.epsilon)?;
            let covers = found <= privacy.delta;
            if !covers {
                let found = format!("no more than delta {found:e} there, not {:e}", privacy.delta);
                return Err(unsound(Figure::Epsilon, privacy.epsilon, found));
            }
        }
        let lower = privacy.epsilon_lower;
        let reached = lower == 0.0
            || lower <= privacy.epsilon && mechanism.claimed_delta_lower(lower)? >= privacy.delta;
        if reached { Ok(()) } else { Err(unsound(Figure::EpsilonLower, lower, "no such lower end")) }
    }

    fn check_numbers(&self) -> Result<()> {
        check_version(self.version)?;
        between("examples", self.examples, 1, MOST_COUNTED, "2^53")?;
        between("batch_size", self.batch_size, 1, self.examples, "examples")?;
        between("steps", self.steps, 1, MOST_STEPS, "the most whose noise a plan holds")?;
        in_single_precision("clip_norm", self.clip_norm)?;
        positive("noise_multiplier", self.noise_multiplier)?;
        positive("sensitivity", self.sensitivity.value)?;
        positive("rounding_factor", self.rounding_factor)?;
        positive("epsilon", self.privacy.epsilon)?;
        non_negative("epsilon_lower", self.privacy.epsilon_lower)?;
        in_open_unit("delta", self.privacy.delta)?;
        self.workload.check()?;
        self.participation.check(self.steps)?;
        let noise_std =
            self.noise_multiplier * self.sensitivity.value * self.release.widened(self.clip_norm)?;
        in_single_precision("noise_std", noise_std)
    }

    /// Noise on its way, noise on the sums and noise on their means must all be normal numbers in single precision:
    /// nothing underflows to no noise at all, nothing overflows.
    fn check_range(&self, RowNorms { inner, factors }: RowNorms) -> Result<()> {
        let (noise_std, batch_size) = (self.noise_std(), self.expected_batch_size());
        for (extreme, inner, factor) in [("least", inner.0, factors.0), ("largest", inner.1, factors.1)] {
            let checked = [
                ("norm of the rows of C^-1", inner),
                ("scale of a step's noise", noise_std * factor),
                ("noise of a step's sum", noise_std * factor * inner),
                ("noise of a step's mean", noise_std * factor * inner / batch_size),
            ];
            for (what, value) in checked {
                in_single_precision(&format!("{extreme} {what}"), value)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn check_version(version: u32) -> Result<()> {
    let must_be = match version {
        VERSION => return Ok(()),
        1 => format!(
            "{VERSION}: a plan of version 1 does not say how noisy sums are released, and its noise covers no \
             rounding; make it anew by `antinoise plan` with the same options and --out"
        ),
        _ => format!("{VERSION}, the version that this program reads"),
    };
    Err(InvalidParameter::new("version", version, must_be).into())
}
