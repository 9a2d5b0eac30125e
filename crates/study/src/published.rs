//! Number of the trained models that are published.

use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Values of [`Published`], in words.
const ALLOWED: &str = "all or a number from 1 on";

/// The models that a privacy statement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Published {
    /// This number of models of each mechanism, at least 1, chosen without looking at the data.
    Some(usize),
    /// Every model that is trained, so that any choice among them is covered too.
    All,
}

impl Published {
    /// Whether a statement for `other` covers every model of a statement for this.
    pub fn is_covered_by(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::All) => true,
            (Self::Some(count), Self::Some(more)) => count <= more,
            (Self::All, Self::Some(_)) => false,
        }
    }

    /// Refuses no models, and more models than there are.
    pub fn check(self, trained: usize) -> Result<()> {
        match self {
            Self::Some(0) => Err(InvalidParameter::new("published_models", 0, ALLOWED).into()),
            Self::Some(count) if count > trained => {
                let must_be =
                    format!("all, or at most {trained}, the number of models trained with a mechanism");
                Err(InvalidParameter::new("published_models", count, must_be).into())
            }
            _ => Ok(()),
        }
    }
}

impl Default for Published {
    fn default() -> Self {
        Self::Some(1)
    }
}

impl FromStr for Published {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidParameter> {
        match text.parse() {
            Ok(count) if count > 0 => Ok(Self::Some(count)),
            _ if text == "all" => Ok(Self::All),
            _ => Err(InvalidParameter::new("published_models", format!("{text:?}"), ALLOWED)),
        }
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Some(count) => count.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

impl TryFrom<String> for Published {
    type Error = InvalidParameter;

    fn try_from(text: String) -> std::result::Result<Self, InvalidParameter> {
        text.parse()
    }
}

impl From<Published> for String {
    fn from(published: Published) -> Self {
        published.to_string()
    }
}
