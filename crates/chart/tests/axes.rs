//! Every axis says what it shows, whatever the data.

mod common;

use antinoise_chart::{Axis, Chart, Figure, LineStyle, Point, Series};
use common::{ticks, words};
use proptest::prelude::*;

fn svg(logarithmic: [bool; 2], width: u32, points: &[(f64, f64)]) -> String {
    let axis = |which: usize, title: &str| match logarithmic[which] {
        true => Axis::logarithmic(title),
        false => Axis::linear(title),
    };
    let chart = Chart {
        title: "title".into(),
        x: axis(0, "across"),
        y: axis(1, "up"),
        series: vec![Series::new("name", LineStyle::Marked, points.iter().copied())],
    };
    Figure { width, plot_height: 220, background: true, rows: vec![vec![chart.into()]] }.svg().unwrap()
}

/// Digits of a number, without the zeros that only say how large it is.
fn digits(text: &str) -> usize {
    let mantissa: String = text.split('e').next().unwrap().chars().filter(char::is_ascii_digit).collect();
    mantissa.trim_matches('0').len()
}

/// As many digits as round numbers have that are so far apart, with one or two to spare where only some of
/// them have room.
fn most_digits(axis: &[(f64, f64)]) -> usize {
    let largest = axis.iter().map(|tick| tick.0.abs()).fold(0.0, f64::max);
    let gap = axis.windows(2).map(|pair| (pair[1].0 - pair[0].0).abs()).fold(f64::INFINITY, f64::min);
    (100.0 * largest / gap).log10().floor().min(400.0) as usize + 1
}

/// At least two labels, all different and as short as they can be, each where its number lies on the scale,
/// and none outside of the figure.
fn check(svg: &str, logarithmic: [bool; 2], width: u32) -> Result<(), TestCaseError> {
    for nothing in ["NaN", "nan", "inf"] {
        prop_assert!(!svg.contains(nothing), "{nothing} in {svg}");
    }
    for (axis, logarithmic) in ticks(svg).iter().zip(logarithmic) {
        prop_assert!(axis.len() >= 2, "{axis:?} in {svg}");
        let scale = |number: f64| if logarithmic { number.ln() } else { number };
        let (first, last) = (axis[0], axis[axis.len() - 1]);
        let (drawn, span) = (last.1 - first.1, scale(last.0) - scale(first.0));
        prop_assert!(drawn != 0.0 && span != 0.0 && span.is_finite(), "{axis:?}");
        for pair in axis.windows(2) {
            let distance = drawn * ((scale(pair[1].0) - scale(pair[0].0)) / span);
            prop_assert!((pair[1].1 - pair[0].1 - distance).abs() < 4.0, "{axis:?}");
            prop_assert!((pair[1].1 - pair[0].1).abs() > 12.0 * 4.0, "too close: {axis:?}");
        }
    }
    let written = words(svg).into_iter().filter(|word| word.text.parse::<f64>().is_ok());
    let most = ticks(svg).map(|axis| most_digits(&axis));
    for word in written {
        let axis = usize::from(word.anchor == "end");
        prop_assert!(digits(&word.text) <= most[axis], "{word:?} has more than {} digits", most[axis]);
    }
    for word in words(svg) {
        prop_assert!((0.0..=4.0 * f64::from(width)).contains(&word.x), "{word:?}");
        prop_assert!(word.text.len() <= 14, "{word:?} is long");
    }
    Ok(())
}

/// Any finite double, most of them of a size that figures have.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e3f64,
        2 => (-40.0..40.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        1 => (-300.0..300.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        1 => prop::sample::select(vec![0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, f64::MAX, f64::MIN_POSITIVE]),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324]),
    ]
}

/// Rows of points: scattered, and within a part of a decade, and equal but for the last digits.
fn rows() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let near = (number(), number(), prop::sample::select(vec![0.0, 1e-15, 1e-7, 1e-4, 0.03, 0.7]));
    prop_oneof![
        prop::collection::vec((number(), number()), 0..6),
        (near, prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 1..5)).prop_map(|((x, y, share), steps)| {
            steps.into_iter().map(|(i, j)| (x * (1.0 + share * i), y * (1.0 + share * j))).collect()
        }),
    ]
}

