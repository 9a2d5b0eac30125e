//! A BLT on a grid, several steps of a few coordinates at a time: their buffers stay in registers all the while.

use super::blt::{Blt, vectors};
use super::grid::{StepGrid, WHOLE, distance, larger};
use super::{Aside, Scratch, TileSteps};
use crate::gaussian::{Pair, TILE, exact_normal};
use crate::simd::per_isa;

/// Most steps that are made at a time.
pub(crate) const MOST_STEPS: usize = 4;
/// Coordinates made at a time: two registers for each buffer.
const LANES: usize = 16;

/// The steps of a BLT of order up to 4.
pub(super) fn run(blt: &Blt<f64>, scratch: &mut Scratch<f64>, steps: &TileSteps<'_, f64>, past: &mut [f64]) {
    let (count, len, isa) = (steps.places.len(), steps.len, scratch.isa);
    blt.start(&steps.places[0], past);
    let mut z: [&[f64]; MOST_STEPS] = [&[]; MOST_STEPS];
    let mut nears = steps.near.chunks(steps.near.len().div_ceil(count).max(1));
    for ((z, seed), tile) in z.iter_mut().zip(steps.seeds).zip(&mut scratch.normals) {
        let mut aside = Aside::fetching(nears.next().unwrap_or_default());
        *z = tile.make_while(seed, steps.start, len, &mut aside);
        aside.finish(isa);
    }
    let grid = steps.grid.expect("double precision is for grids");
    let mut grids = [grid; MOST_STEPS];
    grids.iter_mut().zip(steps.places).for_each(|(grid, place)| *grid = grid.at(place));
    let mut rows = scratch.noise.chunks_mut(TILE);
    let mut out: [&mut [f64]; MOST_STEPS] =
        std::array::from_fn(|_| &mut rows.next().expect("a row for each step")[..len]);
    let exact = |step: usize, j: usize| exact_normal(&steps.seeds[step], steps.start + j as u64);
    self::steps(isa, blt.coefficients(), &grids[..count], &z[..count], past, &mut out[..count], &exact);
}

/// The exact normal of a step at an offset of the tile.
pub(super) type Exact<'a> = &'a dyn Fn(usize, usize) -> Pair;

