//! Files and folders that only their owner may access.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io::{ErrorKind, Result};
use std::path::Path;

use crate::InvalidParameter;

/// Restricts files that are created with these options to their owner.
///
/// ```
/// use antinoise_input::files::owner;
/// let folder = tempfile::tempdir()?;
/// let mut options = std::fs::OpenOptions::new();
/// owner::owner_only(options.write(true).create_new(true)).open(folder.path().join("key"))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates `folder` and absent parent folders, accessible to their owner only.
///
/// # Errors
/// When it cannot be created.
pub fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates an empty file, if it does not exist.
///
/// # Errors
/// When it cannot be created.
pub fn make_if_absent(path: &Path) -> Result<()> {
    match owner_only(OpenOptions::new().write(true).create_new(true)).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a file at `path` whose metadata `found` allow other users than its owner to read or write it.
///
/// # Errors
/// Names its mode.
pub fn check(path: &Path, found: &Metadata) -> std::result::Result<(), InvalidParameter> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(found) & 0o7777;
        if mode & 0o077 != 0 {
            let name = format!("mode of {}", path.display());
            return Err(InvalidParameter::new(name, format!("{mode:04o}"), "0600, its owner's alone"));
        }
    }
    #[cfg(not(unix))]
    let _ = (path, found);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn what_is_made_is_its_owners_alone_and_what_is_not_is_refused() {
        use std::os::unix::fs::PermissionsExt;

        use super::*;
        let folder = tempfile::tempdir().unwrap();
        let (made, path) = (folder.path().join("a/b"), folder.path().join("a/b/file"));
        make_folder(&made).unwrap();
        make_if_absent(&path).unwrap();
        std::fs::write(&path, b"kept").unwrap();
        make_if_absent(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&made), mode(&path)), (0o700, 0o600));
        for (mode, refused) in [(0o600, false), (0o400, false), (0o640, true), (0o602, true), (0o1604, true)]
        {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let checked = check(&path, &std::fs::metadata(&path).unwrap());
            assert_eq!(checked.is_err(), refused, "{mode:o}: {checked:?}");
        }
        assert!(make_if_absent(&folder.path().join("absent/file")).is_err());
    }
}
