//! The last touch of a step: the noise leaves, scaled.

use crate::gaussian::Real;
use crate::simd::{Isa, LINE, Level, per_isa, per_line, prefetch};

/// What is done with a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Emit<'a> {
    /// The noise itself.
    Write,
    /// Times a number, and added to what is there.
    Add(f32),
    /// On a grid: added to this sum.
    AddTo(&'a [f64]),
}

impl Emit<'_> {
    /// The same for `len` outputs from `output` on.
    pub(crate) fn part(self, output: usize, len: usize) -> Self {
        match self {
            Self::AddTo(sum) => Self::AddTo(&sum[output..][..len]),
            all => all,
        }
    }
}

/// How the noise of one step leaves: times `factor`, on a grid of `spacing` or on none.
#[derive(Clone, Copy)]
pub(crate) struct Leave<'a> {
    pub(crate) emit: Emit<'a>,
    pub(crate) factor: f64,
    pub(crate) spacing: Option<f64>,
    pub(crate) large: bool,
}

impl<'a> Leave<'a> {
    /// What noise on a grid is added to, if anything.
    pub(super) fn sum(&self) -> Option<&'a [f64]> {
        match self.emit {
            Emit::AddTo(sum) => Some(sum),
            Emit::Write => None,
            Emit::Add(_) => unreachable!("on a grid, nothing is added in single precision"),
        }
    }
}

/// Outputs of more bytes than this will not be found in a cache again: they are written past it.
pub(crate) const PAST_CACHE: usize = 8 << 20;

/// True when `out` is better written past the caches.
pub(crate) fn is_large<T>(out: &[T]) -> bool {
    size_of_val(out) >= PAST_CACHE
}

/// out = scale x, past the caches if `large`: the lines of `out` are then not read first.
pub(crate) fn write_scaled<T: Real>(isa: Isa, large: bool, scale: T, x: &[T], out: &mut [T]) {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where its features were detected.
        Level::Avx512 if large => unsafe { stream_scaled(scale, x, out) },
        _ => store_scaled(isa, scale, x, out),
    }
}

/// Memory traffic made a few lines at a time between other work, which hides what it waits for: a copy past the caches,
/// and numbers to be brought near.
pub(crate) struct Aside<'a, T> {
    from: &'a [T],
    to: &'a mut [T],
    near: &'a [T],
}

/// Numbers to be copied and to be fetched at a time: whole lines, too few for either to wait.
pub(crate) struct Portion {
    copied: usize,
    fetched: usize,
}

impl<'a, T: Copy> Aside<'a, T> {
    /// Nothing to copy, and `near` to be fetched.
    pub(crate) fn fetching(near: &'a [T]) -> Self {
        Self { from: &[], to: &mut [], near }
    }

    /// Copies what lies before the first whole line of `to` at once.
    pub(crate) fn copying(from: &'a [T], to: &'a mut [T]) -> Self {
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (first, to) = to.split_at_mut(head);
        let (from_first, from) = from.split_at(head);
        copy_few(from_first, first);
        Self { from, to, near: &[] }
    }

    /// What is left in `parts` portions, about equal.
    pub(crate) fn portion(&self, parts: usize) -> Portion {
        let numbers = |left: usize| left.div_ceil(per_line::<T>()).div_ceil(parts) * per_line::<T>();
        Portion { copied: numbers(self.to.len()), fetched: numbers(self.near.len()) }
    }

