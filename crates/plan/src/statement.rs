//! Privacy claims in words, of one model and of several models from the same data.

use antinoise_accounting::{Bounds, Composition, Gdp, PoissonSampledGaussian, PrivacyStatement};
use antinoise_input::{InvalidParameter, at_least, between, rounded_to_4};
use antinoise_mechanism::{Adjacency, rounded};

use crate::plan::neighbours;
use crate::statement_text::{
    accountant, arithmetic, assumptions, checked, mechanism, not_covered, sampler, schema,
};
use crate::{Result, VerifiedPlan};

/// Bounds on the epsilon of all `models` together at `delta`. Each plan is used the given number of times on
/// the same data, with a key of its own for each model, in any order; each plan may depend on earlier models.
/// Models with a Monte Carlo accountant (balls in bins, b-min-sep) are composed without amplification.
///
/// If you train several models and publish the best one by its results on the private data, count all of
/// them.
///
/// # Errors
/// When there is no model, a count is 0, or the plans have different units or adjacencies.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose, compose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// assert!(compose(&[(&plan, 9)], 1e-6)?.upper > 3.0 * plan.privacy.epsilon);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn compose(models: &[(&VerifiedPlan, usize)], delta: f64) -> Result<Bounds> {
    at_least("number of models", models.len(), 1)?;
    let (first, mut full, mut sampled) = (models[0].0, Vec::new(), Vec::new());
    // If one model is Poisson-sampled, the noise of all is relative to the norm of one contribution.
    let adjacency = first.privacy.adjacency;
    let factor = match models.iter().any(|(plan, _)| plan.dp_sgd_groups().is_some()) {
        true => adjacency.sensitivity_factor(),
        false => 1.0,
    };
    for &(plan, times) in models {
        at_least("number of models", times, 1)?;
        if (plan.privacy.unit, plan.privacy.adjacency) != (first.privacy.unit, first.privacy.adjacency) {
            let got = format!("{} under {}", plan.privacy.unit, plan.privacy.adjacency);
            let must_be = format!("{} under {} for all", first.privacy.unit, first.privacy.adjacency);
            return Err(InvalidParameter::new("unit and adjacency of the plans", got, must_be).into());
        }
        match plan.sampled_run(plan.steps)? {
            None => {
                let gdp = Gdp::from_noise_multiplier_upper(plan.noise_multiplier * factor)?;
                full.push(gdp.repeat_upper(times as u64)?);
            }
            Some(run) => {
                sampled.push(run.with_steps(run.steps().saturating_mul(times as u64))?);
            }
        }
    }
    let full = Gdp::compose_upper(full)?;
    if sampled.is_empty() {
        return Ok(Bounds { lower: full.epsilon_lower(delta)?, upper: full.epsilon_upper(delta)? });
    }
    if full.mu() > 0.0 {
        // A Gaussian mechanism is a step at sampling rate 1, with its noise multiplier rounded down.
        let step = PoissonSampledGaussian::new((1.0 / full.mu()).next_down(), 1.0, 1)?;
        sampled.push(if adjacency == Adjacency::ReplaceOne { step.replaced() } else { step });
    }
    Ok(Composition::new(sampled)?.epsilon(delta)?)
}

