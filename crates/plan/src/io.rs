//! Reading and writing plans as files; a file is written completely or not at all.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::files::{Access, write_whole};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::verified::check_version;
use crate::{Error, Plan, Result, VerifiedPlan};

/// Maximum size of a plan's file, above that of a dense strategy with the maximum number of steps.
const MAX_BYTES: u64 = 1 << 33;

impl Plan {
    /// The plan as TOML; numbers round-trip exactly.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only strings, numbers, lists and tables")
    }

    /// SHA-256 digest of the TOML, by which a checkpoint identifies its plan.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_toml().as_bytes()).into()
    }

    /// The plan in `text`, verified.
    ///
    /// # Errors
    /// When it is not a plan, or its claim does not follow from its numbers.
    pub fn from_toml(text: &str) -> Result<VerifiedPlan> {
        Self::read(text)?.verify()
    }

    /// The plan in `text`, not yet verified.
    fn read(text: &str) -> Result<Self> {
        /// The version, which is read before all other fields, since these depend on it.
        #[derive(Deserialize)]
        struct Header {
            version: u32,
        }
        if let Ok(Header { version }) = toml::from_str(text) {
            check_version(version)?;
        }
        let plan: Self = toml::from_str(text).map_err(|error| {
            InvalidParameter::new("plan", "text that cannot be read", format!("a plan in TOML: {error}"))
        })?;
        let (written, read) = (text.parse::<toml::Table>(), plan.to_toml().parse::<toml::Table>());
        if let (Ok(written), Ok(read)) = (written, read)
            && let Some(field) = unknown_field(&written, &read)
        {
            let field = field.replace('\n', " ");
            return Err(
                InvalidParameter::new("plan's field", field, "the name of a field that plans have").into()
            );
        }
        Ok(plan)
    }

    /// Reads and verifies the plan at `path`.
    ///
    /// # Errors
    /// As [`Plan::from_toml`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<VerifiedPlan> {
        Self::load_with(path, &|_, _| ())
    }

    /// As [`Plan::load`], with the progress of [`Plan::verify_with`].
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn load_with(path: &Path, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<VerifiedPlan> {
        let refused = |reason: String| Error::Format { path: path.to_path_buf(), reason };
        // Checked before the file is opened: opening a pipe would wait for its writer, and a device may have
        // no end.
        let found = std::fs::metadata(path).map_err(Error::io(path))?;
        if !found.is_file() {
            return Err(refused("it is not a regular file".into()));
        }
        if found.len() > MAX_BYTES {
            return Err(refused(format!("it has {} bytes, more than the limit of {MAX_BYTES}", found.len())));
        }
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
        Self::read(&text).and_then(|plan| plan.verify_with(progress)).map_err(|error| match error {
            Error::Invalid(error) => refused(error.to_string()),
            other => other,
        })
    }
}

impl VerifiedPlan {
    /// Writes the plan to `path`, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomically(path, self.to_toml().as_bytes())
    }
}

/// Returns a field of `written` that is not in `read` and would be ignored silently.
fn unknown_field(written: &toml::Table, read: &toml::Table) -> Option<String> {
    written.iter().find_map(|(name, value)| match (value, read.get(name)) {
        (_, None) => Some(name.clone()),
        (toml::Value::Table(written), Some(toml::Value::Table(read))) => unknown_field(written, read),
        _ => None,
    })
}

/// Writes `contents` to `path`, readable by all: whole or not at all.
///
/// # Errors
/// When the folder is absent, not writable or full, or `path` is not a regular file; nothing is left behind.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    write_whole(path, Access::Everyone, contents).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use antinoise_input::BadInput;

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
