use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `read`, or `None` if it panics, as the libraries for Arrow, Parquet and PNG do on some
/// damaged data. After a panic, the values that `read` worked on must not be used again.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}
