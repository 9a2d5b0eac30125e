//! The grid of losses at which a step's curve is evaluated.

use super::pair::Pair;

/// The knots of discretised curves: increasing losses, of which that at `origin` is neither the first nor the
/// last.
///
/// The origin is chosen where most of a step's mass is. There the curve changes from D - (1 - t) to D.
/// Without a knot there, an optimistic measure would have to move that mass down to the next knot.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    pub losses: Vec<f64>,
    pub origin: usize,
}

/// The largest loss of a knot, whose exponential and the difference of two such are normal numbers. Larger
/// losses count as infinite ones.
pub(super) const LARGEST: f64 = 600.0;

impl Grid {
    /// Creates the grid of the losses of `pair` at outputs that are `spacing` standard deviations apart,
    /// within `reach` of each mean of P. Losses above `highest` or [`LARGEST`] are reduced to it. The origin
    /// is the loss at P's component at 0, where most of a sampled step's mass is.
    pub fn new(pair: &dyn Pair, reach: f64, spacing: f64, highest: f64) -> Self {
        let count = (reach / spacing).ceil() as i64;
        let around = |centre: f64| (-count..=count).map(move |i| centre + i as f64 * spacing);
        let mut places: Vec<f64> = around(0.0).collect();
        for component in pair.components() {
            let beyond = places[places.len() - 1];
            places.extend(around(component.mean).filter(|&z| z > beyond + 0.1 * spacing));
        }
        let loss = |z: f64| pair.loss(z).clamp(-LARGEST, LARGEST);
        let origin = loss(0.0);
        // Losses within a standard deviation of the origin are always included.
        let highest = highest.max(loss(1.0)).max(loss(-1.0));
        // Losses that differ only by rounding become one knot.
        let apart = |a: f64, b: f64| a - b > 1e-12 * a.abs().max(b.abs());
        let mut losses: Vec<f64> = places.into_iter().map(|z| loss(z).min(highest)).collect();
        losses.sort_by(f64::total_cmp);
        let mut below: Vec<f64> = losses.iter().copied().filter(|&loss| apart(origin, loss)).collect();
        below.dedup_by(|a, b| !apart(*a, *b));
        let mut above: Vec<f64> = losses.into_iter().filter(|&loss| apart(loss, origin)).collect();
        above.dedup_by(|a, b| !apart(*a, *b));
        let step = 1e-3 * origin.abs().max(1e-300);
        if below.is_empty() {
            below.push(origin - step);
        }
        if above.is_empty() {
            above.push(origin + step);
        }
        let at = below.len();
        below.push(origin);
        below.append(&mut above);
        Self { losses: below, origin: at }
    }

    /// The widths t_0 - 0, t_1 - t_0, ... of the segments that end in each knot.
    pub fn widths(&self) -> Vec<f64> {
        let later = self.losses.windows(2).map(|pair| pair[1].exp() * -(pair[0] - pair[1]).exp_m1());
        std::iter::once(self.losses[0].exp()).chain(later).collect()
    }
}
