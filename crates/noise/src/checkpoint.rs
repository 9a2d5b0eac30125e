//! Checkpoints: a safetensors file whose last tensor is the SHA-256 of every byte before it.
//!
//! Tensors: `key` (the run's, 32 bytes), `past` (the stored past vectors, tile by tile), `rows` (the stored
//! rows made ahead, tile by tile) and `zz-checksum`. The metadata hold the version and a [`Label`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use antinoise_input::files::{Access, NewFile};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::key::BYTES;
use crate::number::Number;
use crate::past::Past;
use crate::{Error, Key, Result};

/// The version of checkpoints. A change that makes the same key give different noise must increase it.
const VERSION: &str = "antinoise-noise 4";
/// Maximum length of a header, in bytes; files with longer headers are refused.
const LONGEST_HEADER: u64 = 1 << 20;
const PORTION: usize = 1 << 16;

/// The metadata of a checkpoint.
pub(crate) struct Label {
    pub(crate) run: String,
    /// A digest of the stream's description and shard.
    pub(crate) stream: String,
    /// The commitment to run key, description, the caller's context and step.
    pub(crate) commitment: String,
    pub(crate) placement: String,
    /// The step that comes next.
    pub(crate) step: usize,
    /// The step up to which the noise of every tile was made at the last alignment.
    pub(crate) start: usize,
}

/// A stream's state: its label, the run's key, the stored past and the stored rows made ahead.
pub(crate) struct Snapshot<'a, T, R> {
    pub(crate) label: Label,
    pub(crate) key: &'a [u8; BYTES],
    pub(crate) past: Past<'a, T>,
    pub(crate) rows: &'a [R],
}

impl<T: Number, R: Number> Snapshot<'_, T, R> {
    /// Writes the checkpoint to a file that only its owner can read.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let header = self.header().map_err(|e| Error::checkpoint(path, e))?;
        let body = || -> std::io::Result<()> {
            // Unbuffered: bytes written here are secret, and a buffer would keep a copy.
            let inner = NewFile::beside(path, Access::Owner)?;
            let mut out = Hashed { inner, digest: Sha256::new() };
            out.write(&header)?;
            out.write(self.key)?;
            for (written, unwritten) in self.past.pieces() {
                out.write_numbers(written)?;
                out.write_zeros(unwritten * size_of::<T>())?;
            }
            out.write_numbers(self.rows)?;
            let checksum = out.digest.finalize();
            out.inner.write_all(&checksum)?;
            out.inner.commit()
        };
        body().map_err(|e| Error::io(path, e))
    }

    /// Returns the length of the header, followed by the header as JSON.
    fn header(&self) -> std::result::Result<Vec<u8>, String> {
        let tensor = |dtype, shape: usize, from: usize, to: usize| TensorInfo {
            dtype,
            shape: vec![shape],
            data_offsets: (from, to),
        };
        let rows_at = BYTES + size_of_val(self.past.numbers);
        let end = rows_at + size_of_val(self.rows);
        let tensors = vec![
            ("key".to_owned(), tensor(Dtype::U8, BYTES, 0, BYTES)),
            ("past".to_owned(), tensor(T::DTYPE, self.past.numbers.len(), BYTES, rows_at)),
            ("rows".to_owned(), tensor(R::DTYPE, self.rows.len(), rows_at, end)),
            ("zz-checksum".to_owned(), tensor(Dtype::U8, 32, end, end + 32)),
        ];
        let (step, start) = (self.label.step.to_string(), self.label.start.to_string());
        // Sorted, so that equal streams write equal files.
        let metadata = BTreeMap::from([
            ("version", VERSION),
            ("run", &self.label.run),
            ("stream", &self.label.stream),
            ("commitment", &self.label.commitment),
            ("placement", &self.label.placement),
            ("step", &step),
            ("start", &start),
        ]);
        let checked = Metadata::new(None, tensors).map_err(|e| e.to_string())?;
        let mut json = serde_json::to_value(&checked).map_err(|e| e.to_string())?;
        json["__metadata__"] = serde_json::to_value(metadata).map_err(|e| e.to_string())?;
        let mut text = json.to_string().into_bytes();
        // Padding that aligns the numbers, as the format recommends.
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.append(&mut text);
        Ok(bytes)
    }
}

/// A checkpoint while it is read: first its label, then the key, then the numbers.
pub(crate) struct Reader<'a> {
    path: &'a Path,
    input: Hashed<File>,
    pub(crate) label: Label,
    /// Lengths of `past` and `rows`.
    numbers: (usize, usize),
}

impl<'a> Reader<'a> {
    /// Reads the header of the file.
    pub(crate) fn open<T: Number, R: Number>(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let mut input = Hashed { inner: file, digest: Sha256::new() };
        let (label, numbers) =
            read_header::<T, R>(&mut input, length).map_err(|e| Error::checkpoint(path, e))?;
        Ok(Self { path, input, label, numbers })
    }

