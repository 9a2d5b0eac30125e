//! Memory traffic of a few lines at a time between other work, which hides its latency.

use super::dispatch::per_isa;
use super::isa::Isa;
use super::lookup::Instructions;
use super::memory::{Lines, per_line, prefetch};
use crate::number::Number;

/// A copy past the caches, and numbers to be fetched into them, both to go on beside other work.
pub(crate) struct Transfer<'a, T> {
    from: &'a [T],
    lines: Lines<'a, T>,
    /// The numbers after the last whole line.
    tail: &'a mut [T],
    fetched: &'a [T],
}

/// A portion, too small to stall: lines to be copied and numbers to be fetched.
pub(crate) struct Portion {
    lines: usize,
    fetched: usize,
}

impl<'a, T: Number> Transfer<'a, T> {
    /// Nothing to copy, and `numbers` to be fetched.
    pub(crate) fn fetching(numbers: &'a [T]) -> Self {
        Self { fetched: numbers, ..Self::copying(&[], &mut []) }
    }

    /// Copies the numbers before the first whole line of `to` at once.
    pub(crate) fn copying(from: &'a [T], to: &'a mut [T]) -> Self {
        let (head, lines, tail) = Lines::split(to);
        let (first, from) = from.split_at(head.len());
        copy_few(first, head);
        Self { from, lines, tail, fetched: &[] }
    }

    /// What is left in `parts` portions, about equal.
    pub(crate) fn portion(&self, parts: usize) -> Portion {
        let fetched = self.fetched.len().div_ceil(per_line::<T>()).div_ceil(parts) * per_line::<T>();
        Portion { lines: self.lines.count().div_ceil(parts), fetched }
    }

    /// A portion, or what is left of it.
    #[inline(always)]
    pub(crate) fn advance(&mut self, set: impl Instructions, portion: &Portion) {
        if portion.fetched > 0 {
            let (now, rest) = self.fetched.split_at(portion.fetched.min(self.fetched.len()));
            prefetch(now);
            self.fetched = rest;
        }
        if portion.lines == 0 {
            return;
        }
        let lines = self.lines.take(portion.lines);
        let (from, rest) = self.from.split_at(lines.count() * per_line::<T>());
        set.write_lines(from, lines);
        self.from = rest;
    }

    /// All that is left.
    pub(crate) fn finish(mut self, isa: Isa) {
        let portion = self.portion(1);
        if portion.lines + portion.fetched > 0 {
            advance(isa, &mut self, &portion);
        }
        copy_few(self.from, self.tail);
    }
}

per_isa! {
    fn advance<set>[T: Number](transfer: &mut Transfer<'_, T>, portion: &Portion) {
        transfer.advance(set, portion);
    }
}

/// A copy of mostly nothing, for which a call would take longer.
#[inline(always)]
fn copy_few<T: Copy>(from: &[T], to: &mut [T]) {
    if !from.is_empty() {
        to.copy_from_slice(from);
    }
}
