//! The dominating pair: means, its likelihood ratio, and samples of both sides with bounded weights. One file, and a long one: the bound of a weight and
//! the samples that have it are read together.
//!
//! - Mixture: samples are drawn from what is proportional to `LR^a` times noise, for a whole number `a` of copies of the example
//!   ([`Copies`]). Their weight is `W LR^{1 - a}`, where W is the mean of `LR^{a-1}`: bounded where the loss is above epsilon.
//!   One copy whose means are stretched by a factor has the weight `W LR / sum_x pi_x e^{factor v_x}`, bounded by the power mean.
//! - Origin: samples are drawn around -tau times the mean m of the means of a thinned process rho, which joins with a part of p.
//!   `ln LR >= <m, y> - E_rho |m_x|^2 / 2 - KL(rho, pi)` (Gibbs) bounds `<m, y>` from above where the loss is below -epsilon.

use std::sync::Arc;

use antinoise_input::{InvalidParameter, at_least, non_negative, positive};

use super::chances::Chances;
use super::copies::{Copies, ln_add};
use crate::monte_carlo::simulation::{Simulation, ln_largest_excess};
use crate::monte_carlo::{Direction, Normals, Source, Tally, tally};
use crate::{Gdp, Result};

/// Parts of p at which the thinned process joins.
const THINNED: [f64; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// Parts of the tilt of the least bound that are tried: the variance is less below it.
const PARTS: [f64; 3] = [1.0, 0.7, 0.4];
/// Most copies.
const MOST_COPIES: usize = 24;
/// Logarithms of factors up to here are taken as they are; numbers outside of the range are scaled.
const MOST_EXPONENT: f64 = 300.0;
const SMALL: f64 = 1e-150;
const LARGE: f64 = 1e150;
/// Stretches between which the least bound is sought, and how often the interval is cut.
const STRETCHES: (f64, f64) = (1e-3, 1e3);
const CUTS: usize = 18;

/// C in units of the noise.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub chances: Chances,
    /// Columns from the diagonal down, b entries at most.
    pub columns: Vec<Vec<f64>>,
    /// `<c_t, c_{t-lag}>` for lags below b.
    pub gram: Vec<Vec<f64>>,
}

/// A proposal.
#[derive(Debug, Clone)]
pub(super) enum Tilt {
    Mixture(Arc<Copies>),
    Origin {
        /// Where samples are centred.
        around: Arc<Vec<f64>>,
        tilt: f64,
        /// ln of the greatest weight, but for the excess.
        ln_bound: f64,
        square: f64,
    },
}

impl Pair {
    /// The pair of `columns` with noise of standard deviation `noise_std`; its hypotheses are checked.
    pub fn new<C: AsRef<[f64]>>(columns: &[C], chances: Chances, noise_std: f64) -> Result<Self> {
        let steps = at_least("columns", columns.len(), 1)?;
        let noise_std = positive("noise_std", noise_std)?;
        let mut scaled = Vec::with_capacity(steps);
        for (t, column) in columns.iter().enumerate() {
            let (name, column) = (format!("column {t}"), column.as_ref());
            if column.len() > steps - t {
                let must_be = format!("at most {} entries, the steps that remain", steps - t);
                return Err(InvalidParameter::new(name, column.len(), must_be).into());
            }
            for entry in column {
                non_negative(&name, *entry)?;
            }
            let bands = column.iter().rposition(|&entry| entry > 0.0).map_or(0, |last| last + 1);
            if bands > chances.min_sep {
                let must_be = format!(
                    "at most {} entries from the diagonal down, the min_sep: with more, the columns of an example's steps overlap",
                    chances.min_sep
                );
                return Err(InvalidParameter::new(name, bands, must_be).into());
            }
            scaled.push(column[..bands].iter().map(|entry| entry / noise_std).collect());
        }
        let found = Self::of(scaled, chances);
        Gdp::new(found.largest_norm())?;
        Ok(found)
    }

