//! How much less loss a strategy reaches in secret bins if it is designed at the amplified noise.
//!
//! ```sh
//! cargo run --release -p antinoise-plan --example amplified_designs
//! cargo run --release -p antinoise-plan --example amplified_designs -- 4,64,2 8,16,1
//! ```
//!
//! Arguments: requests as `EPOCHS,BATCHES,EPSILON`, with as many batches in an epoch; without them, those of
//! docs/results/plans.md, which take most of an hour on one core. For each request, `antinoise plan` in the
//! Poisson setting chooses a mechanism. Its best BLT and its best other strategy in cyclic batches are
//! designed without regard to sampling; the better of the two in bins is the base. Other designs are put in
//! bins with the same accountant, on the same samples:
//!
//! - bands: Toeplitz bands, as they are designed for block-cyclic batches;
//! - passes: BLTs designed for 1, 2, 4, ... participations, with and without columns of norm 1;
//! - a, p, r: the base with its entries c below the diagonal turned into `a c`, `c^p` or `c r^lag`,
//!   or into `a c^p r^lag`;
//! - search: from the best of all these, factors on groups of lags, and of lags around whole epochs, by
//!   coordinate descent.
//!
//! Losses are the RMS error of prefix sums at the privacy target, (epsilon, 1e-6) under zero-out; columns say
//! by how much they differ from the base's. "over choice" compares with the mechanism that was
//! chosen, at noise whose claim is certified, as in a plan.

mod poisson_requests;

use antinoise_accounting::MonteCarloMechanism;
use antinoise_linear::Matrix;
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Participation, Problem, Workload};
use antinoise_plan::Sampler;
use poisson_requests::{BATCH_SIZE, DELTA, Outcome};

/// Largest number of steps for which the entries of a strategy that is not Toeplitz are searched.
const MOST_DENSE: usize = 512;
/// Largest number of steps times bins for which lags are searched one group after the other.
const MOST_SEARCHED: usize = 1 << 16;

/// A run in bins.
#[derive(Clone, Copy)]
struct Bins {
    steps: usize,
    bins: usize,
    epsilon: f64,
}

/// A strategy and its loss in bins.
#[derive(Clone)]
struct Design {
    name: String,
    strategy: AnyStrategy,
    loss: f64,
}

impl Bins {
    fn participation(self, times: usize) -> Participation {
        match times {
            1 => Participation::Single,
            _ => Participation::Cyclic { min_sep: self.bins, max_participations: times },
        }
    }

    /// The columns of C, and the RMS loss at noise of standard deviation 1.
    fn columns_and_unit(self, strategy: &AnyStrategy) -> Outcome<(Vec<Vec<f64>>, f64)> {
        let encoder = strategy.encoder()?.to_dense();
        let columns = (0..self.steps).map(|t| encoder.column(t)[t..].to_vec()).collect();
        let unit = strategy.loss(&Workload::Prefix, &Participation::Single, Adjacency::ZeroOut)?;
        Ok((columns, unit.rms_loss / unit.sensitivity.value / BATCH_SIZE as f64))
    }

    /// The RMS loss of `strategy` with the noise that the privacy target needs in bins.
    fn loss(self, strategy: &AnyStrategy) -> Outcome<f64> {
        let (columns, unit) = self.columns_and_unit(strategy)?;
        let mechanism = MonteCarloMechanism::balls_in_bins(&columns, self.bins, 1.0)?;
        Ok(unit * mechanism.noise_scale_for(self.epsilon, DELTA)?)
    }

    fn design(self, name: String, strategy: AnyStrategy) -> Outcome<Design> {
        Ok(Design { loss: self.loss(&strategy)?, name, strategy })
    }

    /// The best strategy of `spec` for this many participations without sampling.
    fn designed(self, spec: StrategySpec, times: usize) -> Outcome<Design> {
        let problem = Problem { participation: self.participation(times), ..Problem::prefix(self.steps) };
        self.design(format!("{spec} for {times}"), spec.design(&problem)?.value)
    }
}

/// A strategy whose entries below the diagonal are multiplied by functions of the lag.
struct Family {
    bins: Bins,
    entries: Entries,
}

enum Entries {
    /// Toeplitz coefficients, and whether columns are scaled to norm 1 afterwards.
    Toeplitz(Vec<f64>, bool),
    Dense(Matrix),
}

