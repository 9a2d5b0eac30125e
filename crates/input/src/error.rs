//! The error for a bad parameter, and which errors are bad input.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::Path;

/// An invalid parameter: its name, its value and the values that are accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} is {got} but must be {must_be}")]
#[non_exhaustive]
pub struct InvalidParameter {
    /// The parameter's name, as the caller wrote it.
    pub parameter: String,
    /// The value that was refused.
    pub got: String,
    /// The values that are accepted.
    pub must_be: String,
}

impl InvalidParameter {
    /// The error for `parameter`, which got `got` and must be `must_be`.
    ///
    /// ```
    /// let error = antinoise_input::InvalidParameter::new("bands", 9, "at most steps = 8");
    /// assert_eq!(error.to_string(), "bands is 9 but must be at most steps = 8");
    /// ```
    pub fn new(parameter: impl Into<String>, got: impl Display, must_be: impl Into<String>) -> Self {
        Self {
            parameter: printable(&parameter.into()),
            got: printable(&got.to_string()),
            must_be: printable(&must_be.into()),
        }
    }
}

/// Characters that change the direction of the following text, or have no width.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `text` made safe for a terminal: control characters are escaped, and a very long text is cut.
///
/// Names and file contents may be hostile; a message that quotes them must not control the terminal.
///
/// ```
/// assert_eq!(antinoise_input::printable("no\u{1b}[2J\u{202e}"), "no\\u{1b}[2J\\u{202e}");
/// ```
pub fn printable(text: &str) -> String {
    const MAX_CHARACTERS: usize = 2000;
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() > MAX_CHARACTERS {
            return shown + "...";
        }
        match c {
            // Messages of parsers have several lines, which are kept.
            '\n' => shown.push('\n'),
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// An error that knows whether the caller's input, including files, is its cause.
///
/// The command line exits with status 2 and Python raises a `ValueError` for bad input; everything else is a
/// failure of the machine, or of a state that another process changed.
///
/// ```
/// use antinoise_input::{BadInput, positive};
/// assert!(positive("clip_norm", 0.0).unwrap_err().is_bad_input());
/// assert!(!std::io::Error::from(std::io::ErrorKind::StorageFull).is_bad_input());
/// ```
pub trait BadInput: std::error::Error {
    /// Returns whether the caller's input is the cause.
    fn is_bad_input(&self) -> bool;

    /// Returns the file that could not be read or written, if that is the error.
    fn file(&self) -> Option<(&Path, &io::Error)> {
        None
    }
}

impl BadInput for InvalidParameter {
    fn is_bad_input(&self) -> bool {
        true
    }
}

/// Errors of paths that do not exist or cannot be used are bad input; all other errors are failures of the
/// system.
impl BadInput for io::Error {
    fn is_bad_input(&self) -> bool {
        matches!(self.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
    }
}
