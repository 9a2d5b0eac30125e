//! The kernel of a BLT on a grid, which makes several steps of a few coordinates together, so that the
//! buffers stay in registers.

use antinoise_input::largest;

use super::blt::{Blt, vectors};
use super::grid::{StepGrid, WHOLE, distance, room, whole};
use super::{LookAhead, Scratch, TileSteps};
use crate::normal::{DoubleDouble, TILE, exact_normal};
use crate::simd::{LINE, per_isa, stream_block};

/// Maximum number of steps that are made together.
pub(crate) const MAX_STEPS: usize = 4;
/// Number of coordinates that are made together: two registers for each buffer.
const LANES: usize = 16;

/// Makes steps of a BLT of order up to 4. Returns true if the rows are stored in `ahead` as whole grid
/// points, and false if their noise is in the scratch memory.
pub(super) fn run(
    blt: &Blt<f64>,
    grid: StepGrid,
    scratch: &mut Scratch<f64, i32>,
    steps: &TileSteps<'_, f64>,
    past: &mut [f64],
    ahead: &mut LookAhead<'_, i32>,
) -> bool {
    let (count, len, isa) = (steps.positions.len(), steps.len, scratch.isa);
    blt.start(&steps.positions[0], past);
    let mut fetched = steps.fetched.chunks(steps.fetched.len().div_ceil(count).max(1));
    let mut z: [&[f64]; MAX_STEPS] = [&[]; MAX_STEPS];
    for ((z, seed), tile) in z.iter_mut().zip(steps.seeds).zip(&mut scratch.normals) {
        *z = tile.make_fetching(seed, steps.coordinates, len, fetched.next().unwrap_or_default());
    }
    let mut grids = [grid; MAX_STEPS];
    grids.iter_mut().zip(steps.positions).for_each(|(grid, position)| *grid = grid.at(position));
    let exact = |step: usize, j: usize| exact_normal(&steps.seeds[step], steps.coordinates.at(j));
    let made =
        Made { coefficients: blt.coefficients(), grids: &grids[..count], z: &z[..count], exact: &exact };
    if ahead.wants(steps.positions) {
        let streamed = ahead.beyond_cache;
        let mut rows: [&mut [i32]; MAX_STEPS] = Default::default();
        ahead.find(steps.positions, &mut rows);
        make(isa, &made, past, &mut rows[..count], streamed);
        return true;
    }
    let mut rows = scratch.noise.chunks_mut(TILE);
    let mut out: [&mut [f64]; MAX_STEPS] =
        std::array::from_fn(|_| &mut rows.next().expect("a row for each step")[..len]);
    make(isa, &made, past, &mut out[..count], false);
    false
}

/// The inputs of the steps.
struct Made<'a> {
    coefficients: &'a [(f64, f64)],
    /// The grid of each step; `z` holds the seed noise.
    grids: &'a [StepGrid],
    z: &'a [&'a [f64]],
    exact: Exact<'a>,
}

/// The element type of a row: noise, or whole points of the grid.
trait Points: Copy {
    /// Writes a block of a row, bypassing the caches if `streamed`. `sums` are its grid points plus
    /// [`WHOLE`], and `noise` is its noise.
    fn put<const L: usize>(sums: &[f64; L], noise: &[f64; L], out: &mut [Self; L], streamed: bool);
}

impl Points for f64 {
    #[inline(always)]
    fn put<const L: usize>(_: &[f64; L], noise: &[f64; L], out: &mut [f64; L], _: bool) {
        *out = *noise;
    }
}

impl Points for i32 {
    #[inline(always)]
    fn put<const L: usize>(sums: &[f64; L], _: &[f64; L], out: &mut [i32; L], streamed: bool) {
        let points: [i32; L] = std::array::from_fn(|l| whole(sums[l]));
        if streamed { stream_block(&points, out) } else { *out = points }
    }
}

/// A function that maps (step, offset in the tile) to the exact normal.
type Exact<'a> = &'a dyn Fn(usize, usize) -> DoubleDouble;

per_isa! {
    /// Writes the noise of each step s on the grid, or its whole grid points (which must fit in 4 bytes), to
    /// out\[s\], and updates the buffers.
    fn make[R: Points](made: &Made<'_>, buffers: &mut [f64], out: &mut [&mut [R]], streamed: bool) {
        match *made.coefficients {
            [a] => all([a], made, buffers, out, streamed),
            [a, b] => all([a, b], made, buffers, out, streamed),
            [a, b, c] => all([a, b, c], made, buffers, out, streamed),
            [a, b, c, d] => all([a, b, c, d], made, buffers, out, streamed),
            _ => unreachable!("`Kernel::fused_blt` was asked"),
        }
    }
}

