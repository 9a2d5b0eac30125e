//! A row in memory: one slice, or several slices in order.

/// A sequence of numbers that can be split into contiguous pieces.
pub trait Pieces: Sized {
    /// Returns the number of elements of the first piece, which is 0 only if the sequence is empty.
    fn together(&self) -> usize;

    /// Splits off the first `count` elements, of which there must be at least `count`.
    fn take(&mut self, count: usize) -> Self;
}

/// Calls `visit` for each contiguous piece of the first `count` elements, with the number of elements before
/// the piece.
pub(crate) fn each_piece<P: Pieces>(mut left: P, count: usize, mut visit: impl FnMut(usize, P)) {
    let mut before = 0;
    while before + left.together() < count {
        let len = left.together();
        visit(before, left.take(len));
        before += len;
    }
    visit(before, left);
}

macro_rules! pieces {
    ($(#[$meta:meta])* $name:ident, [$($mutable:tt)?], $split_at:ident, $split_first:ident) => {
        $(#[$meta])*
        pub struct $name<'a, 'b, T> {
            first: &'a $($mutable)? [T],
            middle: &'a $($mutable)? [&'b $($mutable)? [T]],
            last: &'a $($mutable)? [T],
        }

        impl<'a, 'b, T> $name<'a, 'b, T> {
            /// The given slices, in order.
            pub(crate) fn all(middle: &'a $($mutable)? [&'b $($mutable)? [T]]) -> Self {
                let mut all = Self { first: Default::default(), middle, last: Default::default() };
                all.settle();
                all
            }

            /// The first piece.
            pub(crate) fn first(self) -> &'a $($mutable)? [T] {
                self.first
            }

            /// Restores the invariant: `first` is empty only if all slices are.
            fn settle(&mut self) {
                while self.first.is_empty() && !self.middle.is_empty() {
                    if let Some((next, others)) = std::mem::take(&mut self.middle).$split_first() {
                        (self.first, self.middle) = (next, others);
                    }
                }
                if self.first.is_empty() {
                    std::mem::swap(&mut self.first, &mut self.last);
                }
            }
        }

        impl<T> Pieces for $name<'_, '_, T> {
            #[inline]
            fn together(&self) -> usize {
                self.first.len()
            }

            #[inline]
            fn take(&mut self, mut count: usize) -> Self {
                let mut taken = Self::all(Default::default());
                if count > self.first.len() {
                    count -= self.first.len();
                    taken.first = std::mem::take(&mut self.first);
                    let mut whole = 0;
                    while self.middle.get(whole).is_some_and(|piece| piece.len() <= count) {
                        count -= self.middle[whole].len();
                        whole += 1;
                    }
                    (taken.middle, self.middle) = std::mem::take(&mut self.middle).$split_at(whole);
                    self.settle();
                }
                (taken.last, self.first) = std::mem::take(&mut self.first).$split_at(count);
                self.settle();
                taken.settle();
                taken
            }
        }
    };
}

pieces! {
    /// Slices of memory to which outputs are written.
    OutputSlices, [mut], split_at_mut, split_first_mut
}

pieces! {
    /// Slices of memory from which inputs are read.
    #[derive(Debug, Clone, Copy)]
    InputSlices, [], split_at, split_first
}

/// A sequence without memory, from which any number of elements can be split off.
impl Pieces for () {
    fn together(&self) -> usize {
        usize::MAX
    }

    fn take(&mut self, _: usize) {}
}

/// Two sequences of the same length; a piece is contiguous in both.
impl<A: Pieces, B: Pieces> Pieces for (A, B) {
    #[inline]
    fn together(&self) -> usize {
        self.0.together().min(self.1.together())
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self {
        (self.0.take(count), self.1.take(count))
    }
}

impl<P: Pieces> Pieces for Option<P> {
    #[inline]
    fn together(&self) -> usize {
        self.as_ref().map_or(usize::MAX, P::together)
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self {
        self.as_mut().map(|pieces| pieces.take(count))
    }
}
