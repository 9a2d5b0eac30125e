//! Characteristic functions of tilted sums of privacy losses, with bounds on their errors.

use std::f64::consts::PI;

use num_complex::Complex;

use super::discrete::{Bound, Discrete, Part};
use super::tilt::ln_sum;

/// Number of rotations of atoms, from one frequency to the next, in a block; and number of blocks after which
/// the angles are computed directly again, since errors grow with the number of rotations.
const TURNS: usize = 12;
/// Block length of a sum: errors grow with the longer of block length and number of blocks.
const BLOCK: usize = 256;

/// The logarithm of sum p_i e^{theta l_i}, where p_i is the mass of loss l_i.
pub(crate) fn ln_moment(discrete: &Discrete, theta: f64) -> f64 {
    ln_sum(discrete.losses.iter().zip(&discrete.ln_masses).map(|(loss, ln)| ln + theta * loss))
}

/// The result of [`characteristic`]: its values; their absolute values, each with a bound on the relative
/// error; and ln of the mass with a bound on its error.
pub(crate) type Characteristic = (Vec<Complex<f64>>, Vec<(f64, f64)>, (f64, f64));

/// The characteristic function of the tilted sum at `count` frequencies, divided by its total mass; its
/// absolute values, each with a bound on the relative error; and ln of the mass with a bound on its error.
///
/// For one step it is e^{i omega l} (1 + W) with l the loss of the heaviest atom and W = sum m_i (e^{i omega
/// (l_i - l)} - 1). Where sampling is rare W is tiny, and so are its errors. An error of one ulp of 1 + W
/// would grow to n ulps in the power (1 + W)^n of n steps.
pub(crate) fn characteristic(
    parts: &[Part],
    theta: f64,
    period: f64,
    count: usize,
    bound: Bound,
) -> Characteristic {
    // For each frequency: ln |A|, phase, and T e / |A|, where A is the characteristic function of a step, e
    // its error and T the number of steps.
    let mut powers = vec![(0.0, 0.0, 0.0); count];
    let mut ln_mass = (0.0, 0.0);
    for part in parts {
        let steps = part.steps as f64;
        let atoms = Atoms::tilted(&part.discrete, theta, bound);
        let error = steps * f64::EPSILON * additions(atoms.masses.len());
        ln_mass = (ln_mass.0 + steps * atoms.mass.ln(), ln_mass.1 + error);
        let mut each = |k: usize, moved: Complex<f64>| {
            let omega = 2.0 * PI * k as f64 / period;
            let error = atoms.error(omega);
            let value = moved / atoms.mass;
            let (ln_size, phase) = polar_of_one_plus(value);
            let ln_size = ln_size.max(error.ln());
            let size = ln_size.exp();
            // If the error exceeds the value, the phase is arbitrary.
            let relative = error / size * if size < 4.0 * error { 2.0 } else { 1.0 };
            let turned = omega * atoms.centre;
            let (ln_power, angle, growth) = &mut powers[k];
            *ln_power += steps * ln_size;
            *angle += steps * phase + steps * turned;
            let angles = ln_size.abs() + phase.abs() + turned.abs();
            *growth += steps * (relative + 4.0 * f64::EPSILON * angles) + 8.0 * f64::EPSILON;
        };
        // Uses the widest vectors of this machine. Lanes are fixed and no operations are fused, so that bits
        // are the same on all machines.
        pulp::Arch::new().dispatch(Transform {
            atoms: &atoms,
            step: 2.0 * PI / period,
            count,
            each: &mut each,
        });
    }
    let power = |&(ln_size, angle, growth): &(f64, f64, f64)| {
        let size = ln_size.exp();
        // |(x + e)^T - x^T| <= |x|^T (exp(T e/|x|) - 1).
        (Complex::from_polar(size, angle), (size, growth.min(700.0).exp_m1()))
    };
    let (values, sizes) = powers.iter().map(power).unzip();
    (values, sizes, ln_mass)
}

/// ln |1 + w| and the angle of 1 + w, with errors proportional to |w|.
fn polar_of_one_plus(w: Complex<f64>) -> (f64, f64) {
    let square = w.norm_sqr();
    // Far from 0 an ulp of 1 is small compared with w.
    let ln_size = if square < 0.25 { 0.5 * (2.0 * w.re + square).ln_1p() } else { (w + 1.0).norm().ln() };
    (ln_size, w.im.atan2(1.0 + w.re))
}

/// A normalised tilted measure: losses and masses. Masses are rounded up for an upper bound and down for a
/// lower one, which changes delta relatively by at most the number of steps times their rounding. If these
/// roundings were counted as errors of each frequency instead, the change would be relative to the largest
/// payoff, which may be far above the mean payoff.
struct Atoms {
    /// The loss of the heaviest atom, and the differences of all losses from it.
    centre: f64,
    losses: Vec<f64>,
    masses: Vec<f64>,
    /// The sum of the masses.
    mass: f64,
    /// The mass outside the centre, and the mean distance of this mass from the centre.
    away: f64,
    spread: f64,
}

