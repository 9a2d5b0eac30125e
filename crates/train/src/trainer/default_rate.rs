//! Learning rates that need no search and cost no privacy.

use antinoise_mechanism::Workload;
use antinoise_plan::Plan;

use crate::error::Error;
use crate::model::Model;
use crate::optimizer::UpdateRule;

/// Standard deviation of the noise in a logit that training should end with; see [`default_rate`].
const LOGIT_NOISE: f64 = 0.4;
/// The exponent of (parameters of a logistic model) / (parameters of this model) in the learning rate. With
/// 1/2 all models would have noise of the same total norm, with 0 the same noise in each parameter.
const SIZE_POWER: f64 = 0.4;
/// Noise in a coordinate of the summed gradients, in clip norms, below which it no longer decides the rate.
const LEAST_NOISE: f64 = 0.009;
/// Adam's largest rate for inputs of norm 1. Its steps do not shrink with the gradients.
const MOST_ADAM: f64 = 0.25;

/// For each step, the standard deviation of the noise in one coordinate of A G, where A is `workload` and the
/// rows of G (steps x parameters) are the mean gradients of the plan's batches.
///
/// ```
/// use antinoise_mechanism::Workload;
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let request = Request { specs: Some(vec!["identity".parse()?]), ..Request::new(2000, 100, Length::Steps(20), Setting::Single) };
/// let plan = choose(&request)?.plan;
/// let noise = antinoise_train::trainer::mean_gradient_noise(&plan, &Workload::Prefix)?;
/// // Independent noise builds up with the root of the number of steps.
/// assert!((noise[15] / noise[0] - 4.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the errors of the plan's strategy cannot be computed.
pub fn mean_gradient_noise(plan: &Plan, workload: &Workload) -> Result<Vec<f64>, Error> {
    let scale = plan.noise_std() / plan.expected_batch_size();
    let rows = plan.strategy.row_errors(workload).map_err(antinoise_plan::Error::from)?;
    Ok(rows.into_iter().map(|row| row * scale).collect())
}

/// A learning rate for this rule that needs no search. It is a function of the plan, the model's size and the
/// public scale of the inputs, not of the data, so that it costs no privacy.
///
/// With d parameters, F features, K classes, inputs of norm s (`input_norm`; [`Schema::input_norm`],
/// [`ImageShape::input_norm`]), clip norm c, and noise of standard deviation p in a coordinate of the sum of
/// the mean gradients (root mean square over steps) and w in one mean gradient:
///
/// - eta = 0.4 / (s max(p, 0.009 c)) (F K / d)^0.4, without momentum;
/// - (1 - momentum) eta, with momentum, whose steps are 1 / (1 - momentum) times as long in sum;
/// - min(0.25 / s, eta sqrt(w^2 + c^2 / d)) with Adam, which divides steps by about that root.
///
/// eta p is the noise in a parameter. A logistic model has d = F K, so that its logits have noise of standard
/// deviation 0.4. The power of F K / d was measured: with 1/2, which gives other models noise of the same
/// total norm, their rates are too low where those of logistic models are right. With a larger rate, noise
/// dominates; with a smaller one, the run ends before the model has converged. `docs/results/defaults.md`
/// compares these rates with the best ones of a search.
///
/// The rate is rounded to two digits.
///
/// [`Schema::input_norm`]: crate::data::Schema::input_norm
/// [`ImageShape::input_norm`]: crate::data::ImageShape::input_norm
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::{data, model::Model, optimizer::UpdateRule, trainer::default_rate};
/// let request = Request { specs: Some(vec!["identity".parse()?]), ..Request::new(1440, 96, Length::Epochs(1), Setting::Single) };
/// let plan = choose(&request)?.plan;
/// let (digits, sgd) = (data::digits(), UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.0 });
/// let [small, large] = [16, 128].map(|hidden| Model::mlp(digits.shape, digits.classes, hidden).unwrap());
/// let rate = |model| default_rate(sgd, &plan, model, digits.shape.input_norm());
/// assert!(rate(&large)? < rate(&small)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`mean_gradient_noise`].
pub fn default_rate(rule: UpdateRule, plan: &Plan, model: &Model, input_norm: f64) -> Result<f64, Error> {
    let noise = |workload| Ok::<_, Error>(root_mean_square(&mean_gradient_noise(plan, &workload)?));
    let logits = (model.shape().len() * model.classes()) as f64;
    let (clip_norm, parameters) = (plan.clip_norm, model.parameters() as f64);
    let built_up = noise(Workload::Prefix)?.max(LEAST_NOISE * clip_norm);
    let rate = LOGIT_NOISE / (input_norm * built_up) * (logits / parameters).powf(SIZE_POWER);
    Ok(two_digits(match rule {
        UpdateRule::Ftrl { .. } => rate,
        UpdateRule::Sgd { momentum, .. } | UpdateRule::Nesterov { momentum, .. } => (1.0 - momentum) * rate,
        UpdateRule::Adam { .. } => {
            let step = noise(Workload::Window { width: 1 })?.hypot(clip_norm / parameters.sqrt());
            (rate * step).min(MOST_ADAM / input_norm)
        }
    }))
}

fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// Rounded to two significant digits.
fn two_digits(rate: f64) -> f64 {
    format!("{rate:.1e}").parse().expect("a number that was just written")
}

#[cfg(test)]
mod tests {
    use antinoise_plan::{Length, Request, Setting, choose};

    use super::*;
    use crate::data;

    /// A plan of independent noise with another noise multiplier, and another clip norm.
    fn plan(noise_multiplier: f64, clip_norm: f64) -> Plan {
        let specs = Some(vec!["identity".parse().unwrap()]);
        let request = Request { specs, ..Request::new(1440, 96, Length::Epochs(1), Setting::Single) };
        let mut plan = Plan::clone(&choose(&request).unwrap().plan);
        (plan.noise_multiplier, plan.clip_norm) = (noise_multiplier, clip_norm);
        plan
    }

    fn rate(rule: UpdateRule, plan: &Plan) -> f64 {
        let digits = data::digits();
        let model = Model::logistic(digits.shape, digits.classes).unwrap();
        default_rate(rule, plan, &model, digits.shape.input_norm()).unwrap()
    }

    const ADAM: UpdateRule = UpdateRule::Adam { learning_rate: 1.0, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

    fn sgd(momentum: f64) -> UpdateRule {
        UpdateRule::Sgd { learning_rate: 1.0, momentum }
    }

    #[test]
    fn the_rate_has_the_units_of_its_rule() {
        let (one, four) = (plan(4.0, 1.0), plan(4.0, 4.0));
        // Gradients, and so noise, of four times the length need a fourth of the rate; Adam divides by them.
        assert_eq!(rate(sgd(0.9), &four), two_digits(rate(sgd(0.9), &one) / 4.0));
        assert_eq!(rate(ADAM, &four), rate(ADAM, &one));
        assert_eq!(rate(sgd(0.9), &one), two_digits(rate(sgd(0.0), &one) / 10.0));
        assert_eq!(rate(sgd(0.0), &one), rate(UpdateRule::Ftrl { learning_rate: 1.0, radius: 1.0 }, &one));
    }

    #[test]
    fn less_noise_allows_larger_rates_up_to_a_bound() {
        let rates = |rule| [80.0, 20.0, 5.0, 1e-3, 1e-4].map(|noise| rate(rule, &plan(noise, 1.0)));
        let (sgd, adam) = (rates(sgd(0.9)), rates(ADAM));
        // Steps of Adam are divided by the noise, where that is most of a gradient.
        assert!(sgd[..4].is_sorted_by(|x, y| x < y) && adam.is_sorted(), "{sgd:?} {adam:?}");
        assert_eq!((sgd[3], adam[3]), (sgd[4], adam[4]));
    }

    #[test]
    fn the_noise_of_a_logit_is_as_stated() {
        let plan = plan(4.0, 1.0);
        let built_up = root_mean_square(&mean_gradient_noise(&plan, &Workload::Prefix).unwrap());
        let noise = rate(sgd(0.0), &plan) * built_up * data::digits().shape.input_norm();
        // 640 of 650 parameters are weights; two digits are kept.
        assert!((noise / LOGIT_NOISE - 1.0).abs() < 0.05, "{noise}");
    }
}
