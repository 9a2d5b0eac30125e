//! One process at a time in a folder.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::lock::Lock;

use crate::Error;

/// The file that is locked; it stays behind.
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
    _held: Lock,
}

impl FolderLock {
    /// Locks `folder`, which exists.
    ///
    /// # Errors
    /// When another run, of this process or of another one, holds it; when the file system has no locks.
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
