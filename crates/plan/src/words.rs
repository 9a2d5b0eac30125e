//! The parts of a privacy statement, in words.

use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, Participation};

use crate::{Accountant, Plan, Release, Sampler, Scheme, VerifiedPlan};

/// Seven digits.
fn figure(x: f64) -> String {
    let magnitude = x.log10().floor();
    if (-4.0..7.0).contains(&magnitude) {
        format!("{x:.0$}", (6.0 - magnitude) as usize)
    } else {
        format!("{x:.6e}")
    }
}

pub(crate) fn schema(plan: &VerifiedPlan) -> String {
    if let Scheme::Amplified { groups } = plan.scheme() {
        return match plan.steps.div_ceil(groups) {
            1 => "a unit takes part in at most one step".into(),
            turns if groups == 1 => {
                format!("a unit may take part in each of {turns} steps; sampling decides in which it does")
            }
            turns => {
                format!(
                    "a unit's group is sampled in at most {turns} steps, {groups} apart; sampling decides in which of \
                     them the unit takes part"
                )
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

pub(crate) fn sampler(plan: &VerifiedPlan) -> String {
    let Plan { examples, batch_size, .. } = &**plan;
    match plan.sampler {
        Sampler::Cyclic { groups } => {
            format!(
                "{examples} examples are shuffled once into {groups} batches, which are used in cyclic order"
            )
        }
        Sampler::Poisson { groups: 1 } => {
            let rate = *batch_size as f64 / *examples as f64;
            format!(
                "each of {examples} examples joins a batch independently with probability {}",
                figure(rate)
            )
        }
        Sampler::Poisson { groups } => {
            let rate = groups as f64 * *batch_size as f64 / *examples as f64;
            format!(
                "{examples} examples are shuffled once into {groups} groups, one for each step in cyclic order; each \
                 example of a step's group joins the batch independently with probability {} (block-cyclic Poisson)",
                figure(rate)
            )
        }
        Sampler::BallsInBins { bins } => format!(
            "each of {examples} examples is put in one of {bins} bins, uniformly and on its own, once for the whole run; \
             bins take turns (balls in bins)"
        ),
        Sampler::BMinSep { min_sep } => {
            let rate = *batch_size as f64 / *examples as f64;
            let free = *examples - (min_sep - 1) * *batch_size;
            format!(
                "each of {examples} examples that took part in none of the last {} steps joins a batch independently with probability \
                 {}; at first it sits out each number of steps below {min_sep} but 0 with probability {} (b-min-sep)",
                min_sep - 1,
                figure(*batch_size as f64 / free as f64),
                figure(rate)
            )
        }
        Sampler::Stream => format!(
            "the first {} of {examples} examples are taken once, {batch_size} a step, in their given order, which may be \
             known: nothing is shuffled or sampled, and no amplification is claimed",
            plan.steps * batch_size
        ),
        Sampler::External => "external: the user of the plan must enforce this schema".into(),
    }
}

pub(crate) fn mechanism(plan: &VerifiedPlan) -> String {
    format!(
        "Gaussian seed noise of standard deviation {} (noise multiplier {} x sensitivity {} x widened clip norm {} x \
         {} for coefficients and sums as they are rounded, rounded up) is correlated by the strategy {} over {} steps; the sensitivity is {} ({})",
        figure(plan.noise_std()),
        figure(plan.noise_multiplier),
        figure(plan.sensitivity.value),
        figure(plan.widened_clip_norm()),
        figure(plan.rounding_factor),
        plan.strategy.class().name(),
        plan.steps,
        match plan.sensitivity.kind {
            Kind::Exact => "exact",
            Kind::UpperBound => "an upper bound",
        },
        plan.sensitivity.source,
    )
}

pub(crate) fn accountant(plan: &VerifiedPlan) -> String {
    match plan.privacy.accountant {
        Accountant::Gdp => {
            format!("the release is {}-GDP (rounded up); no amplification by sampling is claimed", mu(plan))
        }
        Accountant::SampledGaussian => format!(
            "amplified by sampling: at least as private as DP-SGD with as many steps as a unit's group is sampled in, at that \
             probability and noise multiplier (theorem 3.21 of the monograph on correlated noise, arXiv 2506.08201), \
             whose privacy is computed by privacy loss distributions with upper and lower bounds{}",
            match plan.privacy.adjacency {
                Adjacency::ZeroOut => "",
                Adjacency::ReplaceOne =>
                    ". That is for an example that is zeroed out, with twice the noise over its sensitivity; to replace one is \
                     to zero it out and then another, so that (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta)",
            }
        ),
        Accountant::BallsInBins => format!(
            "amplified by sampling: nobody knows an example's bin. For a C without negative entries the mixture of noise around \
             the bins' columns against noise alone is the worst case (arXiv 2410.06266); its delta is bounded by importance \
             sampling, on samples that follow from the plan's own numbers. Without sampling, as it counts among several models, \
             the release is {}-GDP",
            mu(plan)
        ),
        Accountant::BMinSep => format!(
            "amplified by sampling: nobody knows in which steps an example takes part. For a C without negative entries the mixture of \
             noise around the columns of all its patterns against noise alone is the worst case (arXiv 2602.09338, docs/accounting.md); its delta \
             is bounded by importance sampling, on samples that follow from the plan's own numbers. Without sampling, as it counts \
             among several models, the release is {}-GDP",
            mu(plan)
        ),
    }
}

/// Seven digits of 1 / sigma, not below it.
fn mu(plan: &VerifiedPlan) -> String {
    figure((1.0 + 1e-6) / plan.noise_multiplier)
}

pub(crate) fn arithmetic(plan: &VerifiedPlan) -> String {
    let clip = plan.clip_norm;
    match plan.release {
        Release::Grid { spacing, dim } => format!(
            "sums and noise are rounded to multiples of 2^{} and added in whole numbers, and the rounding of the noise is \
             fed back, so that all releases are a function of the exact noisy sums (docs/noise.md). Rounding {dim} coordinates at \
             most, and floating point in the sum, widen the clip norm {clip} to {}, which the noise is scaled to",
            spacing.log2(),
            figure(plan.widened_clip_norm())
        ),
        Release::PlainFloatingPoint => format!(
            "plain: floating-point noise is added to floating-point sums. Which numbers can come out then depends on the \
             data, and THE CLAIM HOLDS ONLY FOR AN OBSERVER WHO DOES NOT USE THE LAST BITS of what is released. Floating \
             point in the sum widens the clip norm {clip} to {}, which the noise is scaled to",
            figure(plan.widened_clip_norm())
        ),
    }
}

pub(crate) fn checked(plan: &VerifiedPlan) -> String {
    let curve = match plan.privacy.accountant {
        Accountant::Gdp => {
            "that the Gaussian curve errs less in double precision than its bounds allow (against 60 digits)"
        }
        Accountant::SampledGaussian => {
            "the constants that bound rounding in the bracket of privacy loss distributions, and that the mathematical \
             library is good to an ulp"
        }
        Accountant::BallsInBins | Accountant::BMinSep => {
            "that rounding moves simulated losses by less than a part in 10^9, and that the bits of ChaCha20, which simulated \
             normals are made of, cannot be told from random ones"
        }
    };
    format!(
        "{curve}; that the generated normals are as close to exact ones as docs/noise.md says; and that their bits, from a \
         cipher, cannot be distinguished from random ones"
    )
}

pub(crate) fn not_covered(models: &str) -> Vec<String> {
    vec![
        "everything that is computed from the private data without noise: losses, accuracies, fractions of clipped \
         examples, the choice of clip norm, learning rate, batch size or steps by looking at them"
            .into(),
        models.into(),
    ]
}

pub(crate) fn assumptions(plan: &VerifiedPlan) -> Vec<String> {
    let clip = format!("a unit's gradient in one step is clipped to norm {}", plan.clip_norm);
    let neighbours = match plan.privacy.adjacency {
        Adjacency::ZeroOut => "data sets are neighbours when one unit's gradients are replaced by zero",
        Adjacency::ReplaceOne => {
            "data sets are neighbours when one unit's gradients are replaced by another's"
        }
    };
    let key = "the key that noise and batches come from is random, is used for this run alone, stays secret and is \
               destroyed: whoever has it can subtract the noise";
    let mut all = vec![clip, neighbours.to_string(), key.to_string()];
    if plan.release == Release::PlainFloatingPoint {
        all.push("nobody uses the last bits of what is released".into());
    }
    if plan.scheme().is_amplified() {
        all.push("who takes part in which step stays secret".into());
        if plan.release != Release::PlainFloatingPoint {
            all.push(format!(
                "what double precision adds to the past's share of the noise, over all steps less than {:.1e} of the \
                 sensitivity, is counted as if it were in a unit's own steps",
                // Two digits, rounded up.
                (plan.rounding_factor - 1.0) * 1.05
            ));
        }
    }
    all
}
