//! For every strategy file: figures are finite, and no sensitivity is below the effect of some gradients.

#[expect(dead_code, reason = "the laws use the rest of it")]
mod oracle;
mod written;

use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Recursion, Workload};
use oracle::Matrix;
use written::{Random, Written};

/// The l2 norm, without squares that leave double precision.
fn norm(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = antinoise_input::largest(numbers.clone().map(f64::abs));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * numbers.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// max over patterns and signs of ||sum of +- columns||, NaN or infinite where one of the columns is.
fn brute_force(c: &Matrix, schema: &Participation) -> f64 {
    let (mut most, n) = (0.0, c[0].len());
    let once =
        schema.separation(n).max_participations == 1 && !matches!(schema, Participation::Patterns { .. });
    // One participation may be at any step, whatever the schema.
    let patterns = if once { (0..n).map(|t| vec![t]).collect() } else { oracle::patterns(schema, n) };
    for pattern in patterns {
        for signs in 0u32..1 << (pattern.len() - 1) {
            let sign = |i: usize| if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
            let of_row =
                |row: &Vec<f64>| -> f64 { pattern.iter().enumerate().map(|(i, &t)| sign(i) * row[t]).sum() };
            let found = norm(c.iter().map(of_row).collect::<Vec<_>>().into_iter());
            if !found.is_finite() {
                return found;
            }
            most = f64::max(most, found);
        }
    }
    most
}

fn any_file(random: &mut Random) -> Written {
    let n = 1 + random.below(9);
    let plain = written::plain(random, n);
    match random.below(6) {
        0 => written::normalized(plain),
        1 => written::restarted(plain, n + random.below(10 - n)),
        2 => written::restarted(written::normalized(plain), n + random.below(10 - n)),
        3 => {
            let restarted = written::restarted(plain, n + random.below(10 - n));
            written::normalized(restarted)
        }
        _ => plain,
    }
}

#[derive(Debug, Default)]
struct Seen {
    exact: usize,
    bounds: usize,
    refused: usize,
}

/// Asserts that a sensitivity is an error, or at least the brute-force value, and equal to it if it is exact.
fn measure(file: &Written, strategy: &AnyStrategy, schema: &Participation, seen: &mut Seen) {
    let place = || format!("{} under {schema:?}", file.text);
    let brute = file.matrix.as_ref().map(|c| brute_force(c, schema));
    let Ok(found) = strategy.sensitivity(schema) else {
        // Plain numbers whose norms are numbers are never refused.
        let far = brute.is_some_and(|brute| !(1e-138..1e145).contains(&brute));
        assert!(far || file.is_extreme(), "{} is refused for {brute:?}", place());
        seen.refused += 1;
        return;
    };
    assert!(found.value.is_finite() && found.value > 0.0, "{}: {found:?}", place());
    let Some(brute) = brute else { return };
    assert!(brute.is_finite(), "{}: {found:?} though columns are {brute}", place());
    assert!(found.value >= brute * (1.0 - 1e-9), "{}: {found:?} below {brute}", place());
    match found.kind {
        Kind::Exact => {
            seen.exact += 1;
            assert!(found.value <= brute * (1.0 + 1e-9), "{}: {found:?} above {brute}", place());
        }
        Kind::UpperBound => seen.bounds += 1,
    }
}

/// How many figures there are.
fn cost(file: &Written, strategy: &AnyStrategy) -> usize {
    let workloads = [
        Workload::Prefix,
        Workload::Momentum { momentum: 0.9, weight_decay: 0.1 },
        Workload::Cooldown { start: 0, last: 0.5 },
        Workload::Toeplitz { coefficients: vec![1e160, -1e160] },
        Workload::Toeplitz { coefficients: vec![1e-200] },
    ];
    let mut figures_seen = 0;
    for workload in &workloads {
        let is_positive = |figure: f64| figure.is_finite() && figure > 0.0;
        if let Ok(error) = strategy.error(workload) {
            assert!(is_positive(error.max) && is_positive(error.rms), "{}: {error:?}", file.text);
            figures_seen += 1;
        }
        if let Ok(rows) = strategy.row_errors(workload) {
            assert!(rows.iter().all(|x| x.is_finite() && *x >= 0.0), "{}: {rows:?}", file.text);
            figures_seen += 1;
        }
        if let Ok(cost) = strategy.loss(workload, &Participation::Single, Adjacency::ReplaceOne) {
            let figures = [cost.max_error, cost.rms_error, cost.max_loss, cost.rms_loss, cost.total_loss];
            assert!(figures.into_iter().all(is_positive), "{}: {cost:?}", file.text);
            figures_seen += 1;
        }
    }
    figures_seen
}

#[test]
fn every_file_has_figures_that_are_numbers_and_sensitivities_that_hold() {
    let (mut random, mut seen, mut taken, mut figures) = (Random(7), Seen::default(), 0, 0);
    for _ in 0..6000 {
        let file = any_file(&mut random);
        let schemas = written::schemas(&mut random, file.steps);
        let Some(strategy) = file.strategy() else { continue };
        taken += 1;
        for schema in &schemas {
            measure(&file, &strategy, schema, &mut seen);
        }
        figures += cost(&file, &strategy);
    }
    println!("{taken} files taken: {seen:?}, {figures} figures");
    assert!(figures > 3 * taken, "{figures} figures of {taken} files");
    assert!(
        taken > 4000 && seen.exact > 5000 && seen.bounds > 1000 && seen.refused > 1000,
        "{taken} {seen:?}"
    );
}

fn read(text: &str) -> AnyStrategy {
    toml::from_str(text).unwrap()
}

/// The inverse of [1, -2, 0.5] grows by 1.7 a step: its squares and norms are infinite long before step 2000.
#[test]
fn a_run_that_overflows_has_no_sensitivity() {
    let run = "class = \"banded-inverse\"\nsteps = 2000\ninverse_coefficients = [1.0, -2.0, 0.5]";
    let restarted = read(&format!("class = \"restarted\"\nsteps = 2000\n[run]\n{run}"));
    restarted.check().unwrap();
    let schema = "cyclic:10,200".parse().unwrap();
    for strategy in [restarted, read(run)] {
        let found = strategy.sensitivity(&schema);
        let error = found.expect_err("a finite sensitivity of infinite columns").to_string();
        assert!(error.starts_with("the sensitivity is ") && error.contains("must be from 1e-140"), "{error}");
    }
}

/// Only the pattern of the last steps has a finite sensitivity: it must not replace that of the first
/// pattern.
#[test]
fn a_pattern_that_overflows_is_not_dropped() {
    let run = read("class = \"banded-inverse\"\nsteps = 2000\ninverse_coefficients = [1.0, -2.0, 0.5]");
    let of = |patterns: &[[usize; 2]]| {
        let patterns = patterns.iter().map(|pattern| pattern.to_vec()).collect();
        run.sensitivity(&Participation::Patterns { patterns })
    };
    assert!(of(&[[1990, 1991]]).unwrap().value > 1.0);
    let error = of(&[[0, 1], [1990, 1991]]).expect_err("the first pattern's is infinite").to_string();
    assert!(error.starts_with("the sensitivity is "), "{error}");
}

/// More steps than memory holds are refused, or need none.
#[test]
fn steps_without_end_are_refused_by_name() {
    let steps = 1_000_000_000_000_000usize;
    let of = |class: &str, more: &str| format!("{{ class = \"{class}\", steps = {steps}, {more} }}");
    let mut files = vec![
        of("identity", ""),
        of("toeplitz", "coefficients = [1.0, 0.5]"),
        of("banded-toeplitz", "coefficients = [1.0, -0.5, 0.25]"),
        of("banded-inverse", "inverse_coefficients = [1.0, -0.5]"),
        of("blt", "decay_complement = [0.25], inverse_decay_complement = [0.5]"),
        of("rational", "numerator = [0.5, 0.0], denominator = [0.25, 0.0]"),
        of("workload", "workload = { kind = \"prefix\" }"),
    ];
    files.extend(
        ["tree", "honaker-online", "honaker-full", "fourier", "fourier-optimal"].map(|class| of(class, "")),
    );
    let wrapped = files.iter().flat_map(|file| {
        let short = file.replace(&steps.to_string(), "8");
        [
            format!("{{ class = \"column-normalized\", inner = {file} }}"),
            format!("{{ class = \"restarted\", steps = {steps}, run = {file} }}"),
            format!("{{ class = \"restarted\", steps = {steps}, run = {short} }}"),
        ]
    });
    let all: Vec<String> = files.iter().cloned().chain(wrapped).collect();
    let schemas = ["single", "full-batch", "cyclic:1,1000000000000", "min-sep:2,3", "cyclic:1000000000,3"];
    let mut schemas: Vec<Participation> = schemas.iter().map(|text| text.parse().unwrap()).collect();
    schemas.push(Participation::Patterns { patterns: vec![vec![0, 1, 1_000_000_000]] });
    let workloads = ["prefix", "momentum:0.9", "cooldown:5,0.1", "window:3"];
    let (mut sensitivities, mut errors) = (0, 0);
    for text in all {
        let Some(strategy) = (Written { text, matrix: None, steps }).strategy() else { continue };
        let mechanism = &*strategy;
        for schema in &schemas {
            match mechanism.sensitivity(schema) {
                Ok(found) => {
                    sensitivities += 1;
                    assert!(found.value.is_finite() && found.value > 0.0, "{strategy:?} {schema}: {found:?}");
                }
                Err(error) => {
                    assert!(error.to_string().contains("steps is"), "{strategy:?} {schema}: {error}")
                }
            }
        }
        for workload in workloads {
            let found = mechanism.error(&workload.parse().unwrap());
            if let Ok(error) = found {
                assert!(error.max.is_finite() && error.rms > 0.0, "{strategy:?} {workload}: {error:?}");
                errors += 1;
            }
        }
    }
    println!("{sensitivities} sensitivities and {errors} errors");
    assert!(sensitivities > 10 && errors >= 3, "{sensitivities} {errors}");
}

#[test]
fn a_restart_reads_no_rows_beyond_its_steps() {
    let rows = (0..13).map(|step| vec![(step, 1.0)]).collect();
    let inner = Recursion::Restarted { period: 14, inner: Box::new(Recursion::SeedCombination { rows }) };
    let nested = Recursion::Restarted { period: 13, inner: Box::new(inner) };
    // Runs end at step 13, before the row that the inner recursion has not.
    assert_eq!((nested.seeds(10), nested.seeds(26), nested.seeds(30)), (10, 26, 30));
    assert_eq!(nested.apply(30, &[2.0; 30]), [2.0; 30]);
}
