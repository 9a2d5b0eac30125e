use crate::InvalidParameter;

/// A number as a table holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number<'a> {
    /// As it is written.
    Text(&'a str),
    /// As it is.
    Real(f64),
}

impl Number<'_> {
    /// The number, which may be infinite or none; `what` names it where it is refused.
    ///
    /// # Errors
    /// When it is text that is no number.
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
