/// A line to read after a CSV file, by which [`csv_end`] finds a quote that is not closed: its cell would
/// extend to the end of the file, and hold the rows of others and this line.
pub const CSV_END: &[u8] = b"\n\x01end of the table\x01";

/// Whether a record of `cells` cells, of which `cell(i)` is the i-th, ends the file that [`CSV_END`] follows:
/// `None` if it does not, `Some(false)` if a quoted cell was not closed.
///
/// ```
/// use antinoise_input::tables::{CSV_END, csv_end};
/// let ends = |cells: &[&'static [u8]]| csv_end(cells.len(), |i| cells.get(i).copied());
/// let end = &CSV_END[1..];
/// assert_eq!((ends(&[b"A", b"Oh!"]), ends(&[end]), ends(&[])), (None, Some(true), None));
/// assert_eq!(ends(&[b"A", b"Oh!\nB,No!\n\x01end of the table\x01"]), Some(false));
/// ```
#[inline]
pub fn csv_end<'a>(cells: usize, cell: impl FnOnce(usize) -> Option<&'a [u8]>) -> Option<bool> {
    let (last, end) = (cell(cells.checked_sub(1)?)?, &CSV_END[1..]);
    last.ends_with(end).then(|| cells == 1 && last == end)
}
