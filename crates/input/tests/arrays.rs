//! Arrays of NumPy against what was written, damaged files, and columns of tables.
#![cfg(feature = "arrays")]

use std::fs::File;
use std::io::Write;
use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::arrays::{Archive, Array, ArrayTable, Class};
use antinoise_input::tables::Role;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    [&file, text.as_bytes(), data].concat()
}

fn read(descr: &str, order: &str, shape: &str, data: &[u8]) -> Result<Array, InvalidParameter> {
    Array::from_npy("C", &npy(&format!("'{descr}'"), order, shape, data)[..])
}

fn write(path: &Path, method: CompressionMethod, members: &[(&str, Vec<u8>)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, contents) in members {
        archive.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        archive.write_all(contents).unwrap();
    }
    archive.finish().unwrap();
}

fn code_points(texts: &[&str], width: usize, is_big_endian: bool) -> Vec<u8> {
    let of = |text: &str| {
        let mut codes: Vec<u32> = text.chars().map(u32::from).collect();
        codes.resize(width, 0);
        codes.into_iter().flat_map(move |x| if is_big_endian { x.to_be_bytes() } else { x.to_le_bytes() })
    };
    texts.iter().flat_map(|text| of(text)).collect()
}

#[test]
fn every_type_of_number_is_read_in_both_orders_of_bytes() {
    let cases: [(&str, &[u8], f64); 17] = [
        ("<f8", &(-0.1f64).to_le_bytes(), -0.1),
        (">f8", &(-0.1f64).to_be_bytes(), -0.1),
        ("<f4", &0.1f32.to_le_bytes(), f64::from(0.1f32)),
        (">f4", &0.1f32.to_be_bytes(), f64::from(0.1f32)),
        // Half precision: -2, the largest number, the least of full precision, the least, infinity.
        ("<f2", &0xc000u16.to_le_bytes(), -2.0),
        (">f2", &0x7bffu16.to_be_bytes(), 65504.0),
        ("<f2", &0x0400u16.to_le_bytes(), 0.00006103515625),
        ("<f2", &0x8001u16.to_le_bytes(), -5.960464477539063e-8),
        ("<f2", &0x7c00u16.to_le_bytes(), f64::INFINITY),
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
        let array = read(descr, "False", "(1,)", data).unwrap();
        assert_eq!((array.shape, array.values), (vec![1], vec![value]), "{descr}");
    }
    assert_eq!(read("|u1", "False", "()", &[9]).unwrap().values, [9.0]);
    assert_eq!(read("|u1", "True", "(0, 3)", &[]).unwrap().shape, [0, 3]);
}

