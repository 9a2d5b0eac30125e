//! Sums of cohorts: the change due to one user, for any update.

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_train::clip::{GradientSum, plain_sum, sum_margin};
use antinoise_train::data::{Users, digits};
use antinoise_train::model::Model;

use crate::cohort::{CHUNK, cohort_sum};
use crate::{Error, LocalSteps, Population, UserExamples};

/// Users whose gradient at theta is theta minus a vector of their own; the gradient of user 3 is not finite.
struct Pulls {
    scale: f32,
    broken: f32,
}

const DIM: usize = 37;
const BROKEN: usize = 3;

impl Population for Pulls {
    type Workspace = ();
    fn workspace(&self) {}
    fn parameters(&self) -> usize {
        DIM
    }
    fn users(&self) -> usize {
        23
    }
    fn name(&self, _: usize) -> &str {
        "nobody"
    }
    fn examples(&self, user: usize) -> usize {
        user % 4
    }
    fn gradient(
        &self,
        _: &mut (),
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        for (j, (g, theta)) in gradient.iter_mut().zip(parameters).enumerate() {
            let own = |&i: &usize| ((user * 31 + i * 7 + j) as f32).sin() * self.scale;
            *g = theta - examples.iter().map(own).sum::<f32>() / examples.len() as f32;
        }
        if user == BROKEN {
            gradient[5] = self.broken;
        }
        Ok(1.0)
    }
    fn identity(&self) -> String {
        String::new()
    }
}

fn rng(user: usize) -> KeyedRng {
    KeyedRng::new(&Key::from_seed_insecure(1), &RunId::default(), Purpose::DataOrder, user as u64)
}

fn sum(population: &Pulls, local: LocalSteps, cohort: &[usize], clip_norm: f64) -> GradientSum {
    cohort_sum(population, local, &[0.0; DIM], cohort, Some(clip_norm), rng).unwrap().0
}

fn length(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

const LOCAL: LocalSteps =
    LocalSteps { learning_rate: 0.3, batch_size: 2, epochs: 3, most_steps: 4, zero_beyond: None };

#[test]
fn a_user_moves_the_sum_by_the_clip_norm_at_most() {
    let everybody: Vec<usize> = (0..23).collect();
    let allowed = 1.0 + sum_margin(23, CHUNK).unwrap();
    let cases = [(1.0, 0.01), (1.0, 1e3), (1e30, 1.0), (1e-30, 1e-32), (1e20, 1e19)];
    for broken in [f32::NAN, f32::INFINITY, -3e38] {
        let bounds = [None, Some(0.8), Some(1e30)];
        for ((scale, clip_norm), zero_beyond) in
            cases.into_iter().flat_map(|case| bounds.map(|at| (case, at)))
        {
            let (population, local) = (Pulls { scale, broken }, LocalSteps { zero_beyond, ..LOCAL });
            let whole = sum(&population, local, &everybody, clip_norm);
            assert!(whole.gradient.iter().all(|x| x.is_finite()));
            for left in 0..23 {
                let others: Vec<usize> = (0..23).filter(|&user| user != left).collect();
                let without = sum(&population, local, &others, clip_norm);
                let moved = length(whole.gradient.iter().zip(&without.gradient).map(|(x, y)| x - y));
                assert!(moved <= clip_norm * allowed, "{broken} {scale} {clip_norm} {left}: {moved}");
                if left == BROKEN && !broken.is_finite() {
                    assert_eq!(whole.gradient, without.gradient);
                    // An update that is NaN or infinite is clipped, unless it became 0.
                    assert_eq!(whole.clipped, without.clipped + usize::from(zero_beyond.is_none()));
                }
            }
        }
    }
}

/// An update whose largest entry is beyond the bound adds nothing, and every other one what it added before.
#[test]
fn updates_beyond_the_bound_become_zero() {
    let population = Pulls { scale: 1.0, broken: f32::NAN };
    let update = |user: usize, zero_beyond| {
        let local = LocalSteps { zero_beyond, ..LOCAL };
        let (sum, zeroed) = cohort_sum(&population, local, &[0.0; DIM], &[user], None, rng).unwrap();
        let is_nothing = sum.gradient == vec![0.0; DIM] && population.examples(user) > 0;
        assert_eq!(zeroed, usize::from(zero_beyond.is_some() && is_nothing), "{user}");
        sum.gradient
    };
    let mut kept = 0;
    for user in (0..23).filter(|&user| user != BROKEN) {
        let free = update(user, None);
        let largest = free.iter().fold(0f64, |most, x| most.max(x.abs()));
        for bound in [0.2, 0.6, 0.9, 2.0] {
            let is_kept = largest <= bound;
            kept += usize::from(is_kept);
            let wanted = if is_kept { free.clone() } else { vec![0.0; DIM] };
            assert_eq!(update(user, Some(bound)), wanted, "{user} {bound} {largest}");
        }
    }
    assert!((23..80).contains(&kept), "{kept} of 88");
    assert_eq!(update(BROKEN, Some(1e9)), vec![0.0; DIM]);
}

#[test]
fn a_power_of_two_in_updates_and_clip_norm_is_one_in_the_sum() {
    let cohort = [0, 1, 2, 5, 6, 7, 9, 10, 22];
    let found = sum(&Pulls { scale: 1.0, broken: 0.0 }, LOCAL, &cohort, 0.7);
    for power in [-40, -3, 8, 60] {
        let by = 2f64.powi(power);
        let scaled = sum(&Pulls { scale: by as f32, broken: 0.0 }, LOCAL, &cohort, 0.7 * by);
        assert!(scaled.gradient.iter().zip(&found.gradient).all(|(x, y)| *x == by * y), "2^{power}");
        assert_eq!(scaled.clipped, found.clipped);
    }
}

#[test]
fn threads_change_no_bit_and_places_little() {
    let population = Pulls { scale: 1.0, broken: f32::NAN };
    let cohort: Vec<usize> = (0..23).collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sum(&population, LOCAL, &cohort, 0.5))
    };
    let (one, four) = (with(1), with(4));
    assert_eq!((one.gradient, one.clipped), (four.gradient, four.clipped));
}

