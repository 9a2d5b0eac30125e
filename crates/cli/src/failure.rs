//! The failure of a command: its message and its exit status.

use std::fmt;

use antinoise_input::BadInput;

/// A message and the exit status: 2 for bad input, 128 plus the signal's number after a signal, else 1.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Bad input: exit status 2.
    pub fn input(message: impl fmt::Display) -> Self {
        Self::judged(message, true)
    }

    /// Anything else: exit status 1.
    pub fn other(message: impl fmt::Display) -> Self {
        Self::judged(message, false)
    }

    /// Stopped by a signal; `status` is the exit status that shells report for it.
    pub fn stopped(message: impl fmt::Display, status: u8) -> Self {
        Self { message: message.to_string(), status }
    }

    fn judged(message: impl fmt::Display, bad_input: bool) -> Self {
        Self { message: message.to_string(), status: if bad_input { 2 } else { 1 } }
    }

    /// Adds a remark to the message.
    #[cfg(feature = "release")]
    pub fn with(self, remark: &str) -> Self {
        Self { message: format!("{} {remark}", self.message), ..self }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Phrases of libraries' messages that an option answers, and the option.
const ANSWERS: [(&str, &str); 4] = [
    ("unless missing cells count as 0", "--missing zero"),
    ("unless rows of unknown keys are left out", "--unknown leave"),
    ("with a smaller learning rate", "--learning-rate"),
    ("left out where users are protected", "--user, --users"),
];

/// The message of a library, with the option that answers it.
fn with_option(message: &str) -> String {
    ANSWERS.iter().fold(message.to_string(), |message, (phrase, option)| {
        message.replace(phrase, &format!("{phrase} ({option})"))
    })
}

impl<E: BadInput> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::judged(with_option(&error.to_string()), error.is_bad_input())
    }
}

/// `Result` with [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;
