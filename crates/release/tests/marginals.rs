//! Marginals of several columns, from rows to published figures.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::collections::HashMap;

use antinoise_release::{
    Columns, Error, Fate, Format, Found, Growth, Handling, Keep, Late, Period, Published, Query, Release,
    Segments, Settings, Status, Unit,
};
use tempfile::TempDir;

const QUERY: &str = "marginals:city=a|b|c;age@18,65;ways=0,1,2";

fn settings(query: &str, periods: usize) -> Settings {
    let queries = vec![(query.parse().unwrap(), 1.0)];
    Settings { queries, epsilon: 4.0, ..Settings::new(vec!["all".into()], periods, Unit::User) }
}

fn release(settings: &Settings) -> (TempDir, Release) {
    let folder = tempfile::tempdir().unwrap();
    let release = Release::create(folder.path(), settings).unwrap();
    (folder, release)
}

fn read(release: &mut Release, text: &str, leave_unknown_keys: bool) -> Result<Found, Error> {
    let columns = Columns { time: "day".into(), user: Some("user".into()), ..Columns::default() };
    let columns = columns.of(release.settings())?;
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let mut freezing = release.freeze(&"1".parse().unwrap())?;
    freezing.read(
        text.as_bytes(),
        format,
        &columns,
        Handling { late: Late::Leave, leave_unknown_keys },
        || (),
    )
}

fn values(published: &[Published]) -> HashMap<String, f64> {
    published.iter().map(|row| (row.bucket.clone(), row.value.value())).collect()
}

/// Cells of JSON mean what those of CSV do: null is empty, and truth values are names.
#[test]
fn nulls_and_truth_values_of_json_are_cells() {
    let query = "marginals:city=a|true|false;ways=1";
    let (_folder, mut release) = release(&settings(query, 3));
    let csv = "day,user,city\n1,u,a\n1,v,true\n1,w,false\n1,x,\n1,y,null\n";
    let json: String = [("u", "\"a\""), ("v", "true"), ("w", "false"), ("x", "null"), ("y", "\"null\"")]
        .map(|(user, city)| format!("{{\"day\":1,\"user\":\"{user}\",\"city\":{city}}}\n"))
        .concat();
    for text in [csv, json.as_str()] {
        let found = read(&mut release, text, true).unwrap();
        assert_eq!((found.tally.counted, found.tally.unknown_keys), (3, 2), "{text}");
        let refused = read(&mut release, text, false).unwrap_err().to_string();
        assert!(refused.contains("city of an event") && refused.contains("is \"\" but"), "{refused}");
    }
}

/// Rows in no class are refused with the column, the cell and the line, or left out.
#[test]
fn rows_are_read_by_the_columns_of_the_query() {
    let (_folder, mut release) = release(&settings(QUERY, 3));
    let good = "day,user,city,age,other\n1,u,a,17,x\n1,v,c, 65 ,y\n1,w,b,inf,z\n";
    assert_eq!(read(&mut release, good, false).unwrap().tally.counted, 3);
    let json = "{\"day\":1,\"user\":\"u\",\"city\":\"a\",\"age\":17.5}\n";
    assert_eq!(read(&mut release, json, false).unwrap().tally.counted, 1);
    for (row, wanted) in [
        ("1,u,d,17", "city of an event (line 2) is \"d\" but must be in a class of the marginals"),
        ("1,u,,17", "city of an event (line 2) is \"\" but"),
        ("1,u, a,17", "city of an event (line 2) is \" a\" but"),
        ("1,u,a,old", "age of an event (line 2) is \"old\" but"),
        ("1,u,a,NaN", "age of an event (line 2) is \"NaN\" but"),
        ("1,u,a,", "age of an event (line 2) is \"\" but"),
    ] {
        let text = format!("day,user,city,age\n{row}\n1,v,a,20\n");
        let refused = read(&mut release, &text, false).unwrap_err().to_string();
        assert!(refused.starts_with(wanted), "{refused}");
        let found = read(&mut release, &text, true).unwrap();
        assert_eq!((found.tally.counted, found.tally.unknown_keys), (1, 1), "{row}");
    }
    let absent = read(&mut release, "day,user,city\n1,u,a\n", false).unwrap_err().to_string();
    assert!(absent.contains("age"), "{absent}");
    let mut day = release.freeze(&"1".parse().unwrap()).unwrap();
    let refused = day.add("u", "all", None).unwrap_err().to_string();
    assert!(refused.contains("one for each column of the marginals: city, age"), "{refused}");
    assert_eq!(day.add_with("u", "none", None, &["a", "20"]).unwrap(), Fate::UnknownKey);
    assert_eq!(day.add_with("u", "all", None, &["a", "20"]).unwrap(), Fate::Counted);
}

