//! The real trainer is accepted under every sampler, and every fault of a training is rejected by the
//! intended test.

use antinoise_audit::{
    BuiltinMechanism, BuiltinTraining, Claim, Error, Report, Settings, StepRecord, Training, TrainingInputs,
    audit_with_training,
};
use antinoise_noise::{Key, KeyedRng, NoiseStream, Purpose, RunId};
use antinoise_plan::{Batches, Length, MaxBatchSize, Request, Sampler, Setting, VerifiedPlan, choose};
use antinoise_train::optimizer::UpdateRule;

const ALPHA: f64 = 1e-3;

fn plan(setting: Setting, epochs: usize, strategy: &str, is_cut: bool) -> VerifiedPlan {
    let mut request = Request::new(1200, 60, Length::Epochs(epochs), setting);
    request.max_batch_size = is_cut.then_some(MaxBatchSize::Auto);
    (request.epsilon, request.delta) = (4.0, 1e-5);
    request.specs = Some(vec![strategy.parse().unwrap()]);
    choose(&request).unwrap().plan
}

/// One plan for each sampler.
fn plans() -> Vec<VerifiedPlan> {
    [
        (Setting::Cyclic, 4, "banded-toeplitz:5", false),
        (Setting::Shuffled, 4, "blt:2", false),
        (Setting::Single, 1, "blt:2", false),
        (Setting::Stream, 1, "toeplitz", false),
        (Setting::Poisson, 4, "identity", false),
        (Setting::Poisson, 4, "banded-toeplitz:5", false),
        (Setting::Poisson, 4, "banded-toeplitz:5", true),
        (Setting::Poisson, 4, "blt:2", false),
        (Setting::BMinSep, 4, "banded-toeplitz:5", false),
    ]
    .map(|(setting, epochs, strategy, is_cut)| plan(setting, epochs, strategy, is_cut))
    .into()
}

fn audited(training: &mut dyn Training) -> Report {
    let claim = Claim::of_plan(training.inputs().plan()).unwrap();
    let settings = Settings {
        runs: 2,
        units: 16,
        most_numbers: 0,
        examples: 100,
        ..Settings::new(ALPHA, claim.strategy.steps())
    };
    audit_with_training(
        &claim,
        &mut BuiltinMechanism::new(claim.clone(), 5),
        &settings,
        training,
        &mut |_, _| (),
    )
    .unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Examples are shuffled again in each round, or in each half of an epoch, so that some come again too
    /// soon.
    Separation,
    /// Examples are assigned to bins again in each round.
    BinsAnew,
    /// Every example may be drawn at every step.
    GroupsIgnored,
    /// Batches have a third more examples.
    RateTooHigh,
    /// Each round repeats the examples of a group that the first round drew.
    DrawsReused,
    /// Every run has the same batches.
    RunsShareBatches,
    /// The noisy sum is of the momentum, not of the gradients.
    MomentumBeforeNoise,
    /// The optimizer is given the sum without noise.
    OptimizerSeesSums,
    /// The noise restarts after a resumption.
    PastLost,
    /// The momentum is 0 after a resumption.
    MomentumLost,
    /// Batches of the steps after a resumption are those of the first steps.
    BatchesBeginAgain,
}

/// A naive trainer with a fault.
struct Broken<'a> {
    inputs: &'a TrainingInputs,
    fault: Fault,
    run: RunId,
    noise_only: bool,
    noise: Option<NoiseStream>,
    step: usize,
    since: usize,
    parameters: Vec<f32>,
    velocity: Vec<f32>,
    sums: Vec<f64>,
}

impl<'a> Broken<'a> {
    fn new(inputs: &'a TrainingInputs, fault: Fault) -> Self {
        let (run, dim) = (RunId::default(), inputs.parameters());
        let (parameters, velocity, sums) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        Self {
            inputs,
            fault,
            run,
            noise_only: false,
            noise: None,
            step: 0,
            since: 0,
            parameters,
            velocity,
            sums,
        }
    }

    fn stream(&self, run: &RunId) -> Result<NoiseStream, Error> {
        let plan = self.inputs.plan();
        let (recursion, dim) = (plan.strategy.recursion()?, self.inputs.parameters());
        let builder = NoiseStream::builder(recursion, plan.steps, dim, plan.noise_std()).run(run.clone());
        Ok(builder.grid(plan.arithmetic.grid()?).build(Key::from_seed_insecure(3))?)
    }

    fn batch(&self) -> Vec<usize> {
        let plan = self.inputs.plan();
        let run = if self.fault == Fault::RunsShareBatches { RunId::default() } else { self.run.clone() };
        let rng = |purpose, step| KeyedRng::new(&Key::from_seed_insecure(4), &run, purpose, step);
        let (mut sampler, mut size) = (plan.sampler, plan.batch_size);
        let step = if self.fault == Fault::BatchesBeginAgain { self.step - self.since } else { self.step };
        let (mut order, mut draws) = (0, step as u64);
        let round = match sampler {
            Sampler::Cyclic { groups }
            | Sampler::Shuffled { groups }
            | Sampler::Poisson { groups }
            | Sampler::TruncatedPoisson { groups, .. }
            | Sampler::BallsInBins { bins: groups } => groups,
            _ => plan.steps,
        };
        match self.fault {
            Fault::Separation if matches!(sampler, Sampler::Shuffled { .. }) => {
                order = (step / (round / 2)) as u64;
            }
            Fault::Separation | Fault::BinsAnew => order = (step / round) as u64,
            Fault::GroupsIgnored => sampler = Sampler::Poisson { groups: 1 },
            Fault::RateTooHigh => size += size / 3,
            Fault::DrawsReused => draws %= round as u64,
            _ => {}
        }
        let order = &mut rng(Purpose::DataOrder, order);
        let batches = Batches::new(sampler, plan.examples, size, plan.steps, order).unwrap();
        batches.at(step, &mut rng(Purpose::BatchSampling, draws))
    }
}

