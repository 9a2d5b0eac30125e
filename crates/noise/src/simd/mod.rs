//! Use of the processor: instruction sets that are detected at run time, table look-ups, and memory
//! operations.

mod dispatch;
mod isa;
mod lookup;
mod memory;
mod transfer;

pub(crate) use dispatch::per_isa;
pub(crate) use isa::Isa;
#[cfg(target_arch = "x86_64")]
pub(crate) use isa::{Avx2, Avx512, VectorAes};
pub(crate) use lookup::Instructions;
pub(crate) use memory::{
    Aligned, AlignedNumbers, BEYOND_CACHE, LINE, Lines, fence, is_large, per_line, stream_block,
};
pub(crate) use transfer::Transfer;
