//! Bounds for one direction (removal or addition), refined until they are close.

use super::bounds::Bounds;
use super::discrete::Bound;
use super::fit::Fit;
use super::fourier::Spectrum;
use super::pair::{Pair, Phase, Rounding};
use crate::root::{crossing, greatest_float, least_float};

/// Limits on refinements, and on atoms times frequencies, after which the current bounds are returned.
const REFINEMENTS: usize = 8;
const MAX_WORK: f64 = 1.5e8;
/// The logarithm of the smallest delta that is resolved.
const MIN_LN_DELTA: f64 = -600.0;

/// The steps of a composition in one direction.
pub(crate) struct Side {
    pub parts: Vec<Phase>,
}

impl Side {
    /// Bounds on the least epsilon at e^`ln_delta`; `known` are the bounds of the other direction.
    pub fn epsilon(&self, ln_delta: f64, known: Bounds) -> Bounds {
        if let Some(pair) = self.single() {
            let curve = |rounding| move |e: f64| pair.at(e, rounding).value.ln();
            let (up, down) = (curve(Rounding::Up), curve(Rounding::Down));
            let upper = least_float(|e| up(e) <= ln_delta).unwrap_or(f64::INFINITY);
            return Bounds { lower: greatest_float(f64::MAX, |e| down(e) >= ln_delta).unwrap_or(0.0), upper };
        }
        self.refine(Fit::new(&self.parts, ln_delta), known, REFINEMENTS, |upper, lower, target| {
            let most = upper.and_then(|spectrum| spectrum.epsilon(ln_delta, target));
            let least = lower.and_then(|spectrum| spectrum.epsilon(ln_delta, most.unwrap_or(target)));
            Bounds { lower: least.unwrap_or(0.0), upper: most.unwrap_or(f64::INFINITY) }
        })
    }

    /// Bounds on the least delta at `epsilon`; `known` are the bounds of the other direction.
    pub fn delta(&self, epsilon: f64, known: Bounds) -> Bounds {
        if let Some(pair) = self.single() {
            let at = |rounding| pair.at(epsilon, rounding).value;
            return Bounds { lower: at(Rounding::Down), upper: at(Rounding::Up).min(1.0) };
        }
        if !self.reaches(epsilon) {
            return Bounds::ZERO;
        }
        // If the other direction has a larger delta at this epsilon, this one needs no refinement.
        if known.upper > 0.0 && self.rough(known.upper.ln()) <= epsilon {
            return Bounds { lower: 0.0, upper: known.upper };
        }
        let fit = Fit::at(&self.parts, self.ln_delta_near(epsilon), epsilon);
        self.refine(fit, known, REFINEMENTS, |upper, lower, _| Bounds {
            lower: lower.map_or(0.0, |spectrum| spectrum.ln_delta(epsilon).exp()),
            upper: upper.map_or(1.0, |spectrum| spectrum.ln_delta(epsilon).exp().min(1.0)),
        })
    }

    /// Whether the total loss can exceed `epsilon`.
    pub fn reaches(&self, epsilon: f64) -> bool {
        let greatest = |(pair, steps): &Phase| pair.bound() * *steps as f64;
        self.parts.iter().map(greatest).sum::<f64>() * (1.0 + 1e-12) > epsilon
    }

    /// The pair of a composition of a single step, whose curve needs no grid.
    fn single(&self) -> Option<&dyn Pair> {
        match &self.parts[..] {
            [(pair, 1)] => Some(&**pair),
            _ => None,
        }
    }

    /// A quick upper bound on epsilon at e^`ln_delta`, which is usually tight.
    fn rough(&self, ln_delta: f64) -> f64 {
        let read = |upper: Option<&Spectrum>, _: Option<&Spectrum>, target: f64| {
            let upper =
                upper.and_then(|spectrum| spectrum.epsilon(ln_delta, target)).unwrap_or(f64::INFINITY);
            // A second round only if the first target was far off.
            Bounds { lower: if upper < 0.8 * target { 0.0 } else { upper }, upper }
        };
        self.refine(Fit::new(&self.parts, ln_delta), Bounds::ZERO, 2, read).upper
    }

    /// An approximation of ln delta at `epsilon`, from which parameters are chosen: the ln delta at which
    /// [`Self::rough`] gives `epsilon`.
    fn ln_delta_near(&self, epsilon: f64) -> f64 {
        let excess = |ln_delta: f64| (self.rough(ln_delta) - epsilon).min(f64::MAX);
        let mut high = (-0.01, 0.0);
        let first = Fit::renyi_ln_delta(&self.parts, epsilon);
        let mut low = (first, excess(first));
        let mut step = 2.0;
        while low.1 <= 0.0 && low.0 > MIN_LN_DELTA {
            high = low;
            low.0 -= step;
            low.1 = excess(low.0);
            step *= 2.0;
        }
        if low.1 > 0.0 { crossing(low, high, 0.5, excess).1 } else { low.0 }
    }

    /// Refines the grid until the bounds are close or `known` is tighter, for at most `rounds` rounds. `ask`
    /// computes the bounds from the upper and the lower spectrum, near a target.
    fn refine(
        &self,
        mut fit: Fit,
        known: Bounds,
        rounds: usize,
        ask: impl Fn(Option<&Spectrum>, Option<&Spectrum>, f64) -> Bounds,
    ) -> Bounds {
        let mut best = Bounds { lower: 0.0, upper: f64::INFINITY };
        for _ in 0..rounds {
            let (above, below) = fit.parts(&self.parts);
            let atoms: usize = above.iter().map(|part| part.discrete.losses.len()).sum();
            let (settings, all_it_takes) = fit.settings().within(MAX_WORK / atoms as f64);
            let (upper, lower) = rayon::join(
                || Spectrum::new(&above, settings, Bound::Above),
                || below.and_then(|parts| Spectrum::new(&parts, settings, Bound::Below)),
            );
            let found = ask(upper.as_ref(), lower.as_ref(), fit.target);
            best = Bounds { lower: best.lower.max(found.lower), upper: best.upper.min(found.upper) };
            if best.narrow() || best.upper <= known.upper || !all_it_takes {
                break;
            }
            fit.refit(&self.parts, &best);
        }
        best
    }
}

#[cfg(test)]
mod tests;
