//! The coordinates of a tile.

use super::gathered::{Gathered, Segment};

/// The coordinates of a tile, in the order of its outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Coordinates<'a> {
    /// Consecutive coordinates, of which this is the first.
    From(u64),
    /// Short ranges of coordinates, relative to this origin.
    Gathered(&'a Gathered, u64),
}

impl<'a> Coordinates<'a> {
    /// Returns the coordinate of output j.
    pub(crate) fn at(self, j: usize) -> u64 {
        let found = self.ranges(j + 1).last().expect("an output has a coordinate");
        found.1.start + (j - found.0) as u64
    }

    /// Returns the ranges of coordinates of the first `len` outputs, each with the index of its first output.
    pub(crate) fn ranges(self, len: usize) -> impl Iterator<Item = (usize, Segment)> + 'a {
        let (one, listed, origin): (_, &[Segment], _) = match self {
            Self::From(start) => (Some(Segment { start, len }), &[], 0),
            Self::Gathered(shape, origin) => (None, &shape.segments, origin),
        };
        let further = move |segment: &Segment| Segment { start: segment.start + origin, ..*segment };
        let mut output = 0;
        let placed = one.into_iter().chain(listed.iter().map(further)).map(move |segment| {
            output += segment.len;
            (output - segment.len, segment)
        });
        placed
            .take_while(move |(first, _)| *first < len)
            .map(move |(first, segment)| (first, Segment { len: segment.len.min(len - first), ..segment }))
    }
}