impl Family {
    /// The family around `design`; `None` if it has none.
    fn around(bins: Bins, design: &Design) -> Outcome<Option<Self>> {
        let (inner, is_scaled) = match &design.strategy {
            AnyStrategy::ColumnNormalized(scaled) => (scaled.inner(), true),
            other => (other, false),
        };
        let dense = inner.encoder()?.to_dense();
        let is_toeplitz = matches!(inner.class(), Class::Blt | Class::BandedToeplitz | Class::Toeplitz);
        let entries = match is_toeplitz {
            true => Entries::Toeplitz(dense.column(0).to_vec(), is_scaled),
            false if bins.steps <= MOST_DENSE && !is_scaled => Entries::Dense(dense),
            false => return Ok(None),
        };
        Ok(Some(Self { bins, entries }))
    }

    /// The design whose entry c at a lag of at least 1 is `change(lag, c)`.
    fn changed(&self, name: &str, change: impl Fn(usize, f64) -> f64) -> Outcome<Design> {
        let at = |lag: usize, c: f64| if lag == 0 || c <= 0.0 { c } else { change(lag, c) };
        let steps = self.bins.steps;
        let strategy = match &self.entries {
            Entries::Toeplitz(c, is_scaled) => {
                let first = c[0];
                let new = c.iter().enumerate().map(|(lag, c)| at(lag, c / first)).collect();
                let inner = AnyStrategy::Toeplitz(antinoise_mechanism::strategy::Toeplitz::new(steps, new)?);
                match is_scaled {
                    true => AnyStrategy::ColumnNormalized(
                        antinoise_mechanism::strategy::ColumnNormalized::new(inner)?,
                    ),
                    false => inner,
                }
            }
            Entries::Dense(matrix) => AnyStrategy::of_matrix(&Matrix::from_fn(steps, steps, |i, j| {
                if i < j { 0.0 } else { at(i - j, matrix[(i, j)]) }
            }))?,
        };
        self.bins.design(name.into(), strategy)
    }
}

/// Coordinate descent: each of `x` in turn is moved by its step while this lowers the loss; then steps are
/// halved, `rounds` times. A point that cannot be evaluated is passed over.
fn descend(
    x: &mut [f64],
    steps: &mut [f64],
    rounds: usize,
    evaluate: impl Fn(&[f64]) -> Outcome<Design>,
) -> Outcome<Design> {
    let mut best = evaluate(x)?;
    for _ in 0..rounds {
        for i in 0..x.len() {
            'sides: for side in [1.0, -1.0] {
                for moved in 0..6 {
                    let old = x[i];
                    x[i] += side * steps[i];
                    match evaluate(x) {
                        Ok(found) if found.loss < best.loss => best = found,
                        _ => {
                            x[i] = old;
                            if moved > 0 {
                                break 'sides;
                            }
                            break;
                        }
                    }
                }
            }
        }
        steps.iter_mut().for_each(|step| *step *= 0.5);
    }
    Ok(best)
}

/// The families around `from` in which only a, p or r is not 1, and the one of all three.
fn shaped(bins: Bins, from: &Design) -> Outcome<[Design; 4]> {
    let Some(family) = Family::around(bins, from)? else { return Ok([0; 4].map(|_| from.clone())) };
    let best = |chosen: &[usize], rounds| {
        let steps: Vec<f64> = chosen.iter().map(|&i| [0.3, 0.3, 0.8][i]).collect();
        descend(&mut vec![0.0; chosen.len()], &mut steps.clone(), rounds, |moved| {
            let mut x = [0.0; 3];
            chosen.iter().zip(moved).for_each(|(&i, moved)| x[i] = *moved);
            let name = format!("a {:.2}, p {:.2}, r^epoch {:.2}", x[0].exp(), 1.0 + x[1], x[2].exp());
            family.changed(&name, |lag, c| {
                (x[0] + x[2] * lag as f64 / bins.bins as f64).exp() * c.powf(1.0 + x[1])
            })
        })
    };
    Ok([best(&[0], 2)?, best(&[1], 2)?, best(&[2], 2)?, best(&[0, 1, 2], 2)?])
}

/// A factor for each group of lags [2^k, 2^(k + 1)), and for lags within an eighth of an epoch of whole
/// epochs.
fn searched(bins: Bins, from: &Design) -> Outcome<Design> {
    if bins.steps * bins.bins > MOST_SEARCHED {
        return Ok(from.clone());
    }
    let Some(family) = Family::around(bins, from)? else { return Ok(from.clone()) };
    let groups = bins.steps.ilog2() as usize + 1;
    let mut x = vec![0.0; groups + 1];
    descend(&mut x, &mut vec![0.2; groups + 1], 3, |x| {
        family.changed("search", |lag, c| {
            let place = lag % bins.bins;
            let is_near = lag + bins.bins / 8 >= bins.bins && place.min(bins.bins - place) <= bins.bins / 8;
            (x[lag.ilog2() as usize] + if is_near { x[groups] } else { 0.0 }).exp() * c
        })
    })
}

