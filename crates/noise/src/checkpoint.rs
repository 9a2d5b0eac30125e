//! Checkpoints: a safetensors file whose last tensor is the SHA-256 of every byte before it.
//!
//! Tensors `key` (the run's, 32 bytes), `past` and `rows` (the vectors and the rows made ahead that are kept, tile by
//! tile) and `zz-checksum`; the metadata hold the version, the run, a digest of the stream's description and shard, the
//! placement, the step, the step that all tiles were last brought to, and the commitment that ties all of it to the key
//! and to the caller's context.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use antinoise_input::file::{Access, NewFile};
use antinoise_input::hex;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::builder::StreamBuilder;
use crate::correlator::Step;
use crate::run::{RunKey, describe};
use crate::stream::Core;
use crate::{Key, NoiseError, Shard};

/// Raised whenever the same key would make other noise.
const VERSION: &str = "antinoise-noise 4";
/// Longer headers are not ours.
const LONGEST_HEADER: u64 = 1 << 20;
const PORTION: usize = 1 << 16;

/// A number that a file can hold.
pub(crate) trait Stored: Copy + Default + Send + Sync + Zeroize + 'static {
    /// The type's name.
    const DTYPE: Dtype;

    /// Appends its bytes, little-endian.
    fn append_to(self, bytes: &mut Vec<u8>);

    /// The number of these bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! stored {
    ($($number:ty: $name:ident),*) => {$(
        impl Stored for $number {
            const DTYPE: Dtype = Dtype::$name;

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(std::array::from_fn(|i| bytes[i]))
            }
        }
    )*};
}

stored!(f32: F32, f64: F64, i32: I32);

