//! One direction of add-or-remove: choosing tilt, knots and smoothing, and refining until the bracket is narrow.

use super::discrete::{optimistic, pessimistic};
use super::fourier::{Bound, Part, Settings, Spectrum};
use super::profile::{Profile, Rounding};
use super::tilt::{Cumulants, Nodes, cumulants, end, for_delta, for_epsilon};
use super::{Bracket, WIDTH};
use crate::root::{greatest_float, least_float};

/// ln of the probability that the tilted loss is half a period from its target, on either side.
const LN_OUTSIDE: f64 = -18.0;
/// Refinements, and atoms times frequencies, before the bracket is returned as it is.
const REFINEMENTS: usize = 8;
const MOST_WORK: f64 = 2.5e8;

/// The steps of a composition as pairs (P, Q) that all point the same way.
pub(crate) struct Side {
    pub parts: Vec<(Profile, u64)>,
}

/// What knots and smoothing are fitted to.
struct Fit {
    nodes: Vec<Nodes>,
    /// Standard deviations of a step that matter.
    reach: f64,
    theta: f64,
    /// The epsilon around which delta is wanted.
    target: f64,
    /// The width in epsilon that is aimed at.
    width: f64,
    cumulants: Cumulants,
    /// Below 1 when the width came out larger than planned.
    fineness: f64,
    /// Whether the target is what is sought, not what is given.
    moves: bool,
}

impl Side {
    /// The least epsilon at e^`ln_delta`, bracketed; the other direction's is in `known`.
    pub fn epsilon(&self, ln_delta: f64, known: Bracket) -> Bracket {
        if let Some(profile) = self.single() {
            let curve = |rounding| move |e: f64| profile.at(e, rounding).value.ln();
            let (up, down) = (curve(Rounding::Up), curve(Rounding::Down));
            let upper = least_float(|e| up(e) <= ln_delta).unwrap_or(f64::INFINITY);
            return Bracket {
                lower: greatest_float(f64::MAX, |e| down(e) >= ln_delta).unwrap_or(0.0),
                upper,
            };
        }
        let (nodes, reach) = self.nodes(ln_delta);
        let (theta, target) = for_delta(&nodes, ln_delta);
        let spread = cumulants(&nodes, theta).variance.sqrt();
        let target = target.max(0.02 * spread);
        let fit = Fit::new(nodes, reach, theta, target, WIDTH * target, true);
        self.refine(fit, known, |target, upper, lower| {
            let most = upper.and_then(|spectrum| spectrum.epsilon(ln_delta, target));
            let least = lower.and_then(|spectrum| spectrum.epsilon(ln_delta, most.unwrap_or(target)));
            Bracket { lower: least.unwrap_or(0.0), upper: most.unwrap_or(f64::INFINITY) }
        })
    }

    /// The least delta at `epsilon`, bracketed; the other direction's is in `known`.
    pub fn delta(&self, epsilon: f64, known: Bracket) -> Bracket {
        if let Some(profile) = self.single() {
            let at = |rounding| profile.at(epsilon, rounding).value;
            return Bracket { lower: at(Rounding::Down), upper: at(Rounding::Up).min(1.0) };
        }
        // A first tilt tells how small delta is, which tells how far out a step has to be resolved.
        let (nodes, _) = self.nodes(-60.0);
        let theta = for_epsilon(&nodes, epsilon);
        let bound = cumulants(&nodes, theta).value - theta * epsilon - (theta * (1.0 + theta)).ln_1p();
        let (nodes, reach) = self.nodes(bound.clamp(-600.0, -0.1) - 3.0);
        let theta = for_epsilon(&nodes, epsilon);
        let fit = Fit::new(nodes, reach, theta, epsilon, WIDTH / (1.0 + theta), false);
        self.refine(fit, known, |_, upper, lower| Bracket {
            lower: lower.map_or(0.0, |spectrum| spectrum.ln_delta(epsilon).exp()),
            upper: upper.map_or(1.0, |spectrum| spectrum.ln_delta(epsilon).exp().min(1.0)),
        })
    }

    /// The one profile of a single step, whose curve needs no grid.
    fn single(&self) -> Option<&Profile> {
        match &self.parts[..] {
            [(profile, 1)] => Some(profile),
            _ => None,
        }
    }

    /// Quadrature nodes, and how many standard deviations matter at e^`ln_delta`.
    fn nodes(&self, ln_delta: f64) -> (Vec<Nodes>, f64) {
        let steps: f64 = self.parts.iter().map(|&(_, steps)| steps as f64).sum();
        // What is beyond adds less than 1e-5 of delta over all steps.
        let reach = (2.0 * (steps.ln() - ln_delta + 11.5)).sqrt().clamp(4.0, 37.5);
        (self.parts.iter().map(|(profile, steps)| Nodes::new(profile, *steps as f64, reach)).collect(), reach)
    }

