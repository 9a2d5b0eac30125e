//! One process at a time in a folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use antinoise_input::InvalidParameter;

use super::files;
use crate::Error;

/// The file that is locked; it stays behind, because removing it would let two processes lock two files.
pub(super) const NAME: &str = ".lock";

/// The right to write into a folder, held until it is dropped or the process ends, however it ends.
///
/// ```
/// use antinoise_train::trainer::FolderLock;
/// let folder = tempfile::tempdir().unwrap();
/// let held = FolderLock::take(folder.path())?;
/// assert!(FolderLock::take(folder.path()).unwrap_err().to_string().contains("in use by another run"));
/// drop(held);
/// assert!(FolderLock::take(folder.path()).is_ok());
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// The lock is advisory: it keeps out those who ask for it.
#[derive(Debug)]
pub struct FolderLock {
    _held: File,
}

impl FolderLock {
    /// Locks `folder`, which exists.
    ///
    /// # Errors
    /// When another run, of this process or of another one, holds it; when the file system has no locks.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let mut options = OpenOptions::new();
        let file = files::owner_only(options.create(true).truncate(false).write(true))
            .open(&path)
            .map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _held: file }),
            Err(TryLockError::WouldBlock) => {
                let must_be =
                    "one that nobody else is writing into: wait for that run, or name another folder";
                let what = format!("folder {}", folder.display());
                Err(InvalidParameter::new(what, "in use by another run", must_be).into())
            }
            Err(TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }
}
