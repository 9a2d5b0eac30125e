use std::io::{self, BufRead};

/// Whether the first line that `reader` still has ends with a carriage return and a line feed.
///
/// The csv crate ends such a line at the carriage return, so that the position of each next record is the
/// line before its own.
///
/// ```
/// use antinoise_input::tables::ends_lines_with_crlf;
/// assert!(ends_lines_with_crlf(&mut "a,b\r\n1,2\r\n".as_bytes())?);
/// assert!(!ends_lines_with_crlf(&mut "a,b\n1,2\r\n".as_bytes())?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When `reader` cannot be read.
pub fn ends_lines_with_crlf(reader: &mut impl BufRead) -> io::Result<bool> {
    let start = reader.fill_buf()?;
    let end = start.iter().position(|&byte| byte == b'\n');
    Ok(end.is_some_and(|end| start[..end].ends_with(b"\r")))
}
