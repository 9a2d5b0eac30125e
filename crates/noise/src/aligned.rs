//! Numbers that start at a cache line.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

use crate::NoiseError;
use crate::simd::LINE;

/// Zeros at first, which take no memory before they are written.
pub(crate) struct AlignedNumbers<T> {
    numbers: Vec<T>,
    /// Where the first line starts.
    first: usize,
    len: usize,
}

impl<T: Copy + Default> AlignedNumbers<T> {
    const PER_LINE: usize = LINE / size_of::<T>();

    /// So many zeros.
    ///
    /// # Errors
    /// When there is no such amount of memory.
    pub(crate) fn zeros(count: u64) -> Result<Self, NoiseError> {
        let refused = || {
            let bytes = u128::from(count) * size_of::<T>() as u128;
            NoiseError::input("memory", format!("{bytes} bytes"), "available")
        };
        let len = usize::try_from(count).map_err(|_| refused())?;
        let all = len.checked_add(Self::PER_LINE).ok_or_else(refused)?;
        let mut check: Vec<T> = Vec::new();
        check.try_reserve_exact(all).map_err(|_| refused())?;
        drop(check);
        let numbers = vec![T::default(); all];
        let first = numbers.as_ptr().align_offset(LINE).min(Self::PER_LINE);
        Ok(Self { numbers, first, len })
    }
}

impl<T> Deref for AlignedNumbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.first..][..self.len]
    }
}

impl<T> DerefMut for AlignedNumbers<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.first..][..self.len]
    }
}

impl<T: Zeroize> Zeroize for AlignedNumbers<T> {
    fn zeroize(&mut self) {
        self.numbers.zeroize();
    }
}
