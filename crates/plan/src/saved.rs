//! Plans as files.

use std::path::Path;

use antinoise_input::InvalidParameter;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::verify::check_version;
use crate::{Error, Plan, Result, VerifiedPlan, write_atomically};

/// A dense strategy of as many steps as there may be takes less.
const MOST_BYTES: u64 = 1 << 33;

impl Plan {
    /// The plan as TOML, every number to its last digit.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only strings, numbers, lists and tables")
    }

    /// SHA-256 of the TOML: what a checkpoint holds to know its plan again.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_toml().as_bytes()).into()
    }

    /// The plan in `text`, verified.
    ///
    /// # Errors
    /// When it is not a plan, or its claim does not follow from its numbers.
    pub fn from_toml(text: &str) -> Result<VerifiedPlan> {
        /// What is read first: another version has other fields.
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
            return Err(InvalidParameter::new("plan's field", field, "one that plans have").into());
        }
        plan.verify()
    }

    /// Reads and verifies the plan at `path`.
    ///
    /// # Errors
    /// As [`Plan::from_toml`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<VerifiedPlan> {
        let refused = |reason: String| Error::Format { path: path.to_path_buf(), reason };
        // Before it is opened: a pipe would wait for its writer, a device never end.
        let found = std::fs::metadata(path).map_err(Error::io(path))?;
        if !found.is_file() {
            return Err(refused("it is no regular file".into()));
        }
        if found.len() > MOST_BYTES {
            return Err(refused(format!("it has {} bytes, and plans at most {MOST_BYTES}", found.len())));
        }
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
        Self::from_toml(&text).map_err(|error| match error {
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

/// A field of `written` that `read` has not: it would be dropped, whatever its writer meant by it.
fn unknown_field(written: &toml::Table, read: &toml::Table) -> Option<String> {
    written.iter().find_map(|(name, value)| match (value, read.get(name)) {
        (_, None) => Some(name.clone()),
        (toml::Value::Table(written), Some(toml::Value::Table(read))) => unknown_field(written, read),
        _ => None,
    })
}
