//! delta of a sum of many losses, in Fourier space under an exponential tilt.
//!
//! Let S be the sum of all losses under P, M its moment generating function, and F the law of S tilted by
//! e^{theta s}: delta(epsilon) = M(theta) e^{-theta epsilon} E_F g(S - epsilon) with
//! g(v) = e^{-theta v} (1 - e^{-v}) for v > 0, 0 below. F makes the losses that decide delta the likely ones,
//! so that every error below is relative to the delta sought, however small. g is replaced by a payoff
//! that is periodic and smooth, so that E_F is a short sum over frequencies, of products of characteristic
//! functions. For a Gaussian Z with standard deviation s:
//!
//! - above: g(v + Z), with Z the loss of one more release of s-GDP, which can only enlarge delta;
//! - below: E g*(v + sZ) less a Gaussian bump, where g* is g with its two exponentials scaled so that smoothing
//!   brings them back. With a = (1 + theta) s, what smoothing spills over the kink of g is at most
//!   s (phi(0) + 2a) e^{a^2/2} e^{-v^2/2s^2}, the bump.
//!
//! Both cost the order of (1 + theta) s^2 in epsilon, once for the whole sum. Making g periodic only adds; how
//! much is bounded by Chernoff. The frequencies left out are bounded by the transform of the payoff, since a
//! characteristic function is at most 1.

use std::f64::consts::PI;

use num_complex::Complex;

use super::discrete::Discrete;
use super::tilt::ln_sum;
use crate::root::crossing;

/// One step's measure, and how often it is repeated.
pub(crate) struct Part {
    pub discrete: Discrete,
    pub steps: u64,
}

/// The tilt, the smoothing and the period of the payoff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub theta: f64,
    pub smoothing: f64,
    pub period: f64,
    /// The last frequency, in units of 1 / smoothing, which leaves e^(-last^2 / 2) there.
    pub last: f64,
    /// The tilts upwards and downwards at which Chernoff bounds what lies half a period above and below.
    pub above: f64,
    pub below: f64,
}

/// Which side of the truth a spectrum is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Above,
    Below,
}

/// A bound on delta as a function of epsilon.
pub(crate) struct Spectrum {
    settings: Settings,
    bound: Bound,
    /// Transform of the payoff times characteristic function, at the frequencies 2 pi k / period.
    terms: Vec<Complex<f64>>,
    /// ln M(theta) of the sum.
    ln_moment: f64,
    /// Bound on the rounding of the sum over terms, and on the terms left out.
    error: f64,
    /// The probability of S > x under F is at most e^(ln_above - above x).
    ln_above: f64,
    /// The probability of S < x under F is at most e^(ln_below + below x).
    ln_below: f64,
    /// Sum of the sizes of the terms.
    size: f64,
    infinity: f64,
}

/// The most frequencies a spectrum may have.
const MOST: f64 = (1 << 19) as f64;
/// Atoms are rotated from one frequency to the next this often, then as often over so many at once, then afresh:
/// errors grow with the number of rotations.
const TURNS: usize = 12;
/// Values that are summed before their sum is added to others: errors grow with the longer of the two chains.
const BLOCK: usize = 256;

impl Settings {
    /// How many frequencies this takes.
    fn frequencies(&self) -> f64 {
        (self.last / self.smoothing * self.period / (2.0 * PI)).ceil() + 1.0
    }

    /// The same with as much smoothing as keeps the frequencies below `most`, and whether that was enough already.
    pub fn within(mut self, most: f64) -> (Self, bool) {
        let excess = self.frequencies() / most.min(MOST);
        self.smoothing *= excess.max(1.0);
        (self, excess <= 1.0)
    }

    /// How many frequencies this takes, where all settings are numbers.
    fn count(&self) -> Option<usize> {
        let count = self.frequencies();
        (count <= 2.0 * MOST && self.theta > 0.0 && self.above > 0.0 && self.below > 0.0)
            .then_some(count as usize)
    }
}

