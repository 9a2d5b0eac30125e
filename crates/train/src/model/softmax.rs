//! The softmax of an example's logits, its cross entropy and their gradient.

/// Replaces one example's logits by the gradient of the cross entropy with `label`, softmax(logits) -
/// e_label. Returns the cross entropy, in nats.
pub(super) fn cross_entropy(logits: &mut [f32], label: usize) -> f32 {
    let largest = logits[largest(logits)];
    logits.iter_mut().for_each(|x| *x -= largest);
    let of_label = logits[label];
    logits.iter_mut().for_each(|x| *x = x.exp());
    let sum: f32 = logits.iter().fold(0.0, |sum, x| sum + x);
    let share = 1.0 / sum;
    logits.iter_mut().for_each(|x| *x *= share);
    logits[label] -= 1.0;
    sum.ln() - of_label
}

/// The index of the first of the largest numbers.
pub(super) fn largest(values: &[f32]) -> usize {
    (1..values.len()).fold(0, |largest, i| if values[largest] < values[i] { i } else { largest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_entropies_and_gradients_are_those_of_double_precision() {
        for logits in [vec![0.0, 0.0], vec![1.0, -2.0, 3.5], vec![80.0, 79.0, -90.0, 80.0], vec![-1e4; 5]] {
            let largest = logits.iter().fold(f64::NEG_INFINITY, |max: f64, &x: &f32| max.max(x.into()));
            let powers: Vec<f64> = logits.iter().map(|&x| (f64::from(x) - largest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for label in 0..logits.len() {
                let mut gradient = logits.clone();
                let loss = f64::from(cross_entropy(&mut gradient, label));
                let expected = largest + sum.ln() - f64::from(logits[label]);
                assert!((loss - expected).abs() <= 1e-6 * expected.max(1.0), "{logits:?}: {loss} {expected}");
                for (i, (&found, power)) in gradient.iter().zip(&powers).enumerate() {
                    let expected = power / sum - f64::from(u8::from(i == label));
                    assert!((f64::from(found) - expected).abs() < 1e-6, "{logits:?}: {found} {expected}");
                }
            }
        }
        assert_eq!(largest(&[1.0, 3.0, f32::NEG_INFINITY, 3.0]), 1);
        let mut infinite = [f32::INFINITY, 0.0];
        assert!(cross_entropy(&mut infinite, 0).is_nan() && infinite.iter().all(|x| x.is_nan()));
    }
}
