use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;

use super::array::Array;
use super::header::{Header, refused};
use super::values::{Room, Values};
use crate::InvalidParameter;

/// Largest number of arrays of an archive.
const MAX_ARRAYS: usize = 1024;

/// An `.npz` archive. Arrays are read when they are asked for: together they may have 2^28 values, at 8 bytes
/// a value.
///
/// Errors name `archive`, or an array of it, and not the file.
pub struct Archive {
    members: ZipArchive<BufReader<File>>,
    names: Vec<String>,
    room: Room,
}

impl Archive {
    /// Opens the archive at `path`, without reading an array.
    ///
    /// # Errors
    /// When the file is not an archive, has more than 1024 arrays, or two of one name.
    pub fn open(path: &Path) -> Result<Self, InvalidParameter> {
        let unreadable =
            |error: &dyn std::fmt::Display| refused("archive", format!("not readable ({error})"));
        let missing = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => refused("archive", "absent"),
            _ => unreadable(&error),
        };
        // Checked before opening: a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(missing)?.is_file() {
            return Err(refused("archive", "no regular file"));
        }
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let members = ZipArchive::new(BufReader::new(file)).map_err(|error| unreadable(&error))?;
        if members.len() > MAX_ARRAYS {
            return Err(refused("archive", format!("of {} arrays, above {MAX_ARRAYS}", members.len())));
        }
        let name = |name: zip::result::ZipResult<std::borrow::Cow<'_, str>>| {
            let name = name.map_err(|error| unreadable(&error))?;
            Ok(name.strip_suffix(".npy").unwrap_or(&name).to_string())
        };
        let names = members.file_names().map(name).collect::<Result<Vec<_>, InvalidParameter>>()?;
        let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        if let Some((_, name)) = twice {
            return Err(refused("archive", format!("one with two arrays {name:?}")));
        }
        Ok(Self { members, names, room: Room::new() })
    }

    /// The names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    /// The array `name`, in double precision; `None` if there is none.
    ///
    /// # Errors
    /// When it is damaged, not of numbers, or too large together with those that were read before.
    pub fn array(&mut self, name: &str) -> Result<Option<Array>, InvalidParameter> {
        let values = self.values(name)?;
        values.map(|values| Array::of(&quoted(name), &values)).transpose()
    }

    /// The array `name`, in its own type; `None` if there is none.
    ///
    /// # Errors
    /// When it is damaged, of objects or structures, or too large together with those that were read before.
    pub fn values(&mut self, name: &str) -> Result<Option<Values>, InvalidParameter> {
        let Some(index) = self.names.iter().position(|known| known == name) else { return Ok(None) };
        let member = member(&mut self.members, index, name)?;
        Values::read(&quoted(name), member, &mut self.room).map(Some)
    }

    /// The shape of the array `name`, from its header alone; `None` if there is none.
    ///
    /// # Errors
    /// When the header cannot be read, or the array is of objects or structures.
    pub fn shape(&mut self, name: &str) -> Result<Option<Vec<usize>>, InvalidParameter> {
        let Some(index) = self.names.iter().position(|known| known == name) else { return Ok(None) };
        let mut member = member(&mut self.members, index, name)?;
        let header = Header::read(&mut member).map_err(|got| refused(&quoted(name), got))?;
        Ok(Some(header.shape))
    }
}

/// The compressed array at `index`.
fn member<'a>(
    members: &'a mut ZipArchive<BufReader<File>>,
    index: usize,
    name: &str,
) -> Result<impl std::io::Read + 'a, InvalidParameter> {
    members.by_index(index).map_err(|error| refused(&quoted(name), format!("not readable ({error})")))
}

/// An array's name in errors.
fn quoted(name: &str) -> String {
    format!("array {name:?}")
}
