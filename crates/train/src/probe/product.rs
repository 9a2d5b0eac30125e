//! Products of the curvature matrix with vectors, by differences of gradients.

use crate::Error;
use crate::clip::Clipping;
use crate::data::Examples;
use crate::model::Model;
use crate::private_model::PrivateModel;

/// The mean of the clipped gradients of all examples: the field that a training without noise follows.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) model: &'a Model,
    pub(super) examples: &'a Examples,
    pub(super) clip_norm: f64,
}

impl Field<'_> {
    fn sum(&self, parameters: &[f32]) -> Result<Vec<f64>, Error> {
        let all: Vec<usize> = (0..self.examples.len()).collect();
        let clipping = Clipping { norm: self.clip_norm, groups: None };
        Ok(self.model.clipped_sum(parameters, self.examples, &all, clipping)?.gradient)
    }

    /// The derivative of the field at `parameters` along the unit vector `direction`: without clipping, the
    /// Hessian of the mean loss times `direction`.
    ///
    /// ```text
    /// [g(theta + e v) - g(theta - e v)] / (2 e),    e = max(1, |theta|) (2^-23)^(1/3)
    /// ```
    ///
    /// Gradients are known to about 2^-23 of their size, which adds 2^-23 / e to the error, and the third
    /// derivative of the loss adds a multiple of e^2: their sum is least near the cube root.
    pub(super) fn product(&self, parameters: &[f32], direction: &[f64]) -> Result<Vec<f64>, Error> {
        let step = step(parameters);
        let moved = |step: f64| -> Vec<f32> {
            parameters.iter().zip(direction).map(|(&x, v)| (f64::from(x) + step * v) as f32).collect()
        };
        let (ahead, behind) = (self.sum(&moved(step))?, self.sum(&moved(-step))?);
        let divisor = 2.0 * step * self.examples.len() as f64;
        Ok(ahead.iter().zip(behind).map(|(ahead, behind)| (ahead - behind) / divisor).collect())
    }
}

/// e, the length by which parameters are moved.
fn step(parameters: &[f32]) -> f64 {
    let length = parameters.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    length.max(1.0) * f64::from(f32::EPSILON).cbrt()
}

#[cfg(test)]
mod tests {
    use super::super::examples::draws;
    use super::*;
    use crate::data::ImageShape;

    const FEATURES: usize = 5;
    const CLASSES: usize = 3;
    const PARAMETERS: usize = (FEATURES + 1) * CLASSES;

    fn examples(draw: &mut impl FnMut() -> f64) -> Examples {
        let features = (0..40 * FEATURES).map(|_| (2.0 * draw() - 1.0) as f32).collect();
        let labels = (0..40).map(|_| (draw() * CLASSES as f64) as u32).collect();
        Examples::new(features, labels, FEATURES).unwrap()
    }

    /// An example's features with the 1 of the bias, and the probabilities of its classes.
    fn passed(parameters: &[f64], features: &[f32]) -> (Vec<f64>, Vec<f64>) {
        let x: Vec<f64> = features.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
        let entry = |class: usize, i: usize| match i {
            FEATURES => parameters[CLASSES * FEATURES + class],
            _ => parameters[class * FEATURES + i],
        };
        let logit = |class: usize| x.iter().enumerate().map(|(i, x)| x * entry(class, i)).sum::<f64>();
        let exponentials: Vec<f64> = (0..CLASSES).map(|class| logit(class).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        (x, exponentials.iter().map(|e| e / sum).collect())
    }

    /// The class and the feature of a parameter; the bias has the last.
    fn place(parameter: usize) -> (usize, usize) {
        match parameter.checked_sub(CLASSES * FEATURES) {
            Some(class) => (class, FEATURES),
            None => (parameter / FEATURES, parameter % FEATURES),
        }
    }

    /// The Hessian of logistic regression in double precision: the mean of (diag p - p p^T) x x^T.
    fn hessian(parameters: &[f64], examples: &Examples) -> Vec<Vec<f64>> {
        let mut sum = vec![vec![0.0; PARAMETERS]; PARAMETERS];
        for example in 0..examples.len() {
            let (x, p) = passed(parameters, examples.features(example));
            for (i, row) in sum.iter_mut().enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    let ((a, s), (b, t)) = (place(i), place(j));
                    *entry += (f64::from(a == b) * p[a] - p[a] * p[b]) * x[s] * x[t] / examples.len() as f64;
                }
            }
        }
        sum
    }

    /// The mean of clipped gradients in double precision.
    fn field(parameters: &[f64], examples: &Examples, clip_norm: f64) -> Vec<f64> {
        let mut sum = vec![0.0; PARAMETERS];
        for example in 0..examples.len() {
            let (x, p) = passed(parameters, examples.features(example));
            let wrong = |a: usize| p[a] - f64::from(examples.labels()[example] as usize == a);
            let gradient: Vec<f64> = (0..PARAMETERS).map(place).map(|(a, s)| wrong(a) * x[s]).collect();
            let length = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
            let factor = (clip_norm / length).min(1.0) / examples.len() as f64;
            sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += factor * x);
        }
        sum
    }

    fn distance(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    }

    /// Parameters of several sizes, where the loss is curved most and where it is nearly flat.
    #[test]
    fn products_are_those_of_the_known_hessian_and_of_the_clipped_field() {
        let mut draw = draws(21);
        let shape = ImageShape { height: 1, width: FEATURES, channels: 1 };
        let model = Model::logistic(shape, CLASSES).unwrap();
        for case in 0..60 {
            let examples = examples(&mut draw);
            let size = [0.1, 1.0, 4.0][case % 3];
            let parameters: Vec<f32> = (0..PARAMETERS).map(|_| (size * (draw() - 0.5)) as f32).collect();
            let exact: Vec<f64> = parameters.iter().map(|&x| f64::from(x)).collect();
            let direction: Vec<f64> = (0..PARAMETERS).map(|_| draw() - 0.5).collect();
            let length = distance(&direction, &[0.0; PARAMETERS]);
            let direction: Vec<f64> = direction.iter().map(|x| x / length).collect();
            let found = |clip_norm| {
                Field { model: &model, examples: &examples, clip_norm }.product(&parameters, &direction)
            };

            let row = |row: &Vec<f64>| row.iter().zip(&direction).map(|(x, v)| x * v).sum::<f64>();
            let known: Vec<f64> = hessian(&exact, &examples).iter().map(row).collect();
            let error = distance(&found(1e6).unwrap(), &known);
            assert!(error < 1e-4 * distance(&known, &[0.0; PARAMETERS]), "{case}: {error} {known:?}");

            // Within a step an example's gradient may pass the clip norm: both differences see it.
            let step = step(&parameters);
            let moved = |step: f64| -> Vec<f64> {
                let moved: Vec<f64> = exact.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
                field(&moved, &examples, 0.7)
            };
            let ends = moved(step).into_iter().zip(moved(-step));
            let known: Vec<f64> = ends.map(|(ahead, behind)| (ahead - behind) / (2.0 * step)).collect();
            let error = distance(&found(0.7).unwrap(), &known);
            assert!(error < 1e-4 * distance(&known, &[0.0; PARAMETERS]), "{case}: {error} {known:?}");
        }
    }
}
