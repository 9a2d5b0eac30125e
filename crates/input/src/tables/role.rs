/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A time.
    Time,
    /// A name: a key, a category.
    Name,
    /// A user: a name, or a number that must be whole.
    User,
    /// A number.
    Value,
}

impl Role {
    /// The accepted types, in words.
    pub(crate) fn must_be(self) -> &'static str {
        match self {
            Self::Time => {
                "text, numbers, dates, or timestamps in UTC, at a fixed offset or without a zone: convert times of other zones to local times"
            }
            Self::Name => "text, whole numbers or true and false",
            Self::User => "text, numbers or true and false",
            Self::Value => "numbers",
        }
    }
}
