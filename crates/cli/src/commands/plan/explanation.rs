//! Why a mechanism was chosen, in a few sentences.

use antinoise_mechanism::optimize::Objective;
use antinoise_plan::{Candidate, Choice, Request};

use crate::output;

/// What the choice is worth, against the same noise in the same batches and against what could be run instead, and what was
/// given up for a smaller state.
pub fn explanation(choice: &Choice, request: &Request) -> String {
    let sentences =
        [Some(worth(choice, request.objective)), turns(choice, request.objective), given_up(choice, request)];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The loss of the choice over that of another.
fn times(choice: &Choice, other: &Candidate, objective: Objective) -> String {
    let chosen = &choice.candidates[choice.chosen];
    format!("{:.2}", chosen.objective(objective) / other.objective(objective))
}

fn worth(choice: &Choice, objective: Objective) -> String {
    let chosen = &choice.candidates[choice.chosen];
    let times = |other: &Candidate| times(choice, other, objective);
    let name = match objective {
        Objective::Max => "max",
        Objective::Rms => "RMS",
    };
    let independent = match choice.candidates[0].is_amplified() {
        true => "DP-SGD (independent noise, each example sampled anew at every step)",
        false => "independent noise in the same batches",
    };
    let worth = times(&choice.candidates[0]);
    let mut text = format!("{} has {worth} times the {name} loss of {independent}", chosen.spec);
    for reference in &choice.references {
        let instead = if reference.is_amplified() {
            "DP-SGD, where each example can be sampled anew at every step"
        } else {
            "independent noise without sampling, in batches that take turns"
        };
        text += &format!(", and {} times that of {instead}", times(reference));
    }
    let better = choice.references.iter().any(|r| r.objective(objective) < chosen.objective(objective));
    text + if better { ". Where that can be had, it is the better choice." } else { "." }
}

/// Where sampling was offered and is not used.
fn turns(choice: &Choice, objective: Objective) -> Option<String> {
    let (independent, chosen) = (&choice.candidates[0], &choice.candidates[choice.chosen]);
    if !independent.is_amplified() || chosen.is_amplified() {
        return None;
    }
    let saves = chosen.objective(objective) < independent.objective(objective);
    let why = "what sampling amplifies is less than what this strategy saves";
    Some(if saves { format!("It takes batches in turn: {why}.") } else { "It takes batches in turn.".into() })
}

fn given_up(choice: &Choice, request: &Request) -> Option<String> {
    let (least, chosen) = (choice.least(request), choice.chosen);
    if least == chosen {
        return None;
    }
    let [least, chosen] = [least, chosen].map(|i| &choice.candidates[i]);
    Some(format!(
        "{} has {} times its loss, and {} of state in place of {}: a tolerance of 0 takes it.",
        least.spec,
        format_args!("{:.3}", least.objective(request.objective) / chosen.objective(request.objective)),
        output::bytes(least.state_bytes),
        output::bytes(chosen.state_bytes),
    ))
}
