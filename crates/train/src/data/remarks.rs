//! Remarks about data that a model cannot learn from, or that are tested on rows unlike the others.

use antinoise_input::tables::SimilarNames;

use super::examples::Dataset;
use super::table::Schema;

/// Minimum number of training rows for a remark that they are sorted by class: fewer may be sorted by chance.
const FEW: usize = 20;

/// Maximum number of columns that a remark names.
const NAMED: usize = 5;

/// Remarks on what is unusual about a data set: one class, classes that only test rows have, rows sorted by
/// class, users with nearly the same name, and columns with one value in all training rows.
///
/// **They are computed from the private examples without noise; no privacy statement covers them.** They are
/// for the owner of the data.
///
/// ```
/// use antinoise_train::data::{digits, remarks};
/// assert!(remarks(&digits(), None).is_empty());
/// ```
pub fn remarks(dataset: &Dataset, schema: Option<&Schema>) -> Vec<String> {
    let train = dataset.train.labels();
    let name = |class: u32| dataset.class_names.get(class as usize).map_or("?", String::as_str);
    let mut found = Vec::new();
    let present = |labels: &[u32]| {
        let mut present = vec![false; dataset.classes];
        labels.iter().for_each(|&label| present[label as usize] = true);
        present
    };
    let (trained, tested) = (present(train), present(dataset.test.labels()));
    if trained.iter().filter(|&&class| class).count() == 1 {
        found.push(format!("all {} training rows have the class {:?}", train.len(), name(train[0])));
    }
    for class in (0..dataset.classes).filter(|&class| tested[class] && !trained[class]) {
        found.push(format!("test rows have the class {:?}, which no training row has", name(class as u32)));
    }
    let changes = train.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if train.len() >= FEW && changes > 0 && changes < trained.iter().filter(|&&class| class).count() {
        found.push(
            "training rows are sorted by class: last rows are unlike the others, and one pass in their order \
             (setting stream) learns one class after the other"
                .into(),
        );
    }
    found.extend(dataset.users.as_ref().and_then(|users| SimilarNames::among(users.names()).warning()));
    let Some(schema) = schema else { return found };
    let (mut start, mut constant) = (0, Vec::new());
    for column in &schema.columns {
        let own = start..start + column.width();
        let first = &dataset.train.features(0)[own.clone()];
        if train.len() > 1 && (1..train.len()).all(|row| &dataset.train.features(row)[own.clone()] == first) {
            constant.push(&*column.name);
        }
        start = own.end;
    }
    found.extend(of_constant(&constant));
    found
}

/// The remark on columns with one value.
fn of_constant(columns: &[&str]) -> Option<String> {
    let named = || columns[..columns.len().min(NAMED)].join(", ");
    match columns.len() {
        0 => None,
        1 => Some(format!("column {:?} has the same value in all training rows", columns[0])),
        count if count <= NAMED => {
            Some(format!("columns {} have the same value in all training rows", named()))
        }
        count => Some(format!("{count} columns have the same value in all training rows: {}, ...", named())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Examples, ImageShape};

    /// A problem of two classes and one feature a row.
    fn problem(train: &[u32], test: &[u32], feature: fn(usize) -> f32) -> Dataset {
        let part = |labels: &[u32]| {
            let features = (0..labels.len()).map(feature).collect();
            Examples::new(features, labels.to_vec(), 1).unwrap()
        };
        Dataset {
            name: "rows".into(),
            shape: ImageShape::row(1),
            classes: 2,
            class_names: vec!["no".into(), "yes".into()],
            train: part(train),
            users: None,
            test: part(test),
        }
    }

    #[test]
    fn one_class_an_order_by_class_and_constant_columns_are_remarked() {
        let schema = Schema::from_toml(
            "label = \"late\"\nclasses = [\"no\", \"yes\"]\ncolumns = [{ name = \"x\", values = { range = [0, 1] } }]",
        );
        let schema = schema.unwrap();
        let said = |train: &[u32], test: &[u32], feature| {
            remarks(&problem(train, test, feature), Some(&schema)).join("; ")
        };
        let mixed: Vec<u32> = (0..40).map(|row| row % 2).collect();
        let sorted: Vec<u32> = (0..40).map(|row| row / 20).collect();
        assert_eq!(said(&mixed, &[0, 1], |row| row as f32), "");
        assert!(said(&sorted, &[0, 1], |row| row as f32).contains("sorted by class"));
        let one = said(&[0; 40], &[1], |row| row as f32);
        assert!(one.contains("have the class \"no\"") && one.contains("\"yes\", which no training row has"));
        assert!(!one.contains("sorted"), "{one}");
        assert!(said(&mixed, &[0], |_| 0.5).contains("column \"x\" has the same value"));
    }
}
