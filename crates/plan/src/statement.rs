//! The privacy claim in words.

use std::fmt;

use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, Participation};

use crate::{Accountant, Plan, Sampler};

impl Plan {
    /// The claim in words: unit, adjacency, schema, sampler, epsilon, delta, sigma, sensitivity and sources.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert!(plan.statement().starts_with("The run is (1.00"));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn statement(&self) -> String {
        Statement(self).to_string()
    }
}

struct Statement<'a>(&'a Plan);

impl fmt::Display for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        let privacy = &plan.privacy;
        write!(
            f,
            "The run is ({:.4}, {:e})-differentially private for one {}: two datasets are adjacent when {}. ",
            // Four digits, never below the figure itself.
            (privacy.epsilon * 1e4).ceil() / 1e4,
            privacy.delta,
            privacy.unit,
            match privacy.adjacency {
                Adjacency::ZeroOut => "one unit's gradients are replaced by zero",
                Adjacency::ReplaceOne => "one unit's gradients are replaced by another's",
            }
        )?;
        write!(f, "{} {} ", schema(plan), sampler(plan))?;
        let Accountant::Gdp = privacy.accountant;
        write!(
            f,
            "Each unit's gradient is clipped to norm {}; Gaussian seed noise of standard deviation {:.6} (noise \
             multiplier {:.6} x sensitivity {:.6} x clip norm) is correlated by the strategy {} over {} steps. The \
             sensitivity is {} ({}). The release is {:.6}-GDP, exactly; no amplification by sampling is claimed.",
            plan.clip_norm,
            plan.noise_std(),
            plan.noise_multiplier,
            plan.sensitivity.value,
            plan.strategy.class().name(),
            plan.steps,
            match plan.sensitivity.kind {
                Kind::Exact => "exact",
                Kind::UpperBound => "an upper bound",
            },
            plan.sensitivity.source,
            1.0 / plan.noise_multiplier,
        )
    }
}

fn schema(plan: &Plan) -> String {
    match &plan.participation {
        Participation::Single => "A unit takes part in at most one step.".into(),
        Participation::FullBatch => "A unit may take part in every step.".into(),
        Participation::Cyclic { min_sep, max_participations } => format!(
            "A unit takes part in at most {max_participations} steps, exactly {min_sep} apart (cyclic)."
        ),
        Participation::MinSep { min_sep, max_participations } => format!(
            "A unit takes part in at most {max_participations} steps, any two at least {min_sep} apart."
        ),
        Participation::Patterns { patterns } => {
            format!("A unit takes part in the steps of one of {} listed patterns at most.", patterns.len())
        }
    }
}

fn sampler(plan: &Plan) -> String {
    match plan.sampler {
        Sampler::Cyclic { groups } => {
            format!("{} examples are shuffled once into {groups} batches that take turns.", plan.examples)
        }
        Sampler::Poisson => format!(
            "Each of {} examples joins a batch with probability {}, on its own.",
            plan.examples,
            plan.batch_size as f64 / plan.examples as f64
        ),
        Sampler::External => "Whoever runs the plan keeps this schema.".into(),
    }
}
