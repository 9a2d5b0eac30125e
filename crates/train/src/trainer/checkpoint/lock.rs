//! The lock that admits one process at a time to a folder.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::files::Lock;

use crate::Error;

/// The name of the lock file, which remains in the folder.
pub(super) const NAME: &str = ".lock";

/// The exclusive right to write into a folder, held until it is dropped or the process ends in any way.
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
/// The lock is advisory: it excludes only processes that take it.
#[derive(Debug)]
pub struct FolderLock {
    _held: Lock,
}

impl FolderLock {
    /// Locks `folder`, which must exist.
    ///
    /// # Errors
    /// If another run, in this process or another, holds the lock; if the file system has no locks.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let held = Lock::take(&path).map_err(Error::io(&path))?.ok_or_else(|| {
            let must_be = "one that nobody else is writing into: wait for that run, or name another folder";
            let what = format!("folder {}", folder.display());
            InvalidParameter::new(what, "in use by another run", must_be)
        })?;
        Ok(Self { _held: held })
    }
}
