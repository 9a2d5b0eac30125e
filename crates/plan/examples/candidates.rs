//! How often, and by how much, a class that is named beats the automatic choice of a plan.
//!
//! ```sh
//! cargo run --release -p antinoise-plan --example candidates -- 2000
//! ```
//!
//! Arguments: random requests, the first one's number, and the most steps. Each request is planned without a
//! name, by loss alone; then every class is planned by name, in several sizes and forms. Prints a line for
//! each request and, at the end, the classes that are more than 0.5% better anywhere
//! (docs/results/plans.md).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use antinoise_input::{at_least, largest};
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Class, Workload};
use antinoise_plan::{Length, Request, Setting, choose};

/// Largest n^2 x bands, and n, of the classes that take longest.
const MOST_FREE: usize = 50_000_000;
const MOST_DENSE: usize = 400;
/// Most steps of BLTs whose weights vary by step, and of rational strategies.
const MOST_VARYING: usize = 1024;
/// Parameters of models whose noise has a limit on memory, and the bytes of a vector of them.
const DIM: usize = 100_000_000;
const VECTOR: u64 = 8 * DIM as u64;
/// Gain up to which losses count as equal.
const EQUAL: f64 = 0.005;

/// Random numbers (splitmix64).
struct Draw(u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) as f64 / 2f64.powi(64)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high / low).ln()).exp()
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[(self.unit() * all.len() as f64) as usize].clone()
    }
}

/// A random request of `epochs` passes over `groups` batches.
struct Drawn {
    request: Request,
    groups: usize,
    epochs: usize,
}

/// The request of this number, of at most `most_steps` steps.
fn drawn(number: u64, most_steps: usize) -> Drawn {
    let mut draw = Draw(number << 32);
    let groups = draw.between(4.0, 0.5 * most_steps as f64).round() as usize;
    let most = (most_steps / groups).clamp(1, 32);
    let epochs = (1 << (draw.unit() * (1.0 + most.ilog2() as f64)) as u32).min(most);
    let batch_size = draw.between(10.0, 10_000.0).round() as usize;
    let federated = Setting::Federated { min_sep: groups, max_participations: Some(epochs) };
    let setting = draw.of(&[Setting::Cyclic, Setting::Poisson, Setting::Single, Setting::Stream, federated]);
    let epochs = if matches!(setting, Setting::Single | Setting::Stream) { 1 } else { epochs };
    let limited = draw.unit() < 0.25;
    let dim = if limited { DIM } else { 0 };
    let vectors = draw.of(&[2, 5, 12, 40]);
    // Balls in bins, whose accountant takes seconds, are for a tenth of sampled requests.
    let may_replace = setting != Setting::Poisson || groups > 256 || draw.unit() < 0.1;
    let adjacency = match may_replace && draw.unit() < 0.7 {
        true => Adjacency::ZeroOut,
        false => Adjacency::ReplaceOne,
    };
    let momentum = Workload::Momentum { momentum: 0.9, weight_decay: 0.0 };
    let request = Request {
        epsilon: draw.between(0.1, 16.0),
        delta: draw.between(1e-10, 1e-4),
        adjacency,
        workload: if draw.unit() < 0.8 { Workload::Prefix } else { momentum },
        objective: draw.of(&[Objective::Rms, Objective::Max]),
        dim,
        memory: limited.then_some(vectors * VECTOR),
        tolerance: 0.0,
        ..Request::new(batch_size * groups, batch_size, Length::Steps(epochs * groups), setting)
    };
    Drawn { request, groups, epochs }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { setting, epsilon, objective, workload, adjacency, .. } = &self.request;
        let (name, epochs, groups) = (setting.name(), self.epochs, self.groups);
        write!(
            f,
            "{name}, {epochs} x {groups} steps, epsilon {epsilon:.2}, {objective} {workload} {adjacency}"
        )?;
        self.request.memory.map_or(Ok(()), |memory| write!(f, ", {} vectors", memory / VECTOR))
    }
}

/// Names to compare with, without those that take minutes.
fn names(steps: usize, groups: usize, epochs: usize) -> Vec<String> {
    let bands = [2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, groups];
    let bands: Vec<usize> = bands.into_iter().filter(|&b| b > 1 && b <= groups && b <= steps).collect();
    let free = bands.iter().filter(|&&b| b < steps && steps * steps * b <= MOST_FREE);
    let mut all: Vec<String> = bands.iter().map(|b| format!("banded-toeplitz:{b}")).collect();
    for b in free {
        all.extend([format!("banded:{b}"), format!("banded-toeplitz:{b}+column-normalized")]);
    }
    all.extend(["toeplitz", "toeplitz+square-root", "toeplitz+harmonic"].map(Into::into));
    all.extend((steps * steps * steps <= 8 * MOST_FREE).then(|| "toeplitz+column-normalized".into()));
    for order in 1..=6 {
        all.extend([format!("blt:{order}"), format!("blt:{order}+column-normalized")]);
    }
    if steps <= MOST_VARYING {
        all.extend([1, 2, 4, 8].map(|order| format!("varying-blt:{order}")));
        all.extend([2, 4, 8].map(|order| format!("rational:{order}")));
    }
    all.extend([2, 4, 8, 16, 32].iter().filter(|&&b| b < steps).map(|b| format!("banded-inverse:{b}")));
    let trees = "tree smooth-tree honaker-online weighted-tree honaker-full fourier fourier-optimal toeplitz";
    for tree in trees.split(' ') {
        all.extend((tree != "toeplitz").then(|| tree.to_string()));
        all.extend((epochs > 1).then(|| format!("{tree}+x{epochs}")));
    }
    if steps <= MOST_DENSE {
        all.extend(["dense", "dense+x2"].map(Into::into));
    }
    all
}

