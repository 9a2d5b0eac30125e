//! The seal of a release: a file next to the database, rewritten before each change of it.
//!
//! The seal holds the key of the database's digests, the tokens before and after the latest change, and the
//! home of both files. A process may be killed between writing the seal and committing the database: the
//! database then has one of the two tokens. A database with any other token is not the latest one.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use antinoise_input::files::{Access, NewFile};
use antinoise_input::hex;
use antinoise_noise::Key;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::store::copy_detection::Home;
use crate::store::folder::{Folder, check_owner_only};
use crate::{Error, Result};

/// A digest that identifies a state of the database.
pub(crate) type Token = [u8; 32];

/// The contents of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seal {
    /// The key, in hexadecimal digits like all digests here.
    key: String,
    tokens: Vec<String>,
    home: Home,
}

impl Seal {
    /// The seal of a new release, which [`Self::write`] writes.
    pub(crate) fn new(folder: &Folder) -> Result<Self> {
        let key = Key::from_os()?.expose(|key| hex(key));
        let database = open(&folder.database())?;
        let home = Home::of(&database, &database).map_err(Error::io(&folder.database()))?;
        Ok(Self { key, tokens: Vec::new(), home })
    }

    /// Reads the seal of the release in `folder`.
    ///
    /// # Errors
    /// If the file is absent, accessible to users other than its owner, or altered.
    pub(crate) fn read(folder: &Folder) -> Result<Self> {
        let path = folder.seal();
        let refused =
            |got: &str| Error::invalid(path.display().to_string(), got, "as the last change wrote it");
        match check_owner_only(&path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(refused("absent"));
            }
            checked => checked?,
        }
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let text = String::from_utf8(bytes).map_err(|_| refused("damaged"))?;
        let (check, body) = text.split_once('\n').ok_or_else(|| refused("damaged"))?;
        if check != digest_of(body) {
            return Err(refused("damaged"));
        }
        toml::from_str(body).map_err(|_| refused("damaged"))
    }

    /// Writes the seal for a change from the token `before` to `next`; it is on disk when this returns.
    pub(crate) fn write(&mut self, folder: &Folder, before: &Token, next: &Token) -> Result<()> {
        let path = folder.seal();
        let failed = Error::io(&path);
        let written = || -> std::io::Result<Self> {
            let mut file = NewFile::beside(&path, Access::Owner)?;
            let home = Home::of(&File::open(folder.database())?, file.file())?;
            let seal = Self { key: self.key.clone(), tokens: vec![hex(before), hex(next)], home };
            let body = toml::to_string(&seal).expect("a seal is words and numbers");
            file.write_all(format!("{}\n{body}", digest_of(&body)).as_bytes())?;
            file.commit()?;
            Ok(seal)
        };
        *self = written().map_err(failed)?;
        Ok(())
    }

    /// Whether a database with this token is the latest one.
    pub(crate) fn knows(&self, token: &Token) -> bool {
        self.tokens.contains(&hex(token))
    }

    /// How the home of these files differs from the home at the last change, or `None`.
    pub(crate) fn moved(&self, folder: &Folder) -> Result<Option<String>> {
        let now = Home::of(&open(&folder.database())?, &open(&folder.seal())?);
        Ok(self.home.difference(&now.map_err(Error::io(folder.path()))?))
    }

    /// The token after a link of the chain: HMAC-SHA256 of the previous token and the link.
    pub(crate) fn next(&self, before: &Token, part: &str, step: i64, digest: &[u8]) -> Token {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_bytes()).expect("any key does");
        mac.update(before);
        mac.update(&Sha256::digest(part.as_bytes()));
        mac.update(&step.to_le_bytes());
        mac.update(digest);
        mac.finalize().into_bytes().into()
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::io(path))
}

fn digest_of(body: &str) -> String {
    hex(&Sha256::digest(body.as_bytes()))
}
