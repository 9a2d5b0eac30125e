//! The text of a privacy statement.

use antinoise_accounting::three_digits_up;
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Workload};

use crate::{Accountant, Arithmetic, Plan, Sampler, VerifiedPlan};

/// What a claim for the owners of examples assumes.
pub(crate) const OWNERSHIP: &str = "who owns which example is the same in neighbouring data sets, which differ in the \
                                    contents of one user's examples: batches depend on ownership, which is not protected";

/// `x` to seven significant digits.
fn figure(x: f64) -> String {
    let magnitude = x.log10().floor();
    if (-4.0..7.0).contains(&magnitude) {
        format!("{x:.0$}", (6.0 - magnitude) as usize)
    } else {
        format!("{x:.6e}")
    }
}

/// The singular and the plural of what the sampler draws: examples or users.
fn drawn(plan: &VerifiedPlan) -> (&'static str, &'static str) {
    match plan.max_examples_per_user {
        Some(_) => ("user", "users"),
        None => ("example", "examples"),
    }
}

pub(crate) fn schema(plan: &VerifiedPlan) -> String {
    if let Some(groups) = plan.dp_sgd_groups() {
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
        Participation::EachEpoch { epoch_steps } => {
            format!(
                "a unit takes part in at most one of the {epoch_steps} steps of each epoch, in any of them"
            )
        }
        Participation::Patterns { patterns } => {
            format!("a unit takes part only in steps of one of {} listed patterns", patterns.len())
        }
    }
}

pub(crate) fn sampler(plan: &VerifiedPlan) -> String {
    let Plan { examples, batch_size, .. } = &**plan;
    let (_, units) = drawn(plan);
    match plan.sampler {
        Sampler::Cyclic { groups } => {
            format!(
                "{examples} {units} are shuffled once into {groups} batches, which are used in cyclic order"
            )
        }
        Sampler::Shuffled { groups } => format!(
            "{examples} {units} are shuffled anew in every epoch and cut into {groups} batches; no amplification is \
             claimed, so that the order may be public"
        ),
        Sampler::Poisson { groups } => poisson(plan, groups),
        Sampler::TruncatedPoisson { groups, max_batch_size } => format!(
            "{}; of more than {max_batch_size}, that many are drawn uniformly at random (truncated)",
            poisson(plan, groups)
        ),
        Sampler::BallsInBins { bins } => format!(
            "each of {examples} {units} is put in one of {bins} bins, uniformly and independently, once for the whole \
             run; the bins are used as batches in turn (balls in bins)"
        ),
        Sampler::BMinSep { min_sep } => {
            let rate = *batch_size as f64 / *examples as f64;
            let free = *examples - (min_sep - 1) * *batch_size;
            format!(
                "each of {examples} {units} that took part in none of the last {} steps joins a batch independently \
                 with probability {}; at the start it sits out the first j steps with \
                 probability {} for each j from 1 to {0} (b-min-sep)",
                min_sep - 1,
                figure(*batch_size as f64 / free as f64),
                figure(rate)
            )
        }
        Sampler::Stream => format!(
            "the first {} of {examples} {units} are used once, {batch_size} per step, in their given order, which may \
             be public: nothing is shuffled or sampled, and no amplification is claimed",
            plan.steps * batch_size
        ),
        Sampler::External => {
            "formed by the program that runs the plan, which must enforce the participation above".into()
        }
    }
}

/// Batches of Poisson sampling from `groups` groups.
fn poisson(plan: &VerifiedPlan, groups: usize) -> String {
    let (Plan { examples, batch_size, .. }, (unit, units)) = (&**plan, drawn(plan));
    let rate = figure(groups as f64 * *batch_size as f64 / *examples as f64);
    match groups {
        1 => format!("each of {examples} {units} joins a batch independently with probability {rate}"),
        _ => format!(
            "{examples} {units} are shuffled once into {groups} groups, one for each step in cyclic order; each {unit} of \
             a step's group joins the batch independently with probability {rate} (block-cyclic Poisson)"
        ),
    }
}