#[inline(always)]
fn all<R: Points, const D: usize>(
    coefficients: [(f64, f64); D],
    made: &Made<'_>,
    buffers: &mut [f64],
    out: &mut [&mut [R]],
    streamed: bool,
) {
    let coefficients = coefficients.map(|(scale, rate)| (scale, 1.0 + rate));
    let len = made.z[0].len();
    let mut m: [&mut [f64]; D] = vectors(buffers, len);
    let room = room(largest(made.grids.iter().map(|grid| grid.doubt(1.0))));
    let streamed = streamed && out.iter().all(|row| row.as_ptr().addr().is_multiple_of(LINE));
    let whole = len / LANES * LANES;
    for from in (0..whole).step_by(LANES) {
        block::<R, D, LANES>(&coefficients, made, room, from, &mut m, out, streamed);
    }
    for from in whole..len {
        block::<R, D, 1>(&coefficients, made, room, from, &mut m, out, false);
    }
}

#[inline(always)]
fn lanes<T, const L: usize>(row: &[T], from: usize) -> &[T; L] {
    row[from..].first_chunk().expect("a block lies in its row")
}

#[inline(always)]
fn lanes_mut<T, const L: usize>(row: &mut [T], from: usize) -> &mut [T; L] {
    row[from..].first_chunk_mut().expect("a block lies in its row")
}

/// The larger number, or `b` if `a` is NaN: unlike `f64::max`, one instruction.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

// Each statement is a loop over all lanes, since the compiler does not vectorise a loop over lanes with
// several statements.
#[inline(always)]
fn block<R: Points, const D: usize, const L: usize>(
    coefficients: &[(f64, f64); D],
    made: &Made<'_>,
    room: f64,
    from: usize,
    m: &mut [&mut [f64]; D],
    out: &mut [&mut [R]],
    streamed: bool,
) {
    let mut now: [[f64; L]; D] = std::array::from_fn(|i| *lanes(m[i], from));
    let mut furthest = [0.0; L];
    for ((grid, z), out) in made.grids.iter().zip(made.z).zip(out.iter_mut()) {
        let z: &[f64; L] = lanes(z, from);
        let mut x = [0.0; L];
        for i in 0..D {
            x = std::array::from_fn(|l| coefficients[i].0.mul_add(now[i][l], x[l]));
        }
        let value: [f64; L] = std::array::from_fn(|l| z[l] + x[l]);
        let sums: [f64; L] = std::array::from_fn(|l| value[l].mul_add(grid.per_unit, WHOLE));
        let points: [f64; L] = std::array::from_fn(|l| sums[l] - WHOLE);
        let off: [f64; L] = std::array::from_fn(|l| value[l].mul_add(grid.per_unit, -points[l]));
        furthest = std::array::from_fn(|l| larger(distance(points[l], off[l]), furthest[l]));
        let noise: [f64; L] = std::array::from_fn(|l| points[l] * grid.unit);
        for i in 0..D {
            now[i] = std::array::from_fn(|l| coefficients[i].1.mul_add(now[i][l], noise[l]));
        }
        R::put(&sums, &noise, lanes_mut(out, from), streamed);
    }
    // `larger` drops a distance that is NaN. But the noise is then not finite, and a buffer to which it was
    // added stays not finite.
    if !furthest.iter().all(|far| *far < room) || !now[0].iter().all(|m| m.is_finite()) {
        now = decide(coefficients, made, from, std::array::from_fn(|i| *lanes(m[i], from)), out);
    }
    for i in 0..D {
        *lanes_mut(m[i], from) = now[i];
    }
}

