//! Folders of PNG images, one for each class.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use antinoise_input::tables::{catch_panic, user_name};
use png::{ColorType, Decoder, DecodingError, Transformations};
use rayon::prelude::*;

use super::examples::{Dataset, Examples, ImageShape};
use super::file::bad;
use super::users::{Users, refuse_shared};
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
    read(folder, Layout::Images)
}

/// Reads images with their persons, the users of the data set, from `folder/train/CLASS/PERSON/*.png` and
/// `folder/test/CLASS/PERSON/*.png`: as [`images`], in the order of persons in a class. One name in several
/// classes is one person.
///
/// # Errors
/// As [`images`]; if the name of a person's folder is not text in UTF-8, stands for a missing name or is a
/// number that is not whole; if a person has images in `train` and in `test`.
pub fn images_of_persons(folder: &Path) -> Result<Dataset, Error> {
    read(folder, Layout::Persons)
}

/// What a class's folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Images.
    Images,
    /// A folder for each person, with images.
    Persons,
}

/// The files of images, with their labels and, if these were read, the names of their persons.
#[derive(Default)]
struct Files {
    files: Vec<(PathBuf, u32)>,
    persons: Vec<String>,
}

impl Files {
    /// Adds the images of a class, which may be none.
    fn add(&mut self, class: &Path, label: u32, layout: Layout) -> Result<(), Error> {
        let folders = match layout {
            Layout::Images => vec![class.to_path_buf()],
            Layout::Persons => entries(class, Path::is_dir, "only folders, one for each person")?,
        };
        for folder in folders {
            let files = entries(&folder, is_png, PNG_ALONE)?;
            if layout == Layout::Persons {
                self.persons.resize(self.persons.len() + files.len(), person(&folder)?);
            }
            self.files.extend(files.into_iter().map(|file| (file, label)));
        }
        Ok(())
    }

    /// Adds the images of a class, one or more.
    fn add_some(&mut self, class: &Path, label: u32, layout: Layout) -> Result<(), Error> {
        let before = self.files.len();
        self.add(class, label, layout)?;
        match self.files.len() > before {
            true => Ok(()),
            false => Err(bad(class, "empty", "with at least one PNG image")),
        }
    }

    fn users(&self) -> Result<Option<Users>, Error> {
        if self.persons.is_empty() {
            return Ok(None);
        }
        Ok(Some(Users::new(self.persons.iter().map(String::as_str))?))
    }
}

/// The name of the person whose images a folder holds.
fn person(folder: &Path) -> Result<String, Error> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| bad(folder, "not named in UTF-8", "named by a person"))?;
    let name = user_name("user", name);
    let name = name.map_err(|error| bad(folder, format!("named {}", error.got), error.must_be))?;
    Ok(name.into_owned())
}

fn read(folder: &Path, layout: Layout) -> Result<Dataset, Error> {
    let (train, test) = (folder.join("train"), folder.join("test"));
    let classes = entries(&train, Path::is_dir, "only folders, one for each class")?;
    if classes.len() < 2 {
        return Err(bad(
            &train,
            format!("with {} folders", classes.len()),
            "with a folder for each of at least 2 classes",
        ));
    }
    let (mut trained, mut tested) = (Files::default(), Files::default());
    for (label, class) in classes.iter().enumerate() {
        trained.add_some(class, label as u32, layout)?;
    }
    let classes_of_test = entries(&test, Path::is_dir, "only folders, one for each class")?;
    if classes_of_test.is_empty() {
        return Err(bad(&test, "empty", "with a folder for each class"));
    }
    for class in classes_of_test {
        let label = classes.iter().position(|known| known.file_name() == class.file_name());
        let must_be = "a class of the training images";
        let label = label.ok_or_else(|| bad(&class, "a class that no training image has", must_be))?;
        tested.add_some(&class, label as u32, layout)?;
    }
    let users = trained.users()?;
    refuse_shared(&test, users.as_ref(), tested.users()?.as_ref())?;
    let mut shape = None;
    let (train, test) = (labelled(&trained.files, &mut shape)?, labelled(&tested.files, &mut shape)?);
    let shape = shape.expect("there are images");
    let name = folder.file_name().map_or_else(|| "images".into(), |name| name.to_string_lossy().into_owned());
    let class_names = classes.iter().map(|class| name_of(class)).collect();
    Ok(Dataset { name, shape, classes: classes.len(), class_names, train, users, test })
}

/// Reads labelled images from `folder/CLASS/*.png`, or `folder/CLASS/PERSON/*.png`, where CLASS is one of
/// `classes` and labels are their indices; in the order of folders and files.
///
/// # Errors
/// If the folder is absent or empty, a folder has another name, or as [`images`] of its files.
pub fn class_folders(folder: &Path, classes: &[String]) -> Result<(ImageShape, Examples), Error> {
    let mut files = Files::default();
    for class in entries(folder, Path::is_dir, "only folders, one for each class")? {
        let label = classes.iter().position(|known| *known == name_of(&class)).ok_or_else(|| {
            bad(&class, "a class that the model does not know", format!("one of {}", classes.join(", ")))
        })?;
        let has_persons = entries(&class, |_| true, PNG_ALONE)?.first().is_some_and(|entry| entry.is_dir());
        files.add(&class, label as u32, if has_persons { Layout::Persons } else { Layout::Images })?;
    }
    decoded_all(folder, &files.files)
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

/// The shape of an image and its numbers. The library panics on some damaged palettes, which refuses the
/// file.
fn decoded(path: &Path) -> Result<(ImageShape, Vec<f32>), Error> {
    catch_panic(|| decoded_unguarded(path)).unwrap_or_else(|| Err(bad(path, "damaged", "a PNG image")))
}

fn decoded_unguarded(path: &Path) -> Result<(ImageShape, Vec<f32>), Error> {
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
