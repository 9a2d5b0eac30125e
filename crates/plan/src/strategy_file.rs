//! Reading strategies from files that antinoise wrote, and matrices from other libraries.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::arrays::{Archive, Array};
use antinoise_linear::Matrix;
use antinoise_mechanism::strategy::Factors;
use antinoise_mechanism::{AnyStrategy, Workload};
use serde::Deserialize;

use crate::Result;

/// Maximum size of a file: 10^8 numbers as text.
const MAX_BYTES: u64 = 1 << 32;

/// Rows of matrices in TOML; row t of a lower-triangular matrix may end at its diagonal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(rename = "C")]
    c: Vec<Vec<f64>>,
    #[serde(rename = "B")]
    b: Option<Vec<Vec<f64>>>,
    #[serde(rename = "A")]
    a: Option<Vec<Vec<f64>>>,
}

/// Reads the strategy in a file for a plan with `workload`:
///
/// - `.npy`: the matrix C, square or with more rows than columns, triangular or not;
/// - `.arrow` and `.feather`: the matrix C as a table of numbers, with the feature `arrow`;
/// - `.npz`: an archive with the array C and, if B or A is there, a check that B C and A are the workload;
/// - `.toml` and any other name: a strategy that `antinoise loss --out` saved, or C, B and A as lists of
///   rows.
///
/// A matrix becomes a strategy by [`AnyStrategy::of_matrix`].
///
/// # Errors
/// When the file cannot be read or holds no such strategy. The error names the file.
///
/// ```
/// use antinoise_mechanism::Workload;
/// use antinoise_plan::read_strategy;
/// let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
/// std::fs::write(file.path(), "C = [[1, 0], [0.5, 1], [0, 1]]").unwrap();
/// assert_eq!(read_strategy(file.path(), &Workload::Prefix)?.steps(), 2);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn read_strategy(path: &Path, workload: &Workload) -> Result<AnyStrategy> {
    read(path, workload).map_err(|(got, must_be)| {
        InvalidParameter::new(format!("strategy file {}", path.display()), got, must_be).into()
    })
}

/// What a file holds, and what it must hold.
type Refused = (String, String);

fn read(path: &Path, workload: &Workload) -> std::result::Result<AnyStrategy, Refused> {
    let refused = |got: String| (got, "a regular file of at most 4 GiB that can be read".to_string());
    // Checked before the file is opened: opening a pipe would wait for its writer, and a device may have no
    // end.
    let found = std::fs::metadata(path).map_err(|error| refused(format!("not readable ({error})")))?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(refused(format!("not a regular file, or a file of {} bytes", found.len())));
    }
    let of_strategy = |error: antinoise_mechanism::Error| match error {
        antinoise_mechanism::Error::Invalid(error) => unusable(error),
        error => (format!("unusable: {error}"), "a file with a valid strategy".to_string()),
    };
    let factors = match path.extension().and_then(|name| name.to_str()) {
        Some("npy") => {
            let file =
                std::fs::File::open(path).map_err(|error| refused(format!("not readable ({error})")))?;
            let array = Array::from_npy("C", std::io::BufReader::new(file)).map_err(unusable)?;
            Factors::new(matrix("C", &array)?)
        }
        Some("arrow" | "feather") => Factors::new(matrix("C", &of_arrow(path)?)?),
        Some("npz") => of_archive(path)?,
        _ => {
            let text =
                std::fs::read_to_string(path).map_err(|error| refused(format!("not readable ({error})")))?;
            match of_text(&text)? {
                Given::Strategy(strategy) => {
                    strategy.check().map_err(of_strategy)?;
                    return Ok(*strategy);
                }
                Given::Factors(factors) => factors,
            }
        }
    };
    factors.strategy(workload).map_err(of_strategy)
}

fn unusable(error: InvalidParameter) -> Refused {
    (format!("unusable: {} is {}", error.parameter, error.got), error.must_be)
}

#[cfg(feature = "arrow")]
fn of_arrow(path: &Path) -> std::result::Result<Array, Refused> {
    Array::from_arrow("C", path).map_err(unusable)
}

#[cfg(not(feature = "arrow"))]
fn of_arrow(_: &Path) -> std::result::Result<Array, Refused> {
    let must_be = "of another format: Arrow files need the feature arrow of antinoise-plan, or parquet of antinoise-cli";
    Err(("a file of Arrow".into(), must_be.into()))
}

fn of_archive(path: &Path) -> std::result::Result<Factors, Refused> {
    let mut archive = Archive::open(path).map_err(unusable)?;
    let names: Vec<&str> = archive.names().collect();
    if !names.contains(&"C") || names.iter().any(|name| !["C", "B", "A"].contains(name)) {
        let must_be = "an archive with the array C and at most the arrays B and A";
        return Err((format!("an archive with the arrays {}", names.join(", ")), must_be.into()));
    }
    let mut read = |name| {
        let array = archive.array(name).map_err(unusable)?;
        array.map(|array| matrix(name, &array)).transpose()
    };
    let (c, b, a) = (read("C")?, read("B")?, read("A")?);
    Ok(Factors { c: c.expect("the archive has C"), b, a })
}

fn matrix(name: &str, array: &Array) -> std::result::Result<Matrix, Refused> {
    match array.shape[..] {
        [rows, columns] => Ok(Matrix::from_fn(rows, columns, |i, j| array.values[i * columns + j])),
        _ => {
            let got = format!("an array {name} of shape {:?}", array.shape);
            Err((got, "one with matrices: arrays of two dimensions".into()))
        }
    }
}

enum Given {
    Strategy(Box<AnyStrategy>),
    Factors(Factors),
}

fn of_text(text: &str) -> std::result::Result<Given, Refused> {
    let refused = |error: toml::de::Error| {
        let must_be = "a strategy that antinoise saved, or C and at most B and A as lists of rows";
        (format!("text of another form: {error}"), must_be.to_string())
    };
    let table: toml::Table = toml::from_str(text).map_err(refused)?;
    if table.contains_key("class") {
        return Ok(Given::Strategy(Box::new(toml::from_str(text).map_err(refused)?)));
    }
    let Rows { c, b, a } = toml::from_str(text).map_err(refused)?;
    let optional = |name, rows: Option<Vec<Vec<f64>>>| rows.map(|rows| of_rows(name, &rows)).transpose();
    Ok(Given::Factors(Factors { c: of_rows("C", &c)?, b: optional("B", b)?, a: optional("A", a)? }))
}

fn of_rows(name: &str, rows: &[Vec<f64>]) -> std::result::Result<Matrix, Refused> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_lower = rows.iter().enumerate().all(|(t, row)| row.len() == t + 1);
    if let Some(t) = rows.iter().position(|row| !is_lower && row.len() != columns) {
        let got = format!("a row {t} of {name} with {} numbers", rows[t].len());
        return Err((got, format!("rows of {columns} numbers each, or of 1, 2, 3, ... numbers")));
    }
    Ok(Matrix::from_fn(rows.len(), columns, |i, j| rows[i].get(j).copied().unwrap_or(0.0)))
}
