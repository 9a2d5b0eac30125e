//! The examples or characters that test accuracies are shares of.

/// The examples or characters that a test accuracy is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// Of this number of test examples, those whose class was predicted.
    Examples(usize),
    /// Of this number of characters of test users, those that were predicted.
    Characters(usize),
}

impl Tested {
    /// Number of examples or characters.
    pub fn count(self) -> usize {
        match self {
            Self::Examples(count) | Self::Characters(count) => count,
        }
    }

    /// "examples" or "characters".
    pub fn name(self) -> &'static str {
        match self {
            Self::Examples(_) => "examples",
            Self::Characters(_) => "characters",
        }
    }

    /// The prediction that depends on no input, in words.
    pub fn most_frequent(self) -> &'static str {
        match self {
            Self::Examples(_) => "the largest class",
            Self::Characters(_) => "the most frequent character",
        }
    }

    /// The source of the standard error of a single run, in words.
    pub fn error_is(self) -> String {
        match self {
            Self::Examples(count) => format!("standard error of a share of {count} test examples"),
            Self::Characters(count) => {
                format!("standard error of a share of {count} test characters, as if these were independent")
            }
        }
    }
}
