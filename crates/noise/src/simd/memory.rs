//! Memory operations: alignment to cache lines, prefetching, writes that bypass the caches, and wiping.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
use super::isa::Avx512;
use crate::error::{Error, Result};
use crate::number::Number;

/// Number of bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Outputs of at least this many bytes leave the caches before they are read again, so that they are written
/// directly to main memory.
pub(crate) const BEYOND_CACHE: usize = 8 << 20;

/// Number of `T` in a cache line.
pub(crate) const fn per_line<T>() -> usize {
    LINE / size_of::<T>()
}

/// Whether `count` numbers should be written directly to main memory.
pub(crate) fn is_large<T>(count: usize) -> bool {
    count >= BEYOND_CACHE / size_of::<T>()
}

/// A value that starts at a cache line, so that its vectors do not cross lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// An array of numbers that starts at a cache line. The numbers are zeros at first, which take no memory
/// before they are written; they are wiped on drop.
#[derive(Default)]
pub(crate) struct AlignedNumbers<T: Zeroize> {
    numbers: Vec<T>,
    /// Index of the first number at the start of a line.
    first: usize,
    len: usize,
}

impl<T: Number> AlignedNumbers<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let numbers = vec![T::default(); len + per_line::<T>()];
        let first = numbers.as_ptr().align_offset(LINE).min(per_line::<T>());
        Self { numbers, first, len }
    }

    /// Allocates `count` zeros if there is enough memory.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(crate) fn try_zeros(count: u128) -> Result<Self> {
        let bytes = count.saturating_mul(size_of::<T>() as u128);
        let refused = || Error::input("memory", format!("{bytes} bytes"), "available");
        let len = usize::try_from(count).map_err(|_| refused())?;
        let mut check: Vec<T> = Vec::new();
        check.try_reserve_exact(len.saturating_add(per_line::<T>())).map_err(|_| refused())?;
        drop(check);
        Ok(Self::zeros(len))
    }
}

impl<T: Zeroize> Deref for AlignedNumbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.first..][..self.len]
    }
}

impl<T: Zeroize> DerefMut for AlignedNumbers<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.first..][..self.len]
    }
}

impl<T: Zeroize> Drop for AlignedNumbers<T> {
    fn drop(&mut self) {
        self.numbers.zeroize();
    }
}

/// Prefetches the lines of `numbers` into the second-level cache, without waiting.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(per_line::<T>()) {
        // SAFETY: a hint, at an address inside the slice; every x86-64 processor has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

/// Whole cache lines of numbers. Only [`Lines::split`] and [`Lines::take`] create values of this type, which
/// ensures that they start at a line.
pub struct Lines<'a, T>(&'a mut [T]);

impl<'a, T: Number> Lines<'a, T> {
    /// Returns the numbers before the first whole line, the whole lines, and the numbers after the last whole
    /// line.
    pub(crate) fn split(numbers: &'a mut [T]) -> (&'a mut [T], Self, &'a mut [T]) {
        let head = numbers.as_ptr().align_offset(LINE).min(numbers.len());
        let (head, rest) = numbers.split_at_mut(head);
        let (lines, tail) = rest.split_at_mut(rest.len() / per_line::<T>() * per_line::<T>());
        (head, Self(lines), tail)
    }

    /// Number of lines.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.0.len() / per_line::<T>()
    }

    /// Splits off the first `count` lines, or all if there are fewer.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: usize) -> Self {
        let numbers = self.0.len().min(count * per_line::<T>());
        let (taken, rest) = std::mem::take(&mut self.0).split_at_mut(numbers);
        self.0 = rest;
        Self(taken)
    }

    /// Copies `from`, which must have the same length.
    #[inline(always)]
    pub(super) fn write(self, from: &[T]) {
        self.0.copy_from_slice(from);
    }

    /// As [`Self::write`], but directly to main memory, so that the lines are not read first.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn stream(self, _: Avx512, from: &[T]) {
        const { assert!(LINE.is_multiple_of(size_of::<T>())) };
        let per_line = per_line::<T>();
        for (from, to) in from.chunks_exact(per_line).zip(self.0.chunks_exact_mut(per_line)) {
            // SAFETY: both hold the 64 bytes of a line, `to` starts at a line since `self` does, and the
            // argument proves AVX-512.
            unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
        }
    }
}

/// Copies a few numbers, directly to main memory if `to` starts at a multiple of 16 bytes.
#[inline(always)]
pub(crate) fn stream_block<const L: usize>(from: &[i32; L], to: &mut [i32; L]) {
    #[cfg(target_arch = "x86_64")]
    if L.is_multiple_of(4) && to.as_ptr().addr().is_multiple_of(16) {
        for (from, to) in from.as_chunks::<4>().0.iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: both hold 16 bytes, and `to` starts at a multiple of 16, since the first does, checked
            // above; every x86-64 processor has these instructions.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), _mm_loadu_si128(from.as_ptr().cast())) };
        }
        return;
    }
    *to = *from;
}

/// Waits until lines that were written directly to main memory are visible to all threads.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        _mm_sfence()
    };
}