#[test]
fn one_local_step_of_rate_one_is_the_mean_gradient() {
    let dataset = digits();
    let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
    let start: Vec<f32> = (0..model.parameters()).map(|i| (i as f32).sin() * 0.1).collect();
    let user_of: Vec<String> = (0..dataset.train.len()).map(|i| (i * i % 50).to_string()).collect();
    let named = Users::new(user_of.iter().map(String::as_str)).unwrap();
    let users = UserExamples::new(&model, &dataset.train, &named).unwrap();
    let cohort = [0, 3, 7, 11];
    let clip_norm = 0.8;
    let (found, _) = cohort_sum(&users, LocalSteps::FEDSGD, &start, &cohort, Some(clip_norm), rng).unwrap();
    let mut expected = vec![0.0; start.len()];
    let mut clipped = 0;
    for user in cohort {
        let own: Vec<usize> = (0..user_of.len()).filter(|&i| user_of[i] == users.name(user)).collect();
        assert_eq!(own.len(), users.examples(user));
        let sum = plain_sum(&model, &start, &dataset.train, &own).unwrap().gradient;
        let mean: Vec<f64> = sum.iter().map(|x| x / own.len() as f64).collect();
        let norm = length(mean.iter().copied());
        clipped += usize::from(norm > clip_norm);
        expected.iter_mut().zip(&mean).for_each(|(to, x)| *to += x * (clip_norm / norm).min(1.0));
    }
    let far = length(found.gradient.iter().zip(&expected).map(|(x, y)| x - y));
    assert!(far < 2e-6 * clip_norm, "{far}");
    assert!(found.clipped == clipped && clipped > 0);
}

#[test]
fn steps_are_as_many_as_said() {
    // With a zero vector, theta - u shrinks by 1 - rate a step: u counts the steps.
    let population = Pulls { scale: 0.0, broken: 0.0 };
    let steps = |user: usize, local: LocalSteps| {
        let (sum, _) = cohort_sum(&population, local, &[1.0; DIM], &[user], None, rng).unwrap();
        ((1.0 - sum.gradient[0]).ln() / (1.0 - local.learning_rate).ln()).round()
    };
    // User 11 has 3 examples, in 2 batches; user 1 has one, user 4 none.
    assert_eq!([11, 1, 4].map(|user| steps(user, LOCAL)), [4.0, 3.0, 0.0]);
    assert_eq!(steps(11, LocalSteps { most_steps: 100, ..LOCAL }), 6.0);
    assert_eq!(steps(11, LocalSteps { batch_size: usize::MAX, ..LOCAL }), 3.0);
    for bad in [
        LocalSteps { learning_rate: f64::NAN, ..LOCAL },
        LocalSteps { learning_rate: 0.0, ..LOCAL },
        LocalSteps { batch_size: 0, ..LOCAL },
        LocalSteps { epochs: 0, ..LOCAL },
        LocalSteps { most_steps: 0, ..LOCAL },
        LocalSteps { zero_beyond: Some(f64::NAN), ..LOCAL },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}
