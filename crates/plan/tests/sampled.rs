//! Where batches can be sampled, the best mechanism is never worse than without sampling, nor than amplified
//! independent noise.

use antinoise_mechanism::Class;
use antinoise_plan::{Choice, Length, Request, Setting, choose};

fn chosen(request: &Request, setting: Setting) -> (f64, Choice) {
    let choice = choose(&Request { setting, ..request.clone() }).unwrap();
    (choice.candidates[choice.chosen].rms_loss, choice)
}

/// At four epsilons with `ANTINOISE_SWEEPS=whole`, which `scripts/long.sh sweeps` sets; otherwise at two.
#[test]
fn sampling_never_loses() {
    // The last one has more groups than bands that are cheap.
    let sizes = [
        (60_000, 500, 1),
        (60_000, 500, 4),
        (5_000, 100, 3),
        (1_000, 100, 16),
        (120, 60, 4),
        (100, 100, 3),
        (3_000_000, 1_000, 1),
    ];
    let is_whole = std::env::var_os("ANTINOISE_SWEEPS").is_some_and(|sweeps| sweeps == "whole");
    let epsilons = if is_whole { &[0.25, 1.0, 4.0, 16.0][..] } else { &[0.25, 4.0] };
    let mut gains = 0;
    for (examples, batch_size, epochs) in sizes {
        for &epsilon in epsilons {
            let mut request = Request::new(examples, batch_size, Length::Epochs(epochs), Setting::Cyclic);
            (request.epsilon, request.delta) = (epsilon, 0.1 / examples as f64);
            // Those that take seconds are tried where they take less.
            request.thorough = examples < 50_000;
            let (cyclic, _) = chosen(&request, Setting::Cyclic);
            let (sampled, choice) = chosen(&request, Setting::Poisson);
            let named =
                format!("{examples} examples, {batch_size} a batch, {epochs} epochs, epsilon {epsilon}");
            // A BLT, which has no bands, may be a little better than a band that ends with the separation.
            assert!(sampled <= 1.0005 * cyclic, "{named}: {sampled} with sampling, {cyclic} without");
            let independent = &choice.candidates[0];
            assert!(independent.spec.class == Class::Identity && independent.is_amplified(), "{named}");
            assert!(sampled <= independent.rms_loss, "{named}");
            gains += usize::from(sampled < 0.99 * cyclic);
        }
    }
    assert!(gains > 10 * epsilons.len() / 4, "{gains}");
}
