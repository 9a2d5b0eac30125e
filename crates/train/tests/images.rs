//! Folders of PNG images: every pixel is read as written, and only images of the first image's size are
//! accepted.

use std::fs::{self, File};
use std::path::Path;

use antinoise_input::BadInput;
use antinoise_train::data::{self, ImageShape};
use png::{BitDepth, ColorType, Encoder};

fn write(path: &Path, (width, height): (u32, u32), color: ColorType, depth: BitDepth, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut encoder = Encoder::new(File::create(path).unwrap(), width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder.write_header().unwrap().write_image_data(bytes).unwrap();
}

fn grey(path: &Path, bytes: [u8; 6]) {
    write(path, (3, 2), ColorType::Grayscale, BitDepth::Eight, &bytes);
}

/// Two classes, three images to train on and one to test with.
fn small(folder: &Path) {
    grey(&folder.join("train/cat/b.png"), [0, 51, 102, 153, 204, 255]);
    grey(&folder.join("train/cat/a.PNG"), [255, 0, 0, 0, 0, 0]);
    grey(&folder.join("train/bee/1.png"), [5, 4, 3, 2, 1, 0]);
    grey(&folder.join("test/cat/9.png"), [1; 6]);
}

#[test]
fn pixels_classes_and_order_are_those_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    fs::write(folder.path().join("train/cat/.hidden"), "no image").unwrap();
    let found = data::images(folder.path()).unwrap();
    assert_eq!((found.shape, found.classes), (ImageShape { height: 2, width: 3, channels: 1 }, 2));
    assert_eq!((found.train.labels(), found.test.labels()), (&[0, 1, 1][..], &[1][..]));
    assert_eq!(found.train.features(1), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(found.train.features(2), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    assert_eq!(found.test.features(0), [1.0 / 255.0; 6]);
}

#[test]
fn colours_lie_side_by_side_and_16_bits_count_by_their_upper_8() {
    let folder = tempfile::tempdir().unwrap();
    let rgb = [10, 20, 30, 40, 50, 60];
    for path in ["train/x/1.png", "test/x/1.png"] {
        write(&folder.path().join(path), (2, 1), ColorType::Rgb, BitDepth::Eight, &rgb);
    }
    let deep: Vec<u8> = rgb.iter().flat_map(|&byte| [byte, 7]).collect();
    write(&folder.path().join("train/y/1.png"), (2, 1), ColorType::Rgb, BitDepth::Sixteen, &deep);
    let found = data::images(folder.path()).unwrap();
    assert_eq!(found.shape, ImageShape { height: 1, width: 2, channels: 3 });
    assert_eq!(found.train.features(0), rgb.map(|byte| f32::from(byte) / 255.0));
    assert_eq!(found.train.features(0), found.train.features(1));
}

#[test]
fn what_is_no_set_of_images_is_refused_by_name() {
    type Damage = fn(&Path);
    let cases: [(Damage, &str); 11] = [
        (|at| fs::remove_dir_all(at.join("train")).unwrap(), "absent"),
        (|at| fs::remove_dir_all(at.join("test")).unwrap(), "absent"),
        (|at| fs::remove_dir_all(at.join("test/cat")).unwrap(), "empty"),
        (|at| fs::remove_dir_all(at.join("train/bee")).unwrap(), "2 classes"),
        (|at| fs::remove_file(at.join("train/bee/1.png")).unwrap(), "empty"),
        (|at| fs::write(at.join("train/bee/notes.txt"), "x").unwrap(), "notes.txt"),
        (|at| fs::write(at.join("train/bee/2.png"), "no image").unwrap(), "2.png"),
        (|at| grey(&at.join("test/dog/1.png"), [0; 6]), "dog"),
        (
            |at| write(&at.join("train/bee/2.png"), (2, 3), ColorType::Grayscale, BitDepth::Eight, &[0; 6]),
            "3x2",
        ),
        (
            |at| write(&at.join("train/bee/2.png"), (3, 2), ColorType::Rgba, BitDepth::Eight, &[9; 24]),
            "transparent",
        ),
        (
            |at| {
                let whole = fs::read(at.join("train/cat/b.png")).unwrap();
                fs::write(at.join("train/cat/b.png"), &whole[..whole.len() - 20]).unwrap();
            },
            "b.png",
        ),
    ];
    for (damage, named) in cases {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        damage(folder.path());
        let error = data::images(folder.path()).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains(named), "{named}: {error}");
    }
}

/// A file of 59 bytes requested 2^40 bytes of memory, which would end the process.
#[test]
fn an_image_that_only_says_that_it_is_huge_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    for side in [1 << 14, 1 << 20] {
        let file = File::create(folder.path().join("train/bee/0.png")).unwrap();
        let mut started = Encoder::new(file, side, side).write_header().unwrap();
        started.write_chunk(png::chunk::IDAT, &[0x78, 1]).unwrap();
        drop(started);
        let error = data::images(folder.path()).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains("too large but must be"), "{error}");
    }
}

