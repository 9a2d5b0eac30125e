//! Threads and signals of a process: a fork does not copy threads, and only Python handles signals.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::Python;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Raised, Result};

/// Longest delay before Ctrl-C is handled.
const PATIENCE: Duration = Duration::from_millis(50);

/// The threads of one process, with its id. A forked child inherits no threads and starts its own.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Abandons busy threads to their work: the next caller gets new ones.
fn give_up(busy: &Arc<ThreadPool>) {
    let mut shared = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.as_ref().is_some_and(|(_, pool)| Arc::ptr_eq(pool, busy)) {
        *shared = None;
    }
}

/// Runs `work` on the threads of this process. `work` must not take a lock: a waiting thread may be given
/// other work, which would wait for the same lock.
pub fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool()?.install(work))
}

/// Runs `work` on the threads of this process, or on the calling thread if `own_threads`: `work` then has
/// threads of its own.
pub fn threaded<T: Send>(own_threads: bool, work: impl FnOnce() -> T + Send) -> Result<T> {
    if own_threads { Ok(work()) } else { on_threads(work) }
}

/// The threads of this process, started on first use.
fn pool() -> Result<Arc<ThreadPool>> {
    let mut shared = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let now = process::id();
    match &*shared {
        Some((owner, pool)) if *owner == now => Ok(Arc::clone(pool)),
        _ => {
            let pool = Arc::new(ThreadPoolBuilder::new().build().map_err(Raised::failed)?);
            // The parent's threads do not exist in this process and cannot be joined.
            std::mem::forget(shared.replace((now, Arc::clone(&pool))));
            Ok(pool)
        }
    }
}

/// Runs `work`, which owns all its data, on the threads of this process while other Python threads run.
/// Ctrl-C returns at once; `work` then runs to its end and its result is dropped.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = channel();
    let pool = pool()?;
    pool.spawn(move || {
        // The receiver is gone after Ctrl-C.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    let receiver = Mutex::new(receiver);
    loop {
        let found =
            py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE));
        match found {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| give_up(&pool))?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Raised::failed("the computation ended without a result"));
            }
        }
    }
}

/// The process that made an object of which only one copy may exist.
#[derive(Debug, Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    pub fn this() -> Self {
        Self(process::id())
    }

    /// Refuses a copy of `what` that was made by a fork.
    pub fn check(self, what: &str) -> Result<()> {
        let now = process::id();
        if self.0 == now {
            return Ok(());
        }
        Err(Raised::failed(format!(
            "this {what} was made in process {} and copied by a fork into process {now}: two processes with one {what} would \
             use the same noise twice. Make it in the process that uses it",
            self.0
        )))
    }
}
