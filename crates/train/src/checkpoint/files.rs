//! Files readable only by their owner: written atomically, and overwritten before removal.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek};
use std::path::Path;

use antinoise_input::files::{Access, failpoint, write_whole};
use antinoise_input::{InvalidParameter, hex};
use sha2::{Digest, Sha256};

use crate::Error;

const PORTION: usize = 1 << 16;

/// Writes `contents` to a file that only its owner can read, atomically: `path` holds the new contents or the
/// old. On return, file and name are on disk.
pub(super) fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    write_whole(path, Access::Owner, contents).map_err(Error::io(path))
}

/// Overwrites a regular file with zeros, then removes it; leaves links and folders alone.
///
/// Journals, snapshots, copy-on-write and flash memory may keep the old contents: see `docs/checkpoints.md`.
pub(super) fn wipe(path: &Path) -> Result<(), Error> {
    let wipe = || {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() {
            return Ok(());
        }
        failpoint();
        // A file that the user may not write may still be removable.
        if let Ok(mut file) = OpenOptions::new().write(true).open(path) {
            overwrite(&mut file, found.len())?;
        }
        failpoint();
        fs::remove_file(path)
    };
    match wipe() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done.map_err(Error::io(path)),
    }
}

fn overwrite(file: &mut File, length: u64) -> std::io::Result<()> {
    file.rewind()?;
    std::io::copy(&mut std::io::repeat(0).take(length), file)?;
    file.sync_all()
}

/// Wipes the files of `folder` whose names satisfy `leftover`.
pub(super) fn wipe_all(folder: &Path, leftover: impl Fn(&str) -> bool) -> Result<(), Error> {
    while let Some(name) = find(folder, &leftover)? {
        wipe(&folder.join(name))?;
    }
    Ok(())
}

/// The name of a regular file in `folder` that satisfies `is_sought`.
pub(super) fn find(folder: &Path, is_sought: impl Fn(&str) -> bool) -> Result<Option<String>, Error> {
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let entry = entry.map_err(Error::io(folder))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && let Some(name) = entry.file_name().to_str().filter(|name| is_sought(name)) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// SHA-256 of the file's contents, in hexadecimal.
pub(super) fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let (mut digest, mut portion) = (Sha256::new(), vec![0; PORTION]);
    loop {
        match file.read(&mut portion)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&portion[..count]),
        }
    }
}

/// The error for a checkpoint file that differs from the one its run committed.
pub(crate) fn mismatch(path: &Path, got: impl std::fmt::Display) -> Error {
    let folder = path.parent().unwrap_or(path).display();
    let must_be = format!(
        "what this run committed: put back the files of {folder} as they were, all from one copy; if they are lost, \
         train in another folder, and count the models that this run may have published"
    );
    InvalidParameter::new(format!("checkpoint {}", path.display()), got, must_be).into()
}
