//! Bounds for one direction (removal or addition), refined until they are close.

use super::bounds::Bounds;
use super::discrete::{Bound, parts};
use super::fit::Fit;
use super::fourier::Spectrum;
use super::pair::{Pair, Phase, Rounding};
use crate::root::{crossing, greatest_float, least_float};

/// Limits on refinements, and on atoms times frequencies, after which the current bounds are returned.
const REFINEMENTS: usize = 8;
const MAX_WORK: f64 = 1.5e8;
/// The logarithm of the smallest delta that is resolved.
const MIN_LN_DELTA: f64 = -600.0;

/// The spectrum that bounds delta on one side, on the knots of a round; `None` where there is none.
type Spectra<'a> = dyn Fn(Bound) -> Option<Spectrum> + Sync + 'a;

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
        self.refine(Fit::new(&self.parts, ln_delta), known, REFINEMENTS, |spectrum, target| {
            let most = |upper: Option<Spectrum>| upper.and_then(|upper| upper.epsilon(ln_delta, target));
            let (most, lower) = if known == Bounds::ZERO {
                let (upper, lower) = both(spectrum);
                (most(upper), lower)
            } else {
                // No lower bound is needed if the other direction has a larger one.
                let most = most(spectrum(Bound::Above));
                let may_be_worse = most.is_none_or(|most| most > known.lower);
                (most, may_be_worse.then(|| spectrum(Bound::Below)).flatten())
            };
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
        self.refine(fit, known, REFINEMENTS, |spectrum, _| {
            let (upper, lower) = both(spectrum);
            Bounds {
                lower: lower.map_or(0.0, |spectrum| spectrum.ln_delta(epsilon).exp()),
                upper: upper.map_or(1.0, |spectrum| spectrum.ln_delta(epsilon).exp().min(1.0)),
            }
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

    /// The upper bound on epsilon at e^`ln_delta` of the first grid, which is usually tight; of a single step
    /// that of [`Side::epsilon`].
    pub fn first_upper(&self, ln_delta: f64) -> f64 {
        if self.single().is_some() {
            return self.epsilon(ln_delta, Bounds::ZERO).upper;
        }
        self.upper(ln_delta, 1)
    }

    /// A quick upper bound on epsilon at e^`ln_delta`, also where the first grid is for another epsilon.
    fn rough(&self, ln_delta: f64) -> f64 {
        self.upper(ln_delta, 2)
    }

    /// The upper bound on epsilon at e^`ln_delta` of at most `rounds` grids.
    fn upper(&self, ln_delta: f64, rounds: usize) -> f64 {
        let read = |spectrum: &Spectra<'_>, target: f64| {
            let upper = spectrum(Bound::Above).and_then(|spectrum| spectrum.epsilon(ln_delta, target));
            let upper = upper.unwrap_or(f64::INFINITY);
            // Another round only if the first target was far off.
            Bounds { lower: if upper < 0.8 * target { 0.0 } else { upper }, upper }
        };
        self.refine(Fit::new(&self.parts, ln_delta), Bounds::ZERO, rounds, read).upper
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
    /// computes the bounds from the spectra that it needs, near a target.
    fn refine(
        &self,
        mut fit: Fit,
        known: Bounds,
        rounds: usize,
        ask: impl Fn(&Spectra<'_>, f64) -> Bounds,
    ) -> Bounds {
        let mut best = Bounds { lower: 0.0, upper: f64::INFINITY };
        for _ in 0..rounds {
            let grids = fit.grids(&self.parts);
            let atoms: usize = grids.iter().map(|grid| grid.losses.len()).sum();
            let (settings, all_it_takes) = fit.settings().within(MAX_WORK / atoms as f64);
            let spectrum = |bound| Spectrum::new(&parts(&self.parts, &grids, bound)?, settings, bound);
            let found = ask(&spectrum, fit.target);
            best = Bounds { lower: best.lower.max(found.lower), upper: best.upper.min(found.upper) };
            if best.narrow() || best.upper <= known.upper || !all_it_takes {
                break;
            }
            fit.refit(&self.parts, &best);
        }
        best
    }
}

/// The upper and the lower spectrum, computed side by side.
fn both(spectrum: &Spectra<'_>) -> (Option<Spectrum>, Option<Spectrum>) {
    rayon::join(|| spectrum(Bound::Above), || spectrum(Bound::Below))
}

#[cfg(test)]
mod tests;
