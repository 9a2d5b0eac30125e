//! Kernels: one step of a recursion on one tile, in either mode. The operations on a coordinate have a fixed
//! order (oldest term first), so that windows, tiles and instruction sets do not change bits.

mod blt;
mod blt_on_grid;
mod circulant;
mod grid;
mod in_place;
mod look_ahead;
mod mode;
mod on_grid;
mod output;
mod past_sum;
mod past_sum_on_grid;
mod plain;
mod rational;
mod retained;
mod ring;
mod scratch;
mod seen;
mod step;
mod sum;
mod varying_blt;

pub(crate) use circulant::make_circulant;
pub(crate) use look_ahead::{LookAhead, slot};
pub(crate) use mode::{Emit, Emits, Mode, ScratchOf, Steps, TileSteps, store_rows};
pub(crate) use on_grid::OnGrid;
pub(crate) use plain::{Plain, Target};
pub(crate) use scratch::Scratch;
pub use seen::{BLOCK_WEIGHTS, block_factor};
pub(crate) use seen::{Seen, SeenByAll};
pub(crate) use step::Kernel;
pub(crate) use sum::Term;
