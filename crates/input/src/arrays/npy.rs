//! Arrays in the files of NumPy: `.npy`, and archives of them in `.npz`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use super::array::{Array, MAX_VALUES, by_rows};
use crate::InvalidParameter;

/// Largest number of arrays of an archive.
const MAX_ARRAYS: usize = 1024;
/// Largest length of a header, in bytes.
const MAX_HEADER: usize = 1 << 20;

impl Array {
    /// Reads a `.npy` file; `name` is the array's name in errors.
    ///
    /// # Errors
    /// When the bytes are not an array of numbers, are too few or too many for the array's shape, or the
    /// array has more than 10^8 values.
    pub fn from_npy(name: &str, mut bytes: impl Read) -> Result<Self, InvalidParameter> {
        let refused = |got: String| refused(name, got);
        let header = header(&mut bytes).map_err(refused)?;
        let width = header.number.width() as u64;
        let count = header.shape.iter().try_fold(1u64, |all, &length| all.checked_mul(length as u64));
        let Some(count) = count.filter(|&count| count <= MAX_VALUES) else {
            return Err(refused(format!("of shape {:?}, above {MAX_VALUES} values", header.shape)));
        };
        let mut data = Vec::new();
        // One byte more than the values have, so that a longer file is noticed.
        bytes
            .take(count * width + 1)
            .read_to_end(&mut data)
            .map_err(|error| refused(format!("not readable: {error}")))?;
        if data.len() as u64 != count * width {
            let than = if (data.len() as u64) < count * width { "fewer" } else { "more" };
            return Err(refused(format!("{than} than {} bytes of values", count * width)));
        }
        let values: Vec<f64> = data.chunks_exact(width as usize).map(|x| header.number.read(x)).collect();
        let values = if header.by_columns { by_rows(&header.shape, &values) } else { values };
        Ok(Self { shape: header.shape, values })
    }

    /// Reads the `.npz` archive at `path`: each array by its name.
    ///
    /// # Errors
    /// As [`Array::from_npy`], and when the file is not an archive, has more than 1024 members, or two of one
    /// name.
    pub fn from_npz(path: &Path) -> Result<BTreeMap<String, Self>, InvalidParameter> {
        let file = path.display().to_string();
        let refused = |got: String| refused(&file, got);
        let opened = File::open(path).map_err(|error| refused(format!("not readable: {error}")))?;
        let mut archive = ZipArchive::new(BufReader::new(opened))
            .map_err(|error| refused(format!("no archive: {error}")))?;
        if archive.len() > MAX_ARRAYS {
            return Err(refused(format!("an archive of {} members", archive.len())));
        }
        let mut arrays = BTreeMap::new();
        for index in 0..archive.len() {
            let member = archive.by_index(index).map_err(|error| {
                refused(format!("an archive whose member {index} is not readable: {error}"))
            })?;
            let name = member.name().map_err(|error| refused(format!("an archive: {error}")))?;
            let name = name.strip_suffix(".npy").unwrap_or(&name).to_string();
            let array = Self::from_npy(&format!("array {name} of {file}"), member)?;
            if arrays.insert(name.clone(), array).is_some() {
                return Err(refused(format!("an archive with two arrays {name}")));
            }
        }
        Ok(arrays)
    }
}

fn refused(name: &str, got: String) -> InvalidParameter {
    let must_be = "an array of real numbers as NumPy's save and savez write it, of at most 100000000 values";
    InvalidParameter::new(name, got, must_be)
}

struct Header {
    number: Number,
    by_columns: bool,
    shape: Vec<usize>,
}

/// A number's type in NumPy's letters, and the order of its bytes.
struct Number {
    kind: String,
    is_big_endian: bool,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let (order, kind) = text.split_at_checked(1)?;
        let known = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"].contains(&kind);
        (known && ["<", ">", "|"].contains(&order))
            .then(|| Self { kind: kind.into(), is_big_endian: order == ">" })
    }

    fn width(&self) -> usize {
        match self.kind.as_bytes()[1] {
            b'8' => 8,
            b'4' => 4,
            b'2' => 2,
            _ => 1,
        }
    }

    fn read(&self, bytes: &[u8]) -> f64 {
        let mut little = [0; 8];
        little[..bytes.len()].copy_from_slice(bytes);
        if self.is_big_endian {
            little[..bytes.len()].reverse();
        }
        let whole = u64::from_le_bytes(little);
        // The sign bit of a shorter whole number, moved to the top and back.
        let shift = 64 - 8 * bytes.len() as u32;
        match self.kind.as_str() {
            "f8" => f64::from_bits(whole),
            "f4" => f64::from(f32::from_bits(whole as u32)),
            kind if kind.starts_with('i') => (((whole << shift) as i64) >> shift) as f64,
            _ => whole as f64,
        }
    }
}

