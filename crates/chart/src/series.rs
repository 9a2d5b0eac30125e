//! The data of a chart.

/// A value, with an optional error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Lengths of the error bar below and above the value; equal for a standard error.
    pub error: Option<[f64; 2]>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, error: None }
    }
}

impl Point {
    /// Ends of the error bar; the value itself without an error.
    pub(crate) fn ends(&self) -> [f64; 2] {
        let are_finite = |[below, above]: &[f64; 2]| below.is_finite() && above.is_finite();
        let [below, above] = self.error.filter(are_finite).unwrap_or_default();
        [self.y - below, self.y + above]
    }
}

/// The style of a series. Errors are a band around a line or, on more than three lines, bars at a few places;
/// points have bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStyle {
    /// A line.
    Line,
    /// A line with a mark at each point, for values that were measured only there.
    Marked,
    /// Marks without a line.
    Points,
    /// A dashed line in the colour of the axes: a reference for the other series.
    Dashed,
    /// A dotted line in the colour of the axes: a second reference.
    Dotted,
}

/// A named row of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Style of the line or points.
    pub style: LineStyle,
    /// The points; in increasing order of x for lines, in which a y that is NaN is a gap.
    pub points: Vec<Point>,
    /// A name next to each point; empty for none.
    pub labels: Vec<String>,
}

/// Largest number of points of a drawn series; more cannot be distinguished on a screen.
const MAX_POINTS: usize = 720;

impl Series {
    /// A series of `points`.
    ///
    /// ```
    /// use antinoise_chart::{LineStyle, Series};
    /// assert_eq!(Series::new("squares", LineStyle::Points, (0..4).map(|i| (f64::from(i), f64::from(i * i)))).points[3].y, 9.0);
    /// ```
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        style: LineStyle,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        Self { name: name.into(), style, points, labels: Vec::new() }
    }

    /// The series with a name next to each point; names that would cover an earlier one are left out.
    ///
    /// ```
    /// use antinoise_chart::{LineStyle, Series};
    /// let named = Series::new("front", LineStyle::Marked, [(1.0, 2.0)]).labelled(["blt:2"]);
    /// assert_eq!(named.labels, ["blt:2"]);
    /// ```
    #[must_use]
    pub fn labelled(self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { labels: labels.into_iter().map(Into::into).collect(), ..self }
    }

    pub(crate) fn is_reference(&self) -> bool {
        matches!(self.style, LineStyle::Dashed | LineStyle::Dotted)
    }
}

/// The runs of `points` between the gaps of a line.
pub(crate) fn runs(series: &Series, points: Vec<Point>) -> Vec<Vec<Point>> {
    let gaps: Vec<f64> = series.points.iter().filter(|point| point.y.is_nan()).map(|point| point.x).collect();
    let is_joined = |one: &Point, next: &Point| !gaps.iter().any(|gap| (one.x..=next.x).contains(gap));
    points.chunk_by(is_joined).map(<[Point]>::to_vec).collect()
}

/// The points that `holds` accepts, thinned to [`MAX_POINTS`]: the first and last point, and in each of many
/// equal pieces of the axis the points of least and of greatest y, so that outliers stay visible. `place`
/// maps x to its position on the axis.
pub(crate) fn thinned(
    points: &[Point],
    holds: impl Fn(&Point) -> bool,
    place: impl Fn(f64) -> f64,
) -> Vec<Point> {
    let held: Vec<Point> = points.iter().copied().filter(holds).collect();
    if held.len() <= MAX_POINTS {
        return held;
    }
    let (first, last) = (held[0], held[held.len() - 1]);
    let (start, length) = (place(first.x), place(last.x) - place(first.x));
    let pieces = (MAX_POINTS / 2 - 1) as f64;
    let piece = |point: &Point| ((place(point.x) - start) / length * pieces) as usize;
    let mut kept = vec![first];
    for piece in held[1..held.len() - 1].chunk_by(|one, next| piece(one) == piece(next)) {
        let by_y = |x: &&Point, y: &&Point| x.y.total_cmp(&y.y);
        let least = piece.iter().min_by(by_y).expect("a chunk is not empty");
        let most = piece.iter().max_by(by_y).expect("a chunk is not empty");
        let mut pair = vec![*least, *most];
        pair.sort_by(|x, y| x.x.total_cmp(&y.x));
        pair.dedup();
        kept.extend(pair);
    }
    kept.push(last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_a_gap() {
        let points = [(1.0, 5.0), (2.0, 6.0), (3.0, f64::NAN), (4.0, 7.0)];
        let series = Series::new("days", LineStyle::Line, points);
        let drawn = thinned(&series.points, |point| point.y.is_finite(), |x| x);
        let lengths: Vec<usize> = runs(&series, drawn).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
    }

    #[test]
    fn long_rows_keep_their_ends_and_what_stands_out() {
        let row: Vec<Point> = (0..100_000)
            .map(|i| (f64::from(i), if i == 54_321 { 9.0 } else { f64::from(i % 3) }).into())
            .collect();
        for place in [|x: f64| x, |x: f64| x.ln_1p()] {
            let thin = thinned(&row, |_| true, place);
            assert!(thin.len() <= MAX_POINTS, "{}", thin.len());
            assert!(thin[0] == row[0] && thin[thin.len() - 1] == row[99_999]);
            assert!(thin.contains(&row[54_321]) && thin.windows(2).all(|pair| pair[0].x < pair[1].x));
        }
        // On a logarithmic axis the first ones stand apart.
        assert!(thinned(&row, |_| true, f64::ln_1p)[..20] == row[..20]);
        assert_eq!(thinned(&row, |point| point.y == 9.0, |x| x), [row[54_321]]);
    }
}
