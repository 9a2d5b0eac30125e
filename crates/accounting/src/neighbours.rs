use std::fmt;

use antinoise_input::InvalidParameter;

/// The adjacency of a statement: how two data sets differ that must be hard to distinguish.
///
/// ```
/// use antinoise_accounting::Neighbours;
/// assert_eq!(Neighbours::ZeroOut.to_string(), "zero-out");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// One unit's contributions become zero; nothing else changes.
    #[default]
    ZeroOut,
    /// One unit is replaced by another.
    ReplaceOne,
    /// One unit is added or removed.
    AddOrRemove,
}

impl Neighbours {
    /// Returns the maximum distance, in clip norms, by which one participation moves the sum of clipped
    /// contributions.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Neighbours::ReplaceOne.sensitivity_factor(), 2.0);
    /// ```
    pub fn sensitivity_factor(self) -> f64 {
        if self == Self::ReplaceOne { 2.0 } else { 1.0 }
    }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroOut => "zero-out",
            Self::ReplaceOne => "replace-one",
            Self::AddOrRemove => "add-or-remove",
        })
    }
}

impl std::str::FromStr for Neighbours {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        let all = [Self::ZeroOut, Self::ReplaceOne, Self::AddOrRemove];
        all.into_iter().find(|neighbours| neighbours.to_string() == text).ok_or_else(|| {
            let must_be = "zero-out, replace-one or add-or-remove";
            InvalidParameter::new("adjacency", format!("{text:?}"), must_be).into()
        })
    }
}
