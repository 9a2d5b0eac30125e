use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `read`, or an error if it panics, as the Arrow and Parquet libraries do on some damaged
/// data. After an error, the values that `read` worked on must not be used again.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}
