//! What a process brings along: threads, which a fork leaves behind, and signals, which Python alone answers.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::Python;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Raised, Result};

/// How long Ctrl-C may wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// The threads of one process; a child that was forked has none of them and makes its own.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Leaves these threads to what they are at: whoever comes next gets others.
fn give_up(busy: &Arc<ThreadPool>) {
    let mut shared = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.as_ref().is_some_and(|(_, pool)| Arc::ptr_eq(pool, busy)) {
        *shared = None;
    }
}

/// Does `work` on the threads of this process; no lock may be taken in it, since a thread that waits may be given other work, which would
/// wait for the same lock.
pub fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool()?.install(work))
}

/// The same, or where the caller is, if what works there has `own_threads`.
pub fn threaded<T: Send>(own_threads: bool, work: impl FnOnce() -> T + Send) -> Result<T> {
    if own_threads { Ok(work()) } else { on_threads(work) }
}

/// The threads of this process.
fn pool() -> Result<Arc<ThreadPool>> {
    let mut shared = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let now = process::id();
    match &*shared {
        Some((owner, pool)) if *owner == now => Ok(Arc::clone(pool)),
        _ => {
            let pool = Arc::new(ThreadPoolBuilder::new().build().map_err(Raised::failed)?);
            // Threads of the parent cannot be waited for here.
            std::mem::forget(shared.replace((now, Arc::clone(&pool))));
            Ok(pool)
        }
    }
}

/// Does `work`, which owns all it needs, on the threads of this process while other threads of Python run. Ctrl-C is answered at
/// once; what was begun then ends unheard.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = channel();
    let pool = pool()?;
    pool.spawn(move || {
        // Nobody may listen any more.
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

/// The process that made something which must not live twice.
#[derive(Debug, Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    pub fn this() -> Self {
        Self(process::id())
    }

    /// Refuses a copy that a fork made of `what`.
    pub fn check(self, what: &str) -> Result<()> {
        let now = process::id();
        if self.0 == now {
            return Ok(());
        }
        Err(Raised::failed(format!(
            "this {what} was made in process {} and copied by a fork into process {now}: two processes with one {what} would \
             release the same noise twice. Make it in the process that uses it",
            self.0
        )))
    }
}