impl VerifiedPlan {
    /// The claim in words: a summary in three sentences, the details (unit, adjacency, schema, sampler,
    /// epsilon, delta, sigma, sensitivity and sources, floating point), assumptions, and what is not covered.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// let statement = plan.statement().with_fact("key", "destroyed");
    /// assert!(statement.to_string().contains("differential privacy of one example"));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn statement(&self) -> PrivacyStatement {
        let privacy = &self.privacy;
        PrivacyStatement {
            unit: privacy.unit.to_string(),
            adjacency: neighbours(privacy.adjacency),
            schema: schema(self),
            sampler: sampler(self),
            mechanism: mechanism(self),
            accountant: accountant(self),
            epsilon: privacy.epsilon,
            epsilon_lower: self.epsilon_lower(),
            delta: privacy.delta,
            failure: privacy.failure,
            units: Some(self.examples),
            observer: "anyone who sees the noisy sum of every step, and so every model along the way as well as the \
                       last, and who may know all the other data"
                .into(),
            arithmetic: arithmetic(self),
            checked: checked(self),
            assumptions: assumptions(self),
            not_covered: not_covered(
                "any other model trained on the same data: choosing the best of several, or their settings, by results \
                 on the private data costs more privacy",
            ),
            software: concat!("antinoise ", env!("CARGO_PKG_VERSION")).into(),
            facts: Vec::new(),
        }
    }

    /// The statement for `models` models that are trained by this plan on the same data, all of which the
    /// observer knows.
    ///
    /// # Errors
    /// When `models` is 0, or too large for a finite epsilon of all models together.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert!(plan.statement_of_models(3)?.epsilon > 1.5 * plan.statement().epsilon);
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn statement_of_models(&self, models: usize) -> Result<PrivacyStatement> {
        self.statement_among(&[(self, models)])
    }

    /// The statement for a model of this plan that was selected from all of `models`, which include it.
    /// epsilon is that of [`compose`] at this plan's delta.
    ///
    /// # Errors
    /// As [`compose`].
    pub fn statement_among(&self, models: &[(&Self, usize)]) -> Result<PrivacyStatement> {
        let count: usize = models.iter().map(|(_, times)| times).sum();
        let alone = self.statement();
        if let [(plan, 1)] = models
            && *plan == self
        {
            return Ok(alone);
        }
        let Bounds { lower, upper } = compose(models, self.privacy.delta)?;
        let accountant = format!(
            "{}. Epsilon is that of {count} models from the same data together, all counted as published; one of them \
             alone, by this plan, has epsilon {:.4}",
            alone.accountant,
            rounded_to_4(self.privacy.epsilon, f64::ceil)
        );
        let not_covered = not_covered(&format!(
            "models trained on the same data beyond these {count}; which of the {count} is published may be chosen by \
             results on the private data"
        ));
        let (epsilon, epsilon_lower) = (upper, lower);
        Ok(PrivacyStatement { epsilon, epsilon_lower, accountant, not_covered, failure: None, ..alone })
    }
}

impl VerifiedPlan {
    /// Upper bounds on the epsilon of the first t steps at the plan's delta, for each t of `after`, in
    /// increasing order. The bounds are non-decreasing and at most the plan's own. A run that is stopped
    /// after t steps, for a reason that does not depend on the data, has this epsilon.
    ///
    /// For Monte Carlo accountants, whose figures take long to compute, they are the minimum of the plan's
    /// epsilon and the epsilon without amplification.
    ///
    /// # Errors
    /// When a t is 0, above n or not above the previous one, or the run has too many steps to hold C in
    /// memory.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(4), Setting::Cyclic))?.plan;
    /// let spent = plan.epsilon_by_step(&[1, 20, 40, 80])?;
    /// assert!(spent.is_sorted() && spent[1] < 0.6 * plan.privacy.epsilon && spent[3] <= plan.privacy.epsilon);
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn epsilon_by_step(&self, after: &[usize]) -> Result<Vec<f64>> {
        let mut least = 1;
        for &steps in after {
            between("steps", steps, least, self.steps, "the plan's")?;
            least = steps + 1;
        }
        let mut found = match self.dp_sgd_groups() {
            Some(groups) => self.sampled_by_step(groups, after)?,
            None => self.unamplified_by_step(after)?,
        };
        // A bound for more steps is also a bound for fewer steps.
        let mut most = self.privacy.epsilon;
        for epsilon in found.iter_mut().rev() {
            most = most.min(*epsilon);
            *epsilon = most;
        }
        Ok(found)
    }

    /// Epsilon by step under amplified block-cyclic Poisson sampling, where a unit participates at most once
    /// in each round of `groups` steps (the last of which may be incomplete).
    fn sampled_by_step(&self, groups: usize, after: &[usize]) -> Result<Vec<f64>> {
        let epsilon = |&steps: &usize| -> Result<f64> {
            let run = Composition::new(self.sampled_run(steps.max(groups))?)?;
            Ok(run.epsilon(self.privacy.delta)?.upper)
        };
        after.iter().map(epsilon).collect()
    }

    fn unamplified_by_step(&self, after: &[usize]) -> Result<Vec<f64>> {
        let (strategy, kind) = (&*self.strategy, self.arithmetic.kind());
        let prefixes =
            rounded::prefix_sensitivities_upper(strategy, &self.participation, kind.precision(), after)?;
        let epsilon = |sensitivity: f64| -> Result<f64> {
            let gdp = Gdp::from_noise_multiplier_upper(self.noise_over(sensitivity))?;
            Ok(gdp.epsilon_upper(self.privacy.delta)?)
        };
        prefixes.into_iter().map(epsilon).collect()
    }
}