    /// Returns the error that refuses this checkpoint for `reason`.
    pub(crate) fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::checkpoint(self.path, reason)
    }

    /// Reads the key, the first tensor.
    pub(crate) fn key(&mut self) -> Result<Key> {
        Key::from_reader(|bytes| self.input.read(bytes)).map_err(|e| Error::io(self.path, e))
    }

    /// Reads the numbers, which follow the key, into `past` and `rows`, and verifies the checksum.
    pub(crate) fn read<T: Number, R: Number>(mut self, past: &mut [T], rows: &mut [R]) -> Result<()> {
        let wanted = (past.len(), rows.len());
        if wanted != self.numbers {
            return Err(
                self.refuse(format!("it has {:?} numbers of (past, rows), not {wanted:?}", self.numbers))
            );
        }
        self.each_number(|at, x| past[at] = x, |at, x| rows[at] = x)
    }

    /// Reads numbers that are not needed, and verifies the checksum.
    pub(crate) fn skip<T: Number, R: Number>(mut self) -> Result<()> {
        self.each_number(|_, _: T| (), |_, _: R| ())
    }

    fn each_number<T: Number, R: Number>(
        &mut self,
        mut past: impl FnMut(usize, T),
        mut rows: impl FnMut(usize, R),
    ) -> Result<()> {
        let numbers = self.numbers;
        let mut can_be_state = true;
        let mut read = || {
            self.input.read_numbers(numbers.0, |at, x: T| {
                can_be_state &= x.can_be_state();
                past(at, x);
            })?;
            self.input.read_numbers(numbers.1, |at, x: R| {
                can_be_state &= x.can_be_state();
                rows(at, x);
            })
        };
        read().map_err(|e| Error::io(self.path, e))?;
        let expected = std::mem::take(&mut self.input.digest).finalize();
        let mut checksum = [0; 32];
        self.input.inner.read_exact(&mut checksum).map_err(|e| self.refuse(e.to_string()))?;
        if checksum[..] != expected[..] {
            return Err(self.refuse("its checksum does not match: it was altered"));
        }
        match can_be_state {
            true => Ok(()),
            false => Err(self.refuse("it holds a number that no stream makes: it was altered")),
        }
    }
}

/// Parses the header; returns the label and the lengths of `past` and `rows`.
fn read_header<T: Number, R: Number>(
    input: &mut Hashed<File>,
    length: u64,
) -> std::result::Result<(Label, (usize, usize)), String> {
    let mut size = [0; 8];
    input.read(&mut size).map_err(|e| format!("it is too short: {e}"))?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST_HEADER || size + 8 > length {
        return Err("it has no header".into());
    }
    let mut text = vec![0; size as usize];
    input.read(&mut text).map_err(|e| format!("it is too short: {e}"))?;
    let header: Metadata =
        serde_json::from_slice(&text).map_err(|e| format!("its header cannot be read: {e}"))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let field = |name: &str| metadata.get(name).cloned().ok_or(format!("its header has no {name}"));
    let number =
        |name: &str| field(name)?.parse::<usize>().map_err(|e| format!("its {name} cannot be read: {e}"));
    let version = field("version")?;
    if version != VERSION {
        return Err(format!("its version is {version:?}, not {VERSION:?}"));
    }
    let body = length - 8 - size;
    let count = |name: &str| match header.info(name).map(|info| &info.shape[..]) {
        Some(&[count]) => Ok(count),
        _ => Err(format!("it has no list {name:?}")),
    };
    let numbers = (count("past")?, count("rows")?);
    let bytes = |count: usize, size: usize| (count as u64).checked_mul(size as u64);
    let said = bytes(numbers.0, size_of::<T>())
        .and_then(|past| past.checked_add(bytes(numbers.1, size_of::<R>())?)?.checked_add(64));
    if said != Some(body) {
        return Err(format!(
            "{body} bytes follow its header, which states another number: it was truncated or extended"
        ));
    }
    let label = Label {
        run: field("run")?,
        stream: field("stream")?,
        commitment: field("commitment")?,
        placement: field("placement")?,
        step: number("step")?,
        start: number("start")?,
    };
    Ok((label, numbers))
}

/// A file, with the digest of all bytes that were read from it or written to it.
struct Hashed<F> {
    inner: F,
    digest: Sha256,
}

impl<F: Write> Hashed<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.digest.update(bytes);
        self.inner.write_all(bytes)
    }

    fn write_numbers<T: Number>(&mut self, numbers: &[T]) -> std::io::Result<()> {
        let mut portion = Zeroizing::new(Vec::with_capacity(PORTION));
        for numbers in numbers.chunks(PORTION / size_of::<T>()) {
            portion.clear();
            numbers.iter().for_each(|x| x.append_to(&mut portion));
            self.write(&portion)?;
        }
        Ok(())
    }

    fn write_zeros(&mut self, bytes: usize) -> std::io::Result<()> {
        (0..bytes)
            .step_by(PORTION)
            .try_for_each(|done| self.write(&[0; PORTION][..PORTION.min(bytes - done)]))
    }
}

impl<F: Read> Hashed<F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }

    fn read_numbers<T: Number>(
        &mut self,
        count: usize,
        mut put: impl FnMut(usize, T),
    ) -> std::io::Result<()> {
        let size = size_of::<T>();
        let mut portion = Zeroizing::new(vec![0; PORTION]);
        for first in (0..count).step_by(PORTION / size) {
            let count = (count - first).min(PORTION / size);
            self.read(&mut portion[..size * count])?;
            for (i, bytes) in portion[..size * count].chunks_exact(size).enumerate() {
                put(first + i, T::from_bytes(bytes));
            }
        }
        Ok(())
    }
}
