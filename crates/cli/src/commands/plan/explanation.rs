//! Reasons for the choice of a mechanism, in a few sentences.

use antinoise_mechanism::design::Objective;
use antinoise_plan::{Candidate, Choice, Request};

use crate::{output, plot};

/// Gain of the choice over independent noise in the same batches and over the baselines, and the loss
/// accepted for a smaller state.
pub fn explanation(choice: &Choice, request: &Request) -> String {
    let sentences =
        [Some(worth(choice, request.objective)), turns(choice, request.objective), given_up(choice, request)];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn worth(choice: &Choice, objective: Objective) -> String {
    let chosen = &choice.candidates[choice.chosen];
    let times =
        |other: &Candidate| format!("{:.2}", chosen.objective(objective) / other.objective(objective));
    let independent = match choice.candidates[0].is_amplified() {
        true => "DP-SGD (independent noise, Poisson sampling at every step)",
        false => "independent noise in the same batches",
    };
    let mut text = format!(
        "{} has {} times the {} of {independent}",
        chosen.name(),
        times(&choice.candidates[0]),
        plot::name(objective)
    );
    for reference in &choice.baselines {
        let instead = if reference.is_amplified() {
            "DP-SGD with Poisson sampling at every step"
        } else {
            "independent noise without sampling, in cyclic batches"
        };
        text += &format!(", and {} times that of {instead}", times(reference));
    }
    let better = choice.baselines.iter().any(|r| r.objective(objective) < chosen.objective(objective));
    text + if better { ". Where those batches can be formed, they are the better choice." } else { "." }
}

/// Says that sampling was possible and is not used.
fn turns(choice: &Choice, objective: Objective) -> Option<String> {
    let (independent, chosen) = (&choice.candidates[0], &choice.candidates[choice.chosen]);
    if !independent.is_amplified() || chosen.is_amplified() {
        return None;
    }
    let saves = chosen.objective(objective) < independent.objective(objective);
    let why = "sampling would gain less than this strategy does without it";
    Some(if saves {
        format!("Its batches are cyclic, not sampled: {why}.")
    } else {
        "Its batches are cyclic, not sampled.".into()
    })
}

fn given_up(choice: &Choice, request: &Request) -> Option<String> {
    let (least, chosen) = (choice.least(request), choice.chosen);
    if least == chosen {
        return None;
    }
    let [least, chosen] = [least, chosen].map(|i| &choice.candidates[i]);
    Some(format!(
        "{} has {} times the loss of the chosen mechanism, and {} of state instead of {}: a tolerance of 0 chooses it.",
        least.name(),
        format_args!("{:.3}", least.objective(request.objective) / chosen.objective(request.objective)),
        output::bytes(least.state_bytes),
        output::bytes(chosen.state_bytes),
    ))
}