impl Atoms {
    fn tilted(discrete: &Discrete, theta: f64, bound: Bound) -> Self {
        let ln_moment = ln_moment(discrete, theta);
        let sign = if bound == Bound::Above { 1.0 } else { -1.0 };
        let (mut losses, mut masses) = (vec![], vec![]);
        let mut heaviest = (0.0, 0.0);
        for (&loss, &ln) in discrete.losses.iter().zip(&discrete.ln_masses) {
            let exponents = ln.abs() + (theta * loss).abs() + ln_moment.abs();
            let rounding = f64::EPSILON * (8.0 + 4.0 * exponents);
            let mass = (ln + theta * loss - ln_moment).exp() * (1.0 + sign * rounding);
            // Masses that are too small to matter are dropped and counted as errors.
            if mass > 1e-40 {
                losses.push(loss);
                masses.push(mass);
                if mass > heaviest.0 {
                    heaviest = (mass, loss);
                }
            }
        }
        let centre = heaviest.1;
        losses.iter_mut().for_each(|loss| *loss -= centre);
        let away =
            losses.iter().zip(&masses).map(|(&apart, mass)| if apart == 0.0 { 0.0 } else { *mass }).sum();
        let spread = losses.iter().zip(&masses).map(|(apart, mass)| apart.abs() * mass).sum();
        Self { centre, mass: sum(&masses), away, spread, losses, masses }
    }

    /// A bound on the error of W at `omega`: the rounding of rotations, sums and angles, and of the
    /// operations on W. A rotation adds at most seven units in the last place of its result, which is at most
    /// min(2, the angle); an addition in a sum adds half a unit.
    fn error(&self, omega: f64) -> f64 {
        let rounding = 14.0 * TURNS as f64 + 32.0 + 0.5 * additions(self.losses.len());
        let angles = omega * self.spread;
        f64::EPSILON * (rounding * angles.min(2.0 * self.away) + 4.0 * angles) + 1e-34
    }
}

/// Calls `each(k, W)` for every k below `count`, where W is the sum of mass (e^{i k step loss} - 1) over all
/// atoms.
struct Transform<'a, F> {
    atoms: &'a Atoms,
    step: f64,
    count: usize,
    each: F,
}

impl<F: FnMut(usize, Complex<f64>)> pulp::NullaryFnOnce for Transform<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let turn = |times: usize| Turn::new(self.atoms, times as f64 * self.step);
        let (one, many) = (turn(1), turn(TURNS));
        let zeros = || vec![0.0; self.atoms.losses.len()];
        let mut anchor = (zeros(), zeros());
        let mut here = (zeros(), zeros());
        for k in 0..self.count {
            if k % (TURNS * TURNS) == 0 {
                anchor = turn(k).from_one;
            } else if k % TURNS == 0 {
                many.apply(&mut anchor);
            }
            if k % TURNS == 0 {
                here.0.copy_from_slice(&anchor.0);
                here.1.copy_from_slice(&anchor.1);
            }
            (self.each)(k, Complex::new(sum(&here.0), sum(&here.1)));
            one.apply(&mut here);
        }
    }
}

/// A rotation of each atom by its own angle.
struct Turn {
    cos: Vec<f64>,
    sin: Vec<f64>,
    /// The numbers mass (e^{i angle} - 1), one for each atom.
    from_one: (Vec<f64>, Vec<f64>),
}

impl Turn {
    #[inline(always)]
    fn new(atoms: &Atoms, omega: f64) -> Self {
        let (sin, cos): (Vec<f64>, Vec<f64>) =
            atoms.losses.iter().map(|loss| (omega * loss).sin_cos()).unzip();
        // cos - 1 = -2 sin^2 of half the angle.
        let half = |(loss, mass): (&f64, &f64)| -2.0 * mass * (0.5 * omega * loss).sin().powi(2);
        let re = atoms.losses.iter().zip(&atoms.masses).map(half).collect();
        let im = sin.iter().zip(&atoms.masses).map(|(sin, mass)| sin * mass).collect();
        Self { cos, sin, from_one: (re, im) }
    }

    /// Replaces mass (x - 1) by mass (x e^{i angle} - 1): rotates it, and adds mass (e^{i angle} - 1).
    #[inline(always)]
    fn apply(&self, (re, im): &mut (Vec<f64>, Vec<f64>)) {
        let turns = self.sin.iter().zip(&self.cos).zip(self.from_one.0.iter().zip(&self.from_one.1));
        for ((re, im), ((sin, cos), (add_re, add_im))) in re.iter_mut().zip(im).zip(turns) {
            (*re, *im) = (*re * cos - *im * sin + add_re, *re * sin + *im * cos + add_im);
        }
    }
}

/// Number of additions that affect a value in a [`sum`]: those within a lane of a block, over the eight
/// lanes, and over the blocks.
pub(crate) fn additions(count: usize) -> f64 {
    BLOCK as f64 / 8.0 + 8.0 + (count / BLOCK) as f64
}

/// Sums the values block by block, in eight lanes.
#[inline(always)]
pub(crate) fn sum(values: &[f64]) -> f64 {
    values.chunks(BLOCK).map(sum_of_block).sum()
}

#[inline(always)]
fn sum_of_block(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

#[cfg(test)]
mod tests;
