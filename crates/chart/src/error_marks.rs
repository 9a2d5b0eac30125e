//! Error bands of lines, and error bars.

use plotters::prelude::*;

use crate::error::{Result, failed};
use crate::header::{BAND, look};
use crate::pen::{px, width};
use crate::scale::Scale;
use crate::{LineStyle, Point, Series};

pub(crate) type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// Maximum number of lines whose errors are bands: more bands cover each other.
const MAX_BANDS: usize = 3;
/// Number of error bars on a line that has them instead of a band.
const BARS: usize = 6;
/// Half of the length of the line at each end of such a bar, in pixels.
const CAP: f64 = 3.0;

/// How the errors of a chart's lines are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorMarks {
    /// Bands; with thin edges if there are several.
    Bands { edges: bool },
    /// Bars at a few points of each line, at other places on each of `of` lines.
    Bars { of: usize },
}

/// Whether a series is a line with errors.
fn has_band(series: &Series) -> bool {
    series.style != LineStyle::Points && series.points.iter().any(|point| point.error.is_some())
}

impl ErrorMarks {
    pub(crate) fn of(series: &[Series]) -> Self {
        match series.iter().filter(|series| has_band(series)).count() {
            lines @ ..=MAX_BANDS => Self::Bands { edges: lines > 1 },
            _ => Self::Bars { of: series.len() },
        }
    }
}

/// Draws the errors of a run of points of series number `i`.
pub(crate) fn draw_errors(
    context: &mut Context,
    (i, series, run): (usize, &Series, &[Point]),
    [across, up]: &[Scale; 2],
    marks: ErrorMarks,
) -> Result<()> {
    let color = look(i, series).0;
    let known: Vec<(f64, [f64; 2])> = run
        .iter()
        .filter(|point| point.error.is_some())
        .map(|point| (point.x, point.ends().map(|end| up.clamped(end))))
        .collect();
    let bar = |(x, ends): (f64, [f64; 2])| {
        PathElement::new(ends.map(|end| (x, end)), color.stroke_width(width(1.25)))
    };
    match marks {
        _ if series.style == LineStyle::Points => {
            context.draw_series(known.into_iter().map(bar)).map(|_| ()).map_err(failed)
        }
        ErrorMarks::Bands { .. } if known.len() < 2 => Ok(()),
        ErrorMarks::Bands { edges } => {
            let side = |end: usize| known.iter().map(move |(x, ends)| (*x, ends[end]));
            let outline: Vec<(f64, f64)> = side(0).chain(side(1).rev()).collect();
            let band = Polygon::new(outline, color.mix(BAND).filled());
            context.draw_series(std::iter::once(band)).map_err(failed)?;
            for end in (0..2).filter(|_| edges) {
                let edge = LineSeries::new(side(end), color.stroke_width(width(0.75)));
                context.draw_series(edge).map_err(failed)?;
            }
            Ok(())
        }
        ErrorMarks::Bars { of } => {
            let chosen = spread(&known, |x| across.fraction(x), i as f64 / of as f64);
            let cap = |x: f64, end: f64| {
                let line = [(px(-CAP), 0), (px(CAP), 0)];
                EmptyElement::at((x, end)) + PathElement::new(line, color.stroke_width(width(1.25)))
            };
            let caps = chosen.iter().flat_map(|(x, ends)| ends.map(|end| (*x, end)));
            context.draw_series(caps.map(|(x, end)| cap(x, end))).map_err(failed)?;
            context.draw_series(chosen.into_iter().map(bar)).map(|_| ()).map_err(failed)
        }
    }
}

/// Points at [`BARS`] places of the axis, whose first is moved by `shift` of their distance.
fn spread<T: Copy>(known: &[(f64, T)], fraction: impl Fn(f64) -> f64, shift: f64) -> Vec<(f64, T)> {
    let distance = |x: f64, place: f64| (fraction(x) - place).abs();
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Vec::new() };
    let mut chosen: Vec<(f64, T)> = (0..BARS)
        .map(|bar| (bar as f64 + 0.5 * (shift + 0.5)) / BARS as f64)
        .filter(|&place| fraction(first.0) <= place && place <= fraction(last.0))
        .filter_map(|place| {
            let nearer = |x: &&(f64, T), y: &&(f64, T)| distance(x.0, place).total_cmp(&distance(y.0, place));
            known.iter().min_by(nearer).copied()
        })
        .collect();
    chosen.dedup_by(|one, next| one.0 == next.0);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_two_lines_stand_at_different_places() {
        let known: Vec<(f64, ())> = (0..=60).map(|i| (f64::from(i), ())).collect();
        let places = |shift: f64| spread(&known, |x| x / 60.0, shift).into_iter().map(|(x, ())| x);
        let (first, second): (Vec<f64>, Vec<f64>) = (places(0.0).collect(), places(0.5).collect());
        assert_eq!((first.len(), second.len()), (BARS, BARS));
        assert!(
            first.iter().zip(&second).all(|(first, second)| second - first >= 2.0),
            "{first:?} {second:?}"
        );
        // A short run has the bars of its own part.
        assert_eq!(spread(&known[..15], |x| x / 60.0, 0.5).len(), 1);
    }
}