#[test]
fn the_order_of_columns_is_turned_into_that_of_rows() {
    let by_columns = read("|u1", "True", "(2, 3, 2)", &[0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
    assert_eq!(by_columns.unwrap().values, (0..12).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn cut_long_and_foreign_arrays_are_refused_with_their_name() {
    let whole = npy("'<f8'", "False", "(2, 2)", &[0; 32]);
    assert!(Array::from_npy("C", &whole[..]).is_ok());
    let mut refused: Vec<(Vec<u8>, &str)> =
        (0..whole.len()).map(|length| (whole[..length].to_vec(), "C is ")).collect();
    refused.push(([&whole[..], &[0]].concat(), "more than 32 bytes"));
    refused.push((b"PK\x03\x04 an archive or anything else".to_vec(), "no array of NumPy"));
    for (descr, words) in [
        ("'|O'", "of Python objects"),
        ("'<c16'", "of complex numbers"),
        ("'<M8[D]'", "of dates"),
        ("[('x', '<f8')]", "of structures"),
        ("'<f16'", "of the type \"<f16\""),
        ("'<U99999999999999999999'", "of the type"),
        ("'<U4611686018427387904'", "of the type"),
        ("'<U3'", "of text, where numbers are needed"),
        ("'f'", "of the type"),
    ] {
        refused.push((npy(descr, "False", "(1,)", &[0; 12]), words));
    }
    for shape in ["(100000, 100000)", "(18446744073709551615, 2)"] {
        refused.push((npy("'<f8'", "False", shape, &[0; 32]), "too large"));
    }
    refused.push((npy("'<U100'", "False", "(10000000,)", &[0; 32]), "too large"));
    refused.push((npy("'<f8'", "False", "(-1, 2)", &[0; 32]), "the header"));
    refused.push((npy("'<f8'", "maybe", "(2, 2)", &[0; 32]), "the header"));
    for (file, words) in refused {
        let error = Array::from_npy("C", &file[..]).unwrap_err().to_string();
        assert!(error.starts_with("C is ") && error.contains(words), "{words}: {error}");
        assert_eq!(error.matches("but must be").count(), 1, "{error}");
    }
}

/// Only the arrays that are asked for are read: damage to others goes unnoticed.
#[test]
fn an_archive_is_read_by_names_stored_or_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("factors.npz");
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let of = |x: u8| npy("'|u1'", "False", "(1, 2)", &[3, x]);
        let damaged = (0u8..3).map(|i| ["O", "P", "Q"][usize::from(i)]).map(|name| (name, vec![7; 40]));
        let members = [vec![("C.npy", of(1)), ("B.npy", of(2))], damaged.collect()].concat();
        write(&path, method, &members);
        let mut archive = Archive::open(&path).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["C", "B", "O", "P", "Q"]);
        assert_eq!(archive.array("B").unwrap().unwrap().values, [3.0, 2.0]);
        assert_eq!(archive.array("C").unwrap().unwrap().values, [3.0, 1.0]);
        assert_eq!(archive.shape("C").unwrap().unwrap(), [1, 2]);
        assert!(archive.array("D").unwrap().is_none());
        let error = archive.array("O").unwrap_err().to_string();
        assert!(error.starts_with("array \"O\" is no array of NumPy"), "{error}");
    }
}

/// 2^28 values in all, whatever a header says of the bytes that follow.
#[test]
fn the_arrays_of_an_archive_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.npz");
    // Texts without characters count as values.
    let empty = npy("'<U0'", "False", "(150000000,)", &[]);
    write(&path, CompressionMethod::Stored, &[("a.npy", empty.clone()), ("b.npy", empty)]);
    let mut archive = Archive::open(&path).unwrap();
    assert_eq!(archive.values("a").unwrap().unwrap().shape(), [150_000_000]);
    let error = archive.values("b").unwrap_err().to_string();
    assert!(error.contains("array \"b\" is of shape [150000000], too large"), "{error}");
    assert_eq!(Archive::open(&path).unwrap().values("b").unwrap().unwrap().class(), Class::Text);
}

/// Four rows: `x` has two columns, in the order of columns.
fn table(path: &Path, method: CompressionMethod) {
    let x: Vec<u8> =
        [0.5f32, -1.0, f32::NAN, 3.0, 10.0, 20.0, 30.0, 1e9].into_iter().flat_map(f32::to_be_bytes).collect();
    let user: Vec<u8> = [7i64, 9_007_199_254_740_993, -1, 7].into_iter().flat_map(i64::to_le_bytes).collect();
    let members = [
        ("x.npy", npy("'>f4'", "True", "(4, 2)", &x)),
        ("user.npy", npy("'<i8'", "False", "(4,)", &user)),
        ("shop.npy", npy("'<U2'", "False", "(4,)", &code_points(&["a", "bü", "", "\u{1f600}"], 2, false))),
        ("bytes.npy", npy("'|S3'", "False", "(4,)", "a\0\0b\0c\0\0\0\u{fc}\0".as_bytes())),
        ("late.npy", npy("'|b1'", "False", "(4,)", &[0, 1, 1, 0])),
    ];
    write(path, method, &members);
}

const COLUMNS: [(&str, Role); 7] = [
    ("x[1]", Role::Value),
    ("late", Role::Name),
    ("x[0]", Role::Value),
    ("shop", Role::Name),
    ("user", Role::User),
    ("bytes", Role::User),
    ("x[0]", Role::User),
];

type Cells = Vec<Vec<Result<String, String>>>;

/// The cells of all rows, each a text or an error.
fn cells(path: &Path) -> Result<Cells, InvalidParameter> {
    let table = ArrayTable::open(path, &COLUMNS)?;
    let mut room = String::new();
    let mut cell = |row, column| {
        let text = table.text("cell", (row, column), &mut room);
        text.map(str::to_string).map_err(|error| error.to_string())
    };
    Ok((0..table.rows()).map(|row| (0..COLUMNS.len()).map(|column| cell(row, column)).collect()).collect())
}

