//! Privacy loss distributions with finitely many losses that bound the true one from above and from below.
//!
//! A finite measure on losses l_i is a convex piecewise linear curve D with kinks at t_i = e^{l_i}: the
//! change of slope at a kink is its mass under Q, and t_i times that is its mass under P. A curve above the
//! true one gives a delta above the true one after any composition, and a curve below gives one below: with
//! D_AB(t) = E_{P_A} D_B(t e^-L), delta of a product is monotone in the curve of each factor, whatever the
//! total masses are.
//!
//! Source of the upper curve: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter
//! discrete approximations of privacy loss distributions" (2022).

use antinoise_input::larger;

use super::grid::Grid;
use super::pair::{Pair, Phase, Point, Rounding};

/// A measure on the losses of a grid, and on an infinite loss.
#[derive(Debug, Clone)]
pub(crate) struct Discrete {
    pub losses: Vec<f64>,
    /// ln of the masses; minus infinity where there is none.
    pub ln_masses: Vec<f64>,
    pub infinity: f64,
}

/// One step's measure, and its number of repetitions.
pub(crate) struct Part {
    pub discrete: Discrete,
    pub steps: u64,
}

/// Whether a measure bounds the true one from above or from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Above,
    Below,
}

/// All steps of `phases` on the knots of `grids`; `None` if these are too coarse for a bound from below.
pub(crate) fn parts(phases: &[Phase], grids: &[Grid], bound: Bound) -> Option<Vec<Part>> {
    let part = |((pair, steps), grid): (&Phase, &Grid)| {
        let discrete = match bound {
            Bound::Above => pessimistic(&**pair, grid),
            Bound::Below => optimistic(&**pair, grid)?,
        };
        Some(Part { discrete, steps: *steps })
    };
    phases.iter().zip(grids).map(part).collect()
}

/// Bound on the rounding error of a mass, relative to the slopes on its two sides.
const SLOPE_ERROR: f64 = 6.0 * f64::EPSILON;

/// The values of a curve at the knots: D from the origin on, and D - (1 - t) up to it.
struct Knots {
    below: Vec<f64>,
    above: Vec<f64>,
}

impl Knots {
    /// The slopes of the segments that end in each knot, and that of the segment beyond the last knot, which
    /// is 0.
    fn slopes(&self, widths: &[f64]) -> Vec<f64> {
        let rise = |values: &[f64]| values.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        let rises = std::iter::once(self.below[0]).chain(rise(&self.below)).chain(rise(&self.above));
        rises.zip(widths).map(|(rise, width)| rise / width).chain([0.0]).collect()
    }
}

/// Masses of the kinks between `slopes`, with rounding errors counted in direction `sign`.
fn masses(grid: &Grid, slopes: &[f64], sign: f64) -> Vec<f64> {
    let ln_mass = |i: usize| {
        // At the origin, the slopes of the two sides differ in addition by that of 1 - t.
        let kink = slopes[i + 1] - slopes[i] + if i == grid.origin { 1.0 } else { 0.0 };
        let error = SLOPE_ERROR * (slopes[i].abs() + slopes[i + 1].abs());
        grid.losses[i] + larger(kink + sign * error, 0.0).ln()
    };
    (0..grid.losses.len()).map(ln_mass).collect()
}

/// The chords of the true curve, which lie above it.
pub(crate) fn pessimistic(pair: &dyn Pair, grid: &Grid) -> Discrete {
    let points = grid.losses.iter().map(|&loss| pair.at(loss, Rounding::Up)).collect::<Vec<_>>();
    let knots = knots(&points, grid, 1.0);
    let slopes = knots.slopes(&grid.widths());
    let infinity = knots.above[knots.above.len() - 1];
    Discrete { losses: grid.losses.clone(), ln_masses: masses(grid, &slopes, 1.0), infinity }
}

/// The chords, lowered at each knot by as much as they can lie above the true curve, and made convex again;
/// `None` if the grid is too coarse for this.
pub(crate) fn optimistic(pair: &dyn Pair, grid: &Grid) -> Option<Discrete> {
    let points: Vec<Point> = grid.losses.iter().map(|&loss| pair.at(loss, Rounding::Down)).collect();
    let (widths, origin) = (grid.widths(), grid.origin);
    let mut slopes = lowered(&points, &widths, grid)?.slopes(&widths);
    // Each side of the origin is made convex, and then the kink at the origin.
    make_monotone(&mut slopes[..=origin], &widths[..=origin]);
    make_monotone(&mut slopes[origin + 1..], &widths[origin + 1..]);
    join_at(origin, &mut slopes, &widths);
    let ln_masses = masses(grid, &slopes, -1.0);
    Some(Discrete { losses: grid.losses.clone(), ln_masses, infinity: 0.0 })
}

