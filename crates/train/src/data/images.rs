//! Folders of PNG images, one for each class.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use png::{ColorType, Decoder, DecodingError, Transformations};
use rayon::prelude::*;

use super::examples::{Dataset, Examples, ImageShape};
use super::file::bad;
use crate::Error;

const WHITE: f32 = 255.0;
/// Bound on the size in an image's header, since memory is allocated before pixels are read.
const MOST_BYTES: usize = 1 << 26;

/// Reads images from `folder/train/CLASS/*.png` and `folder/test/CLASS/*.png`: grey or RGB, all of one size.
/// Classes are the folders in `train`, in the order of their names, which are public; images are in the order
/// of their file names.
///
/// Features are bytes / 255, in \[0, 1\]; of 16-bit channels the upper 8 bits are used.
///
/// ```
/// use antinoise_input::BadInput;
/// let error = antinoise_train::data::images("no-such-folder".as_ref()).unwrap_err();
/// assert!(error.is_bad_input() && error.to_string().contains("no-such-folder"));
/// ```
///
/// # Errors
/// If a folder is absent or empty, there are fewer than two classes, a class of `test` is absent in `train`,
/// a file is not a PNG image, has transparent pixels, or has another size or number of channels than the
/// first.
pub fn images(folder: &Path) -> Result<Dataset, Error> {
    let (train, test) = (folder.join("train"), folder.join("test"));
    let classes = entries(&train, Path::is_dir, "only folders, one for each class")?;
    if classes.len() < 2 {
        return Err(bad(
            &train,
            format!("with {} folders", classes.len()),
            "with a folder for each of at least 2 classes",
        ));
    }
    let mut shape = None;
    let of_class = |label: usize, class: &Path| -> Result<Vec<(PathBuf, u32)>, Error> {
        let files = entries(class, is_png, PNG_ALONE)?;
        if files.is_empty() {
            return Err(bad(class, "empty", "with at least one PNG image"));
        }
        Ok(files.into_iter().map(|file| (file, label as u32)).collect())
    };
    let mut part = |classes: Vec<(usize, PathBuf)>| -> Result<Examples, Error> {
        let files: Vec<Vec<_>> =
            classes.iter().map(|(label, class)| of_class(*label, class)).collect::<Result<_, _>>()?;
        labelled(&files.concat(), &mut shape)
    };
    let label_of = |class: &PathBuf| classes.iter().position(|known| known.file_name() == class.file_name());
    let tested = entries(&test, Path::is_dir, "only folders, one for each class")?;
    if tested.is_empty() {
        return Err(bad(&test, "empty", "with a folder for each class"));
    }
    let tested = tested.into_iter().map(|class| match label_of(&class) {
        Some(label) => Ok((label, class)),
        None => Err(bad(&class, "a class that no training image has", "a class of the training images")),
    });
    let tested = tested.collect::<Result<Vec<_>, _>>()?;
    let train = part(classes.iter().cloned().enumerate().collect())?;
    let test = part(tested)?;
    let shape = shape.expect("there are images");
    let name = folder.file_name().map_or_else(|| "images".into(), |name| name.to_string_lossy().into_owned());
    let class_names = classes.iter().map(|class| name_of(class)).collect();
    Ok(Dataset { name, shape, classes: classes.len(), class_names, train, users: None, test })
}

/// Reads labelled images from `folder/CLASS/*.png`, where CLASS is one of `classes` and labels are their
/// indices; in the order of class folders and files.
///
/// # Errors
/// If the folder is absent or empty, a folder has another name, or as [`images`] of its files.
pub fn class_folders(folder: &Path, classes: &[String]) -> Result<(ImageShape, Examples), Error> {
    let mut files = Vec::new();
    for class in entries(folder, Path::is_dir, "only folders, one for each class")? {
        let label = classes.iter().position(|known| *known == name_of(&class)).ok_or_else(|| {
            bad(&class, "a class that the model does not know", format!("one of {}", classes.join(", ")))
        })?;
        files.extend(entries(&class, is_png, PNG_ALONE)?.into_iter().map(|file| (file, label as u32)));
    }
    decoded_all(folder, &files)
}

