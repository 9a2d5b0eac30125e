//! The effect of the weights of a tree's heights on estimates from below.
//!
//! 1. The noisy sum of a node of height h has variance 1 / w_h^2.
//! 2. The estimates of its two halves add up to another estimate, of variance 2 v_{h-1}. The best average of
//!    the two has the variance v_h = 1 / (w_h^2 + 1 / (2 v_{h-1})), with v_0 = 1 / w_0^2.
//! 3. In this average the node's own sum has the weight w_h^2 v_h, and the estimate from the halves has the
//!    rest.

/// Returns, for each height h from the leaves up, the precision 1 / v_h of the estimate of a node.
pub(crate) fn precisions(weights: &[f64]) -> Vec<f64> {
    // The precision of the estimate from the two halves.
    let mut known = 0.0;
    let of_height = |w: &f64| {
        let precision = w * w + known;
        known = 0.5 * precision;
        precision
    };
    weights.iter().map(of_height).collect()
}

/// The factors that the seed noise of nodes has in estimates.
#[derive(Debug)]
pub(crate) struct Factors {
    /// The factor of a node's seed noise, at
    /// `[height of the estimated node][levels from that node down to this one]`.
    noise: Vec<Vec<f64>>,
    /// The weight w_h^2 v_h of a node's own sum in its estimate, for each height h.
    own: Vec<f64>,
}

impl Factors {
    pub(crate) fn new(weights: &[f64]) -> Self {
        let mut found = Self { noise: Vec::with_capacity(weights.len()), own: Vec::new() };
        let mut known = 0.0;
        for (w, precision) in weights.iter().zip(precisions(weights)) {
            let rest = known / precision;
            let below = found.noise.last().into_iter().flatten().map(|factor| rest * factor);
            let factors = std::iter::once(w / precision).chain(below).collect();
            found.noise.push(factors);
            found.own.push(w * w / precision);
            known = 0.5 * precision;
        }
        found
    }

    /// Returns the factor of the seed noise of a node that is `depth` levels below the estimated node of
    /// height `height`.
    pub(crate) fn at(&self, height: u32, depth: u32) -> f64 {
        self.noise[height as usize][depth as usize]
    }

    /// Returns the fraction by which a node's factor shrinks when the estimate of a subtree of height `above`
    /// replaces that of one of height `below`: 1 - prod (1 - own\[h\]) over the heights between them.
    pub(crate) fn lost(&self, below: u32, above: u32) -> f64 {
        let between = &self.own[below as usize + 1..=above as usize];
        between.iter().fold(0.0, |lost, own| lost + (1.0 - lost) * own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Estimator;
    use super::*;

    /// With equal weights the estimate is Honaker's.
    #[test]
    fn equal_weights_are_the_plain_estimate() {
        let factors = Factors::new(&[1.0; 9]);
        for height in 0..9 {
            for depth in 0..=height {
                let plain = Estimator::FromBelow.weight(height, depth);
                assert!((factors.at(height, depth) - plain).abs() < 1e-15, "{height} {depth}");
                let lost = 1.0 - factors.at(8, 8 - height + depth) / factors.at(height, depth);
                assert!((factors.lost(height, 8) - lost).abs() < 1e-14, "{height}: {lost}");
            }
        }
    }
}
