use std::fmt;

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

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroOut => "zero-out",
            Self::ReplaceOne => "replace-one",
            Self::AddOrRemove => "add-or-remove",
        })
    }
}
