//! Shards, which are the coordinates for which a stream makes noise, and their tiles.

use std::collections::HashMap;
use std::ops::Range;

use antinoise_input::{InvalidParameter, between};

use crate::normal::{Coordinates, Gathered, Normal, Segment, TILE};

/// Adjacent ranges that are shorter than this share tiles.
const SHORT: usize = TILE / 2;

/// A part of the coordinates 0..dim, in the order of the output: ranges of coordinates (in any order, of any
/// length), and padding, whose noise is 0.
///
/// ```
/// use antinoise_noise::Shard;
/// // The third of a vector of 10 that a tensor layout keeps on this device, padded to 4.
/// let shard = Shard::of_range(6..9).and_padding(1);
/// assert_eq!(shard.len(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shard {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Coordinates(Range<u64>),
    Padding(usize),
}

impl Shard {
    /// The shard of one range of coordinates.
    pub fn of_range(coordinates: Range<u64>) -> Self {
        Self::default().and_range(coordinates)
    }

    /// Part `index` of `count` nearly equal parts of 0..dim. Part i starts at i * dim / count, rounded down.
    ///
    /// ```
    /// use antinoise_noise::Shard;
    /// let lengths: Vec<usize> = (0..3).map(|i| Shard::part(i, 3, 10).unwrap().len()).collect();
    /// assert_eq!(lengths, [3, 3, 4]);
    /// ```
    ///
    /// If `count` is 0 or `index` is not below it.
    pub fn part(index: usize, count: usize, dim: usize) -> std::result::Result<Self, InvalidParameter> {
        antinoise_input::at_least("shard count", count, 1)?;
        between("shard index", index, 0, count - 1, "shard count - 1")?;
        let cut = |i: usize| (i as u128 * dim as u128 / count as u128) as u64;
        Ok(Self::of_range(cut(index)..cut(index + 1)))
    }

    /// Appends a range of coordinates to this shard.
    #[must_use]
    pub fn and_range(mut self, coordinates: Range<u64>) -> Self {
        self.pieces.push(Piece::Coordinates(coordinates));
        self
    }

    /// Appends `count` outputs without noise to this shard.
    #[must_use]
    pub fn and_padding(mut self, count: usize) -> Self {
        self.pieces.push(Piece::Padding(count));
        self
    }

    /// Number of outputs per step, padding included.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// Whether the shard has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that every coordinate is below `dim` and occurs once, and returns the shard's tiles for noise
    /// of precision `T`.
    pub(crate) fn tiles<T: Normal>(&self, dim: usize) -> std::result::Result<Tiles, InvalidParameter> {
        self.check(dim)?;
        let (mut tiles, mut known) = (Tiles::default(), HashMap::new());
        let pieces: Vec<&Piece> = self.pieces.iter().filter(|piece| piece.len() > 0).collect();
        for run in pieces.chunk_by(|a, b| a.is_short() && b.is_short()) {
            match run {
                [Piece::Padding(count)] => tiles.place(Held::Padding, *count),
                [piece @ Piece::Coordinates(range)] => tiles.place(Held::From(range.start), piece.len()),
                short => tiles.gather::<T>(short.iter().filter_map(|piece| piece.segment()), &mut known),
            }
        }
        Ok(tiles)
    }

    fn check(&self, dim: usize) -> std::result::Result<(), InvalidParameter> {
        let mut ranges: Vec<&Range<u64>> = Vec::new();
        for piece in &self.pieces {
            if let Piece::Coordinates(range) = piece {
                if range.start > range.end || range.end > dim as u64 {
                    return Err(InvalidParameter::new(
                        "shard",
                        format!("{range:?}"),
                        format!("within 0..{dim}"),
                    ));
                }
                ranges.push(range);
            }
        }
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| range.start);
        match ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
            Some(pair) => {
                let got = format!("{:?} and {:?}", pair[0], pair[1]);
                Err(InvalidParameter::new("shard", got, "ranges that do not overlap"))
            }
            None => Ok(()),
        }
    }

    /// A text for checkpoints that is equal for shards with the same tiles.
    pub(crate) fn describe(&self) -> String {
        let is_gathered = self.pieces.windows(2).any(|pair| pair.iter().all(Piece::is_short));
        format!("{:?}{}", self.pieces, if is_gathered { " in shared tiles" } else { "" })
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Coordinates(range) => range.end.saturating_sub(range.start) as usize,
            Self::Padding(count) => *count,
        }
    }

    fn segment(&self) -> Option<Segment> {
        match self {
            Self::Coordinates(range) => Some(Segment { start: range.start, len: self.len() }),
            Self::Padding(_) => None,
        }
    }

    /// Whether the range is too short for a tile of its own.
    fn is_short(&self) -> bool {
        self.segment().is_some_and(|segment| segment.len < SHORT)
    }
}

