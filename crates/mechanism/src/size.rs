//! Limits on the size of matrices and lists that are written out.

use antinoise_input::between;

use crate::Result;

/// The most steps whose coefficients are written out: 10^8 numbers are 0.8 GB.
const MOST_WRITTEN_OUT: usize = 100_000_000;

/// Refuses more numbers than are written out.
pub(crate) fn can_write_out(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_WRITTEN_OUT, "the most that can be written out")?;
    Ok(())
}

/// The most steps whose sparse noise rows are listed: about 40 terms of 16 bytes a step at this size.
const MOST_LISTED: usize = 1 << 20;

/// Refuses more steps than sparse rows are listed for.
pub(crate) fn can_list_rows(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_LISTED, "the most whose noise can be listed row by row")?;
    Ok(())
}

/// The most steps whose dense noise rows are stored: n^2 / 2 terms of 16 bytes are 0.13 GB; 2 n^2, for the
/// Fourier mechanism, 0.5 GB.
pub(crate) const MOST_STORED_DENSE: usize = 4096;

/// Refuses more steps than dense rows are stored for.
pub(crate) fn can_store_dense(steps: usize) -> Result<()> {
    between("steps", steps, 1, MOST_STORED_DENSE, "the most for which dense noise rows are stored")?;
    Ok(())
}
