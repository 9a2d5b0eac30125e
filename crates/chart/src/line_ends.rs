//! Names at the ends of lines.

use crate::color::INK;
use crate::error::Result;
use crate::header::{LEADING, look};
use crate::pen::{Pen, Words};
use crate::scale::{Scale, TICK_TEXT};
use crate::text::ems;
use crate::{LineStyle, Point, Series};

/// Maximum width of a name, as a share of the panel.
const WIDEST: f64 = 0.2;
/// Maximum number of names.
const MOST: usize = 8;
/// Length of the line from a series' last point to its name, beyond the plot, in pixels, and the space after
/// it.
const LEADER: f64 = 12.0;
const SPACE: f64 = 4.0;
const NAME: Words = Words { size: TICK_TEXT, bold: false, centered: false };

/// The last points of several lines that end at the same x, each with the series' index and name; empty if
/// lines other than references end at different places, or a name is too long.
pub(crate) struct LineEnds<'a> {
    ends: Vec<(usize, &'a str, Point)>,
}

impl<'a> LineEnds<'a> {
    /// Collects the ends of `rows`, the drawn runs of each series, on a panel of this width.
    pub(crate) fn of(series: &'a [Series], rows: &[Vec<Vec<Point>>], across: f64) -> Self {
        let drawn = series.iter().zip(rows).enumerate();
        let last = |(i, (series, runs)): (usize, (&'a Series, &Vec<Vec<Point>>))| {
            let point = runs.iter().rev().flatten().max_by(|one, next| one.x.total_cmp(&next.x))?;
            Some((i, &series.name[..], *point))
        };
        let mut ends: Vec<_> = drawn.filter_map(last).collect();
        // A reference need not reach the end.
        let farthest = ends.iter().map(|(.., point)| point.x).fold(f64::NEG_INFINITY, f64::max);
        ends.retain(|&(i, _, point)| point.x == farthest || !series[i].is_reference());
        let are_lines =
            series.iter().all(|series| series.style != LineStyle::Points && series.labels.is_empty());
        let fits = |&(_, name, point): &(usize, &str, Point)| {
            point.x == farthest && TICK_TEXT * ems(name) <= WIDEST * across
        };
        let are_shown = are_lines && (2..=MOST).contains(&ends.len()) && ends.iter().all(fits);
        Self { ends: if are_shown { ends } else { Vec::new() } }
    }

    /// The width that the names need to the right of the plot.
    pub(crate) fn width(&self) -> f64 {
        let widest = self.ends.iter().map(|(_, name, _)| TICK_TEXT * ems(name)).fold(0.0, f64::max);
        if self.ends.is_empty() { 0.0 } else { LEADER + SPACE + widest }
    }

    /// Draws the names to the right of a plot with these corners, each joined with its line's last point.
    pub(crate) fn draw(
        &self,
        pen: &Pen,
        (across, up): (&Scale, &Scale),
        [(left, top), (right, bottom)]: [(f64, f64); 2],
        series: &[Series],
    ) -> Result<()> {
        let height = |point: &Point| bottom - (bottom - top) * up.fraction(point.y);
        let mut order: Vec<_> = self.ends.iter().collect();
        order.sort_by(|one, next| height(&one.2).total_cmp(&height(&next.2)));
        let wanted: Vec<f64> = order.iter().map(|(.., point)| height(point)).collect();
        let places = apart(&wanted, TICK_TEXT * LEADING, bottom);
        for ((&(i, name, point), from), place) in order.into_iter().zip(&wanted).zip(places) {
            let start = (left + (right - left) * across.fraction(point.x), *from);
            pen.line([start, (right + LEADER, place)], 1.0, look(i, &series[i]).0)?;
            pen.text(name, (right + LEADER + SPACE, place), NAME, INK)?;
        }
        Ok(())
    }
}

/// Increasing places near the increasing `wanted`, at least `gap` apart and at most `end`.
fn apart(wanted: &[f64], gap: f64, end: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + gap);
    }
    let mut most = end;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_stay_above_the_end() {
        assert_eq!(apart(&[10.0, 50.0, 90.0], 16.0, 100.0), [10.0, 50.0, 90.0]);
        assert_eq!(apart(&[50.0, 50.0, 51.0], 16.0, 100.0), [50.0, 66.0, 82.0]);
        assert_eq!(apart(&[90.0, 95.0, 99.0], 16.0, 100.0), [68.0, 84.0, 100.0]);
    }

    #[test]
    fn only_lines_that_end_together_have_names_at_their_ends() {
        let line = |name: &str, end: f64| {
            let points = [(0.0, 1.0), (end, 2.0)].map(Point::from).to_vec();
            (Series::new(name, LineStyle::Line, points.clone()), vec![points])
        };
        let count = |lines: Vec<(Series, Vec<Vec<Point>>)>, across: f64| {
            let (series, rows): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            LineEnds::of(&series, &rows, across).ends.len()
        };
        assert_eq!(count(vec![line("a", 5.0), line("b", 5.0)], 340.0), 2);
        assert_eq!(count(vec![line("a", 5.0), line("b", 4.0)], 340.0), 0);
        let mut reference = line("c", 4.0);
        reference.0.style = LineStyle::Dotted;
        assert_eq!(count(vec![line("a", 5.0), line("b", 5.0), reference], 340.0), 2);
        assert_eq!(count(vec![line("a", 5.0)], 340.0), 0);
        assert_eq!(count(vec![line("a", 5.0), line("a name that is too long here", 5.0)], 340.0), 0);
    }
}
