//! The request of a page: in JSON, as a request for a plan, as a command and as Python.

use antinoise_input::InvalidParameter;
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, default_delta};
use serde::Deserialize;

/// The fields of the page. What is absent has the default of the command line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    examples: usize,
    batch_size: usize,
    epochs: Option<usize>,
    steps: Option<usize>,
    epsilon: f64,
    delta: Option<f64>,
    setting: String,
    min_sep: Option<usize>,
    max_participations: Option<usize>,
    dim: Option<usize>,
    memory: Option<u64>,
    tolerance: Option<f64>,
    /// Whether the search leaves out candidates that take seconds.
    #[serde(default)]
    quick: bool,
    /// Whether the answer is the choice at other batch sizes too, in place of a plan.
    #[serde(default)]
    pub(crate) across_batch_sizes: bool,
}

impl Query {
    /// The request, as the command line makes it from the same options.
    pub(crate) fn request(&self) -> antinoise_plan::Result<Request> {
        let setting = Setting::named(&self.setting, self.min_sep, self.max_participations)?;
        let is_federated = matches!(setting, Setting::Federated { .. });
        let length = match (self.epochs, self.steps) {
            (Some(epochs), None) => Length::Epochs(epochs),
            (None, Some(steps)) => Length::Steps(steps),
            (epochs, _) => {
                let got = if epochs.is_some() { "given with steps" } else { "absent" };
                return Err(InvalidParameter::new("epochs", got, "given, or else steps").into());
            }
        };
        let request = Request::new(self.examples, self.batch_size, length, setting);
        Ok(Request {
            epsilon: self.epsilon,
            delta: self.delta.unwrap_or_else(|| default_delta(self.examples)),
            unit: if is_federated { PrivacyUnit::User } else { PrivacyUnit::Example },
            dim: self.dim.unwrap_or(request.dim),
            memory: self.memory,
            tolerance: self.tolerance.unwrap_or(request.tolerance),
            thorough: !self.quick,
            ..request
        })
    }

    /// The command that makes the same plan.
    pub(crate) fn command(&self) -> String {
        let options = self.options().into_iter().map(|(name, value)| format!("--{} {value}", dashed(name)));
        let quick = self.quick.then(|| "--quick".to_string());
        let out = "--out plan.toml".to_string();
        let parts: Vec<String> = options.chain(quick).chain([out]).collect();
        format!("antinoise plan {}", parts.join(" "))
    }

    /// The Python that makes the same plan.
    pub(crate) fn python(&self) -> String {
        let quoted = |(name, value): (&str, String)| match name {
            "setting" => format!("    {name}=\"{value}\",\n"),
            _ => format!("    {name}={value},\n"),
        };
        let options: String = self.options().into_iter().map(quoted).collect();
        let thorough = if self.quick { "    thorough=False,\n" } else { "" };
        format!(
            "import antinoise\n\nplan = antinoise.plan(\n{options}{thorough})\nplan.save(\"plan.toml\")\n"
        )
    }

    /// The options that are given, by their names in Python.
    fn options(&self) -> Vec<(&'static str, String)> {
        let text = |value: Option<usize>| value.map(|value| value.to_string());
        let all = [
            ("examples", text(Some(self.examples))),
            ("batch_size", text(Some(self.batch_size))),
            ("epochs", text(self.epochs)),
            ("steps", text(self.steps)),
            ("epsilon", Some(self.epsilon.to_string())),
            ("delta", self.delta.map(|delta| format!("{delta:e}"))),
            ("setting", Some(self.setting.clone())),
            ("min_sep", text(self.min_sep)),
            ("max_participations", text(self.max_participations)),
            ("dim", text(self.dim)),
            ("memory", self.memory.map(|bytes| bytes.to_string())),
            ("tolerance", self.tolerance.map(|share| share.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The name of an option on the command line.
fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn absent_fields_have_the_defaults_of_the_command_line() {
        let found =
            query(r#"{"examples": 9, "batch_size": 3, "steps": 3, "epsilon": 1, "setting": "stream"}"#);
        let mut expected = Request::new(9, 3, Length::Steps(3), Setting::Stream);
        expected.delta = default_delta(9);
        assert_eq!(found.request().unwrap(), expected);
    }

    #[test]
    fn a_command_and_python_name_every_option_that_is_given() {
        let all = query(
            r#"{"examples": 1000, "batch_size": 50, "steps": 40, "epsilon": 0.5, "delta": 1e-7, "setting": "federated",
                "min_sep": 20, "max_participations": 2, "dim": 10, "memory": 4000, "tolerance": 0, "quick": true}"#,
        );
        assert_eq!(
            all.command(),
            "antinoise plan --examples 1000 --batch-size 50 --steps 40 --epsilon 0.5 --delta 1e-7 --setting federated \
             --min-sep 20 --max-participations 2 --dim 10 --memory 4000 --tolerance 0 --quick --out plan.toml"
        );
        assert!(all.python().contains("    setting=\"federated\",\n    min_sep=20,\n"));
        assert!(all.python().contains("    thorough=False,\n"));
    }

    #[test]
    fn a_length_is_given_once() {
        for (given, got) in [("", "absent"), (r#""epochs": 1, "steps": 1,"#, "given with steps")] {
            let text =
                format!(r#"{{"examples": 9, "batch_size": 3, {given} "epsilon": 1, "setting": "stream"}}"#);
            let error = query(&text).request().unwrap_err().to_string();
            assert_eq!(error, format!("epochs is {got} but must be given, or else steps"));
        }
    }
}
