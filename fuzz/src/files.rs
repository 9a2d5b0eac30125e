//! Files for their owner alone, in a folder of this process.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

/// The file of that name, which now holds `data`.
pub fn file(name: &str, data: &[u8]) -> PathBuf {
    let path = FOLDER.path().join(name);
    write(&path, data);
    path
}

/// A folder of that name.
pub fn folder(name: &str) -> PathBuf {
    let path = FOLDER.path().join(name);
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

/// Writes `data` to `path`, for its owner alone.
pub fn write(path: &Path, data: &[u8]) {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(data)).expect("a file is written");
}

/// A digest in hexadecimal digits, as all files here have them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
