//! Design, calibrate, and make noise: the noisy sums of a run that is stopped halfway and resumed.
//!
//! ```text
//! cargo run --release -p antinoise-plan --example stream
//! ```

use antinoise_noise::{Key, NoiseStream};
use antinoise_plan::{Length, Request, Setting, choose};

const DIM: usize = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The mechanism of least loss for these data, with its noise calibrated to epsilon and delta.
    let mut request = Request::new(10_000, 200, Length::Epochs(4), Setting::Cyclic);
    (request.epsilon, request.delta, request.dim) = (2.0, 1e-6, DIM);
    let plan = choose(&request)?.plan;
    println!(
        "{}: noise of standard deviation {:.3} on the sum of a batch",
        plan.strategy.class().name(),
        plan.noise_std()
    );

    let builder = NoiseStream::builder(plan.strategy.recursion()?, plan.steps, DIM, plan.noise_std())
        .context(plan.digest())
        .grid(plan.arithmetic.grid()?);
    let mut stream = builder.clone().build(Key::from_os()?)?;
    let (clipped_sum, mut noisy_sum) = ([0.5; DIM], [0.0; DIM]);
    for _ in 0..plan.steps / 2 {
        // A training takes its step with the noisy sum; nothing else may see the clipped one.
        stream.add_to_sum(&clipped_sum, &mut noisy_sum)?;
    }

    // The file is as secret as the key, and is resumed once.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("noise");
    stream.save(&file)?;
    let mut resumed = builder.resume(&file)?;
    resumed.add_to_sum(&clipped_sum, &mut noisy_sum)?;
    let mean = noisy_sum.iter().sum::<f32>() / DIM as f32;
    println!("after step {} of {}: the mean of a noisy sum is {mean:.2}", resumed.step(), plan.steps);
    Ok(())
}
