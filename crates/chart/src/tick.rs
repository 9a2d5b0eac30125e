//! Ticks at round numbers, and their labels.

/// A tick and its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// mantissa 10^exponent, exactly.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    mantissa: i64,
    exponent: i32,
}

/// Bounds of the absolute values that are written without an exponent: from `SMALL` to below `LARGE`.
const LARGE: f64 = 1e6;
const SMALL: f64 = 1e-3;
/// Maximum number of ticks in a set: more than any axis has room for.
const MAX_TICKS: i64 = 24;
/// Tolerance that keeps a tick on a rounded limit.
const ROUNDING: f64 = 1e-9;

impl Decimal {
    /// The nearest double, even if 10^exponent is out of range.
    fn value(self) -> f64 {
        format!("{}e{}", self.mantissa, self.exponent).parse().expect("digits and an exponent are a number")
    }

    fn with_exponent(self) -> String {
        let digits = self.mantissa.abs().max(1).ilog10() as usize;
        let text = format!("{:.digits$e}", self.value());
        let (mantissa, exponent) = text.split_once('e').expect("it is in the exponent's form");
        format!("{}e{exponent}", without_zeros(mantissa))
    }

    fn plain(self) -> String {
        let decimals = usize::try_from(-self.exponent).unwrap_or(0);
        format!("{:.decimals$}", self.value())
    }
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Sets of ticks at the multiples of 1, 2 and 5 times powers of ten that lie in `low..=high`, from coarse to
/// fine; only whole numbers if `whole`.
pub(crate) fn linear(low: f64, high: f64, whole: bool) -> Vec<Vec<Tick>> {
    let top = (high - low).log10().floor() as i32 + 1;
    let steps =
        (top - 3..=top).rev().flat_map(|exponent| [5, 2, 1].map(|mantissa| Decimal { mantissa, exponent }));
    steps.filter(|step| !whole || step.exponent >= 0).filter_map(|step| multiples(low, high, step)).collect()
}

fn multiples(low: f64, high: f64, step: Decimal) -> Option<Vec<Tick>> {
    let size = step.value();
    let (first, last) = ((low / size - ROUNDING).ceil() as i64, (high / size + ROUNDING).floor() as i64);
    if last - first >= MAX_TICKS {
        return None;
    }
    let all = || (first..=last).map(|i| Decimal { mantissa: i * step.mantissa, ..step });
    let largest = all().map(|tick| tick.value().abs()).fold(0.0, f64::max);
    let plain = largest == 0.0 || (SMALL..LARGE).contains(&largest);
    let label = |tick: Decimal| match (plain, tick.mantissa) {
        (_, 0) => "0".into(),
        (true, _) => tick.plain(),
        (false, _) => tick.with_exponent(),
    };
    Some(all().map(|tick| Tick { at: tick.value(), label: label(tick) }).collect())
}

/// Sets of ticks at powers of ten, or at 1, 2 and 5 times these, that lie in `low..=high`, from coarse to
/// fine.
pub(crate) fn logarithmic(low: f64, high: f64) -> Vec<Vec<Tick>> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let within = |tick: &Decimal| {
        let at = tick.value();
        low * (1.0 - ROUNDING) <= at && at <= high * (1.0 + ROUNDING)
    };
    let set = |stride: i32, mantissas: &[i64]| -> Vec<Tick> {
        let exponents = (first..=last).filter(|exponent| exponent.rem_euclid(stride) == 0);
        let all = exponents
            .flat_map(|exponent| mantissas.iter().map(move |&mantissa| Decimal { mantissa, exponent }));
        all.filter(within).map(|tick| Tick { at: tick.value(), label: written(tick) }).collect()
    };
    let powers = [500, 300, 200, 100, 50, 20, 10, 5, 3, 2, 1].map(|stride| set(stride, &[1]));
    powers.into_iter().chain([set(1, &[1, 3]), set(1, &[1, 2, 5])]).collect()
}

fn written(tick: Decimal) -> String {
    if (SMALL..LARGE).contains(&tick.value()) { tick.plain() } else { tick.with_exponent() }
}

/// A number in `digits` digits, without zeros at the end.
pub(crate) fn short(x: f64, digits: usize) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let text = format!("{x:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').expect("it is in the exponent's form");
    let exponent: i32 = exponent.parse().expect("a whole number follows the e");
    let size = 10f64.powi(exponent);
    if (SMALL..LARGE).contains(&size) {
        let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
        let rounded: f64 = text.parse().expect("it was written as a number");
        return without_zeros(&format!("{rounded:.decimals$}")).into();
    }
    format!("{}e{exponent}", without_zeros(mantissa))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| &tick.label[..]).collect()
    }

    #[test]
    fn labels_are_short_and_exact() {
        let set = |low, high, size: usize| {
            linear(low, high, false).into_iter().find(|ticks| ticks.len() >= size).unwrap()
        };
        assert_eq!(labels(&set(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&set(-3e6, 2.1e6, 5)), ["-3e6", "-2e6", "-1e6", "0", "1e6", "2e6"]);
        assert_eq!(labels(&set(0.0, 2.5e-5, 4)), ["0", "5e-6", "1e-5", "1.5e-5", "2e-5", "2.5e-5"]);
    }

    #[test]
    fn short_numbers_have_their_digits_and_no_more() {
        for (x, text) in
            [(0.0, "0"), (1.0, "1"), (-0.375, "-0.375"), (1234.5, "1230"), (9.999, "10"), (1e-9, "1e-9")]
        {
            assert_eq!(short(x, 3), text);
        }
        assert_eq!((short(2.5e20, 2), short(0.00123456, 3)), ("2.5e20".into(), "0.00123".into()));
    }
}
