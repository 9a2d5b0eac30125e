//! k-means: frozen cells against naive ones, publications against the noisy cells, and refusals.

#[path = "common/cells.rs"]
mod cells;
mod common;
#[path = "common/folder.rs"]
mod folder;

use antinoise_input::BadInput;
use antinoise_release::{
    Axis, Columns, Error, Figure, Format, Growth, Handling, Late, Links, Period, Published, Query, Release,
    Status, kmeans,
};
use cells::{axes, centres, middle, nearest, share};
use common::{Event, freeze, frozen, kept, noise, point, settings};
use folder::copy;

const Z: f64 = 1.959_963_984_540_054;
const QUERY: &str = "kmeans:3@x:-30,30,6@y:-20,20,4";

#[test]
fn what_is_published_follows_from_naive_cells_and_the_noise() {
    let (folder, periods) = (tempfile::tempdir().unwrap(), 10);
    let wanted = settings(periods, 4, 2, &[QUERY, "counts", "window:1"]);
    let (count, axes) = axes(QUERY);
    let mut release = Release::create(folder.path(), &wanted).unwrap();
    let events: Vec<Event> =
        (0..4000).map(|i| (i % 10, i * 7 % 800, i % 3, (i * 17 % 610) as f64 / 10.0 - 30.0)).collect();
    let kept = kept(&events, periods, 4, 2);
    let points = (1.0 / release.plan().release.grid().unwrap().unwrap().spacing()).floor();
    let errors = release.errors(&QUERY.parse().unwrap()).unwrap();
    let mut sums = vec![vec![0.0; 24]; 3];
    for step in 0..periods {
        freeze(&mut release, step, &events);
        let cells = frozen(folder.path(), step);
        // By definition: the cell in which each coordinate lies, where the outer cells extend to infinity.
        let mut naive = vec![0.0; 72];
        for (_, _, key, value) in kept.iter().filter(|event| event.0 == step) {
            let at = point(&wanted.columns(), *value);
            let x = (0..6).rfind(|j| *j == 0 || f64::from(*j) * 10.0 - 30.0 <= at[0]).unwrap();
            let y = (0..4).rfind(|j| *j == 0 || f64::from(*j) * 10.0 - 20.0 <= at[1]).unwrap();
            naive[key * 24 + (x * 4 + y) as usize] += points;
        }
        assert_eq!(cells[..72].iter().map(|cell| *cell as f64).collect::<Vec<_>>(), naive);
        let published = release.publish().unwrap();
        let noise = noise(folder.path(), step, &cells);
        for key in 0..3 {
            for cell in 0..24 {
                sums[key][cell] += (naive[key * 24 + cell] + noise[key * 24 + cell] as f64) / points;
            }
            let name = ["a", "b", "c"][key];
            let told: Vec<_> =
                published.iter().filter(|row| row.query.starts_with("kmeans") && row.key == name).collect();
            check(&told, count, &axes, &sums[key], errors[step]);
        }
    }
}

/// The figures of a key against the noisy rows of its cells: by definition, from the centres only.
fn check(told: &[&Published], count: usize, axes: &[Axis], rows: &[f64], deviation: f64) {
    let found = centres(told, axes.len());
    assert_eq!(told.len(), count * (axes.len() + 1));
    // If the noise is exactly the stated one, the centres are those of the public function.
    let again = kmeans(count, axes, rows, deviation).unwrap();
    for (x, y) in found.iter().flatten().zip(again.iter().flatten()) {
        assert!((x - y).abs() < 1e-9, "{found:?} {again:?}");
    }
    for (at, of_centre) in told.chunks(axes.len() + 1).enumerate() {
        let inside: Vec<usize> = (0..rows.len()).filter(|cell| nearest(axes, &found, *cell) == at).collect();
        let all: f64 = inside.iter().map(|cell| rows[*cell]).sum();
        let of_rows = of_centre[axes.len()];
        assert_eq!(of_rows.bucket, format!("centre {} rows", at + 1));
        let Figure::Whole(value) = of_rows.value else { panic!("{of_rows:?}") };
        assert!((value as f64 - all).abs() <= 0.5 + 1e-6, "{of_rows:?} {all}");
        let reach = Z * deviation * (inside.len() as f64).sqrt();
        for (end, found) in [(all - reach, of_rows.lower), (all + reach, of_rows.upper)] {
            assert!((found.value() - end).abs() <= 1.0 + 1e-6, "{of_rows:?} {end}");
        }
        for (i, (axis, row)) in axes.iter().zip(of_centre).enumerate() {
            assert_eq!(row.bucket, format!("centre {} at {}", at + 1, axis.column));
            check_coordinate(
                row,
                axis,
                &|m| {
                    let of_cell = |cell: &usize| middle(axes, *cell)[i] - m;
                    let score: f64 = inside.iter().map(|cell| rows[*cell] * of_cell(cell)).sum();
                    let squares: f64 = inside.iter().map(|cell| of_cell(cell).powi(2)).sum();
                    (score, deviation * squares.sqrt())
                },
                all <= reach,
            );
        }
    }
}

