//! Common parts of the pages.

use antinoise_chart::page::{self, Frame};

use crate::result::{MechanismResult, NOT_PRIVATE};

/// The page of a training around `head`, which follows its title, and `body`; `is_chosen`: whether learning
/// rates were chosen by test accuracy, which adds a caveat.
pub fn document(title: &str, head: &str, body: &str, is_chosen: bool) -> String {
    let chosen = match is_chosen {
        true => {
            " Each run is the best of its learning rates by that accuracy; no error accounts for that choice."
        }
        false => "",
    };
    let footer = format!(
        "Written by antinoise. Test accuracy is measured on examples that were not trained on; they are not protected \
         by the privacy statement.{chosen}"
    );
    let eyebrow = "Private training with correlated noise";
    page::document(&Frame { kind: "private training", eyebrow, title, footer: &footer }, head, body)
}

/// A warning if the noise of one of `runs` came from a seed, and otherwise nothing.
pub fn seed_warning<'a>(mut runs: impl Iterator<Item = &'a MechanismResult>) -> String {
    match runs.any(|run| run.private.as_ref().is_some_and(|private| private.insecure_seed)) {
        true => format!("<p class=\"lead\"><strong>{NOT_PRIVATE}</strong></p>\n"),
        false => String::new(),
    }
}

/// A share in percent, with its standard error where there is one.
pub fn with_error(share: f64, error: Option<f64>) -> String {
    let error = error
        .map_or_else(String::new, |error| format!(" <small>&plusmn;&thinsp;{:.1}</small>", 100.0 * error));
    percent(share) + &error
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
