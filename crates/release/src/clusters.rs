//! k-means of weighted points: k-means++ from fixed seeds, followed by Lloyd's iterations.
//!
//! For weights w_i >= 0 and points p_i, seeks centres S with a small cost, sum of w_i min over s in S
//! of |p_i - s|^2. Randomness comes only from fixed, public seeds: the same points and weights give the same
//! centres.

/// A point in up to three dimensions; unused coordinates are 0.
pub(crate) type Point = [f64; 3];

/// Number of starts, of which the one with the smallest final cost is kept.
const STARTS: u64 = 8;
/// Bound on Lloyd's iterations, which usually converge long before.
const ITERATIONS: usize = 100;

pub(crate) fn squared_distance(p: &Point, q: &Point) -> f64 {
    p.iter().zip(q).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Squared distances that differ by less count as equal: cells lie on a grid, and rounding must not decide
/// which of two centres is nearer.
const TIE: f64 = 1e-12;

/// The nearest of `centres`; the first one in a tie.
pub(crate) fn nearest(centres: &[Point], point: &Point) -> usize {
    let mut best = (0, f64::INFINITY);
    for (at, centre) in centres.iter().enumerate() {
        let distance = squared_distance(centre, point);
        if distance < best.1 - TIE {
            best = (at, distance);
        }
    }
    best.0
}

/// `count` centres of at least as many distinct points with positive weights.
pub(crate) fn clustered(count: usize, points: &[(Point, f64)]) -> Vec<Point> {
    let ended = (0..STARTS).map(|start| {
        let centres = improved(begun(count, points, start), points);
        (cost(&centres, points), centres)
    });
    let best = ended.reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, centres)| centres).unwrap_or_default()
}

fn cost(centres: &[Point], points: &[(Point, f64)]) -> f64 {
    let of_point =
        |(point, weight): &(Point, f64)| weight * squared_distance(&centres[nearest(centres, point)], point);
    points.iter().map(of_point).sum()
}

/// k-means++: each next centre is a point drawn with probability proportional to its weight times its squared
/// distance to the previous centres.
fn begun(count: usize, points: &[(Point, f64)], start: u64) -> Vec<Point> {
    let mut state = start;
    let mut shares: Vec<f64> = points.iter().map(|(_, weight)| *weight).collect();
    let mut distances = vec![f64::INFINITY; points.len()];
    let mut centres = Vec::with_capacity(count);
    while centres.len() < count {
        let centre = points[drawn(&shares, uniform(&mut state))].0;
        centres.push(centre);
        for ((share, distance), (point, weight)) in shares.iter_mut().zip(&mut distances).zip(points) {
            *distance = distance.min(squared_distance(&centre, point));
            *share = weight * *distance;
        }
    }
    centres
}

/// Draws an index with probability proportional to its share; `random` is uniform in \[0, 1).
fn drawn(shares: &[f64], random: f64) -> usize {
    let (mut left, mut last) = (random * shares.iter().sum::<f64>(), 0);
    for (at, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        if left < *share {
            return at;
        }
        left -= share;
        last = at;
    }
    last
}

/// Lloyd's iterations: each centre moves to the mean of its nearest points, until no centre moves.
fn improved(mut centres: Vec<Point>, points: &[(Point, f64)]) -> Vec<Point> {
    for _ in 0..ITERATIONS {
        let mut sums = vec![([0.0; 3], 0.0); centres.len()];
        for (point, weight) in points {
            let (sum, all) = &mut sums[nearest(&centres, point)];
            sum.iter_mut().zip(point).for_each(|(sum, x)| *sum += weight * x);
            *all += weight;
        }
        let moved: Vec<Point> = sums
            .iter()
            .zip(&centres)
            .map(|((sum, all), centre)| if *all > 0.0 { sum.map(|sum| sum / all) } else { *centre })
            .collect();
        if moved == centres {
            break;
        }
        centres = moved;
    }
    centres
}

/// A number in \[0, 1), by SplitMix64.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest cost of any partition into two parts, by trying all.
    fn least_of_two(points: &[(Point, f64)]) -> f64 {
        let mean = |inside: &dyn Fn(usize) -> bool| -> Point {
            let chosen = || points.iter().enumerate().filter(|(i, _)| inside(*i)).map(|(_, point)| point);
            let all: f64 = chosen().map(|(_, weight)| weight).sum();
            std::array::from_fn(|axis| chosen().map(|(p, w)| p[axis] * w).sum::<f64>() / all)
        };
        let parts = 1..(1usize << (points.len() - 1));
        let of_part =
            |part: usize| cost(&[mean(&|i| part >> i & 1 == 1), mean(&|i| part >> i & 1 == 0)], points);
        parts.map(of_part).fold(f64::INFINITY, f64::min)
    }

    /// For few points, the centres have the smallest cost of all; for more, each is the mean of its points.
    #[test]
    fn centres_are_the_best_of_few_points_and_means_of_many() {
        let mut state = 7;
        let mut missed = 0;
        for round in 0..1000 {
            let mut next = || uniform(&mut state);
            let dimensions = 1 + round % 3;
            let count = 3 + (next() * 7.0) as usize;
            let mut drawn = || -> (Point, f64) {
                (std::array::from_fn(|axis| if axis < dimensions { next() } else { 0.0 }), 0.1 + next())
            };
            let points: Vec<(Point, f64)> = (0..count).map(|_| drawn()).collect();
            let (found, least) = (cost(&clustered(2, &points), &points), least_of_two(&points));
            assert!(found >= least * (1.0 - 1e-12) && found <= 2.0 * least, "{round}: {found} {least}");
            missed += usize::from(found > least * (1.0 + 1e-9));

            let many: Vec<(Point, f64)> = (0..60).map(|_| drawn()).collect();
            let centres = clustered(5, &many);
            for (at, centre) in centres.iter().enumerate() {
                let own = || many.iter().filter(|(point, _)| nearest(&centres, point) == at);
                let all: f64 = own().map(|(_, weight)| weight).sum();
                for axis in 0..3 {
                    let mean = own().map(|(point, weight)| point[axis] * weight).sum::<f64>() / all;
                    assert!((centre[axis] - mean).abs() < 1e-12, "{round}: {centre:?} {mean}");
                }
            }
        }
        assert!(missed <= 50, "{missed} of 1000");
    }

    /// With as many centres as points, the centres are the points, whatever their weights.
    #[test]
    fn as_many_centres_as_points_are_those_points() {
        let points: Vec<(Point, f64)> =
            (0..30).map(|i| ([f64::from(i % 6), f64::from(i / 6), 0.0], 10f64.powi(i % 13 - 6))).collect();
        let mut centres = clustered(30, &points);
        centres.sort_by(|p, q| (p[1] * 6.0 + p[0]).total_cmp(&(q[1] * 6.0 + q[0])));
        let near = |(centre, (point, _)): (&Point, &(Point, f64))| squared_distance(centre, point) < 1e-24;
        assert!(centres.len() == 30 && centres.iter().zip(&points).all(near), "{centres:?}");
    }
}
