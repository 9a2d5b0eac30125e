//! Stopping on a signal: after the current step, with a checkpoint.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, Result};

/// Which of the signals Ctrl-C and SIGTERM was received, if any.
pub struct Stop {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Installs the handler: from now on the first signal is only noted, and the second ends the process at
    /// once.
    pub fn on_signals() -> Result<Self> {
        let stop = Self { asked: Arc::default(), signal: Arc::default() };
        [SIGINT, SIGTERM].into_iter().try_for_each(|signal| stop.listen(signal)).map_err(Failure::other)?;
        Ok(stop)
    }

    fn listen(&self, signal: c_int) -> std::io::Result<()> {
        // In this order: a first signal during registration is recorded, and does not end the process as a
        // second signal would.
        flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
        flag::register_conditional_shutdown(signal, status(signal as usize).into(), Arc::clone(&self.asked))?;
        flag::register(signal, Arc::clone(&self.asked))?;
        // A signal before the last registration did not set `asked`.
        if self.signal.load(Ordering::Relaxed) != 0 {
            self.asked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Becomes true when a signal is received.
    pub fn asked(&self) -> &AtomicBool {
        &self.asked
    }

    /// The exit status for the signal: 130 for Ctrl-C, 143 for SIGTERM.
    pub fn status(&self) -> u8 {
        status(self.signal.load(Ordering::Relaxed))
    }
}

fn status(signal: usize) -> u8 {
    128 + signal as u8
}