/// The class of a strategy, with what is done to it.
fn strategy(of: &AnyStrategy) -> String {
    match of {
        AnyStrategy::ColumnNormalized(scaled) => {
            format!("{} with columns of norm 1", strategy(scaled.inner()))
        }
        AnyStrategy::Restarted(restarted) => {
            format!("{}, restarted every {} steps,", strategy(restarted.run()), restarted.run().steps())
        }
        _ => of.class().name().into(),
    }
}

pub(crate) fn mechanism(plan: &VerifiedPlan) -> String {
    format!(
        "Gaussian seed noise of standard deviation {} (noise multiplier {} x sensitivity {} x widened clip norm {} x \
         {} as an allowance for rounded coefficients and sums; rounded up) is correlated over time by the strategy {} \
         for {} steps, whose loss is that for the workload {}; the sensitivity is {} ({})",
        figure(plan.noise_std()),
        figure(plan.noise_multiplier),
        figure(plan.sensitivity.value),
        figure(plan.widened_clip_norm()),
        figure(plan.rounding_factor),
        strategy(&plan.strategy),
        plan.steps,
        plan.workload,
        match plan.sensitivity.kind {
            Kind::Exact => "exact",
            Kind::UpperBound => "an upper bound",
        },
        plan.sensitivity.source,
    )
}

pub(crate) fn accountant(plan: &VerifiedPlan) -> String {
    let unit = drawn(plan).0;
    match plan.privacy.accountant {
        Accountant::Gdp => {
            format!(
                "{}-GDP (Gaussian differential privacy, rounded up); no amplification by sampling is claimed",
                mu(plan)
            )
        }
        Accountant::SampledGaussian => format!(
            "amplification by sampling: at least as private as DP-SGD with one step for each step in which a unit's group \
             is sampled, at the same sampling probability and noise multiplier (theorem 3.21 of the monograph on \
             correlated noise, arXiv 2506.08201); that DP-SGD's privacy is computed by privacy loss distributions with \
             upper and lower bounds{}{}",
            match plan.privacy.adjacency {
                Adjacency::ZeroOut => String::new(),
                Adjacency::ReplaceOne => format!(
                    ". A sampled {unit} is replaced by one whose contribution is the opposite, and the two mixtures of \
                     Gaussians are compared; no replacement is worse"
                ),
            },
            match plan.truncation_delta() {
                Some(cost) => format!(
                    ". Delta includes {}, a bound on the expected number of steps in which a {unit} is sampled into a \
                     batch that is cut (docs/accounting.md)",
                    three_digits_up(cost)
                ),
                None => String::new(),
            }
        ),
        Accountant::BallsInBins => format!(
            "amplification by sampling, since the bin of each {unit} stays secret. For a strategy matrix without negative \
             entries, the worst case is the mixture of Gaussians centred at the bins' columns, compared with noise alone \
             (arXiv 2410.06266); its delta is bounded by importance sampling, with random numbers derived from the plan \
             itself. Several models together are counted without amplification: this one is then {}-GDP",
            mu(plan)
        ),
        Accountant::BMinSep => format!(
            "amplification by sampling, since the steps in which any {unit} takes part stay secret. For a strategy matrix \
             without negative entries, the worst case is the mixture of Gaussians centred at the sums of columns of all \
             participation patterns, compared with noise alone (arXiv 2602.09338, docs/accounting.md); its delta is \
             bounded by importance sampling, with random numbers derived from the plan itself. Several models together \
             are counted without amplification: this one is then {}-GDP",
            mu(plan)
        ),
    }
}

/// 1 / sigma to seven significant digits, rounded up.
fn mu(plan: &VerifiedPlan) -> String {
    figure((1.0 + 1e-6) / plan.noise_multiplier)
}