#[test]
fn several_keys_need_their_column() {
    let keys = ["x", "y"].map(String::from).to_vec();
    let queries = vec![("counts".parse().unwrap(), 1.0)];
    let settings = Settings { queries, ..Settings::new(keys, 3, Unit::User) };
    let (_folder, mut release) = release(&settings);
    let refused = read(&mut release, "day,user\n1,u\n", false).unwrap_err().to_string();
    assert!(refused.contains("key is absent"), "{refused}");
}

#[test]
fn queries_that_cannot_be_published_are_refused() {
    for (text, wanted) in [
        ("marginals:", "query is"),
        ("marginals:city=a|b", "query is"),
        ("marginals:city=a|b;ways=", "query is"),
        ("marginals:city=a|b;ways=x", "query is"),
        ("marginals:ways=1", "query is"),
        ("marginals:city;ways=1", "query is"),
        ("marginals:age@1,x;ways=1", "query is"),
        ("marginals:=a|b;ways=1", "column of the marginals is \"\" but"),
        ("marginals:city=a;ways=1", "categories of city is 1 but must be two at least"),
        ("marginals:city=a|a;ways=1", "categories of city is \"a\" and \"a\" but must be distinct"),
        ("marginals:city=a|A;ways=1", "categories of city is \"a\" and \"A\" but must be distinct"),
        ("marginals:city=a | b;ways=1", "categories of city is with \"a \" but"),
        ("marginals:a,b=x|y;ways=1", "column of the marginals is \"a,b\" but"),
        ("marginals:all=x|y;ways=1", "column of the marginals is \"all\" but"),
        ("marginals:city=a||b;ways=1", "categories of city is with \"\" but"),
        ("marginals:city=a|b;city=c|d;ways=1", "columns of the marginals is \"city\" twice but"),
        ("marginals:city=a|b;ways=2", "ways of the marginals is 2 but"),
        ("marginals:city=a|b;ways=1,0", "ways of the marginals is 1,0 but"),
        ("marginals:city=a|b;ways=0", "ways of the marginals is 0 but"),
        ("marginals:age@;ways=1", "query is"),
        ("marginals:age@2,1;ways=1", "edges of age is age@2,1 but"),
        ("marginals:age@NaN,1;ways=1", "edges of age"),
        ("marginals:age@1,inf;ways=1", "edges of age"),
    ] {
        let refused = text.parse::<Query>().unwrap_err().to_string();
        assert!(refused.starts_with(wanted), "{text}: {refused}");
    }
    let many: Vec<String> = (0..17).map(|at| format!("c{at}=a|b;")).collect();
    assert!(format!("marginals:{}ways=1", many.concat()).parse::<Query>().is_err());
    let refused = format!("marginals:{}ways=6", many[..16].concat()).parse::<Query>().unwrap_err();
    assert!(refused.to_string().starts_with("tables of the marginals is"), "{refused}");
    // Cells of all tables together are bounded, without making them.
    let names: Vec<String> = (0..5000).map(|at| at.to_string()).collect();
    let large = format!("marginals:c={0};d={0};ways=2", names.join("|"));
    let refused = settings(&large, 3).check().unwrap_err().to_string();
    assert!(refused.starts_with("cells of all keys and queries is"), "{refused}");
    let twice =
        vec![(QUERY.parse().unwrap(), 1.0), ("marginals:city=x|y|z;age@1,2;ways=1".parse().unwrap(), 1.0)];
    let twice = Settings { queries: twice, ..settings(QUERY, 3) };
    assert!(twice.check().unwrap_err().to_string().contains("marginals:city,age twice"));
}