/// The metadata of `stream`'s checkpoint.
fn metadata<T: Step>(stream: &Core<T>) -> HashMap<String, String> {
    let (plan, _, engine) = stream.parts();
    [
        ("version", VERSION.to_owned()),
        ("run", stream.run().to_string()),
        ("stream", fingerprint(stream.description(), &plan.shard)),
        ("commitment", hex(&stream.commitment())),
        ("placement", engine.placement().to_string()),
        ("step", stream.step().to_string()),
        ("start", engine.turns().start().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A digest of everything that a part of a stream is a function of, apart from key and run.
fn fingerprint(description: [u8; 32], shard: &Shard) -> String {
    hex(&Sha256::new().chain_update(description).chain_update(shard.describe()).finalize())
}

/// The header of a file with these metadata and so many numbers of the past and in rows: its length, then JSON.
fn header<T: Step>(
    metadata: HashMap<String, String>,
    (past, rows): (usize, usize),
) -> Result<Vec<u8>, String> {
    let tensor = |dtype, shape: usize, from: usize, to: usize| TensorInfo {
        dtype,
        shape: vec![shape],
        data_offsets: (from, to),
    };
    let rows_at = 32 + size_of::<T>() * past;
    let end = rows_at + size_of::<T::Row>() * rows;
    let tensors = vec![
        ("key".to_owned(), tensor(Dtype::U8, 32, 0, 32)),
        ("past".to_owned(), tensor(T::DTYPE, past, 32, rows_at)),
        ("rows".to_owned(), tensor(T::Row::DTYPE, rows, rows_at, end)),
        ("zz-checksum".to_owned(), tensor(Dtype::U8, 32, end, end + 32)),
    ];
    // A sorted map, so that equal streams write equal files.
    let metadata: std::collections::BTreeMap<_, _> = metadata.into_iter().collect();
    let checked = Metadata::new(None, tensors).map_err(|e| e.to_string())?;
    let mut json = serde_json::to_value(&checked).map_err(|e| e.to_string())?;
    json["__metadata__"] = serde_json::to_value(metadata).map_err(|e| e.to_string())?;
    let mut text = json.to_string().into_bytes();
    // Aligns the numbers, as the format recommends.
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    Ok(bytes)
}

pub(crate) fn write<T: Step>(path: &Path, stream: &Core<T>) -> Result<(), NoiseError> {
    let (_, key, engine) = stream.parts();
    let (past, rows) = engine.memory();
    let header = header::<T>(metadata(stream), (past.len(), rows.len()))
        .map_err(|e| NoiseError::checkpoint(path, e))?;
    let body = || -> std::io::Result<()> {
        // Without a buffer of its own: what passes through memory here is secret.
        let inner = NewFile::beside(path, Access::Owner)?;
        let mut out = Hashed { inner, digest: Sha256::new() };
        out.write(&header)?;
        out.write(key.bytes())?;
        out.write_numbers(past)?;
        out.write_numbers(rows)?;
        let checksum = out.digest.finalize();
        out.inner.write_all(&checksum)?;
        out.inner.keep()
    };
    body().map_err(|e| NoiseError::io(path, e))
}

pub(crate) fn read<T: Step>(path: &Path, builder: StreamBuilder) -> Result<Core<T>, NoiseError> {
    let file = File::open(path).map_err(|e| NoiseError::io(path, e))?;
    let length = file.metadata().map_err(|e| NoiseError::io(path, e))?.len();
    let mut input = Hashed { inner: file, digest: Sha256::new() };
    let refuse = |reason: String| NoiseError::checkpoint(path, reason);
    let found = read_header::<T>(&mut input, length).map_err(refuse)?;
    let (plan, run) = builder.parts();
    if found.run != run.as_str() {
        return Err(refuse(format!("it is of run {:?}, not {:?}", found.run, run.as_str())));
    }
    if found.fingerprint != fingerprint(describe(plan), &plan.shard) {
        return Err(refuse(
            "it was written for another recursion, size, noise, grid, shard or cipher".into(),
        ));
    }
    let steps = plan.steps;
    if found.step > steps || found.start > found.step {
        return Err(refuse(format!("step {} from {} lies outside 0..={steps}", found.step, found.start)));
    }
    let key = Key::from_reader(|bytes| input.read(bytes)).map_err(|e| NoiseError::io(path, e))?;
    let mut stream = builder.core_of(RunKey::restored(key))?;
    if stream.placement().to_string() == found.placement {
        let (past, rows) = stream.restore(found.start, found.step);
        if (past.len(), rows.len()) != found.numbers {
            let wanted = (past.len(), rows.len());
            return Err(refuse(format!("{:?} numbers of past and rows, not {wanted:?}", found.numbers)));
        }
        let mut read = || {
            read_numbers(&mut input, past.len(), |at, x| past[at] = x)?;
            read_numbers(&mut input, rows.len(), |at, x| rows[at] = x)
        };
        read().map_err(|e| NoiseError::io(path, e))?;
        check_end(&mut input).map_err(refuse)?;
    } else {
        // Another budget keeps other vectors: these are made again from the key.
        let mut skip = || {
            read_numbers(&mut input, found.numbers.0, |_, _: T| ())?;
            read_numbers(&mut input, found.numbers.1, |_, _: T::Row| ())
        };
        skip().map_err(|e| NoiseError::io(path, e))?;
        check_end(&mut input).map_err(refuse)?;
        stream.seek(found.step)?;
    }
    if hex(&stream.commitment()) != found.commitment {
        return Err(refuse("it was written in another context: for another plan, data set or model".into()));
    }
    Ok(stream)
}

/// What a header says.
struct Found {
    run: String,
    fingerprint: String,
    commitment: String,
    placement: String,
    start: usize,
    step: usize,
    /// Of the past and in rows.
    numbers: (usize, usize),
}

fn read_header<T: Step>(input: &mut Hashed<File>, length: u64) -> Result<Found, String> {
    let mut size = [0; 8];
    input.read(&mut size).map_err(|e| format!("too short: {e}"))?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST_HEADER || size + 8 > length {
        return Err("no header".into());
    }
    let mut text = vec![0; size as usize];
    input.read(&mut text).map_err(|e| format!("too short: {e}"))?;
    let header: Metadata = serde_json::from_slice(&text).map_err(|e| format!("its header: {e}"))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let field = |name: &str| metadata.get(name).cloned().ok_or(format!("no {name}"));
    let number = |name: &str| field(name)?.parse::<usize>().map_err(|e| format!("{name}: {e}"));
    let version = field("version")?;
    if version != VERSION {
        return Err(format!("its version is {version:?}, not {VERSION:?}"));
    }
    let body = length - 8 - size;
    let count = |name: &str| match header.info(name).map(|info| &info.shape[..]) {
        Some(&[count]) => Ok(count),
        _ => Err(format!("no {name}")),
    };
    let numbers = (count("past")?, count("rows")?);
    let bytes = |count: usize, size: usize| (count as u64).checked_mul(size as u64);
    let said = bytes(numbers.0, size_of::<T>())
        .and_then(|past| past.checked_add(bytes(numbers.1, size_of::<T::Row>())?)?.checked_add(64));
    if said != Some(body) {
        return Err(format!("{body} bytes after its header are not what it says: it was cut or added to"));
    }
    Ok(Found {
        run: field("run")?,
        fingerprint: field("stream")?,
        commitment: field("commitment")?,
        placement: field("placement")?,
        start: number("start")?,
        step: number("step")?,
        numbers,
    })
}

fn read_numbers<T: Stored>(
    input: &mut Hashed<File>,
    numbers: usize,
    mut put: impl FnMut(usize, T),
) -> std::io::Result<()> {
    let size = size_of::<T>();
    let mut portion = Zeroizing::new(vec![0; PORTION]);
    for first in (0..numbers).step_by(PORTION / size) {
        let count = (numbers - first).min(PORTION / size);
        input.read(&mut portion[..size * count])?;
        for (i, bytes) in portion[..size * count].chunks_exact(size).enumerate() {
            put(first + i, T::from_bytes(bytes));
        }
    }
    Ok(())
}

fn check_end(input: &mut Hashed<File>) -> Result<(), String> {
    let expected = std::mem::take(&mut input.digest).finalize();
    let mut checksum = [0; 32];
    input.inner.read_exact(&mut checksum).map_err(|e| e.to_string())?;
    if checksum[..] == expected[..] {
        Ok(())
    } else {
        Err("its checksum does not match: it was altered".into())
    }
}

/// A file that is hashed as it is read or written.
struct Hashed<F> {
    inner: F,
    digest: Sha256,
}

impl<F: Write> Hashed<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.digest.update(bytes);
        self.inner.write_all(bytes)
    }

    fn write_numbers<T: Stored>(&mut self, numbers: &[T]) -> std::io::Result<()> {
        let mut portion = Zeroizing::new(Vec::with_capacity(PORTION));
        for numbers in numbers.chunks(PORTION / size_of::<T>()) {
            portion.clear();
            numbers.iter().for_each(|x| x.append_to(&mut portion));
            self.write(&portion)?;
        }
        Ok(())
    }
}

impl<F: Read> Hashed<F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }
}
