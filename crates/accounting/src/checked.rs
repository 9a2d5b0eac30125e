/// What every figure of this crate rests on besides theorems, in one sentence, for a statement to quote.
///
/// `docs/accounting.md` lists the constants one by one.
///
/// ```
/// assert!(antinoise_accounting::NUMERICAL_ASSUMPTION.starts_with("elementary functions"));
/// ```
pub const NUMERICAL_ASSUMPTION: &str = "elementary functions err by a few units in the last place, and the margins \
     for the rounding of the normal distribution's tails, ten times the largest error seen against 60-digit \
     arithmetic, are checked and not proved";