#[test]
fn cells_are_what_the_arrays_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.npz");
    table(&path, CompressionMethod::Deflated);
    let rows = [
        ["10", "false", "0.5", "a", "7", "a", "0.5"],
        ["20", "true", "-1", "bü", "9007199254740993", "b\0c", "-1.0"],
        ["30", "true", "NaN", "", "-1", "", "NaN"],
        ["1000000000", "false", "3", "\u{1f600}", "7", "ü", "3.0"],
    ];
    assert_eq!(cells(&path).unwrap(), rows.map(|row| row.map(|cell| Ok(cell.to_string())).to_vec()));
    let columns = |name| Archive::open(&path).unwrap().columns(name).unwrap();
    assert_eq!((columns("x"), columns("user")), (vec!["x[0]".into(), "x[1]".into()], vec!["user".into()]));
    assert_eq!(columns("y"), ["y"]);
    let large = ArrayTable::open(&path, &[("x[1]", Role::User)]).unwrap();
    let error = large.text("user", (3, 0), &mut String::new()).unwrap_err().to_string();
    assert!(error.contains("below 2^24"), "{error}");
}

#[test]
fn columns_and_arrays_that_cannot_be_used_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.npz");
    table(&path, CompressionMethod::Stored);
    let refused = |name, role, words: &str| {
        let error = ArrayTable::open(&path, &[("late", Role::Name), (name, role)]).err().unwrap().to_string();
        assert!(error.contains(words) && error.contains(&format!("{name:?}")), "{words}: {error}");
    };
    refused("y", Role::Value, "must be one of the columns x, user, shop, bytes, late");
    refused("x", Role::Value, "of 2 columns but must be one column");
    refused("late", Role::Value, "of truth values but must be numbers");
    refused("shop", Role::Value, "of text but must be numbers");
    let of_x = |name, role, words: &str| {
        let error = ArrayTable::open(&path, &[(name, role)]).err().unwrap().to_string();
        assert!(error.contains(words) && error.starts_with("array \""), "{words}: {error}");
    };
    of_x("x[2]", Role::Value, "of shape [4, 2] but must be of two dimensions with a column 2");
    of_x("user[0]", Role::Value, "of shape [4] but must be of two dimensions with a column 0");
    of_x("x[0]", Role::Name, "of floating-point numbers but must be text");
    for (name, member, words) in [
        (
            "short",
            npy("'|u1'", "False", "(3,)", &[0; 3]),
            "number of rows of array \"short\" is 3 but must be 4",
        ),
        ("cube", npy("'|u1'", "False", "(4, 1, 1)", &[0; 4]), "of shape [4, 1, 1]"),
        ("scalar", npy("'|u1'", "False", "()", &[0]), "of shape []"),
        ("things", npy("'|O'", "False", "(4,)", b"\x80\x04K\x01."), "array \"things\" is of Python objects"),
    ] {
        let late = npy("'|b1'", "False", "(4,)", &[0; 4]);
        write(&path, CompressionMethod::Stored, &[("late.npy", late), (&format!("{name}.npy"), member)]);
        refused(name, Role::Value, words);
    }
    for columns in [0usize, 65_537, 1 << 40] {
        write(
            &path,
            CompressionMethod::Stored,
            &[("x.npy", npy("'|u1'", "False", &format!("(0, {columns})"), &[]))],
        );
        let error = Archive::open(&path).unwrap().columns("x").unwrap_err().to_string();
        assert!(error.contains("1 to 65536 columns"), "{error}");
    }
    write(&path, CompressionMethod::Stored, &[("x.npy", vec![0; 3]), ("x", vec![0; 3])]);
    let error = ArrayTable::open(&path, &[("x", Role::Value)]).err().unwrap().to_string();
    assert!(error.contains("archive is one with two arrays \"x\""), "{error}");
}

/// Every truncation and every byte, with one bit flipped and with all.
#[test]
fn damaged_archives_are_refused_or_read_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.npz");
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        table(&path, method);
        let (whole, wanted) = (std::fs::read(&path).unwrap(), cells(&path).unwrap());
        let (mut tried, mut refused) = (0, 0);
        for at in 0..whole.len() {
            let cut = (whole[..at].to_vec(), 0);
            let flips = [0xff, 1u8 << (at % 8)].map(|mask| (whole.clone(), mask));
            for (mut bytes, mask) in [cut].into_iter().chain(flips) {
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
                std::fs::write(&path, bytes).unwrap();
                tried += 1;
                match cells(&path) {
                    Ok(found) => assert_eq!(found, wanted, "byte {at}"),
                    Err(error) => {
                        refused += 1;
                        let names = ["archive is ", "array \"", "column \"", "number of rows of array"];
                        assert!(names.iter().any(|name| error.to_string().starts_with(name)), "{error}");
                    }
                }
            }
        }
        assert_eq!(tried, 3 * whole.len());
        assert!(refused > 2 * whole.len(), "{refused} of {tried}");
    }
}
