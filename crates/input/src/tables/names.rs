use crate::InvalidParameter;

/// The index of the column `name` among all columns, in which it must occur once.
///
/// # Errors
/// When it is absent or occurs twice.
pub fn column_index<'a>(
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