impl Spectrum {
    /// The bound for `parts` that are all on the side `bound`.
    pub fn new(parts: &[Part], settings: Settings, bound: Bound) -> Option<Self> {
        let Settings { theta, smoothing: s, period, above, below, .. } = settings;
        let count = settings.count()?;
        // What `wrapped` and the bump take for granted; more smoothing than that bounds nothing well.
        if bound == Bound::Below && (1.0 + theta) * s > 0.3 {
            return None;
        }
        // Sums and differences of logarithms err by 1e-13 at most, so many times over.
        let slack: f64 = parts.iter().map(|part| part.steps as f64 * 1e-13).sum();
        let moment =
            |tilt: f64| parts.iter().map(|p| p.steps as f64 * ln_moment(&p.discrete, tilt)).sum::<f64>();
        let ln_moment = moment(theta);
        let (mut terms, sizes, ln_mass) = characteristic(parts, theta, period, count, bound);
        let (mass, mut error) = (ln_mass.0.exp(), 0.0);
        for (k, (term, &(size, growth))) in terms.iter_mut().zip(&sizes).enumerate() {
            let omega = 2.0 * PI * k as f64 / period;
            let payoff = payoff(theta, s, omega, bound);
            let twice = if k == 0 { 1.0 } else { 2.0 };
            *term *= payoff * (twice / period * mass);
            error += twice / period * payoff.norm() * size * growth * mass;
        }
        let last = 2.0 * PI * count as f64 / period;
        // Rounded up, masses may sum to a little more than 1.
        error += left_out(theta, s, last) * mass.max(1.0);
        Some(Self {
            size: terms.iter().map(|term| term.norm()).sum(),
            settings,
            bound,
            terms,
            ln_moment: ln_moment + if bound == Bound::Above { slack + ln_mass.1 } else { -slack - ln_mass.1 },
            error,
            ln_above: moment(theta + above) - ln_moment + slack,
            ln_below: moment(theta - below) - ln_moment + slack,
            infinity: parts.iter().map(|part| part.steps as f64 * part.discrete.infinity).sum(),
        })
    }

    /// ln of the bound on delta at `epsilon`; minus infinity where the bound is no more than 0.
    pub fn ln_delta(&self, epsilon: f64) -> f64 {
        let theta = self.settings.theta;
        let step = -2.0 * PI / self.settings.period * epsilon;
        let term = |(k, term): (usize, &Complex<f64>)| {
            let (sin, cos) = (step * k as f64).sin_cos();
            term.re * cos - term.im * sin
        };
        let values: Vec<f64> = self.terms.iter().enumerate().map(term).collect();
        let sum = sum(&values);
        // A phase errs by its size in ulps, and the sum by half an ulp an addition.
        let last = step * values.len() as f64;
        let rounding = self.size * f64::EPSILON * (4.0 + last.abs() + additions(values.len()));
        let scale = self.ln_moment - theta * epsilon;
        match self.bound {
            Bound::Above => {
                // No number is no bound.
                let within = (sum + self.error + rounding).ln() + scale;
                if within.is_nan() || self.infinity.is_nan() {
                    return 0.0;
                }
                let (high, low) = (within.max(self.infinity.ln()), within.min(self.infinity.ln()));
                if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
            }
            Bound::Below => (sum - self.error - rounding - self.wrapped(epsilon)).max(0.0).ln() + scale,
        }
    }

    /// Where the bound passes e^`ln_delta`, rounded to the safe side; `None` where it does not pass.
    ///
    /// `guess` is where to begin; from there a bound from below is only sought downwards.
    pub fn epsilon(&self, ln_delta: f64, guess: f64) -> Option<f64> {
        let excess = |epsilon: f64| self.ln_delta(epsilon) - ln_delta;
        let first = (guess, excess(guess));
        let (mut low, mut high) = (first, first);
        // Far from where it is aimed at, a spectrum tells nothing.
        let mut step = f64::min(2e-3 * guess, 1e-2 * self.settings.period);
        while low.1 <= 0.0 {
            if low.0 == 0.0 {
                return (self.bound == Bound::Above).then_some(0.0);
            }
            high = low;
            low.0 = (low.0 - step).max(0.0);
            low.1 = excess(low.0);
            step *= 2.0;
        }
        while high.1 > 0.0 {
            if self.bound == Bound::Below || high.0 > 1e6 * guess {
                return (self.bound == Bound::Below).then_some(high.0);
            }
            low = high;
            high.0 += step;
            high.1 = excess(high.0);
            step *= 2.0;
        }
        let (low, high) = crossing(low, high, 1e-8 * guess, excess);
        Some(if self.bound == Bound::Above { high } else { low })
    }

