//! A law over every plan file that a user can write: it is refused as bad input, or its claim holds.
//!
//! Whether it holds is found without the crate's own accounting: C is what inverts the noise that is run,
//! patterns of participation are those that the sampler makes, and delta is the Gaussian curve by erfc.

use antinoise_accounting::{Composition, PoissonSampledGaussian};
use antinoise_input::BadInput;
use antinoise_mechanism::{Adjacency, Participation, Recursion};
use antinoise_plan::{
    Accountant, Arithmetic, ArithmeticKind, Length, Plan, PrivacyUnit, Request, Sampler, Setting,
    VerifiedPlan, choose,
};
use toml::Value;

const STEPS: usize = 24;

/// Plans of every sampler, unit and kind of recursion.
fn plans() -> Vec<VerifiedPlan> {
    let federated = Setting::Federated { min_sep: 6, max_participations: Some(3) };
    let cases = [
        (Setting::Cyclic, "identity"),
        (Setting::Cyclic, "banded-toeplitz:4"),
        (Setting::Cyclic, "blt:2"),
        (Setting::Cyclic, "blt:1+column-normalized"),
        (Setting::Cyclic, "banded-toeplitz:2+x3"),
        (Setting::Cyclic, "tree"),
        (Setting::Shuffled, "blt:2"),
        (Setting::Shuffled, "blt:1+column-normalized+x3"),
        (federated, "blt:2"),
        (federated, "banded-toeplitz:6"),
        (Setting::Poisson, "identity"),
        (Setting::Poisson, "banded-toeplitz:3"),
        (Setting::Stream, "banded-toeplitz:5"),
    ];
    let plan = |(setting, spec): (Setting, &str)| {
        let examples = if setting == Setting::Stream { 2400 } else { 800 };
        let mut request = Request::new(examples, 100, Length::Steps(STEPS), setting);
        (request.epsilon, request.delta, request.dim) = (2.0, 1e-5, 1000);
        request.specs = Some(vec![spec.parse().unwrap()]);
        if spec == "tree" {
            request.arithmetic = ArithmeticKind::PlainFloatingPoint;
        }
        if setting == federated {
            request.unit = PrivacyUnit::User;
        }
        if (setting, spec) == (Setting::Cyclic, "banded-toeplitz:4") {
            (request.unit, request.max_examples_per_user) = (PrivacyUnit::User, Some(20));
        }
        let choice = choose(&request).unwrap();
        choice.plan_of(&request, choice.candidates.len() - 1).unwrap()
    };
    cases.into_iter().map(plan).collect()
}

/// Calls `visit` on every number and string in `value`.
fn leaves(value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| leaves(value, visit)),
        Value::Array(values) => values.iter_mut().for_each(|value| leaves(value, visit)),
        leaf => visit(leaf),
    }
}

const FLOATS: [f64; 12] =
    [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320, 1e-300, 1e-46, 0.5, 1e10, 1e39, 1e300, 1e308];
const WHOLE: [i64; 8] = [0, 1, -1, 2, 7, 1 << 40, 1 << 55, i64::MAX];
const WORDS: [&str; 26] = [
    "",
    "x",
    "user",
    "example",
    "zero-out",
    "replace-one",
    "gdp",
    "sampled-gaussian",
    "cyclic",
    "shuffled",
    "each-epoch",
    "poisson",
    "b-min-sep",
    "stream",
    "external",
    "single",
    "full-batch",
    "grid",
    "plain-floating-point",
    "exact",
    "upper-bound",
    "max",
    "identity",
    "toeplitz",
    "banded-toeplitz",
    "prefix",
];

/// What a leaf is changed to: other numbers, numbers slightly off, other words.
fn changes(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::Float(x) => {
            let near = [0.5, 0.99, 1.01, 2.0].map(|factor| factor * x);
            FLOATS.into_iter().chain(near).map(Value::Float).collect()
        }
        Value::Integer(x) => {
            let near = [x / 2, x.wrapping_sub(1), x.wrapping_add(1), x.wrapping_mul(2)];
            WHOLE.into_iter().chain(near).map(Value::Integer).chain([Value::Float(f64::NAN)]).collect()
        }
        Value::String(_) => WORDS.iter().map(|word| Value::String((*word).into())).collect(),
        _ => Vec::new(),
    }
}

/// The plan with its leaf number `at` replaced.
fn with(plan: &Value, at: usize, change: Value) -> Value {
    let (mut altered, mut count, mut change) = (plan.clone(), 0, Some(change));
    leaves(&mut altered, &mut |leaf| {
        if count == at {
            *leaf = change.take().expect("one leaf has this number");
        }
        count += 1;
    });
    altered
}

fn leaves_of(plan: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    leaves(&mut plan.clone(), &mut |leaf| all.push(leaf.clone()));
    all
}

