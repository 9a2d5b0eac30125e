//! Memory traffic made a few lines at a time between other work, which hides what it waits for.

use zeroize::Zeroize;

use super::isa::{Isa, per_isa};
use super::lookup::Instructions;
use super::memory::{LINE, fence, per_line, prefetch};
use crate::number::Number;

/// A copy past the caches, and numbers to be brought near, both to go on beside other work.
pub(crate) struct Transfer<'a, T> {
    from: &'a [T],
    to: &'a mut [T],
    fetched: &'a [T],
}

/// Numbers to be copied and to be fetched at a time: whole lines, too few for either to wait.
pub(crate) struct Portion {
    copied: usize,
    fetched: usize,
}

impl<'a, T: Number> Transfer<'a, T> {
    /// Nothing to copy, and `numbers` to be fetched.
    pub(crate) fn fetching(numbers: &'a [T]) -> Self {
        Self { from: &[], to: &mut [], fetched: numbers }
    }

    /// Copies what lies before the first whole line of `to` at once.
    pub(crate) fn copying(from: &'a [T], to: &'a mut [T]) -> Self {
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (first, to) = to.split_at_mut(head);
        let (from_first, from) = from.split_at(head);
        copy_few(from_first, first);
        Self { from, to, fetched: &[] }
    }

    /// What is left in `parts` portions, about equal.
    pub(crate) fn portion(&self, parts: usize) -> Portion {
        let numbers = |left: usize| left.div_ceil(per_line::<T>()).div_ceil(parts) * per_line::<T>();
        Portion { copied: numbers(self.to.len()), fetched: numbers(self.fetched.len()) }
    }

    /// All that is left.
    pub(crate) fn finish(mut self, isa: Isa) {
        let portion = self.portion(1);
        advance(isa, &mut self, &portion);
        copy_few(self.from, self.to);
    }
}

per_isa! {
    fn advance[T: Number](transfer: &mut Transfer<'_, T>, portion: &Portion) = advance_body, given set
}

/// A portion of `transfer`, or what is left of it: whole lines only of a copy.
#[inline(always)]
pub(crate) fn advance_body<T: Number>(
    set: impl Instructions,
    transfer: &mut Transfer<'_, T>,
    portion: &Portion,
) {
    if portion.fetched > 0 {
        let (now, rest) = transfer.fetched.split_at(portion.fetched.min(transfer.fetched.len()));
        prefetch(now);
        transfer.fetched = rest;
    }
    if portion.copied == 0 {
        return;
    }
    let numbers = portion.copied.min(transfer.to.len() / per_line::<T>() * per_line::<T>());
    let (from, from_rest) = transfer.from.split_at(numbers);
    let (to, to_rest) = std::mem::take(&mut transfer.to).split_at_mut(numbers);
    set.copy_lines(from, to);
    (transfer.from, transfer.to) = (from_rest, to_rest);
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
