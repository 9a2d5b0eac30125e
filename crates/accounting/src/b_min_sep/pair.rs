//! The dominating pair: its likelihood ratio LR, and importance samples of both sides with bounded weights.
//!
//! - Mixture side: the proposal's density is proportional to `LR^a` times that of the noise, for a whole
//!   number `a` of replicas of the example ([`ReplicaProposal`]). The weight is `W LR^{1 - a}` with
//!   `W = E LR^a` over the noise: bounded where the loss is above epsilon. A single replica whose means are
//!   multiplied by a factor has the weight `W LR / sum_x pi_x e^{factor v_x}`, which the power-mean
//!   inequality bounds.
//! - Origin side: the proposal is normal around `-tau m`, where m is the mean of m_x under a thinned process
//!   rho that joins with a fraction of the probability p. Gibbs' inequality
//!   `ln LR >= <m, y> - E_rho |m_x|^2 / 2 - KL(rho, pi)` bounds `<m, y>` from above where the loss is
//!   below -epsilon.
//!
//! Sampling and the bounds on the weights are in the same file because they must agree.

use std::sync::Arc;

use antinoise_input::{InvalidParameter, at_least, non_negative, positive};

use super::replicas::{ReplicaProposal, ln_add};
use super::sampling_law::SamplingLaw;
use crate::monte_carlo::simulation::{Simulation, ln_largest_excess, predicted_upper};
use crate::monte_carlo::{Direction, Normals, Samples, Source, Tally, add, least, tallies};
use crate::{Gdp, Result};

