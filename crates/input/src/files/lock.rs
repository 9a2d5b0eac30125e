//! Locks between processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Result;
use std::path::Path;
use std::time::{Duration, Instant};

use super::owner;

/// Duration of retries for a lock that is held. A child process shares its parent's open files, and so its
/// locks, until it executes its own program: a lock that the parent released may stay held for some
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// A lock on a file, held until it is dropped or the process ends in any way.
///
/// ```
/// use antinoise_input::files::Lock;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join(".lock");
/// let held = Lock::take(&path)?;
/// assert!(held.is_some() && Lock::take(&path)?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The lock is advisory: it excludes only programs that request it. The file stays behind, because removing
/// it would let two processes lock two files.
#[derive(Debug)]
pub struct Lock {
    _held: File,
}

impl Lock {
    /// Locks the file at `path`, which is created for its owner only if it is absent. Returns `None` while
    /// another lock on the file is held, in this or another process.
    ///
    /// # Errors
    /// When the file cannot be opened, or the file system has no locks.
    pub fn take(path: &Path) -> Result<Option<Self>> {
        let file =
            owner::owner_only(OpenOptions::new().create(true).truncate(false).write(true)).open(path)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _held: file })),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PATIENCE / 100);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_lent_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let held = Lock::take(&path).unwrap().unwrap();
        let lent = held._held.try_clone().unwrap();
        drop(held);
        let returned = std::thread::spawn(move || {
            std::thread::sleep(PATIENCE / 10);
            drop(lent);
        });
        assert!(Lock::take(&path).unwrap().is_some());
        returned.join().unwrap();
    }
}
