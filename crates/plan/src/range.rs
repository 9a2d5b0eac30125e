use antinoise_input::InvalidParameter;

use crate::Result;

/// Refuses numbers outside of 2^-100 to 2^100, well within the normal numbers of single precision (2^-126 to
/// 2^127).
pub(crate) fn in_single_precision(what: &str, value: f64) -> Result<()> {
    if (2f64.powi(-100)..=2f64.powi(100)).contains(&value) {
        return Ok(());
    }
    Err(InvalidParameter::new(
        what,
        format!("{value:e}"),
        "from 2^-100 to 2^100, the range of single precision",
    )
    .into())
}
