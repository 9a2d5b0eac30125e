//! Files that are whole or absent.

use std::path::Path;

use antinoise_input::file::{Access, write_whole};

use crate::{Error, Result};

/// Writes `contents`, which anyone may read, to `path`: it then holds all of them or what it held.
///
/// # Errors
/// When the folder is absent, not writable or full, or `path` is not a regular file; nothing is left behind.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    write_whole(path, Access::Everyone, contents).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        let absent = folder.path().join("absent").join("plan.toml");
        assert!(write_atomically(&absent, b"three").unwrap_err().is_bad_input());
        assert!(write_atomically(folder.path(), b"four").unwrap_err().is_bad_input());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
