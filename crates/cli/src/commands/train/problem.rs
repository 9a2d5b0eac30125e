//! Data, model and plans that the options name.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_plan::{Plan, choose};
use antinoise_train::data::{self, Dataset};
use antinoise_train::model::Model;

use super::options::{Arguments, ModelName};
use super::study::NamedPlan;
use crate::failure::Result;

/// The plan of a file; or independent noise and the mechanism of least loss; or the mechanisms that are named.
pub fn plans(arguments: &Arguments, examples: usize, dim: usize) -> Result<Vec<NamedPlan>> {
    if let Some(path) = &arguments.plan {
        let plan = Plan::load(path)?;
        return Ok(vec![NamedPlan { mechanism: plan.strategy.class().name().into(), plan }]);
    }
    let request = arguments.request(examples, dim)?;
    let choice = choose(&request)?;
    let named = request.recipes.is_some();
    let wanted: Vec<usize> = if named {
        // The first candidate is independent noise, whether it was named or not.
        let identity = request.recipes.iter().flatten().any(|recipe| recipe == &choice.candidates[0].recipe);
        (usize::from(!identity)..choice.candidates.len()).collect()
    } else if choice.chosen == 0 {
        vec![0]
    } else {
        vec![0, choice.chosen]
    };
    wanted
        .into_iter()
        .map(|i| {
            let mechanism = choice.candidates[i].recipe.to_string();
            Ok(NamedPlan { mechanism, plan: choice.plan_of(&request, i)? })
        })
        .collect()
}

/// The data that `--data` names.
pub fn load(data: &str) -> Result<Dataset> {
    match data.split_once(':') {
        None if data == "digits" => Ok(data::digits()),
        None if data == "fashion-mnist" => Ok(data::fashion_mnist(None)?),
        Some(("fashion-mnist", folder)) => Ok(data::fashion_mnist(Some(Path::new(folder)))?),
        Some(("idx", folder)) => Ok(data::idx(Path::new(folder))?),
        _ => {
            let must_be = "digits, fashion-mnist, fashion-mnist:DIR or idx:DIR";
            Err(InvalidParameter::new("data", format!("{data:?}"), must_be).into())
        }
    }
}

/// The model of this name for the data.
pub fn build(name: ModelName, dataset: &Dataset) -> Result<Model> {
    let (shape, classes) = (dataset.shape, dataset.classes);
    Ok(match name {
        ModelName::Logistic => Model::logistic(shape, classes)?,
        ModelName::Mlp => Model::mlp(shape, classes, 128)?,
        ModelName::Cnn => Model::cnn(shape, classes)?,
    })
}
