/// A line to read after a CSV file, by which [`csv_end`] finds a quote that is not closed: its cell would
/// extend to the end of the file, and hold the rows of others and this line.
pub const CSV_END: &[u8] = b"\n\x01end of the table\x01";

/// Whether a record of `cells` cells, the `last` of which holds these bytes, ends the file that [`CSV_END`]
/// follows: `None` if it does not, `Some(false)` if a quoted cell was not closed.
///
/// ```
/// use antinoise_input::tables::{CSV_END, csv_end};
/// let end = &CSV_END[1..];
/// assert_eq!((csv_end(2, b"Oh!"), csv_end(1, end)), (None, Some(true)));
/// assert_eq!(csv_end(2, &[b"Oh!\nB,No!\n", end].concat()), Some(false));
/// ```
#[inline]
pub fn csv_end(cells: usize, last: &[u8]) -> Option<bool> {
    let end = &CSV_END[1..];
    last.ends_with(end).then(|| cells == 1 && last == end)
}