/// Values of the curve at `points`, rounded in direction `sign`: D at the origin and above it, D - (1 - t) at
/// the origin and below it.
fn knots(points: &[Point], grid: &Grid, sign: f64) -> Knots {
    // The two forms of the curve differ by 1 - t; if the other form is needed, two positive numbers are
    // added.
    let excess = |i: usize| -grid.losses[i].exp_m1();
    let at = |i: usize, above: bool| match (above, grid.losses[i] >= 0.0) {
        (true, false) => points[i].value + excess(i) * (1.0 + sign * 4.0 * f64::EPSILON),
        (false, true) => points[i].value - excess(i) * (1.0 + sign * 4.0 * f64::EPSILON),
        _ => points[i].value,
    };
    Knots {
        below: (0..=grid.origin).map(|i| at(i, false)).collect(),
        above: (grid.origin..grid.losses.len()).map(|i| at(i, true)).collect(),
    }
}

/// Values at the knots whose chords lie below the true curve; `None` if nothing is left above the origin.
///
/// Between two knots, a convex curve is above its tangents at the knots. So its chord is above it by at most
/// the height of the triangle of chord and tangents: width alpha beta / (alpha + beta), where alpha and beta
/// are the differences between the slope of the chord and the slopes of the tangents.
fn lowered(points: &[Point], widths: &[f64], grid: &Grid) -> Option<Knots> {
    let (origin, last) = (grid.origin, grid.losses.len() - 1);
    let mut knots = knots(points, grid, -1.0);
    let chords = knots.slopes(widths);
    // The slope of the true curve at knot j, in the form (D or D - (1 - t)) of segment i.
    let tangent = |i: usize, j: usize| match (i > origin, grid.losses[j] >= 0.0) {
        (true, true) => -points[j].slope,
        (true, false) => points[j].slope - 1.0,
        (false, true) => 1.0 - points[j].slope,
        (false, false) => points[j].slope,
    };
    let sag = |i: usize| {
        let (start, end) = (tangent(i, i - 1), tangent(i, i));
        let (alpha, beta) = ((chords[i] - start).max(0.0), (end - chords[i]).max(0.0));
        let height = if alpha > 0.0 && beta > 0.0 { alpha * beta / (alpha + beta) } else { 0.0 };
        let noise = 1e-13 * (start.abs() + end.abs());
        let values = points[i - 1].value.max(points[i].value);
        (1.0 + 1e-9) * widths[i] * (height + noise) + 1e-14 * values
    };
    let sags: Vec<f64> = (1..=last).map(sag).collect();
    let lower = |i: usize| sags[i.saturating_sub(1)].max(sags[i.min(last - 1)]);
    knots.below.iter_mut().enumerate().for_each(|(i, value)| *value -= lower(i));
    knots.above.iter_mut().enumerate().for_each(|(i, value)| *value -= lower(origin + i));
    // The curve must end with value 0 at a knot. The mass beyond the knot is moved down to it, which
    // subtracts a multiple of t from the curve and so only lowers it. The smallest multiple is used that
    // keeps earlier values non-negative.
    let left = knots.above.iter().position(|&value| value <= 0.0).unwrap_or(knots.above.len());
    let ratio = |i: usize| knots.above[i].ln() - grid.losses[origin + i];
    let end = (0..left).min_by(|&i, &j| ratio(i).total_cmp(&ratio(j)))?;
    let last_value = knots.above[end];
    let share = |i: usize| (grid.losses[i] - grid.losses[origin + end]).exp() * last_value;
    let moved: Vec<f64> = (0..=origin + end).map(share).collect();
    knots.below.iter_mut().zip(&moved).for_each(|(value, share)| *value -= share);
    knots.above.iter_mut().zip(&moved[origin..]).for_each(|(value, share)| *value -= share);
    knots.above[end..].fill(0.0);
    // The line from (0, 1) to the first knot is below the curve if it is not above 1 - t.
    knots.below[0] = knots.below[0].min(0.0);
    (end > 0).then_some(knots)
}

/// Replaces the slopes by those of the curve's lower convex hull.
fn make_monotone(slopes: &mut [f64], widths: &[f64]) {
    // The pool-adjacent-violators algorithm; a pool is (slope, width, number of segments).
    let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(slopes.len());
    for (&slope, &width) in slopes.iter().zip(widths) {
        let mut pool = (slope, width, 1);
        while let Some(&(before, its_width, length)) = pools.last() {
            if before <= pool.0 {
                break;
            }
            let width = its_width + pool.1;
            pool = ((before * its_width + pool.0 * pool.1) / width, width, length + pool.2);
            pools.pop();
        }
        pools.push(pool);
    }
    let mut slopes = slopes.iter_mut();
    for (slope, _, length) in pools {
        slopes.by_ref().take(length).for_each(|s| *s = slope);
    }
}

