//! Standard normals from keystreams, by vectorised transforms that do not truncate the tails.

mod coordinates;
mod double;
mod exact;
#[cfg(target_arch = "x86_64")]
mod fused;
mod gathered;
mod seed_noise;
mod single;
mod single_table;
#[cfg(test)]
mod tests;
mod tile;
mod transform;

pub(crate) use coordinates::Coordinates;
pub(crate) use exact::{DoubleDouble, exact_normal};
pub(crate) use gathered::{Gathered, Segment};
pub use seed_noise::SeedNoise;
pub(crate) use tile::{NormalTile, TILE};
pub(crate) use transform::Normal;