#[test]
fn ticks_of_the_smallest_numbers_are_where_they_say() {
    // A length on paper over a span of 1.5e-305 is no double: the check compares shares.
    let points = [(1.0000157769163771e-300, 635.2665033373383), (1e-300, 635.2665033373383)];
    check(&svg([false, false], 826, &points), [false, false], 826).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_axis_has_two_ticks_that_are_where_they_say(
        points in rows(),
        logarithmic in any::<[bool; 2]>(),
        width in 240u32..1000,
    ) {
        check(&svg(logarithmic, width, &points), logarithmic, width)?;
    }

    #[test]
    fn whole_numbers_have_no_ticks_between_them(first in 0u32..2000, more in 0u32..2000) {
        let series = vec![Series::new("name", LineStyle::Line, [(f64::from(first), 1.0), (f64::from(first + more), 2.0)])];
        let chart = Chart { title: String::new(), x: Axis::linear("across").whole(), y: Axis::linear("up"), series };
        let svg = Figure { width: 360, plot_height: 200, background: false, rows: vec![vec![chart.into()]] }.svg().unwrap();
        let [across, _] = ticks(&svg);
        prop_assert!(across.len() >= 2 && across.iter().all(|tick| tick.0.fract() == 0.0), "{across:?}");
    }
}

#[test]
fn ticks_stand_where_they_were_asked_for_as_far_as_there_is_room() {
    let across = |values: &[f64]| {
        let points = values.iter().map(|&x| (x, x));
        let x = Axis::logarithmic("across").ticks_at(values.iter().copied());
        let series = vec![Series::new("name", LineStyle::Marked, points)];
        let chart = Chart { title: String::new(), x, y: Axis::linear("up"), series };
        let svg = Figure { width: 700, plot_height: 200, background: false, rows: vec![vec![chart.into()]] }
            .svg()
            .unwrap();
        ticks(&svg)[0].iter().map(|tick| tick.0).collect::<Vec<f64>>()
    };
    assert_eq!(across(&[8.0, 32.0, 1024.0]), [8.0, 32.0, 1024.0]);
    let many: Vec<f64> = (1..500).map(f64::from).collect();
    let kept = across(&many);
    assert!(kept.len() > 5 && kept.len() < 40 && kept[0] == 1.0, "{kept:?}");
    // A single one is no scale.
    assert!(across(&[64.0]).len() >= 2);
}

#[test]
fn errors_are_a_band_about_a_line_and_bars_on_points() {
    let points = |error: f64| (1..5).map(move |i| Point { x: f64::from(i), y: 1.0, error: Some([error; 2]) });
    let draw = |look, error| {
        let chart = Chart {
            title: String::new(),
            x: Axis::linear("across"),
            y: Axis::linear("up"),
            series: vec![Series::new("name", look, points(error))],
        };
        Figure { width: 400, plot_height: 200, background: false, rows: vec![vec![chart.into()]] }
            .svg()
            .unwrap()
    };
    let band = draw(LineStyle::Line, 2.0);
    let outline = band.split("<polygon").nth(1).expect("a band is a polygon");
    assert_eq!(common::attribute(outline, "points").unwrap().split_whitespace().count(), 8);
    let [_, up] = ticks(&band);
    let (low, high) = up.iter().fold((f64::MAX, f64::MIN), |(l, h), tick| (tick.0.min(l), tick.0.max(h)));
    assert!(low <= -0.5 && high >= 2.5, "the axis covers the errors: {up:?}");
    assert!(!draw(LineStyle::Points, 0.5).contains("<polygon"));
    let lines = |svg: &str| svg.matches("<polyline").count() + svg.matches("<line").count();
    assert_eq!(lines(&draw(LineStyle::Points, 0.5)), lines(&draw(LineStyle::Points, f64::NAN)));
    assert!(!draw(LineStyle::Line, f64::NAN).contains("NaN"));
}

