//! Requests of studies of sampling: batches of 100 examples, delta 1e-6, RMS error of prefix sums under
//! zero-out.

use antinoise_input::InvalidParameter;
use antinoise_plan::{Choice, Length, Request, Sampler, Setting, choose};

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

pub const BATCH_SIZE: usize = 100;
pub const DELTA: f64 = 1e-6;

/// Epochs, batches of an epoch, epsilon.
pub type Numbers = (usize, usize, f64);

/// The requests among the arguments, as `EPOCHS,BATCHES,EPSILON`; without arguments, `usual`.
pub fn given(usual: &[Numbers]) -> Outcome<Vec<Numbers>> {
    let parse = |text: String| -> Outcome<Numbers> {
        let parts: Vec<&str> = text.split(',').collect();
        let [epochs, batches, epsilon] = parts[..] else {
            return Err(InvalidParameter::new("request", &text, "EPOCHS,BATCHES,EPSILON").into());
        };
        Ok((epochs.parse()?, batches.parse()?, epsilon.parse()?))
    };
    let given = std::env::args().skip(1).map(parse).collect::<Outcome<Vec<_>>>()?;
    Ok(if given.is_empty() { usual.to_vec() } else { given })
}

/// What `antinoise plan` chooses in the Poisson setting.
pub fn choice((epochs, batches, epsilon): Numbers) -> Outcome<Choice> {
    Ok(choose(&Request {
        epsilon,
        delta: DELTA,
        tolerance: 0.0,
        ..Request::new(BATCH_SIZE * batches, BATCH_SIZE, Length::Epochs(epochs), Setting::Poisson)
    })?)
}

/// The chosen mechanism as a cell of a table: its name, how batches are formed, its loss.
pub fn cell(choice: &Choice) -> String {
    let chosen = &choice.candidates[choice.chosen];
    let sampler = match chosen.schedule.sampler {
        Sampler::BallsInBins { .. } => "bins",
        Sampler::Poisson { .. } => "Poisson",
        _ => "cyclic",
    };
    format!("{} ({sampler}) {:.5}", chosen.spec, chosen.rms_loss)
}
