//! What antinoise-train reads.

pub mod checkpoint;
pub mod idx;
pub mod png;
pub mod table;
