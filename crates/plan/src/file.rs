//! Files that are whole or absent.

use std::io::Write;
use std::path::Path;

use crate::{Error, Result};

/// Writes `contents` under a temporary name beside `path`, then renames: `path` holds all of it or what it held.
///
/// # Errors
/// When the folder is absent, not writable or full; nothing is left behind.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let write = || {
        let mut file = tempfile::Builder::new().permissions_of_new_files().tempfile_in(folder)?;
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(Error::io(path))
}

/// `tempfile` makes private files; what is written here is meant to be read, so it gets the permissions of
/// any new file.
trait PermissionsOfNewFiles {
    fn permissions_of_new_files(&mut self) -> &mut Self;
}

impl PermissionsOfNewFiles for tempfile::Builder<'_, '_> {
    #[cfg(unix)]
    fn permissions_of_new_files(&mut self) -> &mut Self {
        use std::os::unix::fs::PermissionsExt;
        // The umask is applied on creation.
        self.permissions(std::fs::Permissions::from_mode(0o666))
    }

    #[cfg(not(unix))]
    fn permissions_of_new_files(&mut self) -> &mut Self {
        self
    }
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
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
