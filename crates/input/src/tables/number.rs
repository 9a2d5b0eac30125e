use crate::InvalidParameter;

/// A number of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number<'a> {
    /// The number as text.
    Text(&'a str),
    /// The number in double precision.
    Real(f64),
}

impl Number<'_> {
    /// The number, possibly infinite or NaN; `what` names the cell in an error.
    ///
    /// # Errors
    /// When it is text that is not a number.
    pub fn read(self, what: impl FnOnce() -> String) -> Result<f64, InvalidParameter> {
        match self {
            Self::Real(number) => Ok(number),
            Self::Text(text) => text
                .trim()
                .parse()
                .map_err(|_| InvalidParameter::new(what(), format!("{text:?}"), "a number")),
        }
    }
}
