//! MNIST's file format: a magic number, the dimensions, then one byte per number; all big-endian.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::examples::{Dataset, Examples, ImageShape, numbered_classes};
use super::file::{bad, open};
use crate::Error;

const IMAGES_MAGIC: u32 = 0x0803; // unsigned bytes, three dimensions
const LABELS_MAGIC: u32 = 0x0801; // unsigned bytes, one dimension
const WHITE: f32 = 255.0;

/// Reads grey images in MNIST's format from a folder: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
/// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each plain or gzipped (with or without `.gz`).
///
/// Features are bytes / 255, in \[0, 1\]; classes run from 0 to the largest training label.
///
/// ```
/// use antinoise_input::BadInput;
/// let error = antinoise_train::data::idx("no-such-folder".as_ref()).unwrap_err();
/// assert!(error.is_bad_input() && error.to_string().contains("no-such-folder"));
/// ```
///
/// # Errors
/// If a file is absent, unreadable, has the wrong magic number, or is shorter or longer than its header says;
/// if the numbers of images and labels differ, test images have another size than training images, or a test
/// label occurs on no training image.
pub fn idx(folder: &Path) -> Result<Dataset, Error> {
    let (shape, train) = labelled_images(folder, "train")?;
    let (test_shape, test) = labelled_images(folder, "t10k")?;
    let size = |shape: ImageShape| format!("{}x{}", shape.height, shape.width);
    if test_shape != shape {
        return Err(bad(&folder.join("t10k-images-idx3-ubyte"), size(test_shape), size(shape)));
    }
    let classes = train.labels().iter().max().map_or(0, |&label| label as usize + 1);
    if classes < 2 {
        let got = format!("{classes} classes");
        return Err(bad(&folder.join("train-labels-idx1-ubyte"), got, "at least 2 classes"));
    }
    if let Some(label) = test.labels().iter().find(|&&label| label as usize >= classes) {
        let got = format!("label {label}");
        let must_be = format!("labels below {classes}, as in training");
        return Err(bad(&folder.join("t10k-labels-idx1-ubyte"), got, must_be));
    }
    let name = folder.file_name().map_or_else(|| "idx".into(), |name| name.to_string_lossy().into_owned());
    Ok(Dataset { name, shape, classes, class_names: numbered_classes(classes), train, users: None, test })
}

/// The test images of such a folder (`t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`), and their shape.
///
/// # Errors
/// As [`idx`], of these two files.
pub fn idx_test(folder: &Path) -> Result<(ImageShape, Examples), Error> {
    labelled_images(folder, "t10k")
}

fn labelled_images(folder: &Path, part: &str) -> Result<(ImageShape, Examples), Error> {
    let path = present(folder, &format!("{part}-images-idx3-ubyte"))?;
    let ([_, height, width], pixels) = read(&path, IMAGES_MAGIC)?;
    let labels_path = present(folder, &format!("{part}-labels-idx1-ubyte"))?;
    let ([count], labels) = read(&labels_path, LABELS_MAGIC)?;
    let shape = ImageShape { height, width, channels: 1 };
    if pixels.len() != count * shape.len() {
        let must_be = format!("{} labels, one an image", pixels.len() / shape.len());
        return Err(bad(&labels_path, format!("{count} labels"), must_be));
    }
    let features = pixels.iter().map(|&byte| f32::from(byte) / WHITE).collect();
    let labels = labels.iter().map(|&byte| byte.into()).collect();
    Ok((shape, Examples::new(features, labels, shape.len())?))
}

/// The path of the file called `name` in `folder`, plain or gzipped.
fn present(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let plain = folder.join(name);
    let packed = folder.join(format!("{name}.gz"));
    [&plain, &packed]
        .into_iter()
        .find(|path| path.is_file())
        .cloned()
        .ok_or_else(|| bad(&plain, "absent", "a file in MNIST's format, plain or gzipped (.gz)"))
}

/// The dimensions, all positive, and the bytes of one file.
fn read<const RANK: usize>(path: &Path, magic: u32) -> Result<([usize; RANK], Vec<u8>), Error> {
    let mut file = open(path)?;
    let mut header = vec![0; 4 * (RANK + 1)];
    fill(&mut file, &mut header, path)?;
    let mut words = header.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().expect("4 bytes")));
    let got = words.next().expect("the header opens with a magic number");
    if got != magic {
        return Err(bad(path, format!("magic number {got:#010x}"), format!("magic number {magic:#010x}")));
    }
    let dimensions: [usize; RANK] = std::array::from_fn(|_| words.next().map_or(0, |word| word as usize));
    let length = dimensions.iter().try_fold(1usize, |product, &d| product.checked_mul(d));
    let length = length.filter(|&length| (1..=MAX_BYTES).contains(&length)).ok_or_else(|| {
        bad(path, format!("dimensions {dimensions:?}"), format!("from 1 to {MAX_BYTES} bytes in all"))
    })?;
    let mut bytes = Vec::new();
    // One byte more than announced, to detect a longer file; memory grows with the bytes present, not with
    // the size claimed by the header.
    let read = file.take(length as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(error, path))?;
    if bytes.len() != length {
        let got = if bytes.len() < length { format!("{} bytes", bytes.len()) } else { "longer".into() };
        return Err(bad(path, got, format!("{length} bytes long after its header {dimensions:?}")));
    }
    Ok((dimensions, bytes))
}

const MAX_BYTES: usize = 1 << 32;

fn fill(file: &mut dyn Read, header: &mut [u8], path: &Path) -> Result<(), Error> {
    file.read_exact(header).map_err(|error| unreadable(error, path))
}

/// A short or corrupt file is bad input; any other error is a failure of the machine.
fn unreadable(error: std::io::Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => bad(path, "truncated", "a whole file"),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            bad(path, format!("corrupt ({error})"), "a plain or gzipped file in MNIST's format")
        }
        _ => Error::io(path)(error),
    }
}