    /// A bound on what periodicity adds: sum over m != 0 of g(v + m period).
    fn wrapped(&self, epsilon: f64) -> f64 {
        let Settings { theta, period, above, below, .. } = self.settings;
        // Where |v| <= period/2, only m >= 1 counts, and terms are below e^{-theta (m - 1/2) period}.
        let near = (-0.5 * theta * period).exp() / (1.0 - (-theta * period).exp());
        // Elsewhere a sum over points one period apart is at most the greatest term and the mean.
        let far = greatest(theta) + 1.0 / (period * theta * (1.0 + theta));
        let over = (self.ln_above - above * (epsilon + 0.5 * period)).exp().min(1.0);
        let under = (self.ln_below + below * (epsilon - 0.5 * period)).exp().min(1.0);
        // Smoothing spreads by s: 1.5 covers it, since s is below 0.3/(1 + theta).
        1.5 * (near + (over + under) * far)
    }
}

/// The greatest value of g: at v = ln(1 + 1/theta).
fn greatest(theta: f64) -> f64 {
    (-theta * (1.0 / theta).ln_1p()).exp() / (1.0 + theta)
}

/// The transform of the payoff at `omega`, times the characteristic function of its smoothing.
fn payoff(theta: f64, s: f64, omega: f64, bound: Bound) -> Complex<f64> {
    let z = Complex::new(theta, omega);
    let decay = (-0.5 * s * s * omega * omega).exp();
    match bound {
        // The tilted loss of an s-GDP release has moment generating function exp(z s^2/2 + z^2 s^2/2).
        Bound::Above => {
            let phase = omega * s * s * (0.5 + theta);
            let size = (0.5 * s * s * theta * (1.0 + theta)).exp() * decay;
            Complex::from_polar(size, phase) / (z * (z + 1.0))
        }
        Bound::Below => {
            let a = (1.0 + theta) * s;
            let beta = (-0.5 * a * a).exp();
            let bump = s * s * ((2.0 * PI).sqrt() * 2.0 * a + 1.0) * (0.5 * a * a).exp();
            // alpha/z - beta/(z + 1) without the cancellation; alpha / beta = e^((1 + 2 theta) s^2 / 2).
            let apart = beta * (0.5 * s * s * (1.0 + 2.0 * theta)).exp_m1();
            let exponentials = Complex::from(apart) / z + Complex::from(beta) / (z * (z + 1.0));
            (exponentials - bump * (1.0 + 1e-12)) * decay
        }
    }
}

/// A bound on the terms at and beyond the frequency `last`, whatever the characteristic function.
fn left_out(theta: f64, s: f64, last: f64) -> f64 {
    let a = (1.0 + theta) * s;
    // |payoff| is at most this times e^{-s^2 omega^2/2}: 1/omega^2 and, below, a s/omega and the bump.
    let bump = s * s * ((2.0 * PI).sqrt() * 2.0 * a + 1.0) * (0.5 * a * a).exp();
    let size = (0.5 * s * s * theta * (1.0 + theta)).exp() / (last * last) + a * s / last + bump;
    // The sum over frequencies of 2/period times a falling function is at most its integral over pi, and one term.
    let tail = (-0.5 * s * s * last * last).exp();
    size * tail * (1.0 / (PI * s * s * last) + last)
}

/// ln of sum p_i e^{theta l_i}.
fn ln_moment(discrete: &Discrete, theta: f64) -> f64 {
    ln_sum(discrete.losses.iter().zip(&discrete.ln_masses).map(|(loss, ln)| ln + theta * loss))
}

/// Values, their sizes with the factors of their errors, and ln of the mass with its error.
type Characteristic = (Vec<Complex<f64>>, Vec<(f64, f64)>, (f64, f64));

