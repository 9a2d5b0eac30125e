//! Bounds on the law of a sum of independent likelihood ratios.
//!
//! X = e^{mu z - mu^2 / 2}, for z from N(0, 1), is the ratio of the densities of N(mu, 1) and N(0, 1); its
//! mean is 1. The law of a sum of such ratios is bounded in convex order by laws of finitely many atoms:
//!
//! - from above, where an atom between two knots is moved to these knots in the shares that keep the mean: no
//!   convex function of the sum has a smaller mean;
//! - from below, where all atoms between two knots are moved to their mean: no convex function has a larger
//!   mean.
//!
//! Sums of independent numbers keep both orders. Only positive numbers are added, so that small masses are as
//! accurate as large ones.

use rayon::prelude::*;

use super::super::discrete::Bound;
use super::super::mixtures::tail;
use crate::normal::mass_between;

/// A law of finitely many atoms.
#[derive(Debug, Clone)]
pub(super) struct Law {
    /// Increasing and not negative.
    pub values: Vec<f64>,
    pub masses: Vec<f64>,
}

/// Number of standard deviations within which atoms of a ratio lie. The mass beyond is 1.8e-33.
pub(super) const REACH: f64 = 12.0;
/// Number of parts of a double sum, which are added in order: results don't depend on threads.
const PARTS: usize = 16;

impl Law {
    /// Bounds the law of one ratio, with knots `spacing` standard deviations apart. The mass below the lowest
    /// knot is at 0 from above, and left out from below. So is the mass beyond the highest knot, whose share
    /// of the mean [`beyond`] bounds.
    fn of_one(mu: f64, bound: Bound, spacing: f64) -> Self {
        let count = ((mu + 2.0 * REACH) / spacing).ceil();
        let place = |i: f64| -REACH + (mu + 2.0 * REACH) * (i / count);
        let places: Vec<f64> = (0..=count as usize).map(|i| place(i as f64)).collect();
        let ratio = |z: f64| (mu * (z - 0.5 * mu)).exp();
        let knots: Vec<f64> = [0.0].into_iter().chain(places.iter().map(|&z| ratio(z))).collect();
        let mut sum = Collected::new(knots, bound);
        if bound == Bound::Above {
            sum.masses[0] = tail(REACH);
        }
        for (i, ends) in places.windows(2).enumerate() {
            let mass = mass_between(ends[0], ends[1]);
            let moment = mass_between(ends[0] - mu, ends[1] - mu);
            sum.add(i + 1, mass, moment / mass);
        }
        sum.law()
    }

    /// Bounds the law of the sum of `count` ratios. Near its mean and near 0, knots are `spacing` standard
    /// deviations of the logarithm apart.
    pub fn of_sum(mu: f64, count: u64, bound: Bound, spacing: f64) -> Self {
        let fineness = spacing * mu.max(1.0);
        let (mut power, mut left) = (Self::of_one(mu, bound, spacing), count);
        let mut sum: Option<Self> = None;
        loop {
            if left % 2 == 1 {
                sum = Some(match &sum {
                    Some(sum) => sum.plus(&power, bound, fineness),
                    None => power.clone(),
                });
            }
            left /= 2;
            match (left, sum) {
                (0, Some(sum)) => return sum,
                (_, unfinished) => sum = unfinished,
            }
            power = power.plus(&power, bound, fineness);
        }
    }

    /// Bounds the law of the sum of two independent numbers.
    fn plus(&self, other: &Self, bound: Bound, fineness: f64) -> Self {
        let empty = Collected::new(self.knots_of_sum(other, fineness), bound);
        let part = self.values.len().div_ceil(PARTS);
        let parts: Vec<Collected> = (0..PARTS)
            .into_par_iter()
            .map(|k| {
                let mut sum = empty.clone();
                for i in (k * part).min(self.values.len())..((k + 1) * part).min(self.values.len()) {
                    sum.add_shifted(other, self.values[i], self.masses[i]);
                }
                sum
            })
            .collect();
        parts.into_iter().fold(empty, Collected::joined).law()
    }