/// A tile: at most [`TILE`] consecutive outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tile<'a> {
    /// Index of the tile in the shard.
    pub(crate) number: usize,
    /// The coordinates of the outputs; `None` for padding.
    pub(crate) coordinates: Option<Coordinates<'a>>,
    pub(crate) len: usize,
    /// Index of the first output.
    pub(crate) output: usize,
}

/// The tiles of a shard, which are computed on demand: a list of the tiles of a large shard would not fit in
/// memory.
#[derive(Default)]
pub(crate) struct Tiles {
    pieces: Vec<Placed>,
    /// The shapes of tiles that several ranges share.
    shapes: Vec<Gathered>,
    pub(crate) count: usize,
    pub(crate) outputs: usize,
}

/// A piece with at least one output, and its position in the shard.
struct Placed {
    held: Held,
    len: usize,
    first_output: usize,
    first_tile: usize,
}

enum Held {
    Padding,
    /// Consecutive coordinates, of which this is the first.
    From(u64),
    /// Short ranges in one tile: index of their shape, and the shape's origin.
    Gathered(usize, u64),
}

impl Tiles {
    fn place(&mut self, held: Held, len: usize) {
        self.pieces.push(Placed { held, len, first_output: self.outputs, first_tile: self.count });
        (self.count, self.outputs) = (self.count + len.div_ceil(TILE), self.outputs + len);
    }

    /// Distributes segments over tiles, in order.
    fn gather<T: Normal>(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        known: &mut HashMap<Vec<Segment>, usize>,
    ) {
        let (mut held, mut len) = (Vec::new(), 0);
        for segment in segments {
            if len + segment.len > TILE {
                self.place_gathered::<T>(std::mem::take(&mut held), len, known);
                len = 0;
            }
            held.push(segment);
            len += segment.len;
        }
        self.place_gathered::<T>(held, len, known);
    }

    /// Puts these segments into one tile, whose shape is looked up or added.
    fn place_gathered<T: Normal>(
        &mut self,
        mut segments: Vec<Segment>,
        len: usize,
        known: &mut HashMap<Vec<Segment>, usize>,
    ) {
        let least = segments.iter().map(|segment| segment.start).min().unwrap_or_default();
        let origin = least / Gathered::ORIGIN * Gathered::ORIGIN;
        segments.iter_mut().for_each(|segment| segment.start -= origin);
        let shape = known.get(&segments).copied().unwrap_or_else(|| {
            known.insert(segments.clone(), self.shapes.len());
            self.shapes.push(Gathered::new::<T>(segments));
            self.shapes.len() - 1
        });
        self.place(Held::Gathered(shape, origin), len);
    }

    /// Returns tile `number`, which must be below the number of tiles.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Tile<'_> {
        let piece = &self.pieces[self.pieces.partition_point(|piece| piece.first_tile <= number) - 1];
        let offset = (number - piece.first_tile) * TILE;
        Tile {
            number,
            coordinates: match &piece.held {
                Held::Padding => None,
                Held::From(start) => Some(Coordinates::From(start + offset as u64)),
                Held::Gathered(shape, origin) => Some(Coordinates::Gathered(&self.shapes[*shape], *origin)),
            },
            len: TILE.min(piece.len - offset),
            output: piece.first_output + offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_the_pieces_cut_one_after_the_other() {
        let shard = Shard::of_range(5..5).and_range(9000..9001).and_padding(1025).and_range(7..2055);
        let tiles = shard.and_padding(0).tiles::<f32>(10_000).unwrap();
        let found =
            (0..tiles.count).map(|i| tiles.get(i)).map(|t| (t.number, t.coordinates, t.len, t.output));
        let from = |start| Some(Coordinates::From(start));
        let expected = [
            (0, from(9000), 1, 0),
            (1, None, 1024, 1),
            (2, None, 1, 1025),
            (3, from(7), 1024, 1026),
            (4, from(1031), 1024, 2050),
        ];
        assert_eq!((found.collect(), tiles.outputs), (expected.to_vec(), 3074));
    }

    #[test]
    fn short_ranges_share_tiles() {
        let columns =
            (0..100u64).fold(Shard::default(), |shard, row| shard.and_range(70 * row..70 * row + 30));
        let tiles = columns.and_range(8000..8511).and_range(20_000..23_000).tiles::<f32>(30_000).unwrap();
        let lens: Vec<usize> = (0..tiles.count).map(|i| tiles.get(i).len).collect();
        assert_eq!(lens, [1020, 1020, 960, 511, 1024, 1024, 952]);
        let coordinates = |tile: usize| tiles.get(tile).coordinates.unwrap();
        assert_eq!([0, 29, 30, 1019].map(|j| coordinates(0).at(j)), [0, 29, 70, 33 * 70 + 29]);
        assert_eq!(
            (coordinates(1).at(0), coordinates(3).at(510), coordinates(4).at(3)),
            (34 * 70, 8510, 20_003)
        );
    }
}