fn least(designs: Vec<Design>) -> Option<Design> {
    designs.into_iter().min_by(|x, y| x.loss.total_cmp(&y.loss))
}

/// The loss of `design` with noise for which its claim is certified, as a plan states it.
fn certified(bins: Bins, design: &Design) -> Outcome<f64> {
    let (columns, unit) = bins.columns_and_unit(&design.strategy)?;
    for retry in 0..=20 {
        let loss = design.loss * (1.0 + 0.005 * f64::from(retry));
        let mechanism = MonteCarloMechanism::balls_in_bins(&columns, bins.bins, loss / unit)?;
        if mechanism.certified_delta(bins.epsilon)?.upper <= DELTA {
            return Ok(loss);
        }
    }
    Err("the claim cannot be certified".into())
}

fn report(epochs: usize, batches: usize, epsilon: f64) -> Outcome<String> {
    let bins = Bins { steps: epochs * batches, bins: batches, epsilon };
    let choice = poisson_requests::choice((epochs, batches, epsilon))?;
    let chosen = &choice.candidates[choice.chosen];

    // The loss of a candidate at noise multiplier 1 is that in cyclic batches.
    let mut base = Vec::new();
    for is_blt in [true, false] {
        let unsampled = choice.candidates.iter().filter(|found| {
            !matches!(found.schedule.sampler, Sampler::Poisson { .. })
                && (found.spec.class == Class::Blt) == is_blt
        });
        if let Some(best) = unsampled.min_by(|x, y| x.unit_loss.rms_loss.total_cmp(&y.unit_loss.rms_loss)) {
            base.extend(bins.design(best.spec.to_string(), best.strategy.clone()).ok());
        }
    }
    let base = least(base).ok_or("no strategy is in bins")?;

    let mut bands = Vec::new();
    for number in std::iter::successors(Some(1), |b| Some(2 * b)).take_while(|&b| b <= batches) {
        let spec = StrategySpec { bands: Some(number), ..StrategySpec::new(Class::BandedToeplitz) };
        bands.extend(bins.designed(spec, 1).ok());
    }
    let mut passes = Vec::new();
    for times in std::iter::successors(Some(1), |k| Some(2 * k)).take_while(|&k| k <= epochs) {
        for (order, column_normalize) in [(2, false), (4, false), (4, true)] {
            let spec = StrategySpec { order: Some(order), column_normalize, ..StrategySpec::new(Class::Blt) };
            passes.extend(bins.designed(spec, times).ok());
        }
    }
    let (bands, passes) = (least(bands).ok_or("no bands")?, least(passes).ok_or("no BLT")?);

    let shapes = shaped(bins, &base)?;
    let start = least(vec![shapes[3].clone(), bands.clone(), passes.clone()]).ok_or("no design")?;
    let search = least(vec![searched(bins, &start)?, start]).ok_or("no design")?;

    let gain = |design: &Design| format!("{:+.1}%", 100.0 * (design.loss / base.loss - 1.0));
    let [at_base, at_search] = [certified(bins, &base)?, certified(bins, &search)?];
    let over = |loss: f64| format!("{:+.1}%", 100.0 * (loss / chosen.rms_loss - 1.0));
    let shaped: Vec<String> = shapes.iter().map(&gain).collect();
    Ok(format!(
        "| {epochs} | {batches} | {epsilon} | {} | {} {} | {} {} | {} {} | {} ({}) | {} | {} |",
        poisson_requests::cell(&choice),
        base.name,
        over(at_base),
        bands.name.split(' ').next().unwrap_or_default(),
        gain(&bands),
        passes.name,
        gain(&passes),
        shaped.join(" | "),
        shapes[3].name,
        gain(&search),
        over(at_search),
    ))
}

/// The requests of docs/results/plans.md: epochs, batches of an epoch, epsilon.
const REQUESTS: [(usize, usize, f64); 13] = [
    (2, 16, 1.0),
    (2, 16, 4.0),
    (2, 16, 16.0),
    (4, 16, 2.0),
    (4, 16, 8.0),
    (8, 16, 0.5),
    (8, 16, 4.0),
    (8, 16, 16.0),
    (16, 16, 1.0),
    (16, 16, 4.0),
    (16, 16, 16.0),
    (2, 64, 4.0),
    (4, 64, 8.0),
];

fn main() -> Outcome<()> {
    println!(
        "| epochs | batches | epsilon | choice | base, over choice | bands | passes | a | p | r | \
         a, p and r | search | over choice |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for &(epochs, batches, epsilon) in &poisson_requests::given(&REQUESTS)? {
        println!("{}", report(epochs, batches, epsilon)?);
    }
    Ok(())
}
