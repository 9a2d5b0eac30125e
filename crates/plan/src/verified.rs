//! Verified plans, whose claim was recomputed from their numbers.

use std::ops::Deref;

use antinoise_accounting::{Bounds, MonteCarloMechanism, PrivacyCurve};
use antinoise_input::{InvalidParameter, between, in_open_unit, non_negative, positive};
use antinoise_mechanism::sensitivity::{Kind, Sensitivity};
use antinoise_mechanism::{AnyStrategy, RowNorms};
use serde::{Deserialize, Serialize};

use crate::arithmetic::in_single_precision;
use crate::error::{Figure, unsound};
use crate::plan::{RECOMPUTATION_MARGIN, Rounding};
use crate::schedule::checked_steps;
use crate::unit::check_unit;
use crate::{Arithmetic, ArithmeticKind, Error, Plan, Privacy, Request, Result, Sampler, Schedule};

/// The version of the file format.
pub(crate) const VERSION: u32 = 2;
/// Relative tolerance for figures that are recomputed on another machine.
const ROUNDING: f64 = 1e-9;
/// Maximum number of examples; larger whole numbers are not exact in double precision.
const MAX_EXAMPLES: usize = match 1usize.checked_shl(53) {
    Some(most) => most,
    None => usize::MAX,
};

/// A plan whose claim follows from its numbers, with results of the verification. Only [`Plan::verify`], the
/// last step of reading a plan, creates one.
///
/// ```
/// use antinoise_plan::{Length, Plan, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// let mut altered = plan.into_plan();
/// altered.noise_multiplier *= 0.9;
/// assert!(altered.verify().is_err());
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Plan")]
pub struct VerifiedPlan {
    plan: Plan,
    schedule: Schedule,
    /// Bound on the shift of the mean by rounding of the history term, in units of seed noise.
    history_error: f64,
    /// What a Monte Carlo accountant found.
    curve: Option<PrivacyCurve>,
    epsilon_lower: f64,
}

impl VerifiedPlan {
    /// Makes and verifies the plan that runs `strategy` on `schedule` with noise multiplier
    /// `noise_multiplier`. `progress` is called as in [`Plan::verify_with`].
    pub(crate) fn new(
        request: &Request,
        schedule: &Schedule,
        strategy: AnyStrategy,
        noise_multiplier: f64,
        progress: &Progress<'_>,
    ) -> Result<Self> {
        let sensitivity = strategy.sensitivity(&schedule.participation)?;
        let (exact, sensitivity) = (sensitivity.value, sensitivity.under(request.adjacency));
        let noise = request.arithmetic.noise(&strategy.recursion()?, schedule.steps)?;
        let arithmetic = match request.arithmetic {
            ArithmeticKind::Grid => {
                // The final noise, which also covers rounding, is less than twice as large.
                let std_per_clip_norm = 2.0 * noise_multiplier * sensitivity.value;
                Arithmetic::on_grid(
                    request.clip_norm,
                    request.dim,
                    request.spacing,
                    std_per_clip_norm,
                    &noise,
                )?
            }
            ArithmeticKind::PlainFloatingPoint => Arithmetic::PlainFloatingPoint,
        };
        let accountant = schedule.accountant();
        let mut plan = Plan {
            version: VERSION,
            examples: request.examples,
            batch_size: request.batch_size,
            max_examples_per_user: request.max_examples_per_user,
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
                accountant,
                failure: accountant.failure_probability(),
            },
            arithmetic,
            sampler: schedule.sampler,
            participation: schedule.participation.clone(),
            workload: request.workload.clone(),
            sensitivity,
            strategy,
        };
        let Rounding { factor, history } = plan.rounding(exact, &noise)?;
        plan.rounding_factor = factor;
        let curve =
            plan.simulated(history)?.map(|it| it.certified_curve(request.epsilon, progress)).transpose()?;
        let Bounds { lower, upper } = match &curve {
            Some(curve) => Bounds { upper: request.epsilon, ..curve.epsilon(request.delta) },
            None => plan.epsilon()?,
        };
        (plan.privacy.epsilon, plan.privacy.epsilon_lower) = (upper, lower.min(upper));
        plan.verify_by(|_, _| Ok(curve))
    }

    /// Returns the plan's numbers, which can be changed and verified again.
    pub fn into_plan(self) -> Plan {
        self.plan
    }

    /// How batches are formed, and whether amplification is accounted for.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// A lower bound on every epsilon that the accountant could prove. It is that of the plan, unless an
    /// earlier version made the plan by a looser accountant, whose lower bound is larger.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert_eq!(plan.epsilon_lower(), plan.privacy.epsilon_lower);
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn epsilon_lower(&self) -> f64 {
        self.epsilon_lower
    }

    /// delta at epsilons from half of the claim's to twice that, as the plan's Monte Carlo accountant found
    /// them when it verified the claim; `None` if the plan has another accountant.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let mut request = Request::new(160, 20, Length::Epochs(3), Setting::Poisson);
    /// request.specs = Some(vec!["blt:2".parse()?]); // in bins
    /// let plan = choose(&request)?.plan;
    /// let stricter = plan.curve().expect("bins are simulated").epsilon(0.1 * plan.privacy.delta);
    /// assert!(plan.privacy.epsilon < stricter.upper && stricter.upper < 1.1 * stricter.lower);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn curve(&self) -> Option<&PrivacyCurve> {
        self.curve.as_ref()
    }

    /// The input of the plan's Monte Carlo accountant, from which [`Privacy::epsilon`] is computed; `None` if
    /// the plan has another accountant.
    ///
    /// # Errors
    /// When the mechanism's numbers exceed the range of doubles.
    ///
    /// [`Privacy::epsilon`]: crate::Privacy::epsilon
    pub fn monte_carlo(&self) -> Result<Option<MonteCarloMechanism>> {
        self.simulated(self.history_error)
    }

    /// An upper bound on what cutting batches at their maximum size adds to delta, which the claim includes;
    /// `None` if batches are not cut.
    ///
    /// ```
    /// use antinoise_plan::{Length, MaxBatchSize, Request, Setting, choose};
    /// let mut request = Request::new(4000, 100, Length::Epochs(2), Setting::Poisson);
    /// (request.max_batch_size, request.specs) = (Some(MaxBatchSize::Auto), Some(vec!["identity".parse()?]));
    /// let plan = choose(&request)?.plan;
    /// let (size, cost) = (plan.sampler.max_batch_size().unwrap(), plan.truncation_delta().unwrap());
    /// assert!(size < 200 && cost <= 0.01 * plan.privacy.delta);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn truncation_delta(&self) -> Option<f64> {
        self.sampler.max_batch_size()?;
        let run = self.sampled_run(self.steps).ok().flatten()?;
        Some(run.truncation_delta_upper())
    }

    /// The noise multiplier 1 / mu, rounded down, if the sensitivity of the rounded strategy is `rounded`, in
    /// clip norms.
    pub(crate) fn noise_over(&self, rounded: f64) -> f64 {
        let moved = (rounded * RECOMPUTATION_MARGIN * self.privacy.adjacency.sensitivity_factor()).next_up();
        let per_noise = ((moved * self.widened_clip_norm()).next_up() / self.noise_std()).next_up();
        (1.0 / (per_noise + self.history_error).next_up()).next_down()
    }
}

