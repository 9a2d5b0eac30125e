use crate::InvalidParameter;

/// Where the column `name` is among all of them, in which it must be once.
///
/// # Errors
/// When it is absent or there twice.
pub fn place<'a>(
    columns: impl Iterator<Item = &'a str> + Clone,
    name: &str,
) -> Result<usize, InvalidParameter> {
    let mut found = columns.clone().enumerate().filter(|(_, column)| *column == name);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (found, _) => {
            let got = if found.is_none() { "absent" } else { "there twice" };
            let must_be = format!("one of the columns {}", columns.collect::<Vec<_>>().join(", "));
            Err(InvalidParameter::new(format!("column {name:?}"), got, must_be))
        }
    }
}