#[test]
fn queries_are_written_as_they_are_read() {
    for text in [QUERY, "marginals:a b=x y|z=1@2;ways=1", "marginals:n@-1.5,0,2;m=1|2;k=u|v;ways=1,3"] {
        let query: Query = text.parse().unwrap();
        assert_eq!(query.to_string(), text);
        assert_eq!(text.parse::<Query>().unwrap(), query);
    }
}

/// Adds the rows of a period: user, city, age.
fn publish(release: &mut Release, period: i64, rows: &[(String, &str, i64)]) -> Vec<Published> {
    let mut day = release.freeze(&Period::Number(period)).unwrap();
    for (user, city, age) in rows {
        day.add_with(user, "all", None, &[city, &age.to_string()]).unwrap();
    }
    day.commit().unwrap();
    release.publish().unwrap()
}

fn rows(period: i64, count: i64) -> Vec<(String, &'static str, i64)> {
    let row =
        |at: i64| (format!("u {period} {at}"), ["a", "b", "c"][(at * at % 7 % 3) as usize], at * 13 % 90);
    (0..count).map(row).collect()
}

/// After each period, sums over a column are the cells of the table without it, whatever the options; another
/// process continues with the same figures.
#[test]
fn tables_add_up_after_every_period() {
    for raised in [false, true] {
        let settings = Settings { non_negative: raised, monotone: raised, ..settings(QUERY, 6) };
        let (folder, mut release) = release(&settings);
        for period in 1..=6 {
            if period == 3 {
                drop(release);
                release = Release::open(folder.path()).unwrap();
            }
            let published = publish(&mut release, period, &rows(period, 5));
            assert_eq!(published.len(), 1 + 3 + 3 + 9);
            assert!(published.iter().all(|row| row.query == "marginals:city,age" && row.key == "all"));
            let values = values(&published);
            let ages = ["age below 18", "age 18 to 65", "age 65 or above"];
            let mut all = 0.0;
            for city in ["city=a", "city=b", "city=c"] {
                let sum: f64 = ages.iter().map(|age| values[&format!("{city};{age}")]).sum();
                assert!((sum - values[city]).abs() < 1e-9, "{sum} {}", values[city]);
                all += values[city];
            }
            for age in ages {
                let sum: f64 = ["a", "b", "c"].iter().map(|city| values[&format!("city={city};{age}")]).sum();
                assert!((sum - values[age]).abs() < 1e-9);
            }
            assert!((all - values["all"]).abs() < 1e-9);
        }
    }
}

