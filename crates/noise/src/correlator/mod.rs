//! One step of a recursion on one tile of coordinates, in cache.
//!
//! Each kernel takes this step's seed noise, reads and updates the tile's past, and leaves z~ in `out`. The order
//! of operations on a coordinate is fixed (oldest first), so that every placement gives the same bits.

pub(crate) mod ahead;
mod blt;
mod blt_on_grid;
mod grid;
mod kept;
mod output;
mod ring;
mod sum;

pub(crate) use ahead::Ahead;
pub(crate) use grid::StepGrid;
pub(crate) use output::{Aside, Emit, Leave, PAST_CACHE, Portions, is_large, settle, write_scaled};
pub(crate) use sum::Use;

use output::add_scaled;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::checkpoint::Stored;
use crate::cipher::Keystream;
use crate::gaussian::{NormalTile, Real, TILE};
use crate::recipe::{Keeps, Leaf, Place};
use crate::simd::Isa;

/// The coefficients of a leaf in the precision of the noise.
pub(crate) enum Correlator<T> {
    Ring(ring::Ring<T>),
    Blt(blt::Blt<T>),
    /// Sums of seeds need no step-by-step kernel: see [`Scratch::sum`].
    Sum,
    Kept(kept::Kept),
}

impl<T: Real> Correlator<T> {
    pub(crate) fn new(leaf: &Leaf) -> Self {
        match leaf {
            Leaf::Ring { weights, keeps } => Self::Ring(ring::Ring::new(weights, *keeps)),
            Leaf::Blt { scale, rate } => Self::Blt(blt::Blt::new(scale, rate)),
            Leaf::Sum { .. } => Self::Sum,
            Leaf::Kept { rows, .. } => Self::Kept(kept::Kept::new(rows)),
        }
    }

    /// The slot of the past that holds z~ of `step` itself, where there is one.
    pub(crate) fn output_slot(&self, step: usize) -> Option<usize> {
        match self {
            Self::Ring(ring) if ring.keeps == Keeps::Outputs && ring.slots > 0 => Some(step % ring.slots),
            _ => None,
        }
    }

    /// The weight of this step's seed noise.
    fn weight(&self, place: &Place) -> T {
        match self {
            Self::Ring(ring) => ring.weight(place),
            Self::Kept(kept) => kept.weight(place),
            Self::Blt(_) | Self::Sum => T::ONE,
        }
    }

    /// out = what the past adds to this step's weighted seed noise.
    fn recall(&self, isa: Isa, place: &Place, past: &mut [T], out: &mut [T]) {
        match self {
            Self::Ring(ring) => ring.recall(isa, place, past, out),
            Self::Blt(blt) => blt.recall(isa, place, past, out),
            Self::Kept(kept) => kept.recall(isa, place, past, out),
            Self::Sum => unreachable!("sums are made a window at a time"),
        }
    }

    fn keep(&self, isa: Isa, place: &Place, z: &[T], noise: &[T], past: &mut [T]) {
        match self {
            Self::Ring(ring) => ring.keep(place, if ring.keeps == Keeps::Outputs { noise } else { z }, past),
            Self::Blt(blt) => blt.keep(isa, noise, past),
            Self::Kept(kept) => kept.keep(place, z, past),
            Self::Sum => {}
        }
    }

    /// True where seed noise is kept, not what is made of it.
    fn keeps_seeds(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.keeps == Keeps::Seeds,
            Self::Kept(_) => true,
            Self::Blt(_) | Self::Sum => false,
        }
    }
}

/// What one thread works in: a tile's seed noise and correlated noise, for as many steps as are made at once, and, when
/// replaying, its past.
pub(crate) struct Scratch<T: Step> {
    isa: Isa,
    normals: Vec<NormalTile<T>>,
    pub(crate) noise: Box<[T]>,
    pub(crate) row: Box<[T::Row]>,
    pub(crate) past: Vec<T>,
}

