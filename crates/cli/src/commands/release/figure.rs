//! Curves of published figures, with bands for their 95% intervals.

use std::collections::HashSet;

use antinoise_chart::{Axis, Chart, LineStyle, Point, SERIES, Series};
use antinoise_release::{Period, Published};

/// Maximum number of cells of marginals that a figure shows.
pub const SHOWN_CELLS: usize = 24;
/// Minimum number of months for which the axis of time names only the first days of months.
const LEAST_MONTHS: usize = 4;

/// The chart of a query: figures over time; for a histogram, a cdf and quantiles, the figures after the last
/// period by bucket, edge and Q.
pub fn chart(query: &str, published: &[Published]) -> Chart {
    let rows: Vec<&Published> = published.iter().filter(|row| row.query == query).collect();
    if query.starts_with("cdf:") {
        by_edge(&rows)
    } else if query.starts_with("marginals:") {
        by_bucket(query, &largest(&rows))
    } else if rows.iter().any(|row| !row.bucket.is_empty()) {
        by_bucket(query, &rows)
    } else {
        let is_of_users = rows.iter().any(|row| row.key.is_empty());
        over_time(query, &rows, set_in(published).filter(|_| !is_of_users))
    }
}

/// The keys whose last figures are largest, as many as there are colours, in the order of `rows`, which is
/// that of `--keys`: a key has the same colour in every figure of a page as long as no other is left out.
pub fn shown<'p>(rows: &[&'p Published]) -> Vec<&'p str> {
    let Some(last) = rows.last() else { return Vec::new() };
    let mut ends: Vec<&Published> = rows.iter().copied().filter(|row| row.period == last.period).collect();
    ends.sort_by(|x, y| y.value.value().total_cmp(&x.value.value()));
    let mut keys: Vec<&str> = Vec::new();
    for row in ends {
        if !keys.contains(&row.key.as_str()) && keys.len() < SERIES {
            keys.push(&row.key);
        }
    }
    let place = |key: &&str| rows.iter().position(|row| row.key == *key);
    keys.sort_by_cached_key(place);
    keys
}

/// The first period after which there are users at their bound beyond doubt: figures leave out later rows of
/// these users. Their count is then above the whole width of its interval of 95%, 3.9 standard deviations,
/// which chance alone reaches in fewer than 1 of 10,000 periods.
pub fn set_in(published: &[Published]) -> Option<&Period> {
    let of_bound = |row: &&Published| {
        row.query == "users-at-bound" && row.value.value() > row.upper.value() - row.lower.value()
    };
    published.iter().find(of_bound).map(|row| &row.period)
}

/// The places of periods on the axis of time: their numbers, their days, or their order.
fn place(periods: &[&Period], period: &Period) -> f64 {
    let by_order = || periods.iter().position(|other| *other == period).unwrap_or(0) as f64 + 1.0;
    match period {
        Period::Number(number) => *number as f64,
        Period::Text(_) if periods.iter().any(|other| other.day().is_none()) => by_order(),
        Period::Text(_) => period.day().map_or_else(by_order, |day| day as f64),
    }
}

/// The axis of time: numbers, or the names of the periods; for many days, only the names of first days of
/// months.
fn time(periods: &[&Period]) -> Axis {
    if periods.iter().all(|period| matches!(period, Period::Number(_))) {
        return Axis::linear("period").whole();
    }
    let begins_month = |period: &&&Period| period.day().is_some() && period.to_string().ends_with("-01");
    let months: Vec<&Period> = periods.iter().filter(begins_month).copied().collect();
    let named = if months.len() >= LEAST_MONTHS { &months } else { periods };
    let ticks = named.iter().map(|period| (place(periods, period), period.to_string()));
    Axis::linear("period").labelled_at(ticks)
}