/// Up to half a cell at its ends the interval is Fieller's set, unless it is cut or ends at the value.
fn check_coordinate(row: &Published, axis: &Axis, score: &dyn Fn(f64) -> (f64, f64), unbounded: bool) {
    if unbounded {
        assert_eq!((row.lower.value(), row.upper.value()), (axis.low, axis.high), "{row:?}");
        return;
    }
    let half_a_cell = 0.5 / axis.cells as f64;
    for (end, sign) in [(row.lower.value(), 1.0), (row.upper.value(), -1.0)] {
        let m = share(axis, end) + sign * half_a_cell;
        let (score, deviation) = score(m);
        let is_cut = end <= axis.low + 1e-9 || end >= axis.high - 1e-9 || end == row.value.value();
        assert!(
            is_cut || (sign * score - Z * deviation).abs() <= 1e-5 * deviation + 1e-6,
            "{row:?} {sign} {}",
            score / deviation
        );
    }
}

/// Stopped at any point, also between links: the same bits.
#[test]
fn a_stopped_release_publishes_the_same_centres() {
    let root = tempfile::tempdir().unwrap();
    let (whole, stopped) = (root.path().join("whole"), root.path().join("stopped"));
    let wanted = settings(2, 2, 2, &[QUERY, "kmeans:2@y:-20,20,4", "window:2"]);
    let wanted = wanted.with_links(Links { first: 2, growth: Growth::Doubles });
    let mut release = Release::create(&whole, &wanted).unwrap();
    copy(&whole, &stopped);
    let events: Vec<Event> =
        (0..400).map(|i| (i % 8, i * 7 % 80, i % 3, (i * 17 % 61) as f64 - 30.0)).collect();
    let mut published = Vec::new();
    for step in 0..8 {
        freeze(&mut release, step, &events);
        published.extend(release.publish().unwrap());
    }
    Release::adopt(&stopped).unwrap();
    let mut again = Vec::new();
    for step in 0..8 {
        freeze(&mut Release::open(&stopped).unwrap(), step, &events);
        // Anything published but not written is as if it had not been published.
        let lost = root.path().join(format!("lost {step}"));
        copy(&stopped, &lost);
        Release::adopt(&lost).unwrap();
        let told = Release::open(&lost).unwrap().publish().unwrap();
        let mut release = Release::open(&stopped).unwrap();
        assert_eq!(release.publish().unwrap(), told);
        again.extend(told);
    }
    assert_eq!(again, published);
    assert_eq!(published.len(), 8 * 3 * (9 + 4 + 1));
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, named: &str) {
    let error = result.unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains(named), "{named:?} is not in {error}");
}

#[test]
fn queries_that_cannot_be_used_are_refused_by_what_is_wrong() {
    for (text, named) in [
        ("kmeans", "kmeans:K@COLUMN"),
        ("kmeans:3", "one to three columns"),
        ("kmeans:x@a:0,1,4", "kmeans:K@COLUMN"),
        ("kmeans:2.5@a:0,1,4", "kmeans:K@COLUMN"),
        ("kmeans:-1@a:0,1,4", "kmeans:K@COLUMN"),
        ("kmeans:2@a:0,1", "kmeans:K@COLUMN"),
        ("kmeans:2@a:0,1,4,5", "kmeans:K@COLUMN"),
        ("kmeans:2@0,1,4", "kmeans:K@COLUMN"),
        ("kmeans:2@a:0,1,4.5", "kmeans:K@COLUMN"),
        ("kmeans:2@a:0,1,4@b:0,1,4@c:0,1,4@d:0,1,4", "one to three columns"),
        ("kmeans:2@a:0,1,4@a:0,2,4", "distinct columns"),
        ("kmeans:2@:0,1,4", "1 to 64 bytes"),
        ("kmeans:2@a\tb:0,1,4", "can be seen"),
        ("kmeans:2@a:0,1,0", "1 to 16384 cells"),
        ("kmeans:2@a:0,1,129@b:0,1,128", "1 to 16384 cells"),
        ("kmeans:2@a:0,1,18446744073709551615@b:0,1,2", "1 to 16384 cells"),
        ("kmeans:2@a:1,1,4", "LO below HI"),
        ("kmeans:2@a:2,1,4", "LO below HI"),
        ("kmeans:2@a:nan,1,4", "LO below HI"),
        ("kmeans:2@a:0,inf,4", "LO below HI"),
        ("kmeans:2@a:1,1.0000000000000002,4", "have a length"),
        ("kmeans:0@a:0,1,4", "1 to 64, and no more than cells"),
        ("kmeans:5@a:0,1,4", "1 to 64, and no more than cells"),
        ("kmeans:65@a:0,1,100", "1 to 64, and no more than cells"),
    ] {
        refused(text.parse::<Query>().map_err(Error::from), named);
    }
    for text in [
        "kmeans:1@a:0,1,1",
        "kmeans:64@a b:-1000000000,0.1,128@b:c:0,1,128",
        "kmeans:2@é:0,1,4@y:0,1,4@z:0,1,4",
    ] {
        let query: Query = text.parse().unwrap();
        assert_eq!(query.to_string(), text);
        assert_eq!(text.parse::<Query>().unwrap(), query);
    }
    let axis = Axis { column: "a".into(), low: 0.0, high: 1.0, cells: 2 };
    refused(kmeans(3, std::slice::from_ref(&axis), &[1.0, 2.0], 0.0), "no more than cells");
    refused(kmeans(1, std::slice::from_ref(&axis), &[1.0], 0.0), "each of 2 cells");
    refused(kmeans(1, std::slice::from_ref(&axis), &[1.0, f64::NAN], 0.0), "each of 2 cells");
    refused(kmeans(1, &[axis], &[1.0, 2.0], f64::NAN), "deviation");
}