impl<T: Step> Scratch<T> {
    /// Room for `rows` rows of noise, made by `correlator`, with `past_vectors` replayed vectors.
    pub(crate) fn new(isa: Isa, correlator: &Correlator<T>, rows: usize, past_vectors: usize) -> Self {
        let at_once = T::at_once(correlator);
        let normals = (0..at_once).map(|_| NormalTile::new(isa)).collect();
        let noise = vec![T::default(); rows.max(at_once).max(T::ROOM) * TILE].into_boxed_slice();
        let row = vec![T::Row::default(); TILE].into_boxed_slice();
        Self { isa, normals, noise, row, past: vec![T::default(); past_vectors * TILE] }
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// Row k of the noise = sum over uses (seed, k, weight) of weight z_seed, for `rows` rows of one tile.
    pub(crate) fn sum<'a>(
        &mut self,
        uses: &[Use],
        rows: usize,
        seed: impl Fn(u64) -> &'a Keystream,
        (start, len): (u64, usize),
    ) {
        self.noise[..rows * TILE].fill(T::default());
        for same_seed in uses.chunk_by(|a, b| a.seed == b.seed) {
            let z = self.normals[0].make(seed(same_seed[0].seed), start, len);
            for used in same_seed {
                let row = &mut self.noise[used.row * TILE..][..len];
                sum::accumulate(self.isa, T::rounded(used.weight), z, row);
            }
        }
    }
}

impl<T: Step> Drop for Scratch<T> {
    fn drop(&mut self) {
        self.noise.zeroize();
        self.row.zeroize();
        self.past.zeroize();
    }
}

/// The normals wipe themselves.
impl<T: Step> ZeroizeOnDrop for Scratch<T> {}

/// Steps on one tile, in either kind of stream.
pub(crate) trait Step: Real {
    /// What a row waits as: noise of unit variance or, on a grid, whole points.
    type Row: Stored;

    /// Tiles that a step works in: its noise and, on a grid, its past's share.
    const ROOM: usize;

    /// Most steps that one call of [`Step::steps`] makes.
    fn at_once(correlator: &Correlator<Self>) -> usize;

    /// Keeps z~ of each step ahead or, if rows are not kept, leaves the last one in the scratch's noise, and brings
    /// `past` to the step after the last.
    fn steps(
        scratch: &mut Scratch<Self>,
        steps: &TileSteps<'_, Self>,
        past: &mut [Self],
        ahead: &mut Ahead<'_, Self::Row>,
    );

    /// A row of noise as it waits, in `room` if it is not what it was.
    fn waiting<'a>(
        isa: Isa,
        noise: &'a [Self],
        grid: Option<StepGrid>,
        room: &'a mut [Self::Row],
    ) -> &'a [Self::Row];

    /// Hands out noise of unit variance.
    fn leave(isa: Isa, leave: &Leave<'_>, noise: &[Self], out: &mut [f32]);

    /// Hands out a row that waited.
    fn leave_row(isa: Isa, leave: &Leave<'_>, row: &[Self::Row], out: &mut [f32]);
}

/// Which steps, and of which tile.
pub(crate) struct TileSteps<'a, T> {
    pub(crate) correlator: &'a Correlator<T>,
    /// No run starts at one of them but the first.
    pub(crate) places: &'a [Place],
    /// Of each step.
    pub(crate) seeds: &'a [Keystream],
    pub(crate) start: u64,
    pub(crate) len: usize,
    /// Numbers to be brought near meanwhile.
    pub(crate) near: &'a [T],
    /// The grid, where there is one.
    pub(crate) grid: Option<StepGrid>,
}

impl Step for f32 {
    type Row = f32;
    const ROOM: usize = 1;

    fn waiting<'a>(_: Isa, noise: &'a [f32], _: Option<StepGrid>, _: &'a mut [f32]) -> &'a [f32] {
        noise
    }

    fn leave_row(isa: Isa, leave: &Leave<'_>, row: &[f32], out: &mut [f32]) {
        Self::leave(isa, leave, row, out);
    }