/// The joining probabilities of thinned processes, as fractions of p.
const THINNING: [f64; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// Candidate tilts, as fractions of the tilt with the smallest bound: smaller tilts have less variance.
const TILT_FRACTIONS: [f64; 3] = [1.0, 0.7, 0.4];
/// Maximum number of replicas.
const MAX_REPLICAS: usize = 24;
/// Products are computed directly if no factor exceeds `e^MAX_EXPONENT`, by logarithms otherwise. Direct
/// products that leave `SMALL..=LARGE` are rescaled.
const MAX_EXPONENT: f64 = 300.0;
const SMALL: f64 = 1e-150;
const LARGE: f64 = 1e150;
/// Range of (stretch - 1) in the search for the smallest bound.
const STRETCHES: (f64, f64) = (1e-3, 1e3);
/// Number of steps of that search.
const STRETCH_CUTS: usize = 18;
/// Number of samples from which the search for a noise scale predicts upper confidence limits.
const SEARCH_SAMPLES: usize = 8192;
/// Number of samples from which that search chooses proposals.
const SEARCH_PROPOSAL_SAMPLES: usize = 1024;

/// The dominating pair: C in units of the noise, and the distribution of the participation patterns.
#[derive(Debug, Clone)]
pub(crate) struct MinSepPair {
    law: SamplingLaw,
    /// `columns[t]`: c_t from the diagonal down, at most b entries.
    columns: Vec<Vec<f64>>,
    /// `gram[t][lag]`: `<c_t, c_{t-lag}>`, for lags below b.
    gram: Vec<Vec<f64>>,
}

/// A proposal distribution for one side of the pair.
#[derive(Debug, Clone)]
pub(crate) enum Proposal {
    Mixture(Arc<ReplicaProposal>),
    Origin {
        /// The vector m; samples are centred at `-tilt m`.
        mean: Arc<Vec<f64>>,
        tilt: f64,
        /// The logarithm of a bound on the importance weight times `e^{tilt epsilon}`, without the factor for
        /// `(1 - e^{epsilon - loss})_+`.
        ln_bound: f64,
        /// Squared norm of `mean`.
        square: f64,
    },
}

impl MinSepPair {
    /// Creates the pair for `columns` and noise of standard deviation `noise_std`; checks the conditions of
    /// the theorem.
    pub fn new<C: AsRef<[f64]>>(columns: &[C], law: SamplingLaw, noise_std: f64) -> Result<Self> {
        let steps = at_least("columns", columns.len(), 1)?;
        let noise_std = positive("noise_std", noise_std)?;
        let mut scaled = Vec::with_capacity(steps);
        for (t, column) in columns.iter().enumerate() {
            let (name, column) = (format!("column {t}"), column.as_ref());
            if column.len() > steps - t {
                let must_be = format!("at most {} entries, one for each remaining step", steps - t);
                return Err(InvalidParameter::new(name, column.len(), must_be).into());
            }
            for entry in column {
                non_negative(&name, *entry)?;
            }
            let bands = column.iter().rposition(|&entry| entry > 0.0).map_or(0, |last| last + 1);
            if bands > law.min_sep {
                let must_be = format!(
                    "at most {} entries long, the min_sep: the columns of an example's steps must not overlap",
                    law.min_sep
                );
                return Err(InvalidParameter::new(name, bands, must_be).into());
            }
            scaled.push(column[..bands].iter().map(|entry| entry / noise_std).collect());
        }
        let found = Self::of(scaled, law);
        Gdp::new(found.largest_norm())?;
        Ok(found)
    }

    /// Creates the pair for columns that are already in units of the noise.
    fn of(columns: Vec<Vec<f64>>, law: SamplingLaw) -> Self {
        let gram = |t: usize| -> Vec<f64> {
            let lag = |lag: usize| {
                let before: &[f64] = t.checked_sub(lag).map_or(&[], |s| &columns[s]);
                before.iter().skip(lag).zip(&columns[t]).map(|(a, b)| a * b).sum()
            };
            (0..law.min_sep).map(lag).collect()
        };
        let gram = (0..columns.len()).map(gram).collect();
        Self { law, columns, gram }
    }

    /// The pair with its columns multiplied by `factor`.
    fn scaled(&self, factor: f64) -> Self {
        let times = |column: &Vec<f64>| column.iter().map(|entry| factor * entry).collect();
        Self::of(self.columns.iter().map(times).collect(), self.law)
    }

    fn steps(&self) -> usize {
        self.columns.len()
    }

    /// The squared norm |c_t|^2 of column t.
    fn square(&self, t: usize) -> f64 {
        self.gram[t][0]
    }

    /// l_t = `<c_t, y> - |c_t|^2 / 2` for all t.
    fn losses(&self, y: &[f64], losses: &mut [f64]) {
        for (t, (column, loss)) in self.columns.iter().zip(losses).enumerate() {
            let product: f64 = column.iter().zip(&y[t..]).map(|(c, y)| c * y).sum();
            *loss = product - 0.5 * self.square(t);
        }
    }

    /// The logarithm of the sum over patterns x of `pi_x prod_{t in x} e^{factor l_t}`, which is ln LR for
    /// factor 1. `after` is scratch memory.
    fn ln_ratio(&self, losses: &[f64], factor: f64, after: &mut Vec<f64>) -> f64 {
        match losses.iter().any(|loss| factor * loss > MAX_EXPONENT) {
            true => self.ln_ratio_by_logarithms(losses, factor),
            false => self.ln_ratio_by_products(losses, factor, after),
        }
    }

    /// [`Self::ln_ratio`] by direct products. Entry t mod b of `after` holds f(t + b), then f(t).
    fn ln_ratio_by_products(&self, losses: &[f64], factor: f64, after: &mut Vec<f64>) -> f64 {
        let SamplingLaw { min_sep: b, rate, free, join, stay } = self.law;
        after.clear();
        after.resize(b, 1.0);
        let (mut slot, mut next, mut ln_scale) = (losses.len() % b, 1.0, 0.0);
        for &loss in losses.iter().rev() {
            slot = if slot == 0 { b - 1 } else { slot - 1 };
            next = stay * next + join * (factor * loss).exp() * after[slot];
            after[slot] = next;
            if !(SMALL..=LARGE).contains(&next) {
                let scale = 1.0 / next;
                after.iter_mut().for_each(|f| *f *= scale);
                ln_scale += next.ln();
                next = 1.0;
            }
        }
        ln_scale + (free * after[0] + rate * after[1..].iter().sum::<f64>()).ln()
    }

    /// [`Self::ln_ratio`] by sums of logarithms, for factors of any size.
    fn ln_ratio_by_logarithms(&self, losses: &[f64], factor: f64) -> f64 {
        let SamplingLaw { min_sep: b, rate, free, join, stay } = self.law;
        let mut after = vec![0.0; b];
        for t in (0..losses.len()).rev() {
            let stays = stay.ln() + after[(t + 1) % b];
            after[t % b] = ln_add(stays, join.ln() + factor * losses[t] + after[t % b]);
        }
        let waits = after[1..].iter().fold(f64::NEG_INFINITY, |sum, &f| ln_add(sum, f));
        ln_add(free.ln() + after[0], rate.ln() + waits)
    }

    /// ln W for a single replica whose means are multiplied by `stretch`.
    fn ln_weight_of_stretched(&self, stretch: f64) -> f64 {
        let halves: Vec<f64> = (0..self.steps()).map(|t| 0.5 * self.square(t)).collect();
        self.ln_ratio(&halves, stretch * (stretch - 1.0), &mut Vec::new())
    }

    /// For the thinned process rho, which joins with probability `fraction` p: the mean m of m_x, and
    /// `E_rho |m_x|^2 / 2 + KL(rho, pi)`.
    fn thinned(&self, fraction: f64) -> (Vec<f64>, f64) {
        let SamplingLaw { min_sep, rate, free, join, stay } = self.law;
        let thin = fraction * join;
        let of_join = if thin > 0.0 { thin * fraction.ln() } else { 0.0 };
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

    fn proposals_of_origin(&self, epsilon: f64) -> Vec<Proposal> {
        let mut least: Option<(f64, Proposal)> = None;
        let mut all = vec![self.origin(&Arc::new(vec![0.0; self.steps()]), 0.0, 0.0)];
        for fraction in THINNING {
            let (mean, gap) = self.thinned(fraction);
            let square: f64 = mean.iter().map(|x| x * x).sum();
            let tilt = (epsilon - gap) / square;
            if !(tilt > 0.0 && tilt < 1e6) {
                continue;
            }
            let mean = Arc::new(mean);
            let made = TILT_FRACTIONS.map(|part| self.origin(&mean, part * tilt, gap));
            let bound = self.largest_sample(Direction::Add, epsilon, &made[0]);
            if least.as_ref().is_none_or(|(least, _)| bound < *least) {
                least = Some((bound, made[0].clone()));
                all.truncate(1);
                all.extend(made);
            }
        }
        all
    }

    fn origin(&self, mean: &Arc<Vec<f64>>, tilt: f64, gap: f64) -> Proposal {
        let square = mean.iter().map(|x| x * x).sum();
        let ln_bound = tilt * gap + 0.5 * tilt * tilt * square;
        Proposal::Origin { mean: Arc::clone(mean), tilt, ln_bound, square }
    }

    fn proposals_of_mixture(&self, epsilon: f64) -> Vec<Proposal> {
        let ln_bound = |replicas: &ReplicaProposal| {
            let exponent = replicas.exponent();
            replicas.ln_weight - exponent * epsilon + ln_largest_excess(exponent)
        };
        // No more replicas than give the smallest bound: with more, a few samples have large weights, which a
        // pilot may miss.
        let mut all = vec![ReplicaProposal::new(self.law, &self.gram, 1, 1.0)];
        for count in (2..=MAX_REPLICAS)
            .take_while(|&count| ReplicaProposal::is_affordable(self.law.min_sep, self.steps(), count))
        {
            let next = ReplicaProposal::new(self.law, &self.gram, count, 1.0);
            if ln_bound(&next) > ln_bound(&all[all.len() - 1]) {
                break;
            }
            all.push(next);
        }
        all.drain(1..all.len().saturating_sub(2).max(1));
        // The stretch of one replica with the smallest bound, whose logarithm is convex. Claims depend on
        // every bit of it.
        let (mut low, mut high) = (STRETCHES.0.ln(), STRETCHES.1.ln());
        let at = |ln_tilt: f64| {
            let tilt = ln_tilt.exp();
            self.ln_weight_of_stretched(1.0 + tilt) - tilt * epsilon + ln_largest_excess(tilt)
        };
        for _ in 0..STRETCH_CUTS {
            let (left, right) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
            if at(left) < at(right) { high = right } else { low = left }
        }
        let best = (0.5 * (low + high)).exp();
        let stretched = |fraction| ReplicaProposal::new(self.law, &self.gram, 1, 1.0 + fraction * best);
        all.extend(TILT_FRACTIONS.map(stretched));
        all.into_iter().map(|replicas| Proposal::Mixture(Arc::new(replicas))).collect()
    }
}

impl Simulation for MinSepPair {
    type Proposal = Proposal;

    const SHARES_PRECISION: bool = true;
    const MAX_CLAIM_SAMPLES: usize = 100_000;
    const CLAIM: &'static str = "antinoise b-min-sep 1";

    fn numbers(&self) -> impl Iterator<Item = f64> {
        let SamplingLaw { min_sep, rate, free, join, stay } = self.law;
        let columns = self
            .columns
            .iter()
            .flat_map(|column| std::iter::once(column.len() as f64).chain(column.iter().copied()));
        [min_sep as f64, rate, free, join, stay].into_iter().chain(columns)
    }

    /// The maximum over patterns x of |m_x|, by dynamic programming from the last step back.
    fn largest_norm(&self) -> f64 {
        let b = self.law.min_sep;
        let mut after = vec![0.0; b];
        let mut best = 0.0f64;
        for t in (0..self.steps()).rev() {
            best = best.max(self.square(t) + after[t % b]);
            after[t % b] = best;
        }
        best.sqrt()
    }

    fn proposals(&self, direction: Direction, epsilon: f64) -> Vec<Proposal> {
        match direction {
            Direction::Remove => self.proposals_of_mixture(epsilon),
            Direction::Add => self.proposals_of_origin(epsilon),
        }
    }

    fn largest_sample(&self, _: Direction, epsilon: f64, proposal: &Proposal) -> f64 {
        let (exponent, ln_bound) = match proposal {
            Proposal::Mixture(replicas) => (replicas.exponent(), replicas.ln_weight),
            Proposal::Origin { tilt, ln_bound, .. } => (*tilt, *ln_bound),
        };
        (ln_bound - exponent * epsilon + ln_largest_excess(exponent)).exp() * (1.0 + 1e-9)
    }

    fn tallies(
        &self,
        _: Direction,
        epsilons: &[f64],
        proposal: &Proposal,
        samples: Samples<'_>,
    ) -> Vec<Tally> {
        let direction = match proposal {
            Proposal::Mixture(_) => Direction::Remove,
            Proposal::Origin { .. } => Direction::Add,
        };
        let least = least(epsilons);
        tallies(samples, direction, epsilons, |normals, tallies, count| {
            let (mut y, mut losses, mut scratch) =
                (vec![0.0; self.steps()], vec![0.0; self.steps()], Vec::new());
            for _ in 0..count {
                y.iter_mut().for_each(|y| *y = normals.next());
                let sample = self.one(least, proposal, normals, &mut y, &mut losses, &mut scratch);
                add(tallies, epsilons, sample);
            }
        })
    }

    fn upper_by_noise(&self, epsilon: f64) -> impl Fn(f64) -> f64 {
        let source = Source::of_seed(0);
        move |ln_scale: f64| {
            let pair = self.scaled((-ln_scale).exp());
            predicted_upper(&pair, epsilon, |direction, proposal, is_rough| {
                let count = if is_rough { SEARCH_PROPOSAL_SAMPLES } else { SEARCH_SAMPLES };
                pair.tally(direction, epsilon, proposal, count, &source)
            })
        }
    }
}

impl MinSepPair {
    /// Returns the loss of one sample, and its weight if the loss is above `least`. `y`, `losses` and
    /// `scratch` are scratch memory.
    fn one(
        &self,
        least: f64,
        proposal: &Proposal,
        normals: &mut Normals,
        y: &mut [f64],
        losses: &mut [f64],
        scratch: &mut Vec<f64>,
    ) -> (f64, f64) {
        match proposal {
            Proposal::Mixture(replicas) => {
                replicas.draw(normals, |t, times| {
                    y[t..].iter_mut().zip(&self.columns[t]).for_each(|(y, entry)| *y += times * entry);
                });
                self.losses(y, losses);
                let loss = self.ln_ratio(losses, 1.0, scratch);
                if loss <= least {
                    return (loss, 0.0);
                }
                let proposed = if replicas.stretch == 1.0 {
                    replicas.count as f64 * loss
                } else {
                    self.ln_ratio(losses, replicas.stretch, scratch)
                };
                (loss, (loss + replicas.ln_weight - proposed).exp())
            }
            Proposal::Origin { mean, tilt, square, .. } => {
                y.iter_mut().zip(&**mean).for_each(|(y, mean)| *y -= tilt * mean);
                self.losses(y, losses);
                let loss = -self.ln_ratio(losses, 1.0, scratch);
                if loss <= least {
                    return (loss, 0.0);
                }
                let along: f64 = y.iter().zip(&**mean).map(|(y, mean)| y * mean).sum();
                (loss, (tilt * along + 0.5 * tilt * tilt * square).exp())
            }
        }
    }
}

#[cfg(test)]
mod tests;