/// Makes the curve convex at the origin: the slopes around it, if they fall there, become their mean, with as
/// many others on both sides as are then out of order. Slopes up to the origin are larger by 1, the slope of
/// t - 1.
fn join_at(origin: usize, slopes: &mut [f64], widths: &[f64]) {
    let (mut low, mut high) = (origin, origin + 1);
    if slopes[high] + 1.0 >= slopes[low] {
        return;
    }
    let joint = loop {
        let excess: f64 = (low..=origin).map(|i| (slopes[i] - 1.0) * widths[i]).sum();
        let rise = excess + (origin + 1..=high).map(|i| slopes[i] * widths[i]).sum::<f64>();
        let mean = rise / widths[low..=high].iter().sum::<f64>();
        if low > 0 && slopes[low - 1] - 1.0 > mean {
            low -= 1;
        } else if high + 1 < widths.len() && slopes[high + 1] < mean {
            high += 1;
        } else {
            break mean;
        }
    };
    slopes[low..=origin].fill(joint + 1.0);
    slopes[origin + 1..=high].fill(joint);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pld::profile::{Direction, Profile};

    /// D of a measure (below loss 0, D - (1 - t)), by definition.
    fn curve(measure: &Discrete, loss: f64) -> f64 {
        let atoms = measure.losses.iter().zip(&measure.ln_masses);
        let beyond = |(&at, ln): (&f64, &f64)| {
            if at > loss { ln.exp() * -(loss - at).exp_m1() } else { 0.0 }
        };
        atoms.map(beyond).sum::<f64>() + measure.infinity
    }

    #[test]
    fn measures_lie_on_their_sides_of_the_curve() {
        for (sigma, q) in
            [(5.0, 1e-3), (1.0, 0.3), (0.5, 1e-4), (0.3, 0.9), (20.0, 1.0), (2.0, 1e-2), (50.0, 1e-5)]
        {
            for direction in [Direction::Remove, Direction::Add] {
                for spacing in [0.4, 0.11, 0.0361, 0.0123] {
                    for reach in [7.115547843696123, 5.3] {
                        let profile = Profile { mu: 1.0 / sigma, q, direction };
                        let highest = 0.7 * profile.greatest(reach);
                        let grid = Grid::new(&profile, reach, spacing, highest);
                        let above = pessimistic(&profile, &grid);
                        let below = optimistic(&profile, &grid);
                        assert!(
                            below.is_some() || spacing > 0.3 * sigma,
                            "{profile:?}: {spacing} is fine enough"
                        );
                        let (least, most) = (grid.losses[0], profile.greatest(reach));
                        for i in 0..=400 {
                            let loss = least + (most - least) * f64::from(i) / 400.0;
                            let excess = if loss < 0.0 { -loss.exp_m1() } else { 0.0 };
                            let exact = profile.at(loss, Rounding::Up).value + excess;
                            let tolerance = 1e-12 * exact + 1e-300;
                            let low = below.as_ref().map_or(0.0, |below| curve(below, loss));
                            let high = curve(&above, loss);
                            let place = format!("{profile:?} spacing {spacing} reach {reach} loss {loss}");
                            assert!(low <= exact + tolerance, "{place}: optimistic {low:e} above {exact:e}");
                            assert!(
                                high >= exact - 1e-11 * exact,
                                "{place}: pessimistic {high:e} below {exact:e}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// At loss 0 the curve changes from D - (1 - t) to D. Where a knot needs the other form, 1 - t is added
    /// or subtracted with rounding: up for an upper bound, down for a lower one.
    #[test]
    fn a_change_of_form_rounds_to_the_side_of_the_bound() {
        for (sigma, q, direction) in
            [(1.0, 0.3, Direction::Remove), (0.5, 0.9, Direction::Remove), (1.0, 0.3, Direction::Add)]
        {
            let profile = Profile { mu: 1.0 / sigma, q, direction };
            let grid = Grid::new(&profile, 6.0, 0.1, profile.greatest(6.0));
            let points: Vec<_> = grid.losses.iter().map(|&loss| profile.at(loss, Rounding::Up)).collect();
            let (above, below) = (knots(&points, &grid, 1.0), knots(&points, &grid, -1.0));
            let (value, excess) = (points[grid.origin].value, -grid.losses[grid.origin].exp_m1());
            let (last, first) = (grid.origin, 0);
            let changed = if excess > 0.0 {
                (below.above[first], value + excess, above.above[first])
            } else {
                (below.below[last], value - excess, above.below[last])
            };
            assert!(changed.0 < changed.1 && changed.1 < changed.2, "{profile:?}: {changed:?}");
            assert!(changed.2 - changed.0 < 10.0 * f64::EPSILON * (value + excess.abs()), "{changed:?}");
        }
    }
}