    fn of(columns: Vec<Vec<f64>>, chances: Chances) -> Self {
        let gram = |t: usize| -> Vec<f64> {
            let lag = |lag: usize| {
                let before: &[f64] = t.checked_sub(lag).map_or(&[], |s| &columns[s]);
                before.iter().skip(lag).zip(&columns[t]).map(|(a, b)| a * b).sum()
            };
            (0..chances.min_sep).map(lag).collect()
        };
        let gram = (0..columns.len()).map(gram).collect();
        Self { chances, columns, gram }
    }

    /// The same with columns times `factor`.
    pub fn scaled(&self, factor: f64) -> Self {
        let times = |column: &Vec<f64>| column.iter().map(|entry| factor * entry).collect();
        Self::of(self.columns.iter().map(times).collect(), self.chances)
    }

    pub fn steps(&self) -> usize {
        self.columns.len()
    }

    fn square(&self, t: usize) -> f64 {
        self.gram[t][0]
    }

    /// l_t of the sample y.
    fn losses(&self, y: &[f64], losses: &mut [f64]) {
        for (t, (column, loss)) in self.columns.iter().zip(losses).enumerate() {
            let product: f64 = column.iter().zip(&y[t..]).map(|(c, y)| c * y).sum();
            *loss = product - 0.5 * self.square(t);
        }
    }

    /// ln of the sum over patterns of pi times `e^{factor l_t}` over their steps: for factor 1, of the likelihood ratio.
    fn ln_ratio(&self, losses: &[f64], factor: f64, after: &mut Vec<f64>) -> f64 {
        match losses.iter().any(|loss| factor * loss > MOST_EXPONENT) {
            true => self.ln_ratio_by_logarithms(losses, factor),
            false => self.ln_ratio_by_products(losses, factor, after),
        }
    }

    /// The same where every factor is a number; `after` is scratch, of which entry t mod b is f(t + b), and then f(t).
    fn ln_ratio_by_products(&self, losses: &[f64], factor: f64, after: &mut Vec<f64>) -> f64 {
        let Chances { min_sep: b, rate, free, join, stay } = self.chances;
        after.clear();
        after.resize(b, 1.0);
        let (mut place, mut next, mut taken) = (losses.len() % b, 1.0, 0.0);
        for &loss in losses.iter().rev() {
            place = if place == 0 { b - 1 } else { place - 1 };
            next = stay * next + join * (factor * loss).exp() * after[place];
            after[place] = next;
            if !(SMALL..=LARGE).contains(&next) {
                let scale = 1.0 / next;
                after.iter_mut().for_each(|f| *f *= scale);
                taken += next.ln();
                next = 1.0;
            }
        }
        taken + (free * after[0] + rate * after[1..].iter().sum::<f64>()).ln()
    }

    /// The same for any factors.
    fn ln_ratio_by_logarithms(&self, losses: &[f64], factor: f64) -> f64 {
        let Chances { min_sep: b, rate, free, join, stay } = self.chances;
        let mut after = vec![0.0; b];
        for t in (0..losses.len()).rev() {
            let stays = stay.ln() + after[(t + 1) % b];
            after[t % b] = ln_add(stays, join.ln() + factor * losses[t] + after[t % b]);
        }
        let waits = after[1..].iter().fold(f64::NEG_INFINITY, |sum, &f| ln_add(sum, f));
        ln_add(free.ln() + after[0], rate.ln() + waits)
    }

    /// ln W of one copy whose means are stretched.
    pub fn ln_weight_of_stretched(&self, stretch: f64) -> f64 {
        let halves: Vec<f64> = (0..self.steps()).map(|t| 0.5 * self.square(t)).collect();
        self.ln_ratio(&halves, stretch * (stretch - 1.0), &mut Vec::new())
    }

