//! The privacy claim in words.

use antinoise_accounting::{Adjacency as Neighbours, PrivacyStatement};
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, Participation};

use crate::{Accountant, Plan, Sampler};

impl Plan {
    /// The claim in words: unit, adjacency, schema, sampler, epsilon, delta, sigma, sensitivity and sources.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert!(plan.statement().to_string().contains("differential privacy of one example"));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn statement(&self) -> PrivacyStatement {
        let privacy = &self.privacy;
        PrivacyStatement {
            unit: privacy.unit.to_string(),
            adjacency: match privacy.adjacency {
                Adjacency::ZeroOut => Neighbours::ZeroOut,
                Adjacency::ReplaceOne => Neighbours::ReplaceOne,
            },
            schema: schema(self),
            sampler: sampler(self),
            mechanism: mechanism(self),
            accountant: accountant(self),
            epsilon: privacy.epsilon,
            epsilon_lower: privacy.epsilon_lower,
            delta: privacy.delta,
            confidence: None,
            assumptions: assumptions(self),
        }
    }
}

fn schema(plan: &Plan) -> String {
    if let (Accountant::SampledGaussian, Sampler::Poisson { groups }) =
        (plan.privacy.accountant, plan.sampler)
    {
        return match plan.steps.div_ceil(groups) {
            1 => "a unit has one turn at most".into(),
            turns if groups == 1 => {
                format!("a unit may take part in each of {turns} steps, and does in some")
            }
            turns => {
                format!("a unit has {turns} turns at most, every {groups} steps, and takes part in some")
            }
        };
    }
    match &plan.participation {
        Participation::Single => "a unit takes part in at most one step".into(),
        Participation::FullBatch => "a unit may take part in every step".into(),
        Participation::Cyclic { min_sep, max_participations } => {
            format!(
                "a unit takes part in at most {max_participations} steps, exactly {min_sep} apart (cyclic)"
            )
        }
        Participation::MinSep { min_sep, max_participations } => format!(
            "a unit takes part in at most {max_participations} steps, any two at least {min_sep} apart"
        ),
        Participation::Patterns { patterns } => {
            format!("a unit takes part in the steps of one of {} listed patterns at most", patterns.len())
        }
    }
}

fn sampler(plan: &Plan) -> String {
    let Plan { examples, batch_size, .. } = plan;
    match plan.sampler {
        Sampler::Cyclic { groups } => {
            format!("{examples} examples are shuffled once into {groups} batches that take turns")
        }
        Sampler::Poisson { groups: 1 } => {
            let rate = *batch_size as f64 / *examples as f64;
            format!("each of {examples} examples joins a batch with probability {rate}, on its own")
        }
        Sampler::Poisson { groups } => {
            let rate = groups as f64 * *batch_size as f64 / *examples as f64;
            format!(
                "{examples} examples are shuffled once into {groups} groups that take turns; in its group's turn \
                 each joins the batch with probability {rate}, on its own (block-cyclic Poisson)"
            )
        }
        Sampler::External => "whoever runs the plan keeps this schema".into(),
    }
}

fn mechanism(plan: &Plan) -> String {
    format!(
        "Gaussian seed noise of standard deviation {:.6e} (noise multiplier {:.6} x sensitivity {:.6} x clip norm {}) \
         is correlated by the strategy {} over {} steps; the sensitivity is {} ({})",
        plan.noise_std(),
        plan.noise_multiplier,
        plan.sensitivity.value,
        plan.clip_norm,
        plan.strategy.class().name(),
        plan.steps,
        match plan.sensitivity.kind {
            Kind::Exact => "exact",
            Kind::UpperBound => "an upper bound",
        },
        plan.sensitivity.source,
    )
}

fn accountant(plan: &Plan) -> String {
    match plan.privacy.accountant {
        Accountant::Gdp => {
            // Six digits, not below the figure itself.
            let mu = (1.0 + 1e-6) / plan.noise_multiplier;
            format!("the release is {mu:.6e}-GDP (rounded up); no amplification by sampling is claimed")
        }
        Accountant::SampledGaussian => "amplified by sampling: at least as private as DP-SGD with as many steps as a \
             unit has turns, at that probability and noise multiplier (theorem 3.21 of the monograph on correlated \
             noise, arXiv 2506.08201), which privacy loss distributions bracket"
            .into(),
    }
}

fn assumptions(plan: &Plan) -> Vec<String> {
    let clip = format!("a unit's gradient in one step is clipped to norm {}", plan.clip_norm);
    let neighbours = match plan.privacy.adjacency {
        Adjacency::ZeroOut => "data sets are neighbours when one unit's gradients are replaced by zero",
        Adjacency::ReplaceOne => {
            "data sets are neighbours when one unit's gradients are replaced by another's"
        }
    };
    let mut all = vec![clip, neighbours.to_string()];
    if plan.privacy.accountant == Accountant::SampledGaussian {
        all.push("who takes part in which step stays secret".into());
    }
    all
}
