//! Access to a candle tensor's numbers as a slice.

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor, bail};

/// Calls `read` with the numbers of a CPU tensor in row-major order; copies them only if they are not
/// contiguous.
pub(crate) fn with_values<R>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(read(contiguous(storage, layout)?)),
        _ => bail!("private training runs on the CPU"),
    }
}

/// The numbers of a contiguous tensor's storage.
pub(crate) fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&storage.as_slice::<f32>()?[from..to]),
        None => bail!("the tensor must be contiguous"),
    }
}
