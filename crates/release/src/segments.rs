//! Open-ended releases: segments of periods, one after the other.

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Periods of the longest possible segment.
pub(crate) const LONGEST: usize = 1 << 24;
/// Minimum number of periods of the first segment.
const FIRST: usize = 128;
/// Number of periods of each segment if every figure depends only on a limited number of periods.
const EVEN: usize = 1024;

/// The lengths of the segments of an open-ended release.
///
/// ```
/// use antinoise_release::{Growth, Segments};
/// let segments = Segments { first: 128, growth: Growth::Squares };
/// assert_eq!([0, 1, 2, 3].map(|segment| segments.length(segment)), [128, 1 << 14, 1 << 24, 1 << 24]);
/// let place = segments.place(130);
/// assert_eq!((place.segment, place.start, place.step), (1, 128, 2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// Periods of the first segment.
    pub first: usize,
    /// How the lengths of later segments grow.
    pub growth: Growth,
}

/// Growth of the lengths of segments, up to 2^24 periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// All segments have the length of the first.
    Even,
    /// Each segment is twice as long as the previous one.
    Doubles,
    /// The length of each segment is the square of the previous one's.
    Squares,
}

/// The position of a period among the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The index of the segment, from 0.
    pub segment: usize,
    /// The index of the segment's first period among all periods, from 0.
    pub start: usize,
    /// The index of the period within the segment, from 0.
    pub step: usize,
}

impl Segments {
    /// The segments of smallest error for running figures, for users of `max_periods` periods: the first has
    /// the smallest power of two of at least 128 and 2 `max_periods` periods, and lengths are squared. If
    /// figures reach back only for a limited time (`is_limited`), all segments have one length.
    ///
    /// Other growth rules are compared in `docs/release.md`.
    pub(crate) fn best(max_periods: usize, is_limited: bool) -> Self {
        let twice = max_periods.saturating_mul(2).checked_next_power_of_two().unwrap_or(LONGEST);
        let first = FIRST.max(twice).min(LONGEST);
        match is_limited {
            true => Self { first: EVEN.max(first), growth: Growth::Even },
            false => Self { first, growth: Growth::Squares },
        }
    }

    pub(crate) fn check(&self, max_periods: usize) -> Result<()> {
        between("first segment", self.first, max_periods.max(1), LONGEST, "2^24 periods")?;
        if self.growth == Growth::Squares && self.first == 1 {
            return Err(
                InvalidParameter::new("first segment", 1, "2 periods at least, to grow by squares").into()
            );
        }
        Ok(())
    }

    /// Number of periods of segment `segment`.
    pub fn length(&self, segment: usize) -> usize {
        let next = |length: usize| match self.growth {
            Growth::Even => length,
            Growth::Doubles => length.saturating_mul(2).min(LONGEST),
            Growth::Squares => length.saturating_mul(length).min(LONGEST),
        };
        let mut length = self.first;
        for _ in 0..segment {
            let longer = next(length);
            if longer == length {
                break;
            }
            length = longer;
        }
        length
    }

    /// Number of segments of different lengths: all later ones are as long as the last of these.
    pub(crate) fn distinct(&self) -> usize {
        (0..).find(|&segment| self.length(segment) == self.length(segment + 1)).unwrap_or(0) + 1
    }

    /// The position of period `period`, counted from 0.
    pub fn place(&self, period: usize) -> Segment {
        let (last, mut start) = (self.distinct() - 1, 0);
        for segment in 0..last {
            let length = self.length(segment);
            if period - start < length {
                return Segment { segment, start, step: period - start };
            }
            start += length;
        }
        let (length, left) = (self.length(last), period - start);
        Segment { segment: last + left / length, start: period - left % length, step: left % length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_period_has_its_place() {
        for growth in [Growth::Even, Growth::Doubles, Growth::Squares] {
            let segments = Segments { first: 3, growth };
            let (mut segment, mut start) = (0, 0);
            for period in 0..10_000 {
                if period == start + segments.length(segment) {
                    start = period;
                    segment += 1;
                }
                assert_eq!(
                    segments.place(period),
                    Segment { segment, start, step: period - start },
                    "{growth:?}"
                );
            }
        }
        let ends = Segments { first: LONGEST, growth: Growth::Squares };
        assert_eq!((ends.distinct(), ends.place(2 * LONGEST + 5).segment), (1, 2));
    }
}