impl Deref for VerifiedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl TryFrom<Plan> for VerifiedPlan {
    type Error = Error;

    fn try_from(plan: Plan) -> Result<Self> {
        plan.verify()
    }
}

impl Serialize for VerifiedPlan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.plan.serialize(serializer)
    }
}

/// A function that is called during a simulation with the number of samples drawn so far, and of all.
pub(crate) type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

impl Plan {
    /// Recomputes the claim from the numbers.
    ///
    /// # Errors
    /// When a number is out of range, the sampler can violate the schema or draws other units than the claim
    /// protects, noise cannot be added as the plan states, the sensitivity is too small, or epsilon is
    /// smaller than the noise gives.
    pub fn verify(self) -> Result<VerifiedPlan> {
        self.verify_with(&|_, _| ())
    }

    /// As [`Plan::verify`]. `progress` is called with the number of samples drawn so far, and of all, if the
    /// plan's accountant is a Monte Carlo accountant, which takes seconds.
    ///
    /// # Errors
    /// As [`Plan::verify`].
    pub fn verify_with(self, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<VerifiedPlan> {
        let simulated = |mechanism: Option<MonteCarloMechanism>, epsilon: f64| -> Result<_> {
            Ok(mechanism.map(|it| it.certified_curve(epsilon, progress)).transpose()?)
        };
        self.verify_by(simulated)
    }

    /// Verifies the plan by the curve that `simulated` finds for the input of its Monte Carlo accountant and
    /// its epsilon.
    fn verify_by(
        self,
        simulated: impl FnOnce(Option<MonteCarloMechanism>, f64) -> Result<Option<PrivacyCurve>>,
    ) -> Result<VerifiedPlan> {
        self.check_numbers()?;
        let schedule = self.schedule()?;
        schedule.check(self.examples, self.batch_size)?;
        let is_external = self.sampler == Sampler::External;
        check_unit(self.privacy.unit, is_external, self.max_examples_per_user)?;
        self.strategy.check()?;
        if self.strategy.steps() != self.steps {
            return Err(unsound(Figure::Steps, self.strategy.steps(), self.steps));
        }
        let found = self.strategy.sensitivity(&self.participation)?;
        let noise = self.arithmetic.kind().noise(&self.strategy.recursion()?, self.steps)?;
        let Rounding { factor, history } = self.rounding(found.value, &noise)?;
        let covers = self.rounding_factor >= factor * (1.0 - ROUNDING);
        if !covers {
            return Err(unsound(Figure::RoundingFactor, self.rounding_factor, factor));
        }
        let found = found.under(self.privacy.adjacency);
        let stated = &self.sensitivity;
        let same_proof = stated.kind == found.kind && stated.source == found.source;
        let covers = stated.value >= found.value * (1.0 - ROUNDING);
        let is_exact = stated.kind == Kind::UpperBound || stated.value <= found.value * (1.0 + ROUNDING);
        if !covers || !same_proof || !is_exact {
            let text = |s: &Sensitivity| format!("{} ({}: {})", s.value, s.kind, s.source);
            return Err(unsound(Figure::Sensitivity, text(stated), text(&found)));
        }
        self.check_range(noise.norms)?;
        self.arithmetic.check(self.noise_std(), &noise)?;
        let curve = simulated(self.simulated(history)?, self.privacy.epsilon)?;
        let epsilon_lower = self.check_claim(curve.as_ref())?;
        Ok(VerifiedPlan { plan: self, schedule, history_error: history, curve, epsilon_lower })
    }

    /// Checks the claim, and returns the lower bound on epsilon.
    fn check_claim(&self, curve: Option<&PrivacyCurve>) -> Result<f64> {
        let privacy = &self.privacy;
        let failure = privacy.accountant.failure_probability();
        if privacy.failure != failure {
            let text =
                |failure: Option<f64>| failure.map_or("absent".into(), |failure| format!("{failure:e}"));
            return Err(unsound(Figure::Failure, text(privacy.failure), text(failure)));
        }
        if let Some(curve) = curve {
            self.check_simulated_claim(curve)?;
            return Ok(privacy.epsilon_lower);
        }
        let Bounds { lower, upper } = self.epsilon()?;
        // A comparison with NaN is false, so that NaN is refused.
        let covers = privacy.epsilon >= upper * (1.0 - ROUNDING);
        let reached = |lower: f64| privacy.epsilon_lower <= lower * (1.0 + ROUNDING);
        if !covers {
            return Err(unsound(Figure::Epsilon, privacy.epsilon, upper));
        }
        if reached(lower) {
            return Ok(privacy.epsilon_lower);
        }
        match self.by_two_changes() {
            Ok(Some(earlier)) if reached(earlier.lower) => Ok(lower),
            _ => Err(unsound(Figure::EpsilonLower, privacy.epsilon_lower, lower)),
        }
    }

    /// Checks both bounds on epsilon by Monte Carlo. The random numbers are derived from the plan's numbers,
    /// so that the author of a file cannot choose them. The result is reproducible and needs no tolerance for
    /// rounding.
    fn check_simulated_claim(&self, curve: &PrivacyCurve) -> Result<()> {
        let (privacy, found) = (&self.privacy, curve.central().upper);
        let covers = found <= privacy.delta || privacy.epsilon >= self.epsilon()?.upper;
        if !covers {
            let found = format!("a delta of up to {found:e} at this epsilon, above {:e}", privacy.delta);
            return Err(unsound(Figure::Epsilon, privacy.epsilon, found));
        }
        let lower = privacy.epsilon_lower;
        let reached = lower <= privacy.epsilon && lower <= curve.epsilon(privacy.delta).lower;
        match reached {
            true => Ok(()),
            false => Err(unsound(Figure::EpsilonLower, lower, "no lower bound as large as this")),
        }
    }

    fn check_numbers(&self) -> Result<()> {
        check_version(self.version)?;
        between("examples", self.examples, 1, MAX_EXAMPLES, "2^53")?;
        between("batch_size", self.batch_size, 1, self.examples, "examples")?;
        checked_steps(self.steps)?;
        in_single_precision("clip_norm", self.clip_norm)?;
        positive("noise_multiplier", self.noise_multiplier)?;
        positive("sensitivity", self.sensitivity.value)?;
        positive("rounding_factor", self.rounding_factor)?;
        positive("epsilon", self.privacy.epsilon)?;
        non_negative("epsilon_lower", self.privacy.epsilon_lower)?;
        in_open_unit("delta", self.privacy.delta)?;
        self.workload.check_steps(self.steps)?;
        self.participation.check(self.steps)?;
        let noise_std =
            self.noise_multiplier * self.sensitivity.value * self.arithmetic.widened(self.clip_norm)?;
        in_single_precision("noise_std", noise_std)
    }

    /// Intermediate noise, noise on the sums and noise on their means must all be normal numbers in single
    /// precision, so that noise neither underflows to zero nor overflows.
    fn check_range(&self, RowNorms { inner, factors, .. }: RowNorms) -> Result<()> {
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
            "{VERSION}: a plan of version 1 does not state how noise is added to sums, and its noise does not cover \
             rounding; make it again by `antinoise plan` with the same options and --out"
        ),
        _ => format!("{VERSION}, the version that this program reads"),
    };
    Err(InvalidParameter::new("version", version, must_be).into())
}
