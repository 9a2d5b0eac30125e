//! The scale of a drawn axis: the positions of values, and the ticks for its length.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::Axis;
use crate::text::ems;
use crate::tick::{Tick, short};

/// Size of the numbers at ticks, in pixels.
pub(crate) const TICK_TEXT: f64 = 12.0;
/// Smallest gap between the numbers at a horizontal axis, in pixels.
const GAP: f64 = 12.0;
/// Smallest distance between the numbers at a vertical axis, in pixels.
const LINE_HEIGHT: f64 = 17.0;

/// The direction of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Across,
    Up,
}

/// A scale with its ticks.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    reversed: bool,
    pub(crate) ticks: Vec<Tick>,
}

impl Scale {
    /// The scale of `axis` for these values, `length` pixels long.
    pub(crate) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        direction: Direction,
        length: f64,
    ) -> Self {
        let (low, high) = axis.extent(values);
        let (logarithmic, reversed) = (axis.logarithmic, axis.reversed);
        let mut scale = Self { low, high, logarithmic, reversed, ticks: Vec::new() };
        scale.ticks = scale.chosen(axis, direction, length);
        scale
    }

    /// The requested ticks, if two of them fit; else the finest round ones that fit.
    fn chosen(&self, axis: &Axis, direction: Direction, length: f64) -> Vec<Tick> {
        let requested = self.with_room(axis.requested(), direction, length);
        if requested.len() >= 2 || axis.named {
            return requested;
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
        // If none fits, ticks of the coarsest set are dropped.
        let thinned = || {
            let mut from_coarse = sets.iter().rev().map(|set| self.with_room(set, direction, length));
            from_coarse.find(|set| set.len() >= 2)
        };
        whole.or_else(thinned).unwrap_or_else(|| self.ends())
    }

    /// The ticks in range whose labels do not touch earlier ones.
    fn with_room(&self, ticks: &[Tick], direction: Direction, length: f64) -> Vec<Tick> {
        let mut kept: Vec<Tick> = Vec::new();
        for tick in ticks.iter().filter(|tick| (self.low..=self.high).contains(&tick.at)) {
            let clear = kept.last().is_none_or(|before| {
                let distance = length * (self.fraction(tick.at) - self.fraction(before.at)).abs();
                let needed = match direction {
                    Direction::Up => LINE_HEIGHT,
                    Direction::Across => 0.5 * TICK_TEXT * (ems(&tick.label) + ems(&before.label)) + GAP,
                };
                distance >= needed
            });
            if clear && kept.iter().all(|before| before.label != tick.label) {
                kept.push(tick.clone());
            }
        }
        kept
    }

    /// Ticks at both ends, which always fit.
    fn ends(&self) -> Vec<Tick> {
        [self.low, self.high].map(|at| Tick { at, label: short(at, 7) }).into()
    }

    /// The position of `value`, from 0 at one end to 1 at the other.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if self.reversed { 1.0 - share } else { share }
    }

    /// Width of the widest number, in pixels.
    pub(crate) fn widest(&self) -> f64 {
        TICK_TEXT * self.ticks.iter().map(|tick| ems(&tick.label)).fold(0.0, f64::max)
    }

    /// The nearest value in range.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }
}

impl Ranged for Scale {
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

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|tick| tick.at == *value).map_or_else(String::new, |tick| tick.label.clone())
    }
}
