//! Numbers that start at a cache line.

use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::NoiseError;
use crate::simd::{LINE, per_line};

/// Zeros at first, which take no memory before they are written; wiped on drop.
pub(crate) struct AlignedNumbers<T: Zeroize> {
    numbers: Vec<T>,
    /// Where the first line starts.
    first: usize,
    len: usize,
}

impl<T: Copy + Default + Zeroize> AlignedNumbers<T> {
    /// So many zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let numbers = vec![T::default(); len + per_line::<T>()];
        let first = numbers.as_ptr().align_offset(LINE).min(per_line::<T>());
        Self { numbers, first, len }
    }

    /// The same, where it may be more than there is.
    ///
    /// # Errors
    /// When there is no such amount of memory.
    pub(crate) fn try_zeros(count: u64) -> Result<Self, NoiseError> {
        let refused = || {
            let bytes = u128::from(count) * size_of::<T>() as u128;
            NoiseError::input("memory", format!("{bytes} bytes"), "available")
        };
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

impl<T: Zeroize> ZeroizeOnDrop for AlignedNumbers<T> {}
