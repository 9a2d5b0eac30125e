//! One direction of add-or-remove, refined until its bracket is narrow.

use super::Bracket;
use super::fit::Fit;
use super::fourier::{Bound, Spectrum};
use super::profile::{Profile, Rounding};
use crate::root::{greatest_float, least_float};

/// Refinements, and atoms times frequencies, before the bracket is returned as it is.
const REFINEMENTS: usize = 10;
const MOST_WORK: f64 = 2.5e8;

/// The steps of a composition as pairs (P, Q) that all point the same way.
pub(crate) struct Side {
    pub parts: Vec<(Profile, u64)>,
}

/// What is asked of a side.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Question {
    /// The least epsilon at e^`ln_delta`.
    Epsilon { ln_delta: f64 },
    /// The least delta at `epsilon`.
    Delta { epsilon: f64 },
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
        self.refine(Question::Epsilon { ln_delta }, known)
    }

    /// The least delta at `epsilon`, bracketed; the other direction's is in `known`.
    pub fn delta(&self, epsilon: f64, known: Bracket) -> Bracket {
        if let Some(profile) = self.single() {
            let at = |rounding| profile.at(epsilon, rounding).value;
            return Bracket { lower: at(Rounding::Down), upper: at(Rounding::Up).min(1.0) };
        }
        self.refine(Question::Delta { epsilon }, known)
    }

    /// The one profile of a single step, whose curve needs no grid.
    fn single(&self) -> Option<&Profile> {
        match &self.parts[..] {
            [(profile, 1)] => Some(profile),
            _ => None,
        }
    }

    /// Answers finer and finer until the bracket is narrow, or does not matter beside `known`.
    fn refine(&self, question: Question, known: Bracket) -> Bracket {
        let mut fit = Fit::new(self, question);
        let mut best = Bracket { lower: 0.0, upper: f64::INFINITY };
        for _ in 0..REFINEMENTS {
            let (above, below) = fit.parts(self);
            let atoms: usize = above.iter().map(|part| part.discrete.losses.len()).sum();
            let (settings, all_it_takes) = fit.settings().within(MOST_WORK / atoms as f64);
            let upper = Spectrum::new(&above, settings, Bound::Above);
            let lower = below.and_then(|parts| Spectrum::new(&parts, settings, Bound::Below));
            let found = question.ask(upper.as_ref(), lower.as_ref(), fit.target);
            best = Bracket { lower: best.lower.max(found.lower), upper: best.upper.min(found.upper) };
            if best.narrow() || best.upper <= known.upper || !all_it_takes {
                break;
            }
            fit.refit(self, &best);
        }
        best
    }
}

impl Question {
    fn ask(self, upper: Option<&Spectrum>, lower: Option<&Spectrum>, target: f64) -> Bracket {
        match self {
            Self::Epsilon { ln_delta } => {
                let most = upper.and_then(|spectrum| spectrum.epsilon(ln_delta, target));
                let least = lower.and_then(|spectrum| spectrum.epsilon(ln_delta, most.unwrap_or(target)));
                Bracket { lower: least.unwrap_or(0.0), upper: most.unwrap_or(f64::INFINITY) }
            }
            Self::Delta { epsilon } => Bracket {
                lower: lower.map_or(0.0, |spectrum| spectrum.ln_delta(epsilon).exp()),
                upper: upper.map_or(1.0, |spectrum| spectrum.ln_delta(epsilon).exp().min(1.0)),
            },
        }
    }
}
