//! Adam with second moments that clipping uses, or that are released: against its formulas, against Adam, and
//! in runs.

mod common;

use std::sync::atomic::AtomicBool;

use antinoise_mechanism::Adjacency;
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_train::clip::{Contribution, clipped_sum, contribution_sum};
use antinoise_train::optimizer::{Decay, Needs, Optimizer, Recipe, Rule, Schedule};
use antinoise_train::trainer::{Options, Outcome, Trainer};
use common::{Case, JOINT_ADAM, SCALED_ADAM, wide_plan, wide_planned};
use proptest::prelude::*;

/// The formulas in double precision, for updates in the form that the rule needs: scaled gradients, or
/// gradients and squares.
struct Dense {
    recipe: Recipe,
    steps: usize,
    t: usize,
    m: Vec<f64>,
    v: Vec<f64>,
}

impl Dense {
    fn new(recipe: Recipe, dim: usize, steps: usize) -> Self {
        Self { recipe, steps, t: 0, m: vec![0.0; dim], v: vec![0.0; dim] }
    }

    fn numbers(&self) -> (f64, f64, f64) {
        match self.recipe.rule {
            Rule::ScaledAdam { beta1, beta2, damping, .. }
            | Rule::JointAdam { beta1, beta2, damping, .. } => (beta1, beta2, damping),
            _ => unreachable!("one of the two"),
        }
    }

    fn damped(&self, v: &[f64]) -> Vec<f64> {
        let (_, _, damping) = self.numbers();
        let rms = (v.iter().map(|v| v.max(0.0)).sum::<f64>() / v.len() as f64).sqrt();
        v.iter().map(|v| v.max(0.0).sqrt() + damping * rms).collect()
    }

    fn scales(&self) -> Vec<f64> {
        if self.v.iter().all(|&v| v == 0.0) {
            return vec![1.0; self.v.len()];
        }
        let plain: Vec<f64> = self.damped(&self.v).iter().map(|x| 1.0 / x).collect();
        let after: f64 = plain.iter().zip(&self.v).map(|(s, v)| s * s * v).sum();
        let k = (self.v.iter().sum::<f64>() / after).sqrt();
        plain.iter().map(|s| k * s).collect()
    }

    fn step(&mut self, theta: &mut [f64], update: &[f64]) {
        let (beta1, beta2, _) = self.numbers();
        let (dim, scales) = (theta.len(), self.scales());
        let joint = matches!(self.recipe.rule, Rule::JointAdam { .. });
        let zero = self.recipe.zero_beyond.is_some_and(|bound| update[..dim].iter().any(|g| g.abs() > bound));
        let rate = self.recipe.rule.learning_rate() * self.recipe.schedule.share(self.t, self.steps);
        self.t += 1;
        for i in 0..dim {
            let released = if zero { 0.0 } else { update[i] };
            let g = if joint { released } else { released / scales[i] };
            let q = if !joint {
                g * g
            } else if zero {
                0.0
            } else {
                update[dim + i]
            };
            self.m[i] = beta1 * self.m[i] + (1.0 - beta1) * g;
            self.v[i] = beta2 * self.v[i] + (1.0 - beta2) * q;
            theta[i] *= 1.0 - rate * self.recipe.weight_decay;
        }
        let corrected = |beta: f64| 1.0 - beta.powi(self.t as i32);
        let v: Vec<f64> = self.v.iter().map(|v| v / corrected(beta2)).collect();
        for (i, damped) in self.damped(&v).into_iter().enumerate() {
            if damped > 0.0 {
                theta[i] -= rate * self.m[i] / corrected(beta1) / damped;
            }
        }
    }
}

