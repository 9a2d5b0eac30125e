//! Data files, plain or gzipped, and their errors.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use antinoise_input::InvalidParameter;
use flate2::read::MultiGzDecoder;

use crate::Error;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens a file, decompressing it if it is gzipped.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, Error> {
    let open = || File::open(path).map_err(Error::io(path));
    let mut start = Vec::new();
    open()?.take(2).read_to_end(&mut start).map_err(Error::io(path))?;
    let file = BufReader::new(open()?);
    Ok(if start == GZIP_MAGIC { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// The error of a file that cannot be used.
pub(super) fn bad(path: &Path, got: impl std::fmt::Display, must_be: impl Into<String>) -> Error {
    InvalidParameter::new(format!("data file {}", path.display()), got, must_be).into()
}