    /// Knots for the sum of two numbers: 0, and from the least positive sum to the greatest, apart by
    /// `fineness` times their size or their distance from the mean, whichever is smaller.
    fn knots_of_sum(&self, other: &Self, fineness: f64) -> Vec<f64> {
        let least = |law: &Self| law.values.iter().copied().find(|&x| x > 0.0).unwrap_or(0.0);
        let greatest = |law: &Self| law.values[law.values.len() - 1];
        let (low, high) = (least(self) + least(other), greatest(self) + greatest(other));
        let ((mean, near), (other_mean, other_near)) = (self.location(), other.location());
        let (mean, near) = (mean + other_mean, near.hypot(other_near));
        let mut knots = vec![0.0, low];
        let mut knot = low;
        while knot < high {
            knot += fineness * knot.min(near.hypot(knot - mean));
            knots.push(knot.min(high));
        }
        knots
    }

    /// The mean, and the mean distance from it.
    fn location(&self) -> (f64, f64) {
        let atoms = || self.values.iter().zip(&self.masses);
        let mean: f64 = atoms().map(|(x, mass)| x * mass).sum();
        (mean, atoms().map(|(x, mass)| (x - mean).abs() * mass).sum())
    }
}

/// Bounds, from above, the share of the mean of a sum of `count` ratios that its atoms leave out.
pub(super) fn beyond(mu: f64, count: u64) -> f64 {
    (tail(REACH) + count as f64 * tail(mu + REACH)) * (1.0 + 1e-9)
}

/// Masses that are collected between knots.
#[derive(Clone)]
struct Collected {
    knots: Vec<f64>,
    bound: Bound,
    /// From above, masses of the knots; from below, masses between a knot and the next.
    masses: Vec<f64>,
    /// From below, the masses times their values.
    moments: Vec<f64>,
}

impl Collected {
    fn new(knots: Vec<f64>, bound: Bound) -> Self {
        let none = vec![0.0; knots.len()];
        Self { masses: none.clone(), moments: none, knots, bound }
    }

    /// Adds `mass` at `value` between knot `i` and the next.
    #[inline(always)]
    fn add(&mut self, i: usize, mass: f64, value: f64) {
        match self.bound {
            Bound::Above => {
                let (low, high) = (self.knots[i], self.knots[i + 1]);
                let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
                self.masses[i] += mass * (1.0 - share);
                self.masses[i + 1] += mass * share;
            }
            Bound::Below => {
                self.masses[i] += mass;
                self.moments[i] += mass * value;
            }
        }
    }

    /// Adds the atoms of `law`, moved by `shift`, `times` their masses.
    fn add_shifted(&mut self, law: &Law, shift: f64, times: f64) {
        let (mut i, last) = (0, self.knots.len() - 2);
        for (value, mass) in law.values.iter().zip(&law.masses) {
            let value = value + shift;
            while i < last && self.knots[i + 1] < value {
                i += 1;
            }
            self.add(i, times * mass, value);
        }
    }

    fn joined(mut self, other: Self) -> Self {
        let add = |sums: &mut [f64], terms: &[f64]| sums.iter_mut().zip(terms).for_each(|(a, b)| *a += b);
        add(&mut self.masses, &other.masses);
        add(&mut self.moments, &other.moments);
        self
    }

    /// The law of the atoms that have a mass.
    fn law(self) -> Law {
        let value = |i: usize| match self.bound {
            Bound::Above => self.knots[i],
            Bound::Below => self.moments[i] / self.masses[i],
        };
        let atoms: Vec<usize> = (0..self.knots.len()).filter(|&i| self.masses[i] > 0.0).collect();
        Law {
            values: atoms.iter().map(|&i| value(i)).collect(),
            masses: atoms.iter().map(|&i| self.masses[i]).collect(),
        }
    }
}