    /// The centre of the origin's samples for a process that joins with `part` of p, and what bounds their weights.
    fn thinned(&self, part: f64) -> (Vec<f64>, f64) {
        let Chances { min_sep, rate, free, join, stay } = self.chances;
        let thin = part * join;
        let of_join = if thin > 0.0 { thin * part.ln() } else { 0.0 };
        let of_stay = if thin < 1.0 { (1.0 - thin) * ((1.0 - thin) / stay).ln() } else { 0.0 };
        let (mut free, mut gap) = (free, 0.0);
        let (mut mean, mut joined) = (vec![0.0; self.steps()], Vec::with_capacity(self.steps()));
        for (t, column) in self.columns.iter().enumerate() {
            if t > 0 {
                free += if t < min_sep { rate } else { joined[t - min_sep] };
            }
            let joins = thin * free;
            gap += free * (of_join + of_stay).max(0.0) + 0.5 * joins * self.square(t);
            mean[t..].iter_mut().zip(column).for_each(|(mean, entry)| *mean += joins * entry);
            joined.push(joins);
            free -= joins;
        }
        (mean, gap)
    }

    fn tilts_of_origin(&self, epsilon: f64) -> Vec<Tilt> {
        let mut least: Option<(f64, Tilt)> = None;
        let mut all = vec![self.origin(&Arc::new(vec![0.0; self.steps()]), 0.0, 0.0)];
        for part in THINNED {
            let (mean, gap) = self.thinned(part);
            let square: f64 = mean.iter().map(|x| x * x).sum();
            let tilt = (epsilon - gap) / square;
            if !(tilt > 0.0 && tilt < 1e6) {
                continue;
            }
            let mean = Arc::new(mean);
            let made = PARTS.map(|part| self.origin(&mean, part * tilt, gap));
            let end = self.largest(Direction::Add, epsilon, &made[0]);
            if least.as_ref().is_none_or(|(least, _)| end < *least) {
                least = Some((end, made[0].clone()));
                all.truncate(1);
                all.extend(made);
            }
        }
        all
    }

    fn origin(&self, around: &Arc<Vec<f64>>, tilt: f64, gap: f64) -> Tilt {
        let square = around.iter().map(|x| x * x).sum();
        let ln_bound = tilt * gap + 0.5 * tilt * tilt * square;
        Tilt::Origin { around: Arc::clone(around), tilt, ln_bound, square }
    }

    fn tilts_of_mixture(&self, epsilon: f64) -> Vec<Tilt> {
        let end = |copies: &Copies| {
            let exponent = copies.exponent();
            copies.ln_weight - exponent * epsilon + ln_largest_excess(exponent)
        };
        // Up to the number of the least bound: beyond it few samples have large weights, which a pilot does not see.
        let mut all = vec![Copies::new(self.chances, &self.gram, 1, 1.0)];
        for copies in (2..=MOST_COPIES)
            .take_while(|&copies| Copies::is_affordable(self.chances.min_sep, self.steps(), copies))
        {
            let next = Copies::new(self.chances, &self.gram, copies, 1.0);
            if end(&next) > end(&all[all.len() - 1]) {
                break;
            }
            all.push(next);
        }
        all.drain(1..all.len().saturating_sub(2).max(1));
        // The least bound of one stretched copy, whose logarithm is convex in the stretch.
        let (mut low, mut high) = (STRETCHES.0.ln(), STRETCHES.1.ln());
        let at = |ln_tilt: f64| {
            let tilt = ln_tilt.exp();
            self.ln_weight_of_stretched(1.0 + tilt) - tilt * epsilon + ln_largest_excess(tilt)
        };
        for _ in 0..CUTS {
            let (left, right) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
            if at(left) < at(right) { high = right } else { low = left }
        }
        let best = (0.5 * (low + high)).exp();
        all.extend(PARTS.map(|part| Copies::new(self.chances, &self.gram, 1, 1.0 + part * best)));
        all.into_iter().map(|copies| Tilt::Mixture(Arc::new(copies))).collect()
    }
}

impl Simulation for Pair {
    type Tilt = Tilt;