/// Reads the images `folder/*.png` in the order of their names; every label is 0.
///
/// # Errors
/// If the folder is absent or empty, or as [`images`] of its files.
pub fn image_files(folder: &Path) -> Result<(ImageShape, Examples), Error> {
    let files: Vec<_> = entries(folder, is_png, PNG_ALONE)?.into_iter().map(|file| (file, 0)).collect();
    decoded_all(folder, &files)
}

fn decoded_all(folder: &Path, files: &[(PathBuf, u32)]) -> Result<(ImageShape, Examples), Error> {
    if files.is_empty() {
        return Err(bad(folder, "empty", "a folder with at least one PNG image"));
    }
    let mut shape = None;
    let examples = labelled(files, &mut shape)?;
    Ok((shape.expect("there are images"), examples))
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The permitted contents of a folder of images, in error messages.
const PNG_ALONE: &str = "only PNG images (.png)";

/// The entries of a folder, sorted by name. Hidden entries are ignored; any other entry that is not `wanted`
/// is refused.
fn entries(folder: &Path, wanted: fn(&Path) -> bool, must_hold: &str) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Err(bad(folder, "absent", format!("a folder that holds {must_hold}")));
    }
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()
    });
    let mut found = listed.map_err(Error::io(folder))?;
    found.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    found.sort();
    match found.iter().find(|path| !wanted(path)) {
        Some(other) => {
            Err(bad(other, "in the way", format!("moved elsewhere: its folder must hold {must_hold}")))
        }
        None => Ok(found),
    }
}

fn is_png(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) && path.is_file()
}

/// The decoded images with their labels. All must have `shape`, which is set to the shape of the first image
/// if it is `None`.
fn labelled(files: &[(PathBuf, u32)], shape: &mut Option<ImageShape>) -> Result<Examples, Error> {
    let wanted = match *shape {
        Some(shape) => shape,
        None => *shape.insert(decoded(&files[0].0)?.0),
    };
    let one = |(path, _): &(PathBuf, u32)| -> Result<Vec<f32>, Error> {
        let (shape, features) = decoded(path)?;
        let size = |of: ImageShape| format!("{}x{} with {} channels", of.height, of.width, of.channels);
        if shape == wanted {
            Ok(features)
        } else {
            Err(bad(path, size(shape), size(wanted) + ", as the first"))
        }
    };
    let features: Vec<Vec<f32>> = files.par_iter().map(one).collect::<Result<_, _>>()?;
    let labels = files.iter().map(|(_, label)| *label).collect();
    Ok(Examples::new(features.concat(), labels, wanted.len())?)
}

fn decoded(path: &Path) -> Result<(ImageShape, Vec<f32>), Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let unreadable = |error: DecodingError| match error {
        DecodingError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Error::io(path)(error)
        }
        error => bad(path, error, "a PNG image"),
    };
    let mut reader = decoder.read_info().map_err(unreadable)?;
    let channels = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::Rgb => 3,
        _ => return Err(bad(path, "an image with transparent pixels", "grey or RGB without transparency")),
    };
    let size = reader.output_buffer_size().filter(|&size| size <= MOST_BYTES);
    let size =
        size.ok_or_else(|| bad(path, "too large", format!("an image of {MOST_BYTES} numbers at most")))?;
    let mut bytes = vec![0; size];
    let info = reader.next_frame(&mut bytes).map_err(unreadable)?;
    let shape = ImageShape { height: info.height as usize, width: info.width as usize, channels };
    bytes.truncate(info.buffer_size());
    Ok((shape, bytes.into_iter().map(|byte| f32::from(byte) / WHITE).collect()))
}