    /// Reads `ask` off finer and finer approximations until the bracket is narrow, or does not matter
    /// beside `known`.
    fn refine(
        &self,
        mut fit: Fit,
        known: Bracket,
        ask: impl Fn(f64, Option<&Spectrum>, Option<&Spectrum>) -> Bracket,
    ) -> Bracket {
        let mut best = Bracket { lower: 0.0, upper: f64::INFINITY };
        for _ in 0..REFINEMENTS {
            let (above, below) = self.parts(&fit);
            let atoms: usize = above.iter().map(|part| part.discrete.losses.len()).sum();
            let (settings, all_it_takes) = fit.settings().within(MOST_WORK / atoms as f64);
            let upper = Spectrum::new(&above, settings, Bound::Above);
            let lower = below.and_then(|parts| Spectrum::new(&parts, settings, Bound::Below));
            let found = ask(fit.target, upper.as_ref(), lower.as_ref());
            best = Bracket { lower: best.lower.max(found.lower), upper: best.upper.min(found.upper) };
            if best.narrow() || best.upper <= known.upper || !all_it_takes {
                break;
            }
            fit.refit(&best);
        }
        best
    }

    /// All steps, discretised above and below.
    fn parts(&self, fit: &Fit) -> (Vec<Part>, Option<Vec<Part>>) {
        let spacing = fit.spacing();
        // A loss far above the target counts almost as an infinite one, unless the other steps pull it down.
        let pull: f64 =
            self.parts.iter().map(|(profile, steps)| profile.loss(0.0).min(0.0) * *steps as f64).sum();
        let highest = fit.target - pull + 12.0 - 2.0 * fit.fineness.ln()
            + 5.0 * fit.cumulants.variance.sqrt().min(20.0);
        let grid = |(profile, _): &(Profile, u64)| profile.grid(fit.reach, spacing, highest);
        let grids: Vec<_> = self.parts.iter().map(grid).collect();
        let each = || self.parts.iter().zip(&grids);
        let above =
            each().map(|(&(profile, steps), grid)| Part { discrete: pessimistic(&profile, grid), steps });
        let below = each()
            .map(|(&(profile, steps), grid)| Some(Part { discrete: optimistic(&profile, grid)?, steps }));
        (above.collect(), below.collect())
    }
}

impl Fit {
    fn new(nodes: Vec<Nodes>, reach: f64, theta: f64, target: f64, width: f64, moves: bool) -> Self {
        let (theta, cumulants) = bounded_tilt(&nodes, theta);
        Self { nodes, reach, theta, target, width, cumulants, fineness: 1.0, moves }
    }

    /// Takes what a first bracket taught.
    fn refit(&mut self, found: &Bracket) {
        let target = found.upper;
        if self.moves && target.is_finite() && target < 0.8 * self.target && target > 0.0 {
            // The Rényi bound was far off: the tilt was, too.
            (self.theta, self.cumulants) = bounded_tilt(&self.nodes, for_epsilon(&self.nodes, target));
            (self.width, self.target) = (self.width * target / self.target, target);
            return;
        }
        let excess = (found.upper - found.lower) / (WIDTH * found.upper);
        self.fineness *= if excess.is_finite() { (0.7 / excess.sqrt()).clamp(0.2, 0.7) } else { 0.2 };
    }

    /// Standard deviations of a step between knots: with them a d apart, the second moments that chords
    /// add and lowered chords take away make the bracket (1 + theta) d^2 roughness / 4 wide.
    fn spacing(&self) -> f64 {
        let finest = 2.0 * self.reach / 100_000.0;
        let fitted = (2.0 * self.width / ((1.0 + self.theta) * self.cumulants.roughness)).sqrt();
        (fitted.min(0.25) * self.fineness).max(finest)
    }

    /// Smoothing by s costs about 1.5 (1 + theta) s^2 in epsilon.
    fn settings(&self) -> Settings {
        let (lowest, below) = end(&self.nodes, self.theta, LN_OUTSIDE, -1.0);
        let (highest, above) = end(&self.nodes, self.theta, LN_OUTSIDE, 1.0);
        let half = (self.target - lowest).max(highest - self.target).max(-LN_OUTSIDE / self.theta);
        // The measures reach a little beyond the quadrature.
        let period = 2.1 * half;
        let smoothing = (self.width / (5.0 * (1.0 + self.theta))).sqrt().min(0.25 / (1.0 + self.theta));
        let smoothing = smoothing * self.fineness;
        Settings { theta: self.theta, smoothing, period, above, below }
    }
}

/// `theta`, but not far below the inverse spread of the loss: any tilt is sound, and a small one would need
/// a long period.
fn bounded_tilt(nodes: &[Nodes], theta: f64) -> (f64, Cumulants) {
    let theta = theta.max(0.7 / cumulants(nodes, theta).variance.sqrt());
    (theta, cumulants(nodes, theta))
}