/// Rounds a block point by point, with exact normals where double precision does not decide the rounding.
#[cold]
#[inline(never)]
fn decide<R: Points, const D: usize, const L: usize>(
    coefficients: &[(f64, f64); D],
    made: &Made<'_>,
    from: usize,
    mut now: [[f64; L]; D],
    out: &mut [&mut [R]],
) -> [[f64; L]; D] {
    for (step, (grid, (z, out))) in made.grids.iter().zip(made.z.iter().zip(out.iter_mut())).enumerate() {
        let mut noise: [f64; L] =
            std::array::from_fn(|l| (0..D).fold(0.0, |x, i| coefficients[i].0.mul_add(now[i][l], x)));
        grid.decide(1.0, &z[from..from + L], &mut noise, &|l| (made.exact)(step, from + l));
        for i in 0..D {
            now[i] = std::array::from_fn(|l| coefficients[i].1.mul_add(now[i][l], noise[l]));
        }
        R::put(&noise.map(|noise| noise.mul_add(grid.per_unit, WHOLE)), &noise, lanes_mut(out, from), false);
    }
    now
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::key::Key;
    use crate::keystream::{Cipher, KeySource};
    use crate::normal::{Coordinates, NormalTile};
    use crate::simd::Isa;

    const LEN: usize = 1000;

    /// The reference, which rounds every sum by exact normals, one step and one coordinate after another.
    fn one_by_one(blt: &[(f64, f64)], grid: StepGrid, z: &[&[f64]], exact: Exact<'_>) -> Vec<Vec<f64>> {
        let mut m = vec![vec![0.0; LEN]; blt.len()];
        let mut rows = Vec::new();
        for step in 0..z.len() {
            let mut row = vec![0.0; LEN];
            for j in 0..LEN {
                let past = blt.iter().zip(&m).fold(0.0, |x: f64, ((scale, _), m)| scale.mul_add(m[j], x));
                let sum = exact(step, j).plus(DoubleDouble::of(past)).times(DoubleDouble::of(grid.per_unit));
                let down = sum.hi.floor();
                let above = sum.plus(DoubleDouble::of(-(down + 0.5)));
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

    /// A normal that is not finite is an error, at every step and in every lane.
    #[test]
    fn noise_that_is_not_finite_is_refused() {
        let keys = KeySource::new(&Key::from_seed_insecure(8), Cipher::default());
        let exact = |step: usize, j: usize| exact_normal(&keys.keystream(step as u64), j as u64);
        let (blt, grids) = ([(-0.3, -1.0), (-0.1, -0.2)], [StepGrid::new(1024.0); MAX_STEPS]);
        let mut refused = 0;
        for wild in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for (step, lane) in [(0, 0), (0, LEN - 1), (2, 5), (MAX_STEPS - 1, 7), (MAX_STEPS - 1, LEN - 1)] {
                for &isa in Isa::available() {
                    let mut z = vec![vec![0.25; LEN]; MAX_STEPS];
                    z[step][lane] = wild;
                    let z: Vec<&[f64]> = z.iter().map(Vec::as_slice).collect();
                    let made = Made { coefficients: &blt, grids: &grids, z: &z, exact: &exact };
                    let (mut buffers, mut rows) = ([0.0; 2 * LEN], vec![[0.0; LEN]; MAX_STEPS]);
                    let mut rows: Vec<&mut [f64]> = rows.iter_mut().map(|row| row.as_mut_slice()).collect();
                    let made = || make(isa, &made, &mut buffers, &mut rows, false);
                    assert!(
                        catch_unwind(AssertUnwindSafe(made)).is_err(),
                        "{wild} at ({step}, {lane}), {isa:?}"
                    );
                    refused += 1;
                }
            }
        }
        assert_eq!(refused, 15 * Isa::available().len());
    }

    /// On a grid this fine, about every tenth sum needs more digits than double precision, which alone would
    /// round a few wrongly.
    #[test]
    fn several_steps_at_once_are_the_steps_decided_one_by_one() {
        let keys = KeySource::new(&Key::from_seed_insecure(8), Cipher::default());
        let seeds: Vec<_> = (0..MAX_STEPS as u64).map(|step| keys.keystream(step)).collect();
        let z: Vec<Vec<f64>> = seeds
            .iter()
            .map(|seed| NormalTile::<f64>::new(Isa::detect()).make(seed, Coordinates::From(0), LEN).to_vec())
            .collect();
        let z: Vec<&[f64]> = z.iter().map(Vec::as_slice).collect();
        let exact = |step: usize, j: usize| exact_normal(&seeds[step], j as u64);
        let grid = StepGrid::new(2f64.powi(42));
        for order in 1..=4 {
            let blt: Vec<(f64, f64)> = (0..order).map(|i| (-0.3 / (1 + i) as f64, -0.1 * i as f64)).collect();
            let expected = one_by_one(&blt, grid, &z, &exact);
            for &isa in Isa::available() {
                let (mut buffers, mut found) = (vec![0.0; order * LEN], vec![vec![0.0; LEN]; MAX_STEPS]);
                let mut rows: Vec<&mut [f64]> = found.iter_mut().map(Vec::as_mut_slice).collect();
                let grids = &[grid; MAX_STEPS];
                let made = Made { coefficients: &blt, grids, z: &z, exact: &exact };
                make(isa, &made, &mut buffers, &mut rows, false);
                assert_eq!(found, expected, "order {order} on {isa:?}");
            }
        }
    }
}
