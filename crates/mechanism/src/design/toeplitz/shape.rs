//! Unconstrained variables v (and u) for the coefficients c of C and the magnitudes m >= |c|, from which the
//! sensitivity is computed.
//!
//! Numbers that must not be negative are written as squares: quasi-Newton steps can then reach the bound 0,
//! which they only approach if the numbers are written as exponentials.

use super::sums::Sums;
use crate::Participation;
use crate::numeric::vector::non_increasing_majorant;

/// The set of coefficients c that the variables can reach, with the magnitudes m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// c_0 = 1, c_t = v_t, m = c: for a single participation, or no more bands than the separation.
    Free,
    /// c_0 = 1, c_t = m_t = v_t^2: non-negative, for cyclic schemas.
    NonNegative,
    /// c_0 = 1, c_t = v_t^2 - u_t^2, m_t = v_t^2 + u_t^2: any signs, for cyclic schemas.
    Signed,
    /// c_t = m_t = sum over s >= t of v_s^2: non-increasing, for min-sep schemas.
    Decreasing,
    /// m_t = sum over s >= t of v_s^2, c_t = m_t sin u_t: any signs, for min-sep schemas.
    Majorised,
}

/// Minimum square at a start; at 0 the derivative of the square vanishes.
const MIN_SQUARE: f64 = 1e-5;
/// Maximum sine at a start; at 1 the derivative of the sine vanishes.
const MAX_SINE: f64 = 0.999;

impl Shape {
    /// Returns the shapes of the successive stages; each stage begins at the result of the previous one.
    pub(super) fn stages(bands: usize, sums: &Sums, participation: &Participation) -> &'static [Self] {
        match participation {
            _ if sums.orthogonal(bands) => &[Self::Free],
            Participation::MinSep { .. } => &[Self::Decreasing, Self::Majorised],
            _ => &[Self::NonNegative, Self::Signed],
        }
    }

    /// Returns the variables nearest to coefficients c with c_0 = 1.
    pub(super) fn variables(self, c: &[f64]) -> Vec<f64> {
        let root = |x: f64| x.max(MIN_SQUARE / c.len() as f64).sqrt();
        match self {
            Self::Free => c[1..].to_vec(),
            Self::NonNegative => c[1..].iter().map(|&c| root(c)).collect(),
            Self::Signed => {
                [1.0, -1.0].iter().flat_map(|sign| c[1..].iter().map(move |&c| root(sign * c))).collect()
            }
            Self::Decreasing => differences(&non_increasing_majorant(c)).iter().map(|&d| root(d)).collect(),
            Self::Majorised => {
                let m = non_increasing_majorant(c);
                let sines = c.iter().zip(&m).map(|(c, m)| {
                    let sine = if *m > 0.0 { c / m } else { 0.0 };
                    sine.clamp(-MAX_SINE, MAX_SINE).asin()
                });
                differences(&m).iter().map(|&d| root(d)).chain(sines).collect()
            }
        }
    }

    /// Returns the coefficients c and the magnitudes m for variables `v`.
    pub(super) fn coefficients(self, v: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let with_first =
            |rest: &mut dyn Iterator<Item = f64>| std::iter::once(1.0).chain(rest).collect::<Vec<f64>>();
        match self {
            Self::Free => {
                let c = with_first(&mut v.iter().copied());
                (c.clone(), c)
            }
            Self::NonNegative => {
                let c = with_first(&mut v.iter().map(|v| v * v));
                (c.clone(), c)
            }
            Self::Signed => {
                let (plus, minus) = v.split_at(v.len() / 2);
                let pairs = || plus.iter().zip(minus);
                let c = with_first(&mut pairs().map(|(v, u)| v * v - u * u));
                (c, with_first(&mut pairs().map(|(v, u)| v * v + u * u)))
            }
            Self::Decreasing => {
                let m = tails(v);
                (m.clone(), m)
            }
            Self::Majorised => {
                let (roots, angles) = v.split_at(v.len() / 2);
                let m = tails(roots);
                (m.iter().zip(angles).map(|(m, u)| m * u.sin()).collect(), m)
            }
        }
    }

    /// Maps the derivatives in c and in m to the derivative in the variables.
    pub(super) fn gradient(self, v: &[f64], dc: &[f64], dm: &[f64]) -> Vec<f64> {
        let both = || dc.iter().zip(dm).map(|(dc, dm)| dc + dm);
        match self {
            Self::Free => both().skip(1).collect(),
            Self::NonNegative => both().skip(1).zip(v).map(|(d, v)| 2.0 * v * d).collect(),
            Self::Signed => {
                let (plus, minus) = v.split_at(v.len() / 2);
                let up = both().skip(1).zip(plus).map(|(d, v)| 2.0 * v * d);
                let down = dc[1..].iter().zip(&dm[1..]).zip(minus).map(|((dc, dm), u)| 2.0 * u * (dm - dc));
                up.chain(down).collect()
            }
            Self::Decreasing => heads(both()).zip(v).map(|(d, v)| 2.0 * v * d).collect(),
            Self::Majorised => {
                let (roots, angles) = v.split_at(v.len() / 2);
                let m = tails(roots);
                let of_m = dc.iter().zip(dm).zip(angles).map(|((dc, dm), u)| dm + dc * u.sin());
                let first = heads(of_m).zip(roots).map(|(d, v)| 2.0 * v * d);
                let second = dc.iter().zip(&m).zip(angles).map(|((dc, m), u)| dc * m * u.cos());
                first.chain(second).collect()
            }
        }
    }
}

