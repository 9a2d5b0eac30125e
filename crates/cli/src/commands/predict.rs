//! `antinoise predict`: the classes of new rows.

use std::fmt::{self, Write};
use std::path::PathBuf;

use antinoise_federated::lstm::SavedLstm;
use antinoise_input::InvalidParameter;
use antinoise_train::data::Labels;
use antinoise_train::saved_model::{Prediction, SavedModel};
use clap::Args;
use serde::Serialize;

use super::model_rows::RowOptions;
use crate::destination::Overwriting;
use crate::failure::{Failure, Result};

/// Predict the classes of new rows with a model that `antinoise train` wrote.
///
/// Prints a line for each row, in the order of the rows: its most probable class, and the probability of each
/// class in the order of `classes` in model.toml. Rows need no labels. Predictions are post-processing of the
/// model: they cost its training data no privacy.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo distance,late > flights.csv
  seq 2000 | awk '{ print $1 * 37 % 5000 \",\" ($1 % 3 ? \"no\" : \"yes\") }' \\
      >> flights.csv
  antinoise train --data csv:flights.csv --label late=no,yes \\
      --range distance=0:5000 --epsilon 1 --out flights
  antinoise predict flights/model --data csv:flights.csv
  antinoise predict flights/model --data csv:flights.csv --out late.csv

A file that ends in .csv has the columns class and one probability a class; any other has one
JSON object a line.")]
pub struct Arguments {
    /// Folder of the model, such as antinoise-run/model.
    #[arg(value_name = "MODEL_DIR")]
    model: PathBuf,
    #[command(flatten)]
    rows: RowOptions,
    /// Write the predictions to this file instead of printing them.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// The predictions, or the file that holds them.
#[derive(Debug, Serialize)]
pub struct Predictions {
    examples: usize,
    classes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<Row>>,
}

/// The prediction for a row.
#[derive(Debug, Serialize)]
struct Row {
    class: String,
    /// The probability of each class, in the order of the classes.
    probabilities: Vec<f64>,
}

/// Predicts, and writes the file if there is one.
pub fn run(arguments: &Arguments) -> Result<Predictions> {
    let out = arguments.overwriting.file("out", &arguments.out)?;
    if let Some(out) = &out {
        out.refuse_to_replace_in("the model's own", &arguments.model)?;
        arguments.rows.file().map_or(Ok(()), |data| out.refuse_to_be("data", data))?;
    }
    if SavedLstm::is_in(&arguments.model) {
        let must_be = "that of a model of classes: use a model of characters from Rust or PyTorch, as its README.md says, or \
                       `antinoise evaluate`";
        return Err(InvalidParameter::new("model folder", arguments.model.display(), must_be).into());
    }
    let model = SavedModel::load(&arguments.model)?;
    let examples = arguments.rows.examples(&model, Labels::Ignored)?;
    let classes = model.classes().to_vec();
    let row = |Prediction { class, probabilities, .. }| Row { class: classes[class].clone(), probabilities };
    let rows: Vec<Row> = model.predict(&examples)?.into_iter().map(row).collect();
    let mut found = Predictions { examples: rows.len(), classes, out: None, predictions: None };
    let Some(out) = out else {
        found.predictions = Some(rows);
        return Ok(found);
    };
    let is_csv = out.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let text = if is_csv { csv(&found.classes, &rows) } else { json_lines(&rows)? };
    out.write(text.as_bytes())?;
    found.out = Some(out.path().to_owned());
    Ok(found)
}

fn json_lines(rows: &[Row]) -> Result<String> {
    let lines = rows.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>();
    Ok(lines.map_err(Failure::other)?.join("\n") + "\n")
}

fn csv(classes: &[String], rows: &[Row]) -> String {
    let names: Vec<String> = classes.iter().map(|class| cell(&format!("probability of {class}"))).collect();
    let mut text = format!("class,{}\n", names.join(","));
    for Row { class, probabilities } in rows {
        let numbers: Vec<String> = probabilities.iter().map(f64::to_string).collect();
        let _ = writeln!(text, "{},{}", cell(class), numbers.join(","));
    }
    text
}

/// A cell of a CSV file, quoted where it has to be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into()
}

impl fmt::Display for Predictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.out, &self.predictions) {
            (Some(out), _) => {
                let rows = if self.examples == 1 { "row" } else { "rows" };
                writeln!(f, "Predictions for {} {rows}: {}", self.examples, out.display())
            }
            (None, rows) => {
                f.write_str(&json_lines(rows.as_deref().unwrap_or_default()).map_err(|_| fmt::Error)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_classes_are_cells_of_csv() {
        let rows = [Row { class: "a,b".into(), probabilities: vec![0.75, 0.25] }];
        let text = csv(&["a,b".into(), "say \"c\"".into()], &rows);
        assert_eq!(
            text,
            "class,\"probability of a,b\",\"probability of say \"\"c\"\"\"\n\"a,b\",0.75,0.25\n"
        );
    }
}
