//! Tables in CSV, with their schema.

use antinoise_input::BadInput;
use antinoise_train::data::{Missing, Schema, TableFile, TestPart, Values};

use crate::files::file;

/// A schema, a zero, a table: what is accepted has features where the schema says, and is written and read as
/// itself.
pub fn run(data: &[u8]) -> bool {
    let Some(at) = data.iter().position(|&byte| byte == 0) else { return false };
    let Ok(text) = std::str::from_utf8(&data[..at]) else { return false };
    let Ok(schema) = Schema::from_toml(text) else { return true };
    let written = toml::to_string(&schema).expect("a schema is numbers and words");
    assert_eq!(Schema::from_toml(&written).as_ref().ok(), Some(&schema));
    // Features are memory, whatever a file's size.
    if schema.features() > 1 << 12 {
        return false;
    }
    let path = file("table.csv", &data[at + 1..]);
    match TableFile::csv(&path, b',').dataset(&schema, TestPart::Last(0.5)) {
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
        Ok(found) => {
            for part in [&found.train, &found.test] {
                assert!(part.labels().iter().all(|&label| (label as usize) < schema.classes.len()));
                (0..part.len()).for_each(|row| check(&schema, part.features(row)));
            }
        }
    }
    true
}

fn check(schema: &Schema, mut features: &[f32]) {
    for column in &schema.columns {
        let width = match &column.values {
            Values::Range(..) => 1,
            Values::Categories(words) => words.len(),
            Values::Text(features) => *features,
        };
        let (mine, others) = features.split_at(width);
        features = others;
        let is_missing = mine.iter().all(|&x| x == 0.0) && schema.missing == Missing::Zero;
        let holds = match &column.values {
            Values::Range(..) => (-1.0..=1.0).contains(&mine[0]),
            Values::Categories(_) => {
                mine.iter().filter(|&&x| x == 1.0).count() == 1 && mine.iter().sum::<f32>() == 1.0
            }
            Values::Text(_) => mine.iter().map(|x| x * x).sum::<f32>() <= 1.0001,
        };
        assert!(holds || is_missing, "{mine:?} of {column:?}");
    }
    assert!(features.is_empty());
}

pub fn seeds() -> Vec<Vec<u8>> {
    let schema = "label = \"late\"\nclasses = [\"no\", \"yes\"]\nmissing = \"zero\"\n\
                  [[columns]]\nname = \"distance\"\nvalues = { range = [0, 5000.5] }\n\
                  [[columns]]\nname = \"carrier\"\nvalues = { categories = [\"AA\", \"UA\", \"*\"] }\n\
                  [[columns]]\nname = \"words\"\nvalues = { text = 16 }\n";
    let table = "late,carrier,distance,words\nno,AA,12,pain in the chest\nyes,\"X,Y\",NA,\"\"\nno,UA,1e9,a\nyes,UA,-1,b b\n";
    let strict = schema.replace("missing = \"zero\"\n", "");
    let short = "distance,late,words,carrier\r\n5000.5,yes,été,AA\r\n-0,no,b,UA\r\n";
    [(schema, table), (&strict, short)]
        .map(|(schema, table)| format!("{schema}\0{table}").into_bytes())
        .into()
}
