//! Copies and prefetches in portions of a few cache lines, interleaved with other work that hides their
//! latency.

use super::dispatch::per_isa;
use super::isa::Isa;
use super::lookup::Instructions;
use super::memory::{Lines, per_line, prefetch};
use crate::number::Number;

/// A copy to main memory and a prefetch, both of which are advanced during other work.
pub(crate) struct Transfer<'a, T> {
    from: &'a [T],
    lines: Lines<'a, T>,
    /// The numbers of the destination after its last whole line.
    tail: &'a mut [T],
    fetched: &'a [T],
}

/// The size of a portion, which is small enough not to stall: the number of lines to copy, and of numbers to
/// prefetch.
pub(crate) struct Portion {
    lines: usize,
    fetched: usize,
}

impl<'a, T: Number> Transfer<'a, T> {
    /// Creates a transfer that prefetches `numbers` and copies nothing.
    pub(crate) fn fetching(numbers: &'a [T]) -> Self {
        Self { fetched: numbers, ..Self::copying(&[], &mut []) }
    }

    /// Creates a transfer that copies `from` to `to`. Numbers before the first whole line of `to` are copied
    /// immediately.
    pub(crate) fn copying(from: &'a [T], to: &'a mut [T]) -> Self {
        let (head, lines, tail) = Lines::split(to);
        let (first, from) = from.split_at(head.len());
        copy_few(first, head);
        Self { from, lines, tail, fetched: &[] }
    }

    /// Returns the size of a portion, if the rest of the transfer is divided into `parts` nearly equal
    /// portions.
    pub(crate) fn portion(&self, parts: usize) -> Portion {
        let fetched = self.fetched.len().div_ceil(per_line::<T>()).div_ceil(parts) * per_line::<T>();
        Portion { lines: self.lines.count().div_ceil(parts), fetched }
    }

    /// Transfers one portion, or the rest if it is smaller.
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

    /// Transfers the rest.
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

/// Copies a slice that is usually empty: checking this is faster than calling memcpy.
#[inline(always)]
fn copy_few<T: Copy>(from: &[T], to: &mut [T]) {
    if !from.is_empty() {
        to.copy_from_slice(from);
    }
}
