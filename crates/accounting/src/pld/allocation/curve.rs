//! The hockey-stick curve of a ratio whose law has finitely many atoms.

use super::super::discrete::Bound;
use super::super::pair::Point;
use super::super::profile::Direction;
use super::law::Law;

/// A law of the ratio S of the densities of P and Q under Q, and sums over its atoms.
#[derive(Debug)]
pub(super) struct Curve {
    values: Vec<f64>,
    masses: Vec<f64>,
    /// At each atom i: the sums over the atoms above it, and over it and those below.
    above: Vec<Sums>,
    below: Vec<Sums>,
    /// The mass of P at infinite ratios.
    infinite: f64,
    /// The relative error of values and masses, with the sign of the direction in which they may err.
    rounding: f64,
}

/// Sums over atoms s_j of mass q_j on one side of an atom s_i.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// sum of q_j.
    mass: f64,
    /// sum of q_j s_j.
    moment: f64,
    /// sum of q_j |s_j - s_i|.
    distance: f64,
}

impl Sums {
    /// With an atom at `value` that is `width` further inside, added to those of this side.
    fn with(self, value: f64, mass: f64, width: f64) -> Self {
        Self {
            mass: self.mass + mass,
            moment: self.moment + mass * value,
            distance: self.distance + self.mass * width,
        }
    }
}

/// Bound on the relative error of values, and of the masses of one ratio: more than the number of roundings
/// of a sum of a few thousand positive terms, in sixty such sums after each other. A mass of a sum of ratios
/// is a sum of products of as many masses, each of which adds [`OF_MASS`].
const ROUNDING: f64 = 1e-10;
/// Bound on the relative error of a mass between two knots.
const OF_MASS: f64 = 1e-13;

impl Curve {
    /// Creates the curve of a sum's law over `count`, its mean.
    pub fn new(law: &Law, count: u64, infinite: f64, bound: Bound) -> Self {
        let values: Vec<f64> = law.values.iter().map(|s| s / count as f64).collect();
        let last = values.len() - 1;
        let mut above = vec![Sums::default(); values.len()];
        for i in (0..last).rev() {
            let beyond = above[i + 1].with(values[i + 1], law.masses[i + 1], 0.0);
            above[i] =
                Sums { distance: beyond.distance + beyond.mass * (values[i + 1] - values[i]), ..beyond };
        }
        let mut below: Vec<Sums> = Vec::with_capacity(values.len());
        for (i, (&value, &mass)) in values.iter().zip(&law.masses).enumerate() {
            let before = below.last().copied().unwrap_or_default();
            below.push(before.with(value, mass, value - values[i.saturating_sub(1)]));
        }
        let sign = if bound == Bound::Above { 1.0 } else { -1.0 };
        let rounding = sign * (ROUNDING + OF_MASS * count as f64);
        Self { values, masses: law.masses.clone(), above, below, infinite, rounding }
    }

    /// The mean of (S - t)_+ under Q, with the sums over the atoms above t.
    fn excess(&self, t: f64) -> Sums {
        let i = self.values.partition_point(|&s| s <= t);
        if i == self.values.len() {
            return Sums { distance: self.infinite, ..Sums::default() };
        }
        if i == 0 {
            let (all, width) = (self.below[self.values.len() - 1], self.values[0] - t);
            let distance = self.above[0].distance + all.mass * width + self.infinite;
            return Sums { distance, ..all };
        }
        let sums = self.above[i - 1];
        // Towards the atom below t, the excess grows by the mass above.
        let distance = self.above[i].distance + sums.mass * (self.values[i] - t) + self.infinite;
        Sums { distance, ..sums }
    }

    /// The mean of (t - S)_+ under Q, with the sums over the atoms up to t.
    fn shortfall(&self, t: f64) -> Sums {
        let i = self.values.partition_point(|&s| s <= t);
        let Some(before) = i.checked_sub(1) else { return Sums::default() };
        let sums = self.below[before];
        Sums { distance: sums.distance + sums.mass * (t - self.values[before]), ..sums }
    }

    /// The point of the curve at `loss`, for P and Q (removal) or Q and P (addition).
    pub fn at(&self, direction: Direction, loss: f64) -> Point {
        let is_removal = direction == Direction::Remove;
        let (t, scale) = if is_removal { (loss.exp(), 1.0) } else { ((-loss).exp(), loss.exp()) };
        let is_above = is_removal == (loss >= 0.0);
        let sums = if is_above {
            self.excess(t * (1.0 - self.rounding))
        } else {
            self.shortfall(t * (1.0 + self.rounding))
        };
        Point {
            value: scale * sums.distance * (1.0 + self.rounding),
            slope: if is_removal { sums.mass } else { sums.moment },
        }
    }

    /// The losses of the atoms in increasing order, with their masses under the first law of `direction`.
    pub fn losses(&self, direction: Direction) -> Vec<(f64, f64)> {
        let atoms = (0..self.values.len()).filter(|&i| self.values[i] > 0.0);
        let mass = |i: usize| self.masses[i];
        match direction {
            Direction::Remove => atoms.map(|i| (self.values[i].ln(), self.values[i] * mass(i))).collect(),
            Direction::Add => atoms.rev().map(|i| (-self.values[i].ln(), mass(i))).collect(),
        }
    }
}