per_isa! {
    /// out\[s\] = the noise on the grid of step s, whose seed noise is z\[s\]; the buffers go on by all steps.
    pub(super) fn steps(coefficients: &[(f64, f64)], grids: &[StepGrid], z: &[&[f64]], buffers: &mut [f64], out: &mut [&mut [f64]], exact: Exact<'_>) = steps_body
}

#[inline(always)]
fn steps_body(
    coefficients: &[(f64, f64)],
    grids: &[StepGrid],
    z: &[&[f64]],
    buffers: &mut [f64],
    out: &mut [&mut [f64]],
    exact: Exact<'_>,
) {
    match *coefficients {
        [a] => all([a], grids, z, buffers, out, exact),
        [a, b] => all([a, b], grids, z, buffers, out, exact),
        [a, b, c] => all([a, b, c], grids, z, buffers, out, exact),
        [a, b, c, d] => all([a, b, c, d], grids, z, buffers, out, exact),
        _ => unreachable!("`Blt::is_fused` was asked"),
    }
}

#[inline(always)]
fn all<const D: usize>(
    coefficients: [(f64, f64); D],
    grids: &[StepGrid],
    z: &[&[f64]],
    buffers: &mut [f64],
    out: &mut [&mut [f64]],
    exact: Exact<'_>,
) {
    let coefficients = coefficients.map(|(scale, rate)| (scale, 1.0 + rate));
    let len = z[0].len();
    let mut m: [&mut [f64]; D] = vectors(buffers, len);
    let doubt = grids.iter().fold(0.0, |most, grid| larger(grid.doubt(1.0), most));
    let whole = len / LANES * LANES;
    for from in (0..whole).step_by(LANES) {
        block::<D, LANES>(&coefficients, grids, doubt, from, z, &mut m, out, exact);
    }
    for from in whole..len {
        block::<D, 1>(&coefficients, grids, doubt, from, z, &mut m, out, exact);
    }
}

#[inline(always)]
fn lanes<const L: usize>(row: &[f64], from: usize) -> &[f64; L] {
    row[from..].first_chunk().expect("a block lies in its row")
}

#[inline(always)]
fn lanes_mut<const L: usize>(row: &mut [f64], from: usize) -> &mut [f64; L] {
    row[from..].first_chunk_mut().expect("a block lies in its row")
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn block<const D: usize, const L: usize>(
    coefficients: &[(f64, f64); D],
    grids: &[StepGrid],
    doubt: f64,
    from: usize,
    z: &[&[f64]],
    m: &mut [&mut [f64]; D],
    out: &mut [&mut [f64]],
    exact: Exact<'_>,
) {
    let mut now: [[f64; L]; D] = std::array::from_fn(|i| *lanes(m[i], from));
    let mut furthest = [0.0; L];
    for ((grid, z), out) in grids.iter().zip(z).zip(out.iter_mut()) {
        let z: &[f64; L] = lanes(z, from);
        let mut x = [0.0; L];
        for i in 0..D {
            x = std::array::from_fn(|l| coefficients[i].0.mul_add(now[i][l], x[l]));
        }
        let value: [f64; L] = std::array::from_fn(|l| z[l] + x[l]);
        let points: [f64; L] = std::array::from_fn(|l| value[l].mul_add(grid.per_unit, WHOLE) - WHOLE);
        let off: [f64; L] = std::array::from_fn(|l| value[l].mul_add(grid.per_unit, -points[l]));
        furthest = std::array::from_fn(|l| larger(distance(points[l], off[l]), furthest[l]));
        let noise: [f64; L] = std::array::from_fn(|l| points[l] * grid.unit);
        for i in 0..D {
            now[i] = std::array::from_fn(|l| coefficients[i].1.mul_add(now[i][l], noise[l]));
        }
        *lanes_mut(out, from) = noise;
    }
    if furthest.iter().any(|far| far + doubt >= 0.5) {
        now = decide(coefficients, grids, from, z, std::array::from_fn(|i| *lanes(m[i], from)), out, exact);
    }
    for i in 0..D {
        *lanes_mut(m[i], from) = now[i];
    }
}

/// The same where double precision does not decide for all, point by point.
#[cold]
#[inline(never)]
fn decide<const D: usize, const L: usize>(
    coefficients: &[(f64, f64); D],
    grids: &[StepGrid],
    from: usize,
    z: &[&[f64]],
    mut now: [[f64; L]; D],
    out: &mut [&mut [f64]],
    exact: Exact<'_>,
) -> [[f64; L]; D] {
    for (step, (grid, (z, out))) in grids.iter().zip(z.iter().zip(out.iter_mut())).enumerate() {
        let out = &mut out[from..from + L];
        for l in 0..L {
            out[l] = (0..D).fold(0.0, |x, i| coefficients[i].0.mul_add(now[i][l], x));
        }
        grid.decide(1.0, &z[from..from + L], out, &|l| exact(step, from + l));
        for i in 0..D {
            for l in 0..L {
                now[i][l] = coefficients[i].1.mul_add(now[i][l], out[l]);
            }
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::{Cipher, KeySource};
    use crate::gaussian::NormalTile;
    use crate::simd::Isa;
    use crate::{Key, NOISE};

    const LEN: usize = 1000;

    /// Every sum decided by exact normals, one step and one coordinate after the other.
    fn one_by_one(blt: &[(f64, f64)], grid: StepGrid, z: &[&[f64]], exact: Exact<'_>) -> Vec<Vec<f64>> {
        let mut m = vec![vec![0.0; LEN]; blt.len()];
        let mut rows = Vec::new();
        for step in 0..z.len() {
            let mut row = vec![0.0; LEN];
            for j in 0..LEN {
                let past = blt.iter().zip(&m).fold(0.0, |x: f64, ((scale, _), m)| scale.mul_add(m[j], x));
                let sum = exact(step, j).plus(Pair::of(past)).times(Pair::of(grid.per_unit));
                let down = sum.hi.floor();
                let above = sum.plus(Pair::of(-(down + 0.5)));
                let points = if above.hi + above.lo > 0.0 { down + 1.0 } else { down };
                row[j] = points * grid.unit;
            }
            for ((_, rate), m) in blt.iter().zip(&mut m) {
                m.iter_mut().zip(&row).for_each(|(m, x)| *m = (1.0 + rate).mul_add(*m, *x));
            }
            rows.push(row);
        }
        rows
    }

    /// On a grid this fine every tenth sum or so needs more digits, and double precision alone gets a few wrong.
    #[test]
    fn several_steps_at_once_are_the_steps_decided_one_by_one() {
        let keys = KeySource::new(&Key::from_seed_insecure(8), Cipher::default(), NOISE);
        let seeds: Vec<_> = (0..MOST_STEPS as u64).map(|step| keys.keystream(step)).collect();
        let z: Vec<Vec<f64>> = seeds
            .iter()
            .map(|seed| NormalTile::<f64>::new(Isa::detect()).make(seed, 0, LEN).to_vec())
            .collect();
        let z: Vec<&[f64]> = z.iter().map(Vec::as_slice).collect();
        let exact = |step: usize, j: usize| exact_normal(&seeds[step], j as u64);
        let grid = StepGrid::new(2f64.powi(42));
        for order in 1..=4 {
            let blt: Vec<(f64, f64)> = (0..order).map(|i| (-0.3 / (1 + i) as f64, -0.1 * i as f64)).collect();
            let expected = one_by_one(&blt, grid, &z, &exact);
            for &isa in Isa::available() {
                let (mut buffers, mut found) = (vec![0.0; order * LEN], vec![vec![0.0; LEN]; MOST_STEPS]);
                let mut rows: Vec<&mut [f64]> = found.iter_mut().map(Vec::as_mut_slice).collect();
                steps(isa, &blt, &[grid; MOST_STEPS], &z, &mut buffers, &mut rows, &exact);
                assert_eq!(found, expected, "order {order} on {isa:?}");
            }
        }
    }
}
