//! An axis: its title, scale and range.

use crate::tick::Tick;
use crate::tick::{linear, logarithmic, short};

/// An axis: its title with the unit, its scale, and its ticks.
///
/// ```
/// use antinoise_chart::Axis;
/// let steps = Axis::logarithmic("training steps").ticks_at([64.0, 256.0, 1024.0]);
/// let share = Axis::linear("test accuracy (percent)").covering(0.0);
/// # let _ = (steps, share);
/// ```
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) title: String,
    pub(crate) logarithmic: bool,
    pub(crate) reversed: bool,
    whole: bool,
    pub(crate) named: bool,
    covers: Vec<f64>,
    ticks: Vec<Tick>,
}

/// Limits on the absolute values that are drawn: results computed from values outside would overflow or lose
/// their digits.
const LARGEST: f64 = 1e300;
const SMALLEST: f64 = 1e-300;
/// Values with a smaller relative difference are drawn as equal: no short label distinguishes them.
const LEAST_SPAN: f64 = 1e-5;
/// Margin around the data, relative to their range.
const ROOM: f64 = 0.04;

impl Axis {
    /// An axis on which equal distances are equal differences.
    pub fn linear(title: impl Into<String>) -> Self {
        let (covers, ticks) = (Vec::new(), Vec::new());
        Self {
            title: title.into(),
            logarithmic: false,
            reversed: false,
            whole: false,
            named: false,
            covers,
            ticks,
        }
    }

    /// An axis on which equal distances are equal ratios; values <= 0 are omitted.
    pub fn logarithmic(title: impl Into<String>) -> Self {
        Self { logarithmic: true, ..Self::linear(title) }
    }

    /// Restricts the axis to whole numbers, without ticks between them.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Extends the axis to include `value`, without a margin beyond it if the data end there.
    #[must_use]
    pub fn covering(mut self, value: f64) -> Self {
        self.covers.push(value);
        self
    }

    /// Reverses the direction of the axis.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reversed: true, ..self }
    }

    /// Places ticks at these values, as far as they fit. If fewer than two fit, other ticks are chosen.
    #[must_use]
    pub fn ticks_at(self, values: impl IntoIterator<Item = f64>) -> Self {
        let ticks = values.into_iter().map(|at| Tick { at, label: short(at, 7) }).collect();
        Self { ticks, ..self }
    }

    /// Places ticks with these labels at these values, as far as they fit; there are no others.
    #[must_use]
    pub fn labelled_at(self, ticks: impl IntoIterator<Item = (f64, impl Into<String>)>) -> Self {
        let ticks = ticks.into_iter().map(|(at, label)| Tick { at, label: label.into() }).collect();
        Self { named: true, ticks, ..self }
    }

    /// An axis of names: the first is at 0, the second at 1, and so on.
    pub fn named(title: impl Into<String>, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let ticks: Vec<Tick> =
            (0..).zip(names).map(|(i, name)| Tick { at: f64::from(i), label: name.into() }).collect();
        let covers = vec![-0.5, ticks.len() as f64 - 0.5];
        Self { named: true, ticks, covers, ..Self::linear(title) }
    }

    /// Whether this value can be shown on the axis.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.abs() <= LARGEST && (!self.logarithmic || value >= SMALLEST)
    }

    /// The range of the axis for these values: never empty, and wide enough for two ticks.
    pub(crate) fn extent(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let all = values.chain(self.covers.iter().copied()).filter(|&value| self.shows(value));
        let found = all.fold(None, |extent, value| match extent {
            Some((low, high)) => Some((value.min(low), value.max(high))),
            None => Some((value, value)),
        });
        let (low, high) = found.unwrap_or(if self.logarithmic { (1.0, 10.0) } else { (0.0, 1.0) });
        let (low, high) = self.widened(low, high);
        let room = if self.logarithmic { ROOM * (high.ln() - low.ln()) } else { ROOM * (high - low) };
        let beyond = |limit: f64, sign: f64| {
            if self.covers.contains(&limit) {
                limit
            } else if self.logarithmic {
                (limit * (sign * room).exp()).clamp(1e-6 * SMALLEST, 1e6 * LARGEST)
            } else {
                limit + sign * room
            }
        };
        (beyond(low, -1.0), beyond(high, 1.0))
    }

    /// The range for values that are nearly equal.
    fn widened(&self, low: f64, high: f64) -> (f64, f64) {
        let magnitude = low.abs().max(high.abs());
        if high - low >= LEAST_SPAN * magnitude && magnitude >= SMALLEST {
            let narrow = self.whole && high - low < 2.0;
            return if narrow { (low.floor(), high.ceil().max(low.floor() + 1.0)) } else { (low, high) };
        }
        match (self.logarithmic, self.whole) {
            (true, _) => (low / 2.0, high * 2.0),
            (false, true) => ((low - 1.0).max(low.min(0.0)), high + 1.0),
            (false, false) if magnitude < SMALLEST => (0.0, 1.0),
            (false, false) => (low - 0.5 * magnitude, high + 0.5 * magnitude),
        }
    }

    /// Sets of round ticks, in the order of trial.
    pub(crate) fn candidates(&self, low: f64, high: f64) -> Vec<Vec<Tick>> {
        let even = linear(low, high, self.whole).into_iter().rev();
        if !self.logarithmic {
            return even.collect();
        }
        let on_it = |set: Vec<Tick>| set.into_iter().filter(|tick| tick.at >= low).collect::<Vec<Tick>>();
        let powers = logarithmic(low, high);
        let (many, few): (Vec<_>, Vec<_>) = powers.into_iter().rev().partition(|set| set.len() >= 3);
        many.into_iter().chain(even.map(on_it)).chain(few).collect()
    }

    /// The requested ticks.
    pub(crate) fn requested(&self) -> &[Tick] {
        &self.ticks
    }
}