fn differences(m: &[f64]) -> Vec<f64> {
    (0..m.len()).map(|t| m[t] - m.get(t + 1).copied().unwrap_or(0.0)).collect()
}

/// Returns, for each t, the sum over s >= t of v_s^2.
fn tails(v: &[f64]) -> Vec<f64> {
    let mut m: Vec<f64> = v.iter().map(|v| v * v).collect();
    for t in (1..m.len()).rev() {
        m[t - 1] += m[t];
    }
    m
}

/// Returns running sums: the adjoint of [`tails`].
fn heads(d: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    d.scan(0.0, |sum, d| {
        *sum += d;
        Some(*sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    const SHAPES: [Shape; 5] =
        [Shape::Free, Shape::NonNegative, Shape::Signed, Shape::Decreasing, Shape::Majorised];

    #[test]
    fn shapes_return_nearly_what_they_are_given_and_chain_the_gradient() {
        let c = [1.0, 0.5, 0.25, 0.2, 0.1];
        let f = |c: &[f64], m: &[f64]| {
            let of =
                |x: &[f64], by: f64| x.iter().enumerate().map(|(t, x)| (t as f64 + by) * x * x).sum::<f64>();
            of(c, 1.0) + of(m, 2.5)
        };
        let slopes = |x: &[f64], by: f64| -> Vec<f64> {
            x.iter().enumerate().map(|(t, x)| 2.0 * (t as f64 + by) * x).collect()
        };
        for shape in SHAPES {
            let v = shape.variables(&c);
            let (back, m) = shape.coefficients(&v);
            assert!(back.iter().zip(&c).all(|(x, y)| (x - y).abs() < 2e-3), "{shape:?}: {back:?}");
            assert!(back.iter().zip(&m).all(|(c, m)| c.abs() <= *m));
            let gradient = shape.gradient(&v, &slopes(&back, 1.0), &slopes(&m, 2.5));
            let f = |v: &[f64]| {
                let (c, m) = shape.coefficients(v);
                f(&c, &m)
            };
            assert_gradient(&format!("{shape:?}"), f, &v, &gradient, 1e-5, Tolerance::absolute(1e-8));
        }
    }

    #[test]
    fn any_coefficients_have_finite_variables() {
        for shape in SHAPES {
            let (c, m) = shape.coefficients(&shape.variables(&[1.0, 0.0, 0.0, -0.5, 2.0]));
            assert!(c.iter().chain(&m).all(|c| c.is_finite()), "{shape:?}: {c:?}");
        }
    }
}
