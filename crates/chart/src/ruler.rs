//! An axis once its data and its length are known: where each value lies, and which ticks are drawn.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::Axis;
use crate::text::ems;
use crate::tick::{Tick, short};

/// Size of the numbers at ticks, in pixels.
pub(crate) const TICK_TEXT: f64 = 12.0;
/// Room from one number to the next: beside, and above.
const BESIDE: f64 = 12.0;
const ABOVE: f64 = 17.0;

/// Which way an axis goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Across,
    Up,
}

/// A scale with its ticks.
#[derive(Debug, Clone)]
pub(crate) struct Ruler {
    low: f64,
    high: f64,
    logarithmic: bool,
    reversed: bool,
    pub(crate) ticks: Vec<Tick>,
}

impl Ruler {
    /// The ruler of `axis` for these values, `length` pixels long.
    pub(crate) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        direction: Direction,
        length: f64,
    ) -> Self {
        let (low, high) = axis.extent(values);
        let (logarithmic, reversed) = (axis.logarithmic, axis.reversed);
        let mut ruler = Self { low, high, logarithmic, reversed, ticks: Vec::new() };
        ruler.ticks = ruler.chosen(axis, direction, length);
        ruler
    }

    /// The values asked for, if there is room for two of them; else the finest round ones that fit.
    fn chosen(&self, axis: &Axis, direction: Direction, length: f64) -> Vec<Tick> {
        let asked = self.with_room(axis.asked(), direction, length);
        if asked.len() >= 2 || axis.named {
            return asked;
        }
        let between = match direction {
            Direction::Across => 80.0,
            Direction::Up => 30.0,
        };
        let most = ((length / between) as usize).max(4);
        let sets = axis.candidates(self.low, self.high);
        let fits = |set: &&Vec<Tick>| {
            (2..=most).contains(&set.len()) && self.with_room(set, direction, length).len() == set.len()
        };
        let whole = sets.iter().find(fits).cloned();
        // Where none fits, some of the coarsest do.
        let thinned = || {
            let mut from_coarse = sets.iter().rev().map(|set| self.with_room(set, direction, length));
            from_coarse.find(|set| set.len() >= 2)
        };
        whole.or_else(thinned).unwrap_or_else(|| self.ends())
    }

    /// The ticks that are on the axis and whose labels do not touch the ones before.
    fn with_room(&self, ticks: &[Tick], direction: Direction, length: f64) -> Vec<Tick> {
        let mut kept: Vec<Tick> = Vec::new();
        for tick in ticks.iter().filter(|tick| (self.low..=self.high).contains(&tick.at)) {
            let clear = kept.last().is_none_or(|before| {
                let distance = length * (self.fraction(tick.at) - self.fraction(before.at)).abs();
                let needed = match direction {
                    Direction::Up => ABOVE,
                    Direction::Across => 0.5 * TICK_TEXT * (ems(&tick.label) + ems(&before.label)) + BESIDE,
                };
                distance >= needed
            });
            if clear && kept.iter().all(|before| before.label != tick.label) {
                kept.push(tick.clone());
            }
        }
        kept
    }

    /// The ticks that are always possible.
    fn ends(&self) -> Vec<Tick> {
        [self.low, self.high].map(|at| Tick { at, label: short(at, 7) }).into()
    }

    /// Where `value` lies, from 0 at one end to 1 at the other.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if self.reversed { 1.0 - share } else { share }
    }

    /// Pixels that the widest number takes.
    pub(crate) fn widest(&self) -> f64 {
        TICK_TEXT * self.ticks.iter().map(|tick| ems(&tick.label)).fold(0.0, f64::max)
    }

    /// The nearest value that is on the ruler.
    pub(crate) fn held(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (length * self.fraction(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // No line lies between ticks.
        let between = hint.weight().allow_light_points();
        if between { Vec::new() } else { self.ticks.iter().map(|tick| tick.at).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|tick| tick.at == *value).map_or_else(String::new, |tick| tick.label.clone())
    }
}