fn rules() -> impl Strategy<Value = Rule> {
    let numbers = (1e-4f64..0.1, 0f64..0.95, 0.5f64..0.999, -2f64..1.0, 0.05f64..0.7, any::<bool>());
    numbers.prop_map(|(learning_rate, beta1, beta2, damping, ratio, joint)| {
        // Square roots of numbers that cancel have few correct digits.
        let damping = 10f64.powf(if joint { damping.max(-1.0) } else { damping });
        match joint {
            true => Rule::JointAdam { learning_rate, beta1, beta2, damping, ratio },
            false => Rule::ScaledAdam { learning_rate, beta1, beta2, damping },
        }
    })
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let bound = prop_oneof![Just(None), (0.5f64..1.0).prop_map(Some)];
    (rules(), 0usize..4, prop_oneof![Just(0f64), 0f64..0.9], bound).prop_map(
        |(rule, warm_up, weight_decay, zero_beyond)| Recipe {
            rule,
            schedule: Schedule { warm_up, decay: Decay::Linear { last: 0.1 } },
            weight_decay,
            zero_beyond,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn steps_are_those_of_the_formulas(
        recipe in recipes(),
        updates in prop::collection::vec(prop::collection::vec(-1f32..1.0, 8), 4..20),
        sizes in prop::collection::vec(-3f32..3.0, 4),
    ) {
        const DIM: usize = 4;
        let joint = matches!(recipe.rule, Rule::JointAdam { .. });
        let mut optimizer = Optimizer::of_run(recipe, DIM, updates.len()).unwrap();
        let mut dense = Dense::new(recipe, DIM, updates.len());
        let (mut theta, mut exact) = ([0.5f32; DIM], [0.5f64; DIM]);
        for update in &updates {
            // Coordinates of different sizes, and negative means of squares.
            let size = |i: usize| (sizes[i % DIM] * if i < DIM { 0.5 } else { 1.0 }).exp();
            let released = if joint { 2 * DIM } else { DIM };
            let mut update: Vec<f32> = (0..released).map(|i| update[i] * size(i)).collect();
            if joint {
                // Otherwise all of v may cancel, leaving nothing to compare.
                update[DIM] = size(DIM) * (1.0 + update[DIM].abs());
            }
            if let Some(scales) = optimizer.scales() {
                for (got, exact) in scales.iter().zip(dense.scales()) {
                    prop_assert!((f64::from(*got) / exact - 1.0).abs() < 1e-3, "{got} {exact}");
                }
            }
            optimizer.step(&mut theta, &update);
            dense.step(&mut exact, &update.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        }
        // A mean of squares that cancels to nearly 0 has few correct digits in single precision.
        let bound = recipe.rule.learning_rate() * updates.len() as f64 * if joint { 5e-2 } else { 1e-3 };
        for (got, exact) in theta.iter().zip(exact) {
            prop_assert!((f64::from(*got) - exact).abs() < bound, "{got} {exact}");
        }
    }

    /// For exact gradients without clipping, both rules are Adam except for damping.
    #[test]
    fn without_noise_and_clipping_both_are_adam(
        gradients in prop::collection::vec(prop::collection::vec(0.1f32..1.0, 3), 2..30),
        beta2 in 0.5f64..0.999,
    ) {
        let (learning_rate, beta1, damping) = (0.01, 0.9, 1e-6);
        let rules = [
            Rule::Adam { learning_rate, beta1, beta2, epsilon: 1e-12 },
            Rule::ScaledAdam { learning_rate, beta1, beta2, damping },
            Rule::JointAdam { learning_rate, beta1, beta2, damping, ratio: 0.5 },
        ];
        let ends = rules.map(|rule| {
            let (mut theta, mut optimizer) = ([0f32; 3], Optimizer::new(rule, 3).unwrap());
            for gradient in &gradients {
                let scaled = |scales: Vec<f32>| gradient.iter().zip(scales).map(|(g, s)| g * s).collect();
                let update: Vec<f32> = match rule {
                    Rule::ScaledAdam { .. } => scaled(optimizer.scales().unwrap()),
                    Rule::JointAdam { .. } => gradient.iter().copied().chain(gradient.iter().map(|g| g * g)).collect(),
                    _ => gradient.clone(),
                };
                optimizer.step(&mut theta, &update);
            }
            theta
        });
        for other in &ends[1..] {
            for (x, y) in ends[0].iter().zip(other) {
                prop_assert!((x - y).abs() < 1e-5, "{ends:?}");
            }
        }
    }
}

#[test]
fn scales_keep_the_length_of_a_gradient_and_are_one_without_second_moments() {
    let mut optimizer = Optimizer::new(SCALED_ADAM, 3).unwrap();
    assert_eq!(optimizer.scales().unwrap(), [1.0; 3]);
    optimizer.step(&mut [0.0; 3], &[0.0; 3]);
    assert_eq!(optimizer.scales().unwrap(), [1.0; 3]);
    let gradient = [1e-3, 1.0, 40.0];
    optimizer.step(&mut [0.0; 3], &gradient);
    let scales = optimizer.scales().unwrap();
    assert!(scales[0] > scales[1] && scales[1] > scales[2]);
    let length = |scales: &[f32]| -> f32 { gradient.iter().zip(scales).map(|(g, s)| (g * s).powi(2)).sum() };
    assert!((length(&scales) / length(&[1.0; 3]) - 1.0).abs() < 1e-5);
    // NaN carries no information.
    optimizer.step(&mut [0.0; 3], &[f32::INFINITY, 1.0, 1.0]);
    assert_eq!(optimizer.scales().unwrap(), [1.0; 3]);
    assert_eq!(Optimizer::new(JOINT_ADAM, 3).unwrap().scales(), None);
}

fn finish(trainer: &mut Trainer, mut each: impl FnMut(&Trainer)) {
    let options = Options { test_every: 100, checkpoints: None };
    let outcome = trainer.run(&options, &AtomicBool::new(false), |trainer| each(trainer)).unwrap();
    assert_eq!(outcome, Outcome::Finished);
}

/// The input of the optimizer, from the last release.
fn mean(case: &Case, trainer: &Trainer) -> Vec<f32> {
    let share = (1.0 / case.plan.expected_batch_size()) as f32;
    let mut mean: Vec<f32> = trainer.release().iter().map(|x| x * share).collect();
    if let Needs::Squares { ratio } = case.recipe.rule.needs() {
        let of = Contribution::WithSquares { ratio };
        let lambda = of.share_of_squares(case.plan.clip_norm).unwrap();
        let squares = mean[case.model.parameters()..].iter_mut();
        squares.for_each(|square| *square = (f64::from(*square) / lambda) as f32);
    }
    mean
}

/// Parameters and scales are functions of releases only, to the bit: an optimizer costs no privacy, and the
/// scales on gradients are known to anyone who saw the releases so far.
#[test]
fn parameters_follow_from_the_releases_alone() {
    for (rule, adjacency) in [
        (SCALED_ADAM, Adjacency::ZeroOut),
        (SCALED_ADAM, Adjacency::ReplaceOne),
        (JOINT_ADAM, Adjacency::ZeroOut),
        (JOINT_ADAM, Adjacency::ReplaceOne),
    ] {
        let case = Case::small(wide_plan(adjacency), rule);
        let mut trainer = case.trainer();
        let mut replayed = Optimizer::of_run(rule.into(), case.model.parameters(), case.plan.steps).unwrap();
        let mut parameters = case.start();
        finish(&mut trainer, |trainer| {
            replayed.step(&mut parameters, &mean(&case, trainer));
            assert_eq!(trainer.parameters(), parameters, "step {}", trainer.step_count());
        });
    }
}

/// With almost no noise, each release is the sum of the contributions, with scales that depend on earlier
/// releases.
#[test]
fn releases_are_the_sums_of_what_examples_add() {
    for (rule, adjacency) in [
        (SCALED_ADAM, Adjacency::ZeroOut),
        (JOINT_ADAM, Adjacency::ZeroOut),
        (JOINT_ADAM, Adjacency::ReplaceOne),
    ] {
        let clip_norm = 0.1;
        let case = Case::small(wide_planned(adjacency, Setting::Cyclic, 1e12, clip_norm), rule);
        let (mut trainer, train) = (case.trainer(), &case.dataset.train);
        let mut replayed = Optimizer::of_run(rule.into(), case.model.parameters(), case.plan.steps).unwrap();
        let (mut parameters, mut differ) = (case.start(), 0);
        for step in 0..case.plan.steps {
            trainer.step().unwrap();
            let scales = replayed.scales();
            let contribution = match &scales {
                Some(scales) => Contribution::Scaled(scales),
                None => Contribution::WithSquares { ratio: 0.5 },
            };
            let batch = trainer.turn(step);
            let sum = contribution_sum(&case.model, contribution, &parameters, train, batch, clip_norm);
            let apart = |sum: &[f64]| -> f64 {
                let release = trainer.release().iter().map(|&x| f64::from(x));
                sum.iter().zip(release).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
            };
            let found = apart(&sum.unwrap().gradient);
            assert!(found < 1e-3 * clip_norm * batch.len() as f64, "step {step}: {found}");
            let plain = clipped_sum(&case.model, &parameters, train, batch, clip_norm).unwrap().gradient;
            differ += usize::from(apart(&plain) > 0.05 * clip_norm * batch.len() as f64);
            replayed.step(&mut parameters, &mean(&case, &trainer));
        }
        // The first scales are 1.
        assert!(rule != SCALED_ADAM || differ == case.plan.steps - 1, "{differ}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    // The grid has room for the 650 parameters, not for their squares.
    let request = Request { dim: 1299, ..Request::new(1440, 120, Length::Steps(24), Setting::Cyclic) };
    let case = Case::small(choose(&request).unwrap().plan, JOINT_ADAM);
    let error = case.setup().check(&case.start()).unwrap_err().to_string();
    assert!(error.contains("parameters and their squares") && error.contains("1300"), "{error}");
    assert!(Case { recipe: SCALED_ADAM.into(), ..case }.setup().check(&vec![0.0; 650]).is_ok());
    for rule in [
        Rule::ScaledAdam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, damping: 1e-7 },
        Rule::ScaledAdam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, damping: f64::NAN },
        Rule::JointAdam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, damping: 0.0, ratio: 0.5 },
    ] {
        assert!(rule.check().unwrap_err().to_string().contains("damping"));
    }
    let rule = Rule::JointAdam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, damping: 0.1, ratio: 1.01 };
    assert!(rule.check().unwrap_err().to_string().contains("ratio of squares"));
}
