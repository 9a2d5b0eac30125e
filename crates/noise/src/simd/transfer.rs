//! Memory traffic made a few lines at a time between other work, which hides what it waits for.

use zeroize::Zeroize;

use super::dispatch::per_isa;
use super::isa::Isa;
use super::lookup::Instructions;
use super::memory::{LINE, Lines, fence, per_line, prefetch};
use crate::number::Number;

/// A copy past the caches, and numbers to be brought near, both to go on beside other work.
pub(crate) struct Transfer<'a, T> {
    from: &'a [T],
    lines: Lines<'a, T>,
    /// What lies behind the lines.
    tail: &'a mut [T],
    fetched: &'a [T],
}

/// What is done at a time, too little to be waited for: lines to be copied and numbers to be fetched.
pub(crate) struct Portion {
    lines: usize,
    fetched: usize,
}

impl<'a, T: Number> Transfer<'a, T> {
    /// Nothing to copy, and `numbers` to be fetched.
    pub(crate) fn fetching(numbers: &'a [T]) -> Self {
        Self { fetched: numbers, ..Self::copying(&[], &mut []) }
    }

    /// Copies what lies before the first whole line of `to` at once.
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

/// A long copy past the caches in parts: numbers that do not fill a line wait for the next part, since a line written
/// in two would be read first.
pub(crate) struct LongCopy<'a, T: Number> {
    to: &'a mut [T],
    line: [T; 16],
    waiting: usize,
}

impl<'a, T: Number> LongCopy<'a, T> {
    /// A copy to `to`, in order.
    pub(crate) fn new(to: &'a mut [T]) -> Self {
        Self { to, line: [T::default(); 16], waiting: 0 }
    }

    /// The copy of the next part, `from`.
    pub(crate) fn next<'b>(&mut self, isa: Isa, from: &'b [T]) -> Transfer<'b, T>
    where
        'a: 'b,
    {
        let lacks = match self.waiting {
            0 => self.to.as_ptr().align_offset(LINE),
            waiting => per_line::<T>() - waiting,
        };
        let (first, from) = from.split_at(lacks.min(from.len()));
        copy_few(first, &mut self.line[self.waiting..][..first.len()]);
        self.waiting += first.len();
        if first.len() < lacks {
            return Transfer::fetching(&[]);
        }
        let to = self.take(self.waiting);
        Transfer::copying(&self.line[..self.waiting], to).finish(isa);
        let (whole, rest) = from.split_at(from.len() / per_line::<T>() * per_line::<T>());
        copy_few(rest, &mut self.line[..rest.len()]);
        self.waiting = rest.len();
        Transfer::copying(whole, self.take(whole.len()))
    }

    /// Copies what still waits.
    pub(crate) fn finish(mut self) {
        self.take(self.waiting).copy_from_slice(&self.line[..self.waiting]);
        self.line.zeroize();
        fence();
    }

    fn take(&mut self, count: usize) -> &'a mut [T] {
        let (taken, left) = std::mem::take(&mut self.to).split_at_mut(count);
        self.to = left;
        taken
    }
}
