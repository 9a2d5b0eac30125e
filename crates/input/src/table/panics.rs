use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `read` does, unless it panics, as the libraries of Arrow and Parquet do at some data that are damaged. What it worked on must not be used
/// again then.
pub fn unless_panicking<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}