fn over_time(query: &str, rows: &[&Published], set_in: Option<&Period>) -> Chart {
    let mut periods: Vec<&Period> = Vec::new();
    for row in rows {
        if periods.last() != Some(&&row.period) {
            periods.push(&row.period);
        }
    }
    let mut series: Vec<Series> = shown(rows).into_iter().map(|key| line(key, rows, &periods)).collect();
    if let Some(period) = set_in {
        let largest =
            series.iter().flat_map(|series| &series.points).map(|point| point.y).fold(0.0, f64::max);
        let at = place(&periods, period);
        series.push(Series::new("users at their bound", LineStyle::Dotted, [(at, 0.0), (at, largest)]));
    }
    Chart { title: String::new(), x: time(&periods), y: Axis::linear(unit(query)).covering(0.0), series }
}

/// The figures of a key in the order of time, with a gap where periods were skipped.
fn line(key: &str, rows: &[&Published], periods: &[&Period]) -> Series {
    let mut rows: Vec<(f64, &Published)> =
        rows.iter().filter(|row| row.key == key).map(|row| (place(periods, &row.period), *row)).collect();
    rows.sort_by(|(x, _), (y, _)| x.total_cmp(y));
    let mut points: Vec<Point> = Vec::new();
    for (at, (x, row)) in rows.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| rows[before]);
        if let Some((from, before)) = before
            && row.period.skipped_since(&before.period).is_some_and(|skipped| skipped > 0)
        {
            points.push((0.5 * (from + x), f64::NAN).into());
        }
        points.push(point(*x, row));
    }
    Series::new(key, LineStyle::Line, points)
}

/// The figures published after the last period.
pub fn ends<'p>(rows: &[&'p Published]) -> Vec<&'p Published> {
    let last = rows.last().map(|row| &row.period);
    rows.iter().copied().filter(|row| Some(&row.period) == last).collect()
}

/// The rows after the last period of the cells of marginals with the largest figures of any key.
fn largest<'p>(rows: &[&'p Published]) -> Vec<&'p Published> {
    let ends = ends(rows);
    let mut order: Vec<&Published> = ends.clone();
    order.sort_by(|x, y| y.value.value().total_cmp(&x.value.value()));
    let mut cells = HashSet::new();
    for row in order {
        if cells.len() < SHOWN_CELLS {
            cells.insert(row.bucket.as_str());
        }
    }
    ends.into_iter().filter(|row| cells.contains(row.bucket.as_str())).collect()
}

/// Shares of rows below each edge.
fn by_edge(rows: &[&Published]) -> Chart {
    let of_edge = |row: &Published| row.bucket.strip_prefix("share below ")?.parse::<f64>().ok();
    let ends = ends(rows);
    let series = shown(rows).into_iter().map(|key| {
        let rows = ends.iter().filter(|row| row.key == key);
        Series::new(key, LineStyle::Marked, rows.filter_map(|row| Some(point(of_edge(row)?, row))))
    });
    Chart {
        title: String::new(),
        x: Axis::linear("value"),
        y: Axis::linear("share of events with a value below").covering(0.0).covering(1.0),
        series: series.collect(),
    }
}

fn by_bucket(query: &str, rows: &[&Published]) -> Chart {
    let ends = ends(rows);
    let mut buckets: Vec<&str> = Vec::new();
    for row in &ends {
        if !buckets.contains(&row.bucket.as_str()) {
            buckets.push(&row.bucket);
        }
    }
    let axis = match query.split(':').next() {
        Some("quantiles") => "quantile",
        Some("marginals") => "cell",
        _ => "value",
    };
    let keys = shown(rows);
    let series = keys.iter().enumerate().map(|(at, &key)| {
        // Side by side, so that the intervals of keys do not cover each other.
        let beside = 0.6 * ((at as f64 + 0.5) / keys.len() as f64 - 0.5);
        let points = ends.iter().filter(|row| row.key == key).enumerate();
        Series::new(key, LineStyle::Points, points.map(|(place, row)| point(place as f64 + beside, row)))
    });
    Chart {
        title: String::new(),
        x: Axis::named(axis, buckets.clone()),
        y: Axis::linear(unit(query)).covering(0.0),
        series: series.collect(),
    }
}

/// A figure with its interval.
fn point(x: f64, row: &Published) -> Point {
    let (value, lower, upper) = (row.value.value(), row.lower.value(), row.upper.value());
    Point { x, y: value, error: Some([value - lower, upper - value]) }
}