pub(crate) fn arithmetic(plan: &VerifiedPlan) -> String {
    let clip = plan.clip_norm;
    match plan.arithmetic {
        Arithmetic::Grid { spacing, dim } => format!(
            "sums and noise are rounded to multiples of 2^{} and added as whole numbers, and rounding errors of the noise \
             are carried into later steps, so that everything published is a function of the exact noisy sums \
             (docs/noise.md). Rounding of at most {dim} coordinates and floating-point errors of the sum widen the clip \
             norm from {clip} to {}; the noise is scaled to the widened norm",
            spacing.log2(),
            figure(plan.widened_clip_norm())
        ),
        Arithmetic::PlainFloatingPoint => format!(
            "plain floating point: floating-point noise is added to floating-point sums. Which numbers can come out then \
             depends on the data, and THE CLAIM HOLDS ONLY FOR AN OBSERVER WHO DOES NOT USE THE LAST BITS of the noisy \
             numbers. Floating-point errors of the sum widen the clip norm from {clip} to {}; the noise is scaled to the \
             widened norm",
            figure(plan.widened_clip_norm())
        ),
    }
}

pub(crate) fn checked(plan: &VerifiedPlan) -> String {
    let curve = match plan.privacy.accountant {
        Accountant::Gdp => {
            "that errors of the Gaussian privacy curve in double precision are within their bounds (compared with 60 digits)"
        }
        Accountant::SampledGaussian => {
            "that the constants which bound rounding errors of privacy loss distributions are large enough, and that the \
             mathematical library is accurate to one ulp"
        }
        Accountant::BallsInBins | Accountant::BMinSep => {
            "that rounding changes simulated losses by less than one part in 10^9, and that ChaCha20, which drives the \
             simulation, is a secure pseudorandom generator"
        }
    };
    format!(
        "{curve}; that generated normals are as close to exact ones as docs/noise.md states; and that the cipher they \
         come from is a secure pseudorandom generator"
    )
}

pub(crate) fn not_covered(models: &str) -> Vec<String> {
    vec![
        "everything computed from the private data without noise: losses, accuracies, fractions of clipped examples, and \
         every choice made by looking at them, such as that of the workload, clip norm, learning rate, \
         batch size or number of steps"
            .into(),
        models.into(),
    ]
}

pub(crate) fn assumptions(plan: &VerifiedPlan) -> Vec<String> {
    let clip = match plan.max_examples_per_user {
        None => format!("a unit's gradient in one step is clipped to norm {}", plan.clip_norm),
        Some(most) => format!(
            "all examples of a person have one user name; a user's gradient in one step, the mean over at most {most} of \
             the user's examples, is clipped to norm {}",
            plan.clip_norm
        ),
    };
    let neighbours = match plan.privacy.adjacency {
        Adjacency::ZeroOut if plan.sampler.draws_examples_independently() => {
            "data sets are neighbours when one unit's gradients are replaced by zero. The same figures hold under \
             add-or-remove, when that unit is in the data or not: its steps are drawn independently of the other units', \
             and the settings (sampling rate, number of units) are public and do not depend on it"
        }
        Adjacency::ZeroOut => "data sets are neighbours when one unit's gradients are replaced by zero",
        Adjacency::ReplaceOne => {
            "data sets are neighbours when one unit's gradients are replaced by another's"
        }
    };
    let key = "the key that noise and batches are generated from is random, is used for this run only, stays secret and \
               is destroyed afterwards; anyone who has it can subtract the noise";
    let mut all = vec![key.to_string(), clip, neighbours.to_string()];
    if matches!(&plan.workload, Workload::LastIterate { weights, .. } if !weights.is_empty()) {
        all.push("the weights of the workload were measured on public data".into());
    }
    if plan.sampler == Sampler::External {
        all.push(format!("the program that forms the rounds ensures the schema: {}", schema(plan)));
        all.push(format!("where examples have several owners, all of them take part with each; {OWNERSHIP}"));
    }
    if plan.arithmetic == Arithmetic::PlainFloatingPoint {
        all.push("nobody uses the last bits of the noisy sums".into());
    }
    if plan.schedule().is_amplified() {
        all.push("which units take part in which step stays secret".into());
        if plan.arithmetic != Arithmetic::PlainFloatingPoint {
            all.push(format!(
                "the rounding errors of the noise that is carried over from earlier steps, in total less than {:.1e} of the \
                 sensitivity, may be counted as if they occurred only in the steps in which a unit takes part",
                // 1.05 rounds two digits up.
                (plan.rounding_factor - 1.0) * 1.05
            ));
        }
    }
    all
}