    fn leave(isa: Isa, leave: &Leave<'_>, noise: &[f32], out: &mut [f32]) {
        match leave.emit {
            Emit::Write => write_scaled(isa, leave.large, leave.factor as f32, noise, out),
            Emit::Add(scale) => add_scaled(isa, (leave.factor * f64::from(scale)) as f32, noise, out),
            Emit::AddTo(_) => unreachable!("sums in double precision are released on grids"),
        }
    }

    fn at_once(_: &Correlator<f32>) -> usize {
        1
    }

    fn steps(
        scratch: &mut Scratch<f32>,
        steps: &TileSteps<'_, f32>,
        past: &mut [f32],
        ahead: &mut Ahead<'_, f32>,
    ) {
        let (isa, out) = (scratch.isa, &mut scratch.noise[..steps.len]);
        let (place, seed) = (&steps.places[0], &steps.seeds[0]);
        let z = scratch.normals[0].make_near(seed, steps.start, steps.len, steps.near);
        match steps.correlator {
            Correlator::Blt(blt) if blt.is_fused() => blt.step(isa, place, z, past, out),
            correlator => {
                correlator.recall(isa, place, past, out);
                sum::accumulate(isa, correlator.weight(place), z, out);
                correlator.keep(isa, place, z, out, past);
            }
        }
        scratch.keep_rows(steps.places, None, ahead);
    }
}

impl Step for f64 {
    type Row = i32;
    const ROOM: usize = 2;

    fn waiting<'a>(isa: Isa, noise: &'a [f64], grid: Option<StepGrid>, room: &'a mut [i32]) -> &'a [i32] {
        grid.expect("double precision is for grids").points(isa, noise, room);
        room
    }

    fn leave_row(isa: Isa, leave: &Leave<'_>, row: &[i32], out: &mut [f32]) {
        let spacing = leave.spacing.expect("double precision is for grids");
        grid::release_points(isa, spacing, leave.sum(), row, out);
    }

    fn leave(isa: Isa, leave: &Leave<'_>, noise: &[f64], out: &mut [f32]) {
        let spacing = leave.spacing.expect("double precision is for grids");
        grid::release(isa, spacing, leave.factor / spacing, leave.sum(), noise, out);
    }

    fn at_once(correlator: &Correlator<f64>) -> usize {
        match correlator {
            Correlator::Blt(blt) if blt.is_fused() => blt_on_grid::MOST_STEPS,
            _ => 1,
        }
    }

    /// Rounds to the grid and feeds the rounding back: kept are the rounded noise, or the seed noise that would have
    /// given it.
    fn steps(
        scratch: &mut Scratch<f64>,
        steps: &TileSteps<'_, f64>,
        past: &mut [f64],
        ahead: &mut Ahead<'_, i32>,
    ) {
        if let Correlator::Blt(blt) = steps.correlator
            && blt.is_fused()
        {
            return blt_on_grid::run(blt, scratch, steps, past, ahead);
        }
        let (isa, (out, share)) = (scratch.isa, scratch.noise.split_at_mut(TILE));
        let (out, share) = (&mut out[..steps.len], &mut share[..steps.len]);
        let (correlator, place, seed) = (steps.correlator, &steps.places[0], &steps.seeds[0]);
        let z = scratch.normals[0].make_near(seed, steps.start, steps.len, steps.near);
        let grid = steps.grid.expect("double precision is for grids").at(place);
        let exact = grid::exact_at(seed, steps.start);
        correlator.recall(isa, place, past, share);
        out.copy_from_slice(share);
        let weight = correlator.weight(place);
        grid.round(isa, weight, z, out, |out| out.copy_from_slice(share), exact);
        if correlator.keeps_seeds() {
            let moved = out.iter().zip(&*share).map(|(noise, share)| (noise - share) / weight);
            z.iter_mut().zip(moved).for_each(|(z, moved)| *z = moved);
        }
        correlator.keep(isa, place, z, out, past);
        scratch.keep_rows(steps.places, steps.grid, ahead);
    }
}
