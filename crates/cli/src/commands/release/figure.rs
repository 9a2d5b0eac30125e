//! Curves of published figures, with bands for their 95% intervals.

use antinoise_chart::{Axis, Chart, LineStyle, Point, SERIES, Series};
use antinoise_release::{Period, Published};

/// The chart of a query: figures over time; for a histogram, a cdf and quantiles, the figures after the last
/// period by bucket, edge and Q.
pub fn chart(query: &str, published: &[Published]) -> Chart {
    let rows: Vec<&Published> = published.iter().filter(|row| row.query == query).collect();
    if query.starts_with("cdf:") {
        by_edge(&rows)
    } else if rows.iter().any(|row| !row.bucket.is_empty()) {
        by_bucket(query, &rows)
    } else {
        over_time(query, &rows)
    }
}

/// Keys with the largest last figures, one for each colour, in the order of the table.
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
    keys
}

fn over_time(query: &str, rows: &[&Published]) -> Chart {
    let mut periods: Vec<&Period> = Vec::new();
    for row in rows {
        if periods.last() != Some(&&row.period) {
            periods.push(&row.period);
        }
    }
    let numbered = periods.iter().all(|period| matches!(period, Period::Number(_)));
    let x = |period: &Period, place: usize| match period {
        Period::Number(number) => *number as f64,
        Period::Text(_) => place as f64 + 1.0,
    };
    let title = match (numbered, periods.first(), periods.last()) {
        (false, Some(first), Some(last)) => format!("period ({first} to {last})"),
        _ => "period".into(),
    };
    let series = shown(rows).into_iter().map(|key| {
        let points = rows.iter().filter(|row| row.key == key).enumerate();
        Series::new(key, LineStyle::Line, points.map(|(place, row)| point(x(&row.period, place), row)))
    });
    Chart {
        title: String::new(),
        x: Axis::linear(title).whole(),
        y: Axis::linear(unit(query)).covering(0.0),
        series: series.collect(),
    }
}

/// The figures after the last period.
fn ends<'p>(rows: &[&'p Published]) -> Vec<&'p Published> {
    let last = rows.last().map(|row| &row.period);
    rows.iter().copied().filter(|row| Some(&row.period) == last).collect()
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
    let series = shown(rows).into_iter().map(|key| {
        let points = ends.iter().filter(|row| row.key == key).enumerate();
        Series::new(key, LineStyle::Points, points.map(|(place, row)| point(place as f64, row)))
    });
    Chart {
        title: String::new(),
        x: Axis::named(if query.starts_with("quantiles:") { "quantile" } else { "value" }, buckets.clone()),
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
        _ => "events since the first period",
    }
}
