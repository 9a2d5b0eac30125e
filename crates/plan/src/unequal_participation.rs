//! The privacy of the participation that was observed in a run, under an external sampler.

use antinoise_accounting::{Bounds, Gdp, PrivacyStatement};
use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::sensitivity::Sensitivity;
use antinoise_mechanism::{Participation, PrivacyUnit, Separation, rounded};

use crate::{Result, Sampler, VerifiedPlan};

/// Maximum numbers of steps and of inner products for which the sensitivity is computed from the observed
/// patterns.
const MAX_STEPS: usize = 4096;
const MAX_PRODUCTS: usize = 1 << 28;

/// The privacy that a plan's noise gives the observed participation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ObservedPrivacy {
    /// Minimum distance between two steps of a user; `None` if no user took part twice.
    pub min_sep: Option<usize>,
    /// Maximum number of steps of a user.
    pub max_participations: usize,
    /// sens(C, Pi) for the observed Pi, under the plan's adjacency, with its proof.
    pub sensitivity: Sensitivity,
    /// The plan's noise divided by the sensitivity of the rounded strategy for the observed participation,
    /// rounded down; at least the plan's noise multiplier.
    pub noise_multiplier: f64,
}

impl ObservedPrivacy {
    /// epsilon at `delta`.
    ///
    /// # Errors
    /// When delta is not between 0 and 1.
    pub fn epsilon(&self, delta: f64) -> Result<Bounds> {
        let gdp = Gdp::from_noise_multiplier_upper(self.noise_multiplier)?;
        Ok(Bounds { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? })
    }
}

impl VerifiedPlan {
    /// The limits (b, k) of a federated plan: any two steps of a user are at least b apart, and a user has at
    /// most k steps.
    ///
    /// # Errors
    /// When the plan is not for users who participate on their own initiative (`min-sep:b,k`, external
    /// sampler).
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert!(plan.participation_limits().unwrap_err().to_string().contains("cyclic:20,2 of units example"));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn participation_limits(&self) -> Result<(usize, usize)> {
        match (self.sampler, &self.participation, self.privacy.unit) {
            (
                Sampler::External,
                &Participation::MinSep { min_sep, max_participations },
                PrivacyUnit::User,
            ) => Ok((min_sep, max_participations)),
            (_, participation, unit) => {
                let got = format!("{participation} of units {unit}");
                let must_be = "min-sep:B,K of users who participate on their own initiative: a federated plan for users";
                Err(InvalidParameter::new("participation of the plan", got, must_be).into())
            }
        }
    }

    /// The privacy of a run in which the finished steps of each user were one of `patterns`.
    ///
    /// The sensitivity is the maximum over the patterns. If there are too many patterns or they are too long,
    /// it is that of the min-sep schema with the observed separation and number of steps. The figure holds in
    /// hindsight, under the conditions that [`VerifiedPlan::statement_of_observed`] states.
    ///
    /// # Errors
    /// When the plan is not for users who participate on their own initiative, or a pattern is not one that
    /// it allows.
    ///
    /// ```
    /// use antinoise_plan::{Length, PrivacyUnit, Request, Setting, choose};
    /// let setting = Setting::Federated { min_sep: 3, max_participations: Some(4) };
    /// let request = Request { unit: PrivacyUnit::User, ..Request::new(40, 2, Length::Steps(12), setting) };
    /// let plan = choose(&request)?.plan;
    /// let once = plan.observed(&[vec![0], vec![7]])?.epsilon(plan.privacy.delta)?;
    /// assert!(once.upper < 0.6 * plan.privacy.epsilon);
    /// assert!(plan.observed(&[vec![0, 2]]).is_err());
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn observed(&self, patterns: &[Vec<usize>]) -> Result<ObservedPrivacy> {
        let (least, most) = self.participation_limits()?;
        at_least("number of users with finished steps", patterns.len(), 1)?;
        let products = patterns.iter().fold(0, |sum: usize, p| sum.saturating_add(p.len() * p.len()));
        let listed = Participation::Patterns { patterns: patterns.to_vec() };
        listed.check(self.steps)?;
        let Separation { min_sep, max_participations } = listed.separation(self.steps);
        between("min_sep", min_sep, least, self.steps, "steps")?;
        between("max_participations", max_participations, 1, most, "the plan's")?;
        let mut found = self.under(&Participation::MinSep { min_sep, max_participations })?;
        if self.steps <= MAX_STEPS && products <= MAX_PRODUCTS {
            let exact = self.under(&listed)?;
            // Both bounds hold; take the smaller sensitivity.
            if exact.1 >= found.1 {
                found = exact;
            }
        }
        let (sensitivity, noise_multiplier) = found;
        let min_sep = (max_participations > 1).then_some(min_sep);
        Ok(ObservedPrivacy { min_sep, max_participations, sensitivity, noise_multiplier })
    }