/// The ends of a band are at the ends of the errors, whose sides may differ.
#[test]
fn a_band_may_have_a_longer_side() {
    let points = (0..4).map(|i| Point { x: f64::from(i), y: 1.0, error: Some([1.0, 0.0]) });
    let chart = Chart {
        title: String::new(),
        x: Axis::linear("across"),
        y: Axis::linear("up"),
        series: vec![Series::new("name", LineStyle::Line, points)],
    };
    let svg = Figure { width: 400, plot_height: 200, background: false, rows: vec![vec![chart.into()]] }
        .svg()
        .unwrap();
    let heights = |outline: &str| -> Vec<f64> {
        let points = common::attribute(outline, "points").unwrap();
        points.split_whitespace().map(|point| point.split_once(',').unwrap().1.parse().unwrap()).collect()
    };
    let band = heights(svg.split("<polygon").nth(1).unwrap());
    let line = heights(svg.split("<polyline").skip(1).find(|outline| heights(outline).len() == 4).unwrap());
    // Down is more.
    let (top, bottom) = band.iter().fold((f64::MAX, f64::MIN), |(t, b), y| (t.min(*y), b.max(*y)));
    assert!((top - line[0]).abs() < 1.5 && bottom > line[0] + 50.0, "{band:?} {line:?}");
}

#[test]
fn several_series_have_a_legend_and_one_has_none() {
    let legend = |names: &[&str]| {
        let series =
            names.iter().map(|name| Series::new(*name, LineStyle::Line, [(1.0, 1.0), (2.0, 2.0)])).collect();
        let chart = Chart { title: String::new(), x: Axis::linear("across"), y: Axis::linear("up"), series };
        let svg = Figure { width: 360, plot_height: 200, background: false, rows: vec![vec![chart.into()]] }
            .svg()
            .unwrap();
        let found = words(&svg);
        names.iter().filter(|name| found.iter().any(|word| word.text == **name)).count()
    };
    assert_eq!(legend(&["alone"]), 0);
    assert_eq!(legend(&["one", "two", "three"]), 3);
    // More than one row, and more than there are colours.
    let many: Vec<String> = (0..20).map(|i| format!("mechanism number {i}")).collect();
    assert_eq!(legend(&many.iter().map(String::as_str).collect::<Vec<_>>()), 20);
}

fn lines_with_errors(count: usize) -> String {
    let line = |i: usize| {
        let points =
            (0..30).map(move |x| Point { x: f64::from(x), y: 1.0 + 0.01 * i as f64, error: Some([0.5; 2]) });
        Series::new(format!("line {i}"), LineStyle::Line, points)
    };
    let chart = Chart {
        title: String::new(),
        x: Axis::linear("across"),
        y: Axis::linear("up"),
        series: (0..count).map(line).collect(),
    };
    Figure { width: 720, plot_height: 240, background: false, rows: vec![vec![chart.into()]] }.svg().unwrap()
}

/// Bands of more than three lines would cover each other: their errors are six bars on each, with an end
/// above and below.
#[test]
fn errors_of_many_lines_are_bars_at_a_few_places() {
    for count in 1..=8 {
        let svg = lines_with_errors(count);
        let bands = svg.matches("<polygon").count();
        assert_eq!(bands, if count <= 3 { count } else { 0 }, "{count} lines");
        let thin = svg.matches("stroke-width=\"5\"").count();
        // And one for each line in the legend.
        assert_eq!(thin, if count <= 3 { 0 } else { count * (3 * 6 + 1) }, "{count} lines");
    }
}

/// The names at the ends of lines that nearly meet are to the right of the plot, a line of text apart, in
/// their order.
#[test]
fn names_at_the_ends_of_lines_do_not_collide() {
    for count in 2..=8 {
        let svg = lines_with_errors(count);
        let all = words(&svg);
        let name = |i: usize| {
            all.iter().filter(|word| word.text == format!("line {i}")).max_by(|a, b| a.x.total_cmp(&b.x))
        };
        let found: Vec<_> = (0..count).map(|i| name(i).expect("a name")).collect();
        assert!(found.iter().all(|word| word.x > 4.0 * 600.0 && word.x < 4.0 * 720.0), "{found:?}");
        for pair in found.windows(2) {
            assert!(pair[0].y - pair[1].y >= 4.0 * 14.0, "{pair:?}");
        }
    }
}