/// Errors have the stated standard deviation, and intervals contain the truth in 95%, in every table, also
/// over segments and next to other queries: of many keys of one release, whose noise is independent.
#[test]
fn stated_deviations_are_those_of_the_errors() {
    let keys: Vec<String> = (0..2000).map(|key| key.to_string()).collect();
    let alone = Settings { keys, ..settings(QUERY, 5) };
    let mut open = alone.clone();
    open.queries.insert(0, ("counts".parse().unwrap(), 0.5));
    open.queries.push(("users-over-rows".parse().unwrap(), 0.25));
    for settings in [alone, open.with_segments(Segments { first: 3, growth: Growth::Even })] {
        let (folder, mut release) = release(&settings);
        let query: Query = QUERY.parse().unwrap();
        let (cities, ages) = (["a", "b", "c"], [("17", "age below 18"), ("18", "age 18 to 65")]);
        let mut truth = HashMap::<(String, String), f64>::new();
        for period in 1..=5 {
            let mut day = release.freeze(&Period::Number(period)).unwrap();
            for (at, key) in settings.keys.iter().enumerate() {
                let (city, (age, bucket)) = (cities[at % 3], ages[at / 3 % 2]);
                day.add_with(&format!("u {period} {at}"), key, None, &[city, age]).unwrap();
                for name in
                    ["all".into(), format!("city={city}"), bucket.into(), format!("city={city};{bucket}")]
                {
                    *truth.entry((key.clone(), name)).or_default() += 1.0;
                }
            }
            day.commit().unwrap();
            let published = release.publish().unwrap();
            let status = Status::of(folder.path()).unwrap();
            let largest = status.error(&query, period as usize - 1).unwrap();
            let report = status.report().unwrap();
            let tables = &report.queries.iter().find(|status| !status.tables.is_empty()).unwrap().tables;
            let mut squares = HashMap::<&str, (f64, f64, f64)>::new();
            for row in published.iter().filter(|row| row.query == "marginals:city,age") {
                let columns: Vec<&str> =
                    ["city", "age"].into_iter().filter(|name| row.bucket.contains(name)).collect();
                let columns = if columns.is_empty() { "all".into() } else { columns.join(",") };
                let table = tables.iter().find(|table| table.columns == columns).unwrap();
                let deviation = largest * table.relative_deviation;
                let (lower, upper) = (row.lower.value(), row.upper.value());
                assert!(((upper - lower) / (2.0 * 1.959_963_984_540_054 * deviation) - 1.0).abs() < 1e-9);
                let truth = truth.get(&(row.key.clone(), row.bucket.clone())).copied().unwrap_or(0.0);
                let (sum, inside, count) = squares.entry(&table.columns).or_default();
                *sum += ((row.value.value() - truth) / deviation).powi(2);
                *inside += f64::from(lower <= truth && truth <= upper);
                *count += 1.0;
            }
            assert_eq!(squares.len(), 4);
            for (table, (sum, inside, count)) in squares {
                // 2000 independent errors at least: 0.15 and 0.025 are 4.7 and 5.1 standard deviations.
                assert!((sum / count - 1.0).abs() < 0.15, "{table} {period}: {}", sum / count);
                assert!((inside / count - 0.95).abs() < 0.025, "{table} {period}: {}", inside / count);
            }
        }
    }
}

/// A user's rows move the frozen vector by at most the plan's clip norm, and nearly by that if all rows are
/// alike, whatever other queries there are and however the rows are chosen.
#[test]
fn a_user_moves_a_period_by_at_most_the_clip_norm() {
    for (others, keep) in [("", Keep::First), ("", Keep::Sample), ("counts users-over-rows", Keep::First)] {
        let mut settings = Settings { max_rows: 3, keep, ..settings(QUERY, 12) };
        settings.queries.extend(others.split_whitespace().map(|query| (query.parse().unwrap(), 0.7)));
        for alike in [true, false] {
            let vectors = [true, false].map(|is_there| {
                let (folder, mut release) = release(&settings);
                let mut day = release.freeze(&Period::Number(1)).unwrap();
                for (user, city, age) in rows(1, 50) {
                    day.add_with(&user, "all", None, &[city, &age.to_string()]).unwrap();
                }
                for row in (0..9).filter(|_| is_there) {
                    let age = if alike { 30 } else { row * 31 % 70 };
                    day.add_with("u", "all", None, &["b", &age.to_string()]).unwrap();
                }
                day.commit().unwrap();
                let plan = release.plan();
                let spacing = plan.arithmetic.grid().unwrap().unwrap().spacing();
                (common::frozen(folder.path(), 0), spacing, plan.clip_norm)
            });
            let [(with, spacing, clip_norm), (without, ..)] = vectors;
            let squares: i64 = with.iter().zip(&without).map(|(x, y)| (x - y).pow(2)).sum();
            let moved = spacing * (squares as f64).sqrt();
            assert!(moved <= clip_norm * (1.0 + 1e-12), "{moved} {clip_norm}");
            assert!(moved > 0.98 * clip_norm || !alike, "{moved} {clip_norm}");
        }
    }
}