/// The library panics on a palette that ends within a color.
#[test]
fn a_palette_that_ends_within_a_color_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let path = folder.path().join("train/bee/0.png");
    let mut encoder = Encoder::new(File::create(&path).unwrap(), 2, 2);
    encoder.set_color(ColorType::Indexed);
    encoder.set_palette(vec![7; 141]);
    encoder.write_header().unwrap().write_image_data(&[0, 46, 1, 46]).unwrap();
    // Two bytes of the last color are left in the chunk, whose checksum is made right.
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|name| name == b"PLTE").unwrap();
    bytes.remove(at + 4 + 140);
    bytes[at - 4..at].copy_from_slice(&140u32.to_be_bytes());
    let crc = crc32(&bytes[at..at + 4 + 140]);
    bytes[at + 144..at + 148].copy_from_slice(&crc.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    let error = data::images(folder.path()).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("damaged but must be a PNG image"), "{error}");
}

/// The checksum of a chunk.
fn crc32(bytes: &[u8]) -> u32 {
    let of_byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, of_byte)
}

/// Ada has images of two classes.
fn persons(folder: &Path) {
    for (path, value) in [
        ("train/bee/ada/1.png", 1),
        ("train/bee/7/1.png", 2),
        ("train/cat/ada/1.png", 3),
        ("train/cat/ada/2.png", 4),
        ("train/cat/007/1.png", 5),
        ("test/cat/eve/1.png", 6),
    ] {
        grey(&folder.join(path), [value; 6]);
    }
}

#[test]
fn a_folder_of_a_class_may_have_a_folder_for_each_person() {
    let folder = tempfile::tempdir().unwrap();
    persons(folder.path());
    let found = data::images_of_persons(folder.path()).unwrap();
    assert_eq!((found.train.labels(), found.test.labels()), (&[0, 0, 1, 1, 1][..], &[1][..]));
    let values: Vec<f32> = (0..5).map(|at| (255.0 * found.train.features(at)[0]).round()).collect();
    assert_eq!(values, [2.0, 1.0, 5.0, 3.0, 4.0]);
    let users = found.users.unwrap();
    let of: Vec<(&str, &[usize])> = (0..users.len()).map(|user| (users.name(user), users.of(user))).collect();
    assert_eq!(of, [("7", &[0, 2][..]), ("ada", &[1, 3, 4])]);
    let classes = ["bee", "cat"].map(String::from);
    let (_, tested) = data::class_folders(&folder.path().join("test"), &classes).unwrap();
    assert_eq!(tested, found.test);

    type Damage = fn(&Path);
    let cases: [(Damage, &str); 6] = [
        (|at| grey(&at.join("test/cat/ada/1.png"), [0; 6]), "with rows of the user \"ada\""),
        (|at| grey(&at.join("train/cat/3.png"), [0; 6]), "3.png is in the way"),
        (|at| grey(&at.join("train/cat/NA/3.png"), [0; 6]), "NA is named \"NA\" but must be given"),
        (|at| grey(&at.join("train/cat/7.5/3.png"), [0; 6]), "7.5 is named \"7.5\""),
        (|at| fs::remove_dir_all(at.join("train/bee/ada")).unwrap(), ""),
        (|at| fs::remove_dir_all(at.join("test/cat/eve")).unwrap(), "test/cat is empty"),
    ];
    for (damage, said) in cases {
        let folder = tempfile::tempdir().unwrap();
        persons(folder.path());
        damage(folder.path());
        match data::images_of_persons(folder.path()) {
            Ok(_) => assert_eq!(said, ""),
            Err(error) => {
                let error = error.to_string().replace('\\', "/");
                assert!(!said.is_empty() && error.contains(said), "{said}: {error}");
            }
        }
    }
    assert!(data::images(folder.path()).unwrap_err().to_string().contains("in the way"));
}
