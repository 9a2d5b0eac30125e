//! The planner for a web page: a request in JSON becomes a plan in TOML, its statement, figures, and the same
//! request as a command and as Python.
//!
//! A page of the site runs it as WebAssembly in a worker (`scripts/site/theme/assets/planner.js`). Text goes
//! in and out through one buffer: [`room`] makes place for a request, [`answer`] replaces it with the answer
//! and returns its length, and [`start`] says where it is.
//!
//! ```
//! let request = r#"{"examples": 1000, "batch_size": 50, "epochs": 2, "epsilon": 2, "setting": "cyclic"}"#;
//! let answer = antinoise_web::answer_to(request);
//! assert!(answer.contains("antinoise plan --examples 1000 --batch-size 50 --epochs 2"));
//! ```
//!
//! ```layers
//! query: the request of a page, and its forms elsewhere
//! figures: the figures of a choice
//! batches: the choices at other batch sizes, and their figures
//! reply: the answer to a request
//! ```

mod batches;
mod figures;
mod query;
mod reply;

use std::cell::RefCell;

thread_local! {
    /// The request, then the answer.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The answer to a request in JSON, in JSON: a plan, or the parameter that is wrong and why.
pub fn answer_to(request: &str) -> String {
    reply::to(request)
}

/// Makes the buffer `length` bytes long, and returns where it begins.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *const u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; length];
        buffer.as_ptr()
    })
}

/// Replaces the request in the buffer with its answer, and returns the answer's number of bytes.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = answer_to(&String::from_utf8_lossy(buffer)).into_bytes();
        buffer.len()
    })
}

/// The address of the buffer.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}