fn read(release: &mut Release, text: &str) -> Result<u64, Error> {
    let columns = Columns { time: "time".into(), user: Some("user".into()), key: "key".into(), value: None };
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let handling = Handling { late: Late::Refuse, leave_unknown_keys: false };
    let mut freezing = release.freeze(&"1".parse()?)?;
    freezing.read(text.as_bytes(), format, &columns, handling, || ())?;
    Ok(freezing.commit()?.counted)
}

#[test]
fn rows_without_their_columns_are_refused_by_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = settings(3, 3, 5, &["kmeans:2@x:0,10,5@y:0,10,5", "kmeans:2@y:0,10,3@z:0,1,2"]);
    let mut release = Release::create(folder.path(), &wanted).unwrap();
    let header = "z,time,user,key,x,y\n";
    for (rows, named) in [
        ("1,1,u,a,1\n", "text that cannot be read"),
        ("1,1,u,a,1,2\n1,1,u,a,one,2\n", "column \"x\" of an event (line 3) is \"one\" but must be a number"),
        ("1,1,u,a,1,\n", "column \"y\" of an event (line 2) is \"\" but must be a number"),
        ("nan,1,u,a,1,2\n", "column \"z\" of an event (line 2) is NaN but must be a number"),
    ] {
        refused(read(&mut release, &format!("{header}{rows}")), named);
    }
    refused(read(&mut release, "time,user,key,x,y\n1,u,a,1,2\n"), "column \"z\" is absent");
    refused(read(&mut release, "time,user,key,x,y,y,z\n1,u,a,1,2,3,4\n"), "column \"y\" is there twice");
    let json = "{\"time\":1,\"user\":\"u\",\"key\":\"a\",\"x\":1,\"y\":2";
    refused(read(&mut release, &format!("{json}}}")), "without z");
    refused(read(&mut release, &format!("{json},\"z\":null}}")), "with z null");
    let mut freezing = release.freeze(&Period::Number(1)).unwrap();
    refused(freezing.add("u", "a", Some(1.0)), "coordinates of an event is 0 but must be 3 numbers");
    refused(freezing.add_point("u", "a", None, &[1.0, 2.0]), "coordinates of an event is 2");
    refused(freezing.add_point("u", "a", None, &[1.0, f64::NAN, 0.0]), "column \"y\" of an event is NaN");
    drop(freezing);
    refused(
        release.freeze_counts(&Period::Number(1), &[1, 2, 3]),
        "must be counts, windows and decays alone",
    );
    refused(release.freeze_counts(&Period::Number(1), &[1; 93]), "must be counts, windows and decays alone");
    assert_eq!(Status::of(folder.path()).unwrap().frozen, 0);

    // Columns in any order; points beyond the box count in its outer cells, infinite ones included.
    let rows = "inf,1,u,a,-7,10\n0.5,1,v,a,9.99,-inf\n-3,1,w,c,2,9\n";
    assert_eq!(read(&mut release, &format!("{header}{rows}")).unwrap(), 3);
    let cells = frozen(folder.path(), 0);
    let places: Vec<usize> = (0..cells.len()).filter(|cell| cells[*cell] != 0).collect();
    // x, y of a key in 25 cells, then y, z in 6.
    assert_eq!(places, [4, 20, 50 + 9, 75 + 1, 75 + 5, 75 + 12 + 4]);

    let none = tempfile::tempdir().unwrap();
    let mut release = Release::create(none.path(), &settings(3, 3, 5, &["counts"])).unwrap();
    let mut freezing = release.freeze(&Period::Number(1)).unwrap();
    refused(freezing.add_point("u", "a", None, &[1.0]), "must be 0 numbers");
}
