//! One process at a time in a folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use antinoise_input::InvalidParameter;

use super::files;
use crate::Error;

/// The file that is locked; it stays behind, because removing it would let two processes lock two files.
pub(super) const NAME: &str = ".lock";

/// How long a lock that is held is asked for again. A process that starts another one lends its open files to it, and so its locks,
/// until that one has begun its own program: a folder that was just released can be held for some milliseconds more.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _held: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PATIENCE / 100);
                }
                Err(TryLockError::WouldBlock) => return Err(in_use(folder)),
                Err(TryLockError::Error(error)) => return Err(Error::io(&path)(error)),
            }
        }
    }
}

fn in_use(folder: &Path) -> Error {
    let must_be = "one that nobody else is writing into: wait for that run, or name another folder";
    InvalidParameter::new(format!("folder {}", folder.display()), "in use by another run", must_be).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_lent_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = FolderLock::take(folder.path()).unwrap();
        let lent = held._held.try_clone().unwrap();
        drop(held);
        let returned = std::thread::spawn(move || {
            std::thread::sleep(PATIENCE / 10);
            drop(lent);
        });
        assert!(FolderLock::take(folder.path()).is_ok());
        returned.join().unwrap();
    }
}