/// Counts of refused and of held plans.
#[derive(Default, Debug)]
struct Counts {
    refused: usize,
    held: usize,
}

fn judge(altered: &Value, counts: &mut Counts) {
    let text = toml::to_string(altered).unwrap();
    match Plan::from_toml(&text) {
        Err(error) => {
            assert!(error.is_bad_input(), "{error}\n{text}");
            counts.refused += 1;
        }
        Ok(plan) => {
            if let Err(reason) = holds(&plan) {
                panic!("{reason}\n{text}");
            }
            counts.held += 1;
        }
    }
}

#[test]
fn a_plan_with_one_thing_altered_is_refused_or_holds() {
    let mut counts = Counts::default();
    for plan in plans() {
        let value: Value = toml::from_str(&plan.to_toml()).unwrap();
        holds(&plan).unwrap();
        for (at, leaf) in leaves_of(&value).iter().enumerate() {
            changes(leaf).into_iter().for_each(|change| judge(&with(&value, at, change), &mut counts));
        }
    }
    println!("{counts:?}");
    assert!(counts.refused > 2000 && counts.held > 300, "{counts:?}");
}

/// Two or three things at once: what one alteration breaks another may hide.
#[test]
fn a_plan_with_several_things_altered_is_refused_or_holds() {
    let mut counts = Counts::default();
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let plans: Vec<Value> = plans().iter().map(|plan| toml::from_str(&plan.to_toml()).unwrap()).collect();
    for round in 0..6000 {
        let mut altered = plans[round % plans.len()].clone();
        for _ in 0..2 + round % 2 {
            let leaves = leaves_of(&altered);
            let at = below(leaves.len());
            let changes = changes(&leaves[at]);
            if !changes.is_empty() {
                altered = with(&altered, at, changes[below(changes.len())].clone());
            }
        }
        judge(&altered, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.refused > 2000 && counts.held > 50, "{counts:?}");
}

type Verdict = Result<(), String>;

fn ensure(holds: bool, what: impl Fn() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

/// Whether the claim follows from the numbers.
fn holds(plan: &Plan) -> Verdict {
    let privacy = &plan.privacy;
    let single = 2f64.powi(-100)..=2f64.powi(100);
    let nu = plan.noise_std();
    ensure(single.contains(&nu) && single.contains(&plan.clip_norm), || format!("noise {nu:e}"))?;
    let rounding = match plan.arithmetic {
        Arithmetic::Grid { spacing, dim } => {
            ensure(spacing.log2().fract() == 0.0 && spacing > 0.0, || format!("spacing {spacing:e}"))?;
            spacing * (dim as f64).sqrt()
        }
        Arithmetic::PlainFloatingPoint => 0.0,
    };
    let moved = plan.clip_norm * (1.0 + 2f64.powi(-20)) + rounding;
    let is_external = plan.sampler == Sampler::External;
    let draws_units = match (privacy.unit, plan.max_examples_per_user) {
        (PrivacyUnit::Example, most) => most.is_none(),
        (PrivacyUnit::User, None) => is_external,
        (PrivacyUnit::User, Some(most)) => !is_external && most > 0,
    };
    ensure(draws_units, || "unit".into())?;
    let columns = columns(plan);
    let largest_entry = columns.iter().flatten().fold(0.0f64, |most, x| most.max(x.abs()));
    ensure(largest_entry.is_finite(), || format!("C has an entry {largest_entry}"))?;
    if privacy.accountant == Accountant::SampledGaussian {
        return sampled_holds(plan, &columns, moved);
    }
    let factor = if privacy.adjacency == Adjacency::ReplaceOne { 2.0 } else { 1.0 };
    let sensitivity = patterns(plan).iter().map(|pattern| norm_of(&columns, pattern)).fold(0.0, f64::max);
    let mu = factor * sensitivity * moved / nu;
    let delta = delta_of(mu, privacy.epsilon);
    ensure(delta <= privacy.delta * (1.0 + 1e-7), || {
        format!("mu {mu} has delta {delta:e} at epsilon {}, not {:e}", privacy.epsilon, privacy.delta)
    })
}

fn sampled_holds(plan: &Plan, columns: &[Vec<f64>], moved: f64) -> Verdict {
    let Sampler::Poisson { groups } = plan.sampler else { return Err(format!("{:?}", plan.sampler)) };
    ensure(plan.privacy.adjacency == Adjacency::ZeroOut, || "adjacency".into())?;
    for (t, column) in columns.iter().enumerate() {
        let beyond = column.iter().skip(t + groups).fold(0.0f64, |most, x| most.max(x.abs()));
        ensure(beyond < 1e-12, || format!("a column reaches the next turn: {beyond:e}"))?;
    }
    let norm = columns.iter().map(|c| c.iter().map(|x| x * x).sum::<f64>().sqrt()).fold(0.0, f64::max);
    let rate = groups as f64 * plan.batch_size as f64 / plan.examples as f64;
    ensure(rate <= 1.0, || format!("rate {rate}"))?;
    let turns = plan.steps.div_ceil(groups) as u64;
    let run = PoissonSampledGaussian::new(plan.noise_std() / (norm * moved), rate, turns)
        .map_err(|e| e.to_string())?;
    let least = Composition::new([run]).and_then(|run| run.epsilon(plan.privacy.delta));
    let least = least.map_err(|error| error.to_string())?.lower;
    ensure(plan.privacy.epsilon >= least * (1.0 - 1e-7), || format!("epsilon is {least} at least"))
}

/// The columns of C: of what inverts the noise that is run; a tree's noise has more seeds than steps, and its
/// own matrix is taken.
fn columns(plan: &Plan) -> Vec<Vec<f64>> {
    let (mechanism, n) = (&*plan.strategy, plan.steps);
    let recursion = mechanism.recursion().unwrap();
    if let Recursion::SeedCombination { .. } = recursion {
        let encoder = mechanism.encoder().unwrap();
        return (0..n).map(|j| encoder.column(j)).collect();
    }
    let unit = |j: usize| -> Vec<f64> { (0..n).map(|t| f64::from(u8::from(t == j))).collect() };
    let inverse: Vec<Vec<f64>> = (0..n).map(|j| recursion.apply(n, &unit(j))).collect();
    let mut columns = vec![vec![0.0; n]; n];
    for (j, column) in columns.iter_mut().enumerate() {
        for t in j..n {
            let known: f64 = (j..t).map(|s| inverse[s][t] * column[s]).sum();
            column[t] = (f64::from(u8::from(t == j)) - known) / inverse[t][t];
        }
    }
    columns
}

/// Steps in which one unit takes part, as the sampler makes them or, where units come by themselves, as the
/// schema lets them.
fn patterns(plan: &Plan) -> Vec<Vec<usize>> {
    let every = |b: usize, k: usize| -> Vec<Vec<usize>> {
        (0..b.min(plan.steps)).map(|first| (first..plan.steps).step_by(b).take(k).collect()).collect()
    };
    match (plan.sampler, &plan.participation) {
        (Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups }, _) => every(groups, plan.steps),
        (Sampler::Shuffled { groups }, _) => {
            // The same step of each epoch; the last of one and the first of the next in turn.
            let ends = |first: bool| {
                let epochs = (0..plan.steps).step_by(groups).enumerate();
                let end = |(epoch, start): (usize, usize)| match (epoch % 2 == 0) == first {
                    true => start,
                    false => (start + groups).min(plan.steps) - 1,
                };
                epochs.map(end).collect::<Vec<_>>()
            };
            every(groups, plan.steps).into_iter().chain([ends(true), ends(false)]).collect()
        }
        (Sampler::BMinSep { min_sep }, _) => every(min_sep, plan.steps),
        (Sampler::Poisson { .. } | Sampler::TruncatedPoisson { .. }, _) => every(1, plan.steps),
        (Sampler::Stream, _) => every(plan.steps, 1),
        (Sampler::External, Participation::Single) => every(plan.steps, 1),
        (Sampler::External, Participation::FullBatch) => every(1, plan.steps),
        (
            Sampler::External,
            Participation::Cyclic { min_sep, max_participations }
            | Participation::MinSep { min_sep, max_participations },
        ) => every(*min_sep, *max_participations),
        (Sampler::External, Participation::EachEpoch { .. }) => every(1, plan.steps),
        (Sampler::External, Participation::Patterns { patterns }) => patterns.clone(),
    }
}

/// The largest norm of the pattern's columns added up with signs; with all signs equal where they are many.
fn norm_of(columns: &[Vec<f64>], pattern: &[usize]) -> f64 {
    let signs = if pattern.len() <= 5 { 1usize << pattern.len() } else { 1 };
    let norm = |signs: usize| {
        let sum = |t: usize| -> f64 {
            let signed =
                |(i, &j): (usize, &usize)| if signs >> i & 1 == 0 { columns[j][t] } else { -columns[j][t] };
            pattern.iter().enumerate().map(signed).sum()
        };
        (0..columns.len()).map(|t| sum(t).powi(2)).sum::<f64>().sqrt()
    };
    (0..signs).map(norm).fold(0.0, f64::max)
}

/// Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2).
fn delta_of(mu: f64, epsilon: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let (a, b) = (epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0);
    if b < 30.0 {
        return below(a) - epsilon.exp() * below(b);
    }
    // ln Phi(-b) by its first terms; e^epsilon may not be a number by itself.
    let ln = -b * b / 2.0 - (b * (2.0 * std::f64::consts::PI).sqrt()).ln() - 1.0 / (b * b);
    (below(a) - (epsilon + ln).exp()).max(0.0)
}