fn unit(query: &str) -> &'static str {
    match query.split(':').next() {
        Some("sum") => "sum of clipped values since the first period",
        Some("mean") => "mean of clipped values since the first period",
        Some("quantiles") => "value of the quantile since the first period",
        Some("window") => "events in the window",
        Some("decay") => "events, weighted by age",
        Some("users-at-bound") => "users at their bound, since the first period",
        Some("users-over-rows") => "users with too many rows, once for each of their periods",
        _ => "events since the first period",
    }
}

/// The title of a query's figure: its name as in the file of figures, or words for the counts of users whose
/// rows are left out.
pub fn title(query: &str) -> &str {
    match query {
        "users-at-bound" => "Users at their bound",
        "users-over-rows" => "Users with too many rows",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use antinoise_release::{Release, Settings, Unit};

    use super::*;

    /// What a release publishes of 50 users, who come on each of these days and are counted on two.
    fn published(days: &[&str]) -> Vec<Published> {
        let folder = tempfile::tempdir().expect("a folder");
        let settings =
            Settings { max_periods: 2, epsilon: 1000.0, ..Settings::new(vec!["a".into()], 9, Unit::User) };
        let mut release = Release::create(folder.path(), &settings.with_left_out()).expect("a release");
        for day in days {
            let period = day.parse().expect("a day");
            let mut freezing = release.freeze_in_any_order(&period).expect("a new day");
            for user in 0..50 {
                freezing.add(&format!("user {user}"), "a", None).expect("a row");
            }
            freezing.commit().expect("room");
        }
        release.publish().expect("figures")
    }

    /// The intervals of three keys lie side by side, around the bucket's name.
    #[test]
    fn intervals_of_keys_do_not_cover_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = ["a", "b", "c"].map(String::from).to_vec();
        let queries = vec![("histogram:0,1,2".parse().expect("a query"), 1.0)];
        let settings = Settings { queries, ..Settings::new(keys, 1, Unit::User) };
        let mut release = Release::create(folder.path(), &settings).expect("a release");
        let period = "1".parse().expect("a period");
        release.freeze_in_any_order(&period).expect("a new period").commit().expect("room");
        let chart = chart("histogram:0,1,2", &release.publish().expect("figures"));
        assert_eq!(chart.series.len(), 3);
        let mut places: Vec<f64> =
            chart.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        assert!(places.len() >= 6 && places.windows(2).all(|pair| pair[1] - pair[0] > 0.19), "{places:?}");
        assert!(places.iter().all(|place| (place - place.round()).abs() < 0.3), "{places:?}");
    }

    /// Periods are placed and named by their dates; lines have gaps; the marker of users at their bound is at
    /// the first period in which their count is beyond doubt.
    #[test]
    fn periods_are_drawn_at_their_dates() {
        let published = published(&["2026-02-27", "2026-02-28", "2026-03-03", "2026-03-01"]);
        assert_eq!(set_in(&published).map(ToString::to_string).as_deref(), Some("2026-02-28"));
        let counts = chart("counts", &published);
        let day =
            |name: &str| name.parse::<Period>().ok().and_then(|period| period.day()).unwrap_or(0) as f64;
        let places: Vec<f64> = counts.series[0].points.iter().map(|point| point.x).collect();
        let gap = 0.5 * (day("2026-03-01") + day("2026-03-03"));
        let in_order = ["2026-02-27", "2026-02-28", "2026-03-01"].map(day);
        assert_eq!(places, [&in_order[..], &[gap, day("2026-03-03")]].concat());
        assert!(counts.series[0].points[3].y.is_nan());
        let marker = &counts.series[1];
        assert_eq!((marker.points[0].x, marker.points[1].x), (day("2026-02-28"), day("2026-02-28")));
        assert_eq!(chart("users-at-bound", &published).series.len(), 1);
        let (width, plot_height, background) = (640, 200, true);
        let figure =
            antinoise_chart::Figure { width, plot_height, background, rows: vec![vec![counts.into()]] };
        let svg = figure.svg().expect("it is drawn");
        assert!(svg.contains("2026-02-27") && svg.contains("users at their bound"), "{svg}");
    }
}