/// The characteristic function of the tilted sum at `count` frequencies, over its total mass; with each its size
/// and the factor that bounds its error relative to that; and ln of the mass with a bound on its error.
///
/// Of one step it is e^{i omega l} (1 + W) with l the loss of the heaviest atom and
/// W = sum m_i (e^{i omega (l_i - l)} - 1). Where sampling is rare W is tiny, and so are its errors: raised to the
/// number of steps, an error of one ulp of 1 + W would be that many.
fn characteristic(parts: &[Part], theta: f64, period: f64, count: usize, bound: Bound) -> Characteristic {
    // ln size, phase, and T e / |A|.
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
            let (ln_size, phase) = polar_beside_one(value);
            let ln_size = ln_size.max(error.ln());
            let size = ln_size.exp();
            // Where the value is all error, its phase is anything.
            let relative = error / size * if size < 4.0 * error { 2.0 } else { 1.0 };
            let turned = omega * atoms.centre;
            let (ln_power, angle, growth) = &mut powers[k];
            *ln_power += steps * ln_size;
            *angle += steps * phase + steps * turned;
            let angles = ln_size.abs() + phase.abs() + turned.abs();
            *growth += steps * (relative + 4.0 * f64::EPSILON * angles) + 8.0 * f64::EPSILON;
        };
        // The widest vectors of this machine; lanes are fixed and nothing is fused, so the bits are the same on all.
        pulp::Arch::new().dispatch(Transform {
            atoms: &atoms,
            step: 2.0 * PI / period,
            count,
            each: &mut each,
        });
    }
    let values = powers.iter().map(|&(ln_size, angle, _)| Complex::from_polar(ln_size.exp(), angle));
    // |(x + e)^T - x^T| <= |x|^T (exp(T e/|x|) - 1).
    let sizes = powers.iter().map(|&(ln_size, _, growth)| (ln_size.exp(), growth.min(700.0).exp_m1()));
    (values.collect(), sizes.collect(), ln_mass)
}

/// ln |1 + w| and the angle of 1 + w, with errors in proportion to w.
fn polar_beside_one(w: Complex<f64>) -> (f64, f64) {
    let square = w.norm_sqr();
    // Far from 0 an ulp of 1 is small beside w.
    let ln_size = if square < 0.25 { 0.5 * (2.0 * w.re + square).ln_1p() } else { (w + 1.0).norm().ln() };
    (ln_size, w.im.atan2(1.0 + w.re))
}

/// A tilted measure, normalised: losses and masses. The masses are rounded to the side of the bound, which for all
/// steps together costs a relative error of steps times their rounding; as errors of each frequency they would cost
/// that much of the largest payoff, of which the mean may be a small part.
struct Atoms {
    /// The loss of the heaviest atom, and how far those of all are from it.
    centre: f64,
    losses: Vec<f64>,
    masses: Vec<f64>,
    /// The sum of the masses.
    mass: f64,
    /// The mass that is away from the centre, and its mean distance from there.
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
            // Masses too small for any bound are dropped and counted as error.
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

    /// The error of W at `omega`: of rotating, of summing, of its angles, and of what follows. A turn adds seven
    /// units at most of the value it reaches, which is never above min(2, the angle); sums half a unit an addition.
    fn error(&self, omega: f64) -> f64 {
        let rounding = 14.0 * TURNS as f64 + 32.0 + 0.5 * additions(self.losses.len());
        let angles = omega * self.spread;
        f64::EPSILON * (rounding * angles.min(2.0 * self.away) + 4.0 * angles) + 1e-34
    }
}

/// Calls `each` with W, the sum of mass (e^{i k step loss} - 1), for every k below `count`.
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
    /// mass (e^{i angle} - 1).
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

    /// From mass (x - 1) to mass (x e^{i angle} - 1), which is what it was, turned, and that of the turn.
    #[inline(always)]
    fn apply(&self, (re, im): &mut (Vec<f64>, Vec<f64>)) {
        let turns = self.sin.iter().zip(&self.cos).zip(self.from_one.0.iter().zip(&self.from_one.1));
        for ((re, im), ((sin, cos), (add_re, add_im))) in re.iter_mut().zip(im).zip(turns) {
            (*re, *im) = (*re * cos - *im * sin + add_re, *re * sin + *im * cos + add_im);
        }
    }
}

/// Additions that a value goes through in a [`sum`]: eight lanes through a block, the lanes, and the blocks.
fn additions(count: usize) -> f64 {
    BLOCK as f64 / 8.0 + 8.0 + (count / BLOCK) as f64
}

/// The sum, block by block in eight lanes.
#[inline(always)]
fn sum(values: &[f64]) -> f64 {
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