    /// A portion, or what is left of it: whole lines only of a copy.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn part(&mut self, portion: &Portion) {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
        if portion.fetched > 0 {
            let (near, rest) = self.near.split_at(portion.fetched.min(self.near.len()));
            prefetch(near);
            self.near = rest;
        }
        if portion.copied == 0 {
            return;
        }
        let numbers = portion.copied.min(self.to.len() / per_line::<T>() * per_line::<T>());
        let (from, from_rest) = self.from.split_at(numbers);
        let (to, to_rest) = std::mem::take(&mut self.to).split_at_mut(numbers);
        for (from, to) in from.chunks_exact(per_line::<T>()).zip(to.chunks_exact_mut(per_line::<T>())) {
            // SAFETY: both hold 64 bytes; `to` starts at a multiple of 64 bytes, the load needs no alignment.
            unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
        }
        (self.from, self.to) = (from_rest, to_rest);
    }

    /// All that is left.
    pub(crate) fn finish(mut self, isa: Isa) {
        #[cfg(target_arch = "x86_64")]
        if isa.level() == Level::Avx512 {
            // SAFETY: an `Isa` of this level exists only where its features were detected.
            unsafe { self.part(&self.portion(1)) };
        }
        prefetch(self.near);
        copy_few(self.from, self.to);
    }
}

/// A copy of mostly nothing, for which a call would take longer.
#[inline(always)]
fn copy_few<T: Copy>(from: &[T], to: &mut [T]) {
    if !from.is_empty() {
        to.copy_from_slice(from);
    }
}

/// A long copy past the caches in portions: numbers that do not fill a line wait for the next portion, since a line
/// written in two parts would be read first.
pub(crate) struct Portions<'a, T> {
    to: &'a mut [T],
    line: [T; 16],
    waiting: usize,
}

impl<'a, T: Real> Portions<'a, T> {
    /// Portions of `to`, in order.
    pub(crate) fn new(to: &'a mut [T]) -> Self {
        Self { to, line: [T::default(); 16], waiting: 0 }
    }

    /// The copy of the next portion, `from`.
    pub(crate) fn next<'b>(&mut self, isa: Isa, from: &'b [T]) -> Aside<'b, T>
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
            return Aside::fetching(&[]);
        }
        let to = self.take(self.waiting);
        Aside::copying(&self.line[..self.waiting], to).finish(isa);
        let (whole, rest) = from.split_at(from.len() / per_line::<T>() * per_line::<T>());
        copy_few(rest, &mut self.line[..rest.len()]);
        self.waiting = rest.len();
        Aside::copying(whole, self.take(whole.len()))
    }

    /// Copies what still waits.
    pub(crate) fn finish(mut self) {
        self.take(self.waiting).copy_from_slice(&self.line[..self.waiting]);
        settle();
    }

    fn take(&mut self, count: usize) -> &'a mut [T] {
        let (taken, left) = std::mem::take(&mut self.to).split_at_mut(count);
        self.to = left;
        taken
    }
}

/// Waits until lines written past the caches are where every reader finds them.
pub(crate) fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn stream_scaled<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    use std::arch::x86_64::{_mm_sfence, _mm512_loadu_si512, _mm512_stream_si512};
    let per_line = per_line::<T>();
    let head = out.as_ptr().align_offset(LINE).min(out.len());
    let (first, out) = out.split_at_mut(head);
    let (x_first, x) = x.split_at(head);
    store_scaled_body(scale, x_first, first);
    let (mut lines, mut x_lines) = (out.chunks_exact_mut(per_line), x.chunks_exact(per_line));
    for (out, x) in lines.by_ref().zip(x_lines.by_ref()) {
        let mut line = [scale; 16];
        store_scaled_body(scale, x, &mut line[..per_line]);
        // SAFETY: both hold 64 bytes; `out` starts at a multiple of 64 bytes, the load needs no alignment.
        unsafe { _mm512_stream_si512(out.as_mut_ptr().cast(), _mm512_loadu_si512(line.as_ptr().cast())) };
    }
    store_scaled_body(scale, x_lines.remainder(), lines.into_remainder());
    // Streamed lines may reach memory late; whoever reads them next must not be earlier.
    _mm_sfence();
}

per_isa! {
    fn store_scaled[T: Real](scale: T, x: &[T], out: &mut [T]) = store_scaled_body
}

#[inline(always)]
fn store_scaled_body<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale * *x;
    }
}

per_isa! {
    /// out += scale x.
    pub(super) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) = add_scaled_body
}

#[inline(always)]
fn add_scaled_body(scale: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale.mul_add(*x, *out);
    }
}
