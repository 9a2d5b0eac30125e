//! Numbers in sentences.

/// A number with its noun: the singular for 1, else the plural with an s.
///
/// ```
/// use antinoise_release::quantity;
/// assert_eq!([quantity(1, "row"), quantity(2, "row")], ["1 row", "2 rows"]);
/// ```
pub fn quantity(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