impl Training for Broken<'_> {
    fn inputs(&self) -> &TrainingInputs {
        self.inputs
    }

    fn begin(&mut self, run: u64, noise_only: bool) -> Result<(), Error> {
        *self = Self { run: RunId::from(run), noise_only, ..Self::new(self.inputs, self.fault) };
        self.noise = Some(self.stream(&self.run)?);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        self.since = self.step;
        match self.fault {
            Fault::PastLost => self.noise = Some(self.stream(&RunId::from(1000))?),
            Fault::MomentumLost => self.velocity.fill(0.0),
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self) -> Result<StepRecord, Error> {
        let batch = self.batch();
        self.step += 1;
        let mut sum = self.inputs.sum(&self.parameters, &batch)?;
        if self.noise_only {
            sum.fill(0.0);
        }
        if self.fault == Fault::MomentumBeforeNoise {
            self.sums.iter_mut().zip(&sum).for_each(|(kept, sum)| *kept = 0.9 * *kept + sum);
            sum.clone_from(&self.sums);
        }
        let mut noisy_sum = vec![0.0; sum.len()];
        self.noise.as_mut().expect("a run was begun").add_to_sum(&sum, &mut noisy_sum)?;
        let UpdateRule::Sgd { learning_rate, momentum } = self.inputs.rule() else { unreachable!("SGD") };
        let share = (1.0 / self.inputs.plan().expected_batch_size()) as f32;
        for (i, theta) in self.parameters.iter_mut().enumerate() {
            let noisy = if self.fault == Fault::OptimizerSeesSums { sum[i] as f32 } else { noisy_sum[i] };
            self.velocity[i] = momentum as f32 * self.velocity[i] + share * noisy;
            *theta -= learning_rate as f32 * self.velocity[i];
        }
        Ok(StepRecord { batch, noisy_sum, parameters: self.parameters.clone() })
    }
}

#[test]
fn the_trainer_is_accepted_under_every_sampler() {
    let mut samplers = Vec::new();
    for plan in plans() {
        samplers.push(plan.sampler);
        let inputs = TrainingInputs::new(plan).unwrap();
        let real = audited(&mut BuiltinTraining::new(&inputs, 9));
        assert!(real.accepted, "{real:#?}");
        let written_out = audited(&mut Broken::new(&inputs, Fault::Nothing));
        assert!(written_out.accepted, "{written_out:#?}");
    }
    for kind in [
        "Cyclic",
        "Shuffled",
        "Poisson { groups: 1 }",
        "Poisson { groups: 5 }",
        "TruncatedPoisson { groups: 5",
        "BallsInBins",
        "BMinSep",
        "Stream",
    ] {
        assert!(
            samplers.iter().any(|sampler| format!("{sampler:?}").starts_with(kind)),
            "{kind}: {samplers:?}"
        );
    }
}

/// Whether a sampler can have a fault.
type CanHave<'a> = &'a dyn Fn(Sampler) -> bool;

/// The table: each fault, the test that detects it, and the samplers that can have it.
#[test]
fn every_fault_of_a_training_is_rejected() {
    let any = |_: Sampler| true;
    let coins = |sampler| matches!(sampler, Sampler::Poisson { .. } | Sampler::TruncatedPoisson { .. });
    let drawn = |sampler| coins(sampler) || matches!(sampler, Sampler::BMinSep { .. });
    let grouped = |sampler| {
        matches!(sampler, Sampler::Poisson { groups: 2.. } | Sampler::TruncatedPoisson { groups: 2.., .. })
    };
    let ordered = |sampler| matches!(sampler, Sampler::Cyclic { .. } | Sampler::Shuffled { .. });
    let secret = |sampler| !matches!(sampler, Sampler::Stream);
    let table: [(Fault, &str, CanHave); 11] = [
        (Fault::Separation, "schema", &ordered),
        (Fault::BinsAnew, "group", &|sampler| matches!(sampler, Sampler::BallsInBins { .. })),
        (Fault::GroupsIgnored, "group", &grouped),
        (Fault::RateTooHigh, "how many", &drawn),
        (Fault::DrawsReused, "who takes part", &coins),
        (Fault::RunsShareBatches, "who takes part", &secret),
        (Fault::MomentumBeforeNoise, "clipped sum", &any),
        (Fault::OptimizerSeesSums, "optimizer", &any),
        (Fault::PastLost, "interruptions", &any),
        (Fault::MomentumLost, "optimizer", &any),
        (Fault::BatchesBeginAgain, "interruptions", &any),
    ];
    let mut tried = 0;
    for plan in plans() {
        let inputs = TrainingInputs::new(plan).unwrap();
        for (fault, by, can_have) in &table {
            // One pass over the data has no second round.
            let passes = inputs.plan().steps * 60 / 1200;
            if !can_have(inputs.plan().sampler) || passes == 1 && *fault == Fault::Separation {
                continue;
            }
            let report = audited(&mut Broken::new(&inputs, *fault));
            let by_all: Vec<&str> =
                report.tests.iter().filter(|test| test.rejected).map(|test| test.name.as_str()).collect();
            println!("{:?}: {fault:?}: {by_all:?}", inputs.plan().sampler);
            assert!(by_all.iter().any(|name| name.contains(by)), "{fault:?} by {by}: {report:#?}");
            tried += 1;
        }
    }
    assert!(tried >= 45, "{tried} faults tried");
}
