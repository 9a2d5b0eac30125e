//! A row in memory: in one piece, or in several that hold it one after the other.

/// Calls `visit` for each piece, with the number of those before it.
pub(crate) fn each_piece<P: Pieces>(mut left: P, mut visit: impl FnMut(usize, P)) {
    let mut before = 0;
    while left.together() > 0 {
        let len = left.together();
        let (piece, others) = left.split(len);
        visit(before, piece);
        (left, before) = (others, before + len);
    }
}

/// What is taken piece by piece.
pub trait Pieces: Sized {
    /// Numbers in the first piece: none only where there are none at all.
    fn together(&self) -> usize;

    /// The first `count` numbers, of which there are so many, and the others.
    fn split(self, count: usize) -> (Self, Self);
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
            fn one(piece: &'a $($mutable)? [T]) -> Self {
                Self::new(piece, Default::default(), Default::default())
            }

            /// These, one after the other.
            pub(crate) fn all(pieces: &'a $($mutable)? [&'b $($mutable)? [T]]) -> Self {
                Self::new(Default::default(), pieces, Default::default())
            }

            fn new(
                mut first: &'a $($mutable)? [T],
                mut middle: &'a $($mutable)? [&'b $($mutable)? [T]],
                mut last: &'a $($mutable)? [T],
            ) -> Self {
                while first.is_empty() && !middle.is_empty() {
                    let (next, others) = std::mem::take(&mut middle).$split_first().expect("it is not empty");
                    (first, middle) = (next, others);
                }
                if first.is_empty() {
                    std::mem::swap(&mut first, &mut last);
                }
                Self { first, middle, last }
            }

            /// The first piece.
            pub(crate) fn first(self) -> &'a $($mutable)? [T] {
                self.first
            }
        }

        impl<T> Pieces for $name<'_, '_, T> {
            fn together(&self) -> usize {
                self.first.len()
            }

            fn split(self, count: usize) -> (Self, Self) {
                let Self { first, middle, last } = self;
                if count <= first.len() {
                    let (now, later) = first.$split_at(count);
                    return (Self::one(now), Self::new(later, middle, last));
                }
                let (mut left, mut whole) = (count - first.len(), 0);
                while middle.get(whole).is_some_and(|piece| piece.len() <= left) {
                    left -= middle[whole].len();
                    whole += 1;
                }
                let (whole, others) = middle.$split_at(whole);
                let Some((cut, others)) = others.$split_first() else {
                    let (now, later) = last.$split_at(left);
                    return (Self::new(first, whole, now), Self::one(later));
                };
                let (now, later) = cut.$split_at(left);
                (Self::new(first, whole, now), Self::new(later, others, last))
            }
        }

    };
}

pieces! {
    /// Memory that is written.
    Places, [mut], split_at_mut, split_first_mut
}

pieces! {
    /// Memory that is read.
    #[derive(Debug, Clone, Copy)]
    Given, [], split_at, split_first
}

/// Nothing that would be taken.
impl Pieces for () {
    fn together(&self) -> usize {
        usize::MAX
    }

    fn split(self, _: usize) -> (Self, Self) {
        ((), ())
    }
}

/// Both, as far as both lie in one piece.
impl<A: Pieces, B: Pieces> Pieces for (A, B) {
    fn together(&self) -> usize {
        self.0.together().min(self.1.together())
    }

    fn split(self, count: usize) -> (Self, Self) {
        let (a, b) = (self.0.split(count), self.1.split(count));
        ((a.0, b.0), (a.1, b.1))
    }
}

impl<P: Pieces> Pieces for Option<P> {
    fn together(&self) -> usize {
        self.as_ref().map_or(usize::MAX, P::together)
    }

    fn split(self, count: usize) -> (Self, Self) {
        self.map(|pieces| pieces.split(count)).unzip()
    }
}
