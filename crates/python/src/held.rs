//! A value that holds a file open, for one thread of one process at a time.

use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use antinoise_input::InvalidParameter;
use pyo3::Python;

use crate::errors::{Raised, Result};
use crate::process::Owner;

/// A value until it is closed; `class` is the Python class that holds it.
pub struct Held<T> {
    class: &'static str,
    /// The word for the value in messages.
    name: &'static str,
    owner: Owner,
    /// The value; `None` after `close`.
    value: Mutex<ManuallyDrop<Option<T>>>,
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // A forked child shares the parent's database and must not end the parent's transaction.
        if self.check().is_ok() {
            let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: `self` is being dropped, so that nothing uses the value afterwards.
            unsafe { ManuallyDrop::drop(value) };
        }
    }
}

impl<T: Send> Held<T> {
    pub fn close(&self, py: Python<'_>) -> Result<()> {
        self.check()?;
        // A panic in an earlier call poisons the lock; the file is closed all the same.
        let value = match self.value.try_lock() {
            Ok(mut locked) => locked.take(),
            Err(TryLockError::Poisoned(error)) => error.into_inner().take(),
            Err(TryLockError::WouldBlock) => return Err(self.busy()),
        };
        py.detach(|| drop(value));
        Ok(())
    }
}

impl<T> Held<T> {
    pub fn new(class: &'static str, name: &'static str, value: T) -> Self {
        Self { class, name, owner: Owner::this(), value: Mutex::new(ManuallyDrop::new(Some(value))) }
    }

    /// Refuses a process that was forked from the owner's.
    pub fn check(&self) -> Result<()> {
        self.owner.check(self.class)
    }

    /// The value, for one thread at a time. A second caller is refused rather than blocked, since it may be
    /// the very thread that holds the lock.
    fn locked(&self) -> Result<MutexGuard<'_, ManuallyDrop<Option<T>>>> {
        self.check()?;
        self.value.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => self.busy(),
            TryLockError::Poisoned(_) => Raised::failed("an earlier call failed half way"),
        })
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let mut locked = self.locked()?;
        let value = locked.as_mut().ok_or_else(|| {
            InvalidParameter::new(self.name, "closed", "open: make a new one from its file or folder")
        })?;
        work(value)
    }

    fn busy(&self) -> Raised {
        Raised::failed(format!("another call uses this {}", self.class))
    }
}