    const SHARES_PRECISION: bool = true;
    const MOST_CLAIM_SAMPLES: usize = 100_000;
    const CLAIM: &'static str = "antinoise b-min-sep 1";

    fn numbers(&self) -> impl Iterator<Item = f64> {
        let Chances { min_sep, rate, free, join, stay } = self.chances;
        let columns = self
            .columns
            .iter()
            .flat_map(|column| std::iter::once(column.len() as f64).chain(column.iter().copied()));
        [min_sep as f64, rate, free, join, stay].into_iter().chain(columns)
    }

    /// The largest norm of a pattern's mean.
    fn largest_norm(&self) -> f64 {
        let b = self.chances.min_sep;
        let mut after = vec![0.0; b];
        let mut best = 0.0f64;
        for t in (0..self.steps()).rev() {
            best = best.max(self.square(t) + after[t % b]);
            after[t % b] = best;
        }
        best.sqrt()
    }

    fn tilts(&self, direction: Direction, epsilon: f64) -> Vec<Tilt> {
        match direction {
            Direction::Remove => self.tilts_of_mixture(epsilon),
            Direction::Add => self.tilts_of_origin(epsilon),
        }
    }

    fn largest(&self, _: Direction, epsilon: f64, tilt: &Tilt) -> f64 {
        let (exponent, ln_bound) = match tilt {
            Tilt::Mixture(copies) => (copies.exponent(), copies.ln_weight),
            Tilt::Origin { tilt, ln_bound, .. } => (*tilt, *ln_bound),
        };
        (ln_bound - exponent * epsilon + ln_largest_excess(exponent)).exp() * (1.0 + 1e-9)
    }

    fn tally(&self, _: Direction, epsilon: f64, tilt: &Tilt, count: usize, source: &Source) -> Tally {
        let direction = match tilt {
            Tilt::Mixture(_) => Direction::Remove,
            Tilt::Origin { .. } => Direction::Add,
        };
        tally(count, source, direction, |normals, tally, count| {
            let (mut y, mut losses, mut scratch) =
                (vec![0.0; self.steps()], vec![0.0; self.steps()], Vec::new());
            for _ in 0..count {
                y.iter_mut().for_each(|y| *y = normals.next());
                tally.add(self.one(epsilon, tilt, normals, &mut y, &mut losses, &mut scratch));
            }
        })
    }
}

impl Pair {
    /// Weighted `(1 - e^{epsilon - loss})_+` of one sample, from standard normal y.
    fn one(
        &self,
        epsilon: f64,
        tilt: &Tilt,
        normals: &mut Normals,
        y: &mut [f64],
        losses: &mut [f64],
        scratch: &mut Vec<f64>,
    ) -> f64 {
        match tilt {
            Tilt::Mixture(copies) => {
                copies.draw(normals, |t, times| {
                    y[t..].iter_mut().zip(&self.columns[t]).for_each(|(y, entry)| *y += times * entry);
                });
                self.losses(y, losses);
                let loss = self.ln_ratio(losses, 1.0, scratch);
                if loss <= epsilon {
                    return 0.0;
                }
                let proposed = if copies.stretch == 1.0 {
                    copies.count as f64 * loss
                } else {
                    self.ln_ratio(losses, copies.stretch, scratch)
                };
                -(epsilon - loss).exp_m1() * (loss + copies.ln_weight - proposed).exp()
            }
            Tilt::Origin { around, tilt, square, .. } => {
                y.iter_mut().zip(&**around).for_each(|(y, mean)| *y -= tilt * mean);
                self.losses(y, losses);
                let loss = -self.ln_ratio(losses, 1.0, scratch);
                if loss <= epsilon {
                    return 0.0;
                }
                let along: f64 = y.iter().zip(&**around).map(|(y, mean)| y * mean).sum();
                -(epsilon - loss).exp_m1() * (tilt * along + 0.5 * tilt * tilt * square).exp()
            }
        }
    }
}