/// Reads the magic string, the version and the header: a dictionary of Python with three fields.
fn header(bytes: &mut impl Read) -> Result<Header, String> {
    let mut start = [0; 8];
    bytes.read_exact(&mut start).map_err(|_| "shorter than a header".to_string())?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err("no array of NumPy".into());
    }
    let mut length = [0; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    bytes.read_exact(&mut length[..width]).map_err(|_| "shorter than a header".to_string())?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=3).contains(&start[6]) || length > MAX_HEADER {
        return Err(format!("of version {} with a header of {length} bytes", start[6]));
    }
    let mut text = vec![0; length];
    bytes.read_exact(&mut text).map_err(|_| "shorter than its header".to_string())?;
    let text = String::from_utf8_lossy(&text);
    fields(&text).ok_or_else(|| format!("an array with the header {:?}", text.trim()))
}

fn fields(text: &str) -> Option<Header> {
    let after = |field: &str| Some(text.split_once(&format!("'{field}':"))?.1.trim_start());
    let quoted = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
    let order = after("fortran_order")?;
    let by_columns = order.starts_with("True");
    let lengths = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let lengths = lengths.split(',').map(str::trim).filter(|length| !length.is_empty());
    let shape = lengths.map(|length| length.parse().ok()).collect::<Option<Vec<usize>>>()?;
    let known = by_columns || order.starts_with("False");
    known.then_some(Header { number: Number::parse(quoted)?, by_columns, shape })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        [&file, text.as_bytes(), data].concat()
    }

    fn read(file: &[u8]) -> Result<Array, InvalidParameter> {
        Array::from_npy("C", file)
    }

    #[test]
    fn every_type_of_number_is_read_in_both_orders_of_bytes() {
        let cases: [(&str, &[u8], f64); 12] = [
            ("<f8", &(-0.1f64).to_le_bytes(), -0.1),
            (">f8", &(-0.1f64).to_be_bytes(), -0.1),
            ("<f4", &0.1f32.to_le_bytes(), f64::from(0.1f32)),
            (">f4", &0.1f32.to_be_bytes(), f64::from(0.1f32)),
            ("<i8", &(-3i64).to_le_bytes(), -3.0),
            (">i4", &(-3i32).to_be_bytes(), -3.0),
            ("<i2", &(-300i16).to_le_bytes(), -300.0),
            ("|i1", &[0xff], -1.0),
            ("|u1", &[0xff], 255.0),
            (">u2", &[1, 0], 256.0),
            ("<u8", &7u64.to_le_bytes(), 7.0),
            ("|b1", &[1], 1.0),
        ];
        for (descr, data, value) in cases {
            let array = read(&npy(descr, "False", "(1,)", data)).unwrap();
            assert_eq!((array.shape, array.values), (vec![1], vec![value]), "{descr}");
        }
        assert_eq!(read(&npy("|u1", "False", "()", &[9])).unwrap().values, [9.0]);
        assert_eq!(read(&npy("|u1", "True", "(0, 3)", &[])).unwrap().shape, [0, 3]);
    }

    #[test]
    fn the_order_of_columns_is_turned_into_that_of_rows() {
        let by_columns = read(&npy("|u1", "True", "(2, 3, 2)", &[0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]));
        assert_eq!(by_columns.unwrap().values, (0..12).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn cut_long_and_foreign_files_are_refused_with_their_name() {
        let whole = npy("<f8", "False", "(2, 2)", &[0; 32]);
        assert!(read(&whole).is_ok());
        let mut refused: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        refused.push([&whole[..], &[0]].concat());
        refused.push(b"PK\x03\x04 an archive or anything else".to_vec());
        refused.push(npy("|O", "False", "(1,)", b"\x80\x04K\x01."));
        refused.push(npy("<c16", "False", "(1,)", &[0; 16]));
        refused.push(npy("<f8", "False", "(100000, 100000)", &[0; 32]));
        refused.push(npy("<f8", "False", "(18446744073709551615, 2)", &[0; 32]));
        refused.push(npy("<f8", "False", "(-1, 2)", &[0; 32]));
        refused.push(npy("<f8", "maybe", "(2, 2)", &[0; 32]));
        for file in refused {
            let error = read(&file).unwrap_err().to_string();
            assert!(error.starts_with("C is "), "{error}");
        }
    }

    #[test]
    fn an_archive_is_read_by_names_stored_or_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("factors.npz");
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        for (name, method) in
            [("C.npy", zip::CompressionMethod::Stored), ("B.npy", zip::CompressionMethod::Deflated)]
        {
            archive.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
            archive.write_all(&npy("|u1", "False", "(1, 2)", &[3, name.as_bytes()[0]])).unwrap();
        }
        archive.finish().unwrap();
        let arrays = Array::from_npz(&path).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["B", "C"]);
        assert_eq!(arrays["C"].values, [3.0, f64::from(b'C')]);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Array::from_npz(&path).unwrap_err().to_string();
            assert!(error.contains("factors.npz"), "{error}");
        }
    }
}