    /// The sensitivity under a schema that the plan's schema contains, and the plan's noise divided by the
    /// sensitivity of the rounded strategy (with the rounding of the history term).
    fn under(&self, participation: &Participation) -> Result<(Sensitivity, f64)> {
        let (strategy, kind) = (&*self.strategy, self.arithmetic.kind());
        let stated = strategy.sensitivity(participation)?;
        let sensitivity = rounded::sensitivity_upper(strategy, participation, kind.precision())?;
        let noise_multiplier = self.noise_over(sensitivity).max(self.noise_multiplier);
        Ok((stated.under(self.privacy.adjacency), noise_multiplier))
    }

    /// The statement for `observed` over `finished` steps, with its assumptions.
    ///
    /// # Errors
    /// As [`ObservedPrivacy::epsilon`].
    pub fn statement_of_observed(
        &self,
        observed: &ObservedPrivacy,
        finished: usize,
    ) -> Result<PrivacyStatement> {
        let planned = self.statement();
        let Bounds { lower, upper } = observed.epsilon(self.privacy.delta)?;
        let Sensitivity { value, kind, source, .. } = &observed.sensitivity;
        let apart =
            observed.min_sep.map_or(String::new(), |steps| format!(", any two at least {steps} apart"));
        let mut assumptions = planned.assumptions.clone();
        assumptions.extend([
            "which units took part in which step depended neither on anybody's private data nor on earlier noisy sums, \
             and may be public"
                .into(),
            "the ledger is complete: every unit that was used in a step is recorded, under the same name each time".into(),
        ]);
        let mut not_covered = planned.not_covered.clone();
        not_covered.push(
            "choices made because of the observed participation (which of several runs to publish, when to stop, which \
             figure to report): this is a statement after the fact, given the participation that happened. What was \
             promised before the run is the plan's own statement"
                .into(),
        );
        Ok(PrivacyStatement {
            schema: format!(
                "as recorded in the run's ledger, over {finished} of {} steps: a unit took part in at most {} of \
                 them{apart}",
                self.steps, observed.max_participations
            ),
            sampler: "formed by the operator of the run; the ledger recorded participants before their gradients were used"
                .into(),
            mechanism: format!(
                "{}. For the observed participation the sensitivity is {value:.7} ({kind}: {source})",
                planned.mechanism,
                kind = match kind {
                    antinoise_mechanism::sensitivity::Kind::Exact => "exact",
                    antinoise_mechanism::sensitivity::Kind::UpperBound => "an upper bound",
                }
            ),
            accountant: format!(
                "Gaussian differential privacy at noise multiplier {:.7}, the noise over that sensitivity with rounding \
                 errors included; no amplification by sampling is claimed; the plan promised epsilon {:.4} for every \
                 participation that it allows",
                observed.noise_multiplier, self.privacy.epsilon
            ),
            epsilon: upper,
            epsilon_lower: lower,
            assumptions,
            not_covered,
            ..planned
        })
    }
}