/// The loss of each spec that may be chosen: of all together or, if one of them is refused, of either half.
fn losses(request: &Request, specs: &[StrategySpec]) -> Vec<(StrategySpec, f64)> {
    match choose(&Request { specs: Some(specs.to_vec()), ..request.clone() }) {
        Ok(choice) => {
            let fits = |state: u64| request.memory.is_none_or(|memory| state <= memory);
            let kept = choice.candidates[1..].iter().filter(|candidate| fits(candidate.state_bytes));
            kept.map(|candidate| (candidate.spec, candidate.objective(request.objective))).collect()
        }
        Err(_) if specs.len() > 1 => {
            let (first, second) = specs.split_at(specs.len() / 2);
            [losses(request, first), losses(request, second)].concat()
        }
        Err(_) => Vec::new(),
    }
}

/// The losses of all names. Of those that balls in bins may amplify, only the best in cyclic batches.
fn named(request: &Request, specs: &[StrategySpec]) -> Vec<(StrategySpec, f64)> {
    if request.setting != Setting::Poisson || request.adjacency == Adjacency::ReplaceOne {
        return losses(request, specs);
    }
    let (sampled, others): (Vec<_>, Vec<_>) =
        specs.iter().partition(|spec| matches!(spec.class, Class::BandedToeplitz | Class::Banded));
    let mut cyclic = losses(&Request { setting: Setting::Cyclic, ..request.clone() }, &others);
    cyclic.sort_by(|x, y| x.1.total_cmp(&y.1));
    let best: Vec<_> = cyclic.into_iter().take(3).map(|(spec, _)| spec).collect();
    [losses(request, &sampled), losses(request, &best)].concat()
}

/// A spec without its numbers.
fn family(spec: StrategySpec) -> String {
    let text = StrategySpec { bands: None, order: None, restarts: None, ..spec }.to_string();
    if spec.restarts.is_some() { format!("{text}, restarted") } else { text }
}

/// The automatic choice of a request, and the classes that are better.
struct Comparison {
    chosen: StrategySpec,
    /// The time of planning.
    seconds: f64,
    /// The gain of the best spec of each family, where it is above [`EQUAL`].
    better: BTreeMap<String, (f64, StrategySpec)>,
}

/// The comparison of a request; `None` if it cannot be planned.
fn compared(drawn: &Drawn) -> Option<Comparison> {
    let Drawn { request, groups, epochs } = drawn;
    let start = Instant::now();
    let choice = choose(request).ok()?;
    let seconds = start.elapsed().as_secs_f64();
    let chosen = &choice.candidates[choice.chosen];
    let specs: Vec<_> =
        names(choice.plan.steps, *groups, *epochs).iter().filter_map(|name| name.parse().ok()).collect();
    let mut better = BTreeMap::new();
    for (spec, loss) in named(request, &specs) {
        let gain = chosen.objective(request.objective) / loss - 1.0;
        let best = better.entry(family(spec)).or_insert((gain, spec));
        if gain > best.0 {
            *best = (gain, spec);
        }
    }
    better.retain(|_, (gain, _)| *gain > EQUAL);
    Some(Comparison { chosen: chosen.spec, seconds, better })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let better = self.better.values().map(|(gain, spec)| format!("{spec} {:.2}%", 100.0 * gain));
        let better = better.collect::<Vec<_>>().join(", ");
        write!(f, "{} in {:.2} s; {better}", self.chosen, self.seconds)
    }
}

/// The comparisons of all requests that were planned; at least one is printed.
#[derive(Default)]
struct Totals {
    seconds: Vec<f64>,
    /// The largest gain of each request, where a class is better.
    most: Vec<f64>,
    /// The gains of each family.
    better: BTreeMap<String, Vec<f64>>,
}

impl Totals {
    fn add(&mut self, comparison: Comparison) {
        self.seconds.push(comparison.seconds);
        self.most.extend(comparison.better.values().map(|(gain, _)| *gain).reduce(f64::max));
        for (family, (gain, _)) in comparison.better {
            self.better.entry(family).or_default().push(gain);
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let (planned, beaten) = (seconds.len(), self.most.len());
        let (all, median) = (seconds.iter().sum::<f64>(), seconds[planned / 2]);
        writeln!(
            f,
            "{planned} requests planned in {all:.0} s, the median in {median:.2} s; a named class is more than 0.5% \
             better in {beaten} ({:.1}%), by {:.1}% at most",
            100.0 * beaten as f64 / planned as f64,
            100.0 * largest(self.most.iter().copied()),
        )?;
        self.better.iter().try_for_each(|(family, gains)| {
            let mean = 100.0 * gains.iter().sum::<f64>() / gains.len() as f64;
            let most = 100.0 * largest(gains.iter().copied());
            writeln!(
                f,
                "{family}: better in {}, by {mean:.1}% on average and {most:.1}% at most",
                gains.len()
            )
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let argument = |place: usize, default| arguments.get(place).copied().unwrap_or(default);
    let (count, first, most_steps) = (argument(0, 2000), argument(1, 0), argument(2, 2048) as usize);
    at_least("most steps", most_steps, 8)?;
    let mut totals = Totals::default();
    for number in first..first + count {
        let drawn = drawn(number, most_steps);
        match compared(&drawn) {
            Some(comparison) => {
                println!("{number}: {drawn}: {comparison}");
                totals.add(comparison);
            }
            None => println!("{number}: {drawn}: no plan"),
        }
    }
    if totals.seconds.is_empty() {
        return Err(format!("none of {count} requests has a plan").into());
    }
    println!("\n{totals}");
    Ok(())
}
