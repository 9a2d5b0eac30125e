//! Numbers that a recursion can be made of.

use antinoise_input::InvalidParameter;

pub(super) fn finite(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() { Ok(got) } else { Err(InvalidParameter::new(parameter, got, "finite numbers")) }
}

pub(super) fn nonzero(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() && got != 0.0 {
        Ok(got)
    } else {
        Err(InvalidParameter::new(parameter, got, "finite and not 0"))
    }
}
