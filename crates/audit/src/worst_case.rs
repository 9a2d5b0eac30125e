//! Worst-case sequences: the steps and signs of one unit's participations that maximise the norm of C g.
//!
//! > maximise |C g| over g with entries +1 or -1 on the steps of one pattern of the schema, 0 elsewhere.
//!
//! |C g|^2 is convex in g, so that a round g <- argmax over patterns and signs of <C^T C g, g'> never decreases it. A round costs one product with C, one with its transpose, and the best pattern for given weights, which is found exactly for every schema. For few steps all patterns and signs are tried instead. The result is a lower bound on the sensitivity.

use antinoise_mechanism::Participation;

use crate::operator::Operator;
use crate::random::Random;

/// The (step, sign) of each participation, in the order of steps.
pub(crate) type Sequence = Vec<(usize, f64)>;

/// The maximum number of steps for which every pattern and sign is tried.
const MOST_ENUMERATED: usize = 9;
/// Maximum number of rounds of an ascent, which usually converges within ten.
const MOST_ROUNDS: usize = 40;
/// Number of random starts, in addition to the densest patterns with equal and with alternating signs.
const RANDOM_STARTS: usize = 8;
/// Number of power iterations with C^T C, which approximate the vector with the longest image under C.
const POWER_ITERATIONS: usize = 60;
/// Maximum number of densest patterns, those with the longest images, from which ascents start for each
/// choice of signs.
const MOST_PHASES: usize = 16;
/// Maximum number of phases times steps whose images are compared: all phases for up to 1024 steps, and
/// evenly spaced ones for more.
const MOST_COMPARED: usize = 1 << 20;

/// Returns the length |C g| of the image of a sequence g.
pub(crate) fn length(operator: &Operator, sequence: &Sequence, steps: usize) -> f64 {
    norm(&operator.apply(&vector(sequence, steps)))
}

/// The sequence as a vector g with one entry per step.
pub(crate) fn vector(sequence: &Sequence, steps: usize) -> Vec<f64> {
    let mut g = vec![0.0; steps];
    sequence.iter().for_each(|&(t, sign)| g[t] = sign);
    g
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The densest pattern, with positive signs.
pub(crate) fn densest(schema: &Participation, steps: usize) -> Sequence {
    positive(&phase(schema, steps, 0))
}

/// A random pattern with random signs.
pub(crate) fn drawn(schema: &Participation, steps: usize, random: &mut Random) -> Sequence {
    let pattern = match schema {
        Participation::Single => vec![random.below(steps)],
        Participation::MinSep { min_sep, max_participations } => {
            let mut pattern = vec![random.below(*min_sep)];
            while pattern.len() < *max_participations {
                let gap = min_sep + random.below(1 + steps / max_participations);
                pattern.push(pattern[pattern.len() - 1] + gap);
            }
            pattern.retain(|&t| t < steps);
            if pattern.is_empty() { vec![steps - 1] } else { pattern }
        }
        Participation::EachEpoch { epoch_steps } => {
            let starts = (0..steps).step_by(*epoch_steps);
            starts.map(|start| start + random.below((*epoch_steps).min(steps - start))).collect()
        }
        _ => phase(schema, steps, random.below(phases(schema, steps))),
    };
    pattern.into_iter().map(|t| (t, random.sign())).collect()
}

/// Returns the sequence g with the largest |C g| that was found, and that length.
pub(crate) fn longest(
    operator: &Operator,
    schema: &Participation,
    steps: usize,
    random: &mut Random,
) -> (Sequence, f64) {
    let starts: Vec<Sequence> = if steps <= MOST_ENUMERATED {
        enumerated(schema, steps)
    } else {
        starts(operator, schema, steps, random)
    };
    let mut best = (Vec::new(), -1.0);
    for start in starts {
        let found = ascend(operator, schema, steps, start);
        if found.1 > best.1 {
            best = found;
        }
    }
    best
}

fn starts(operator: &Operator, schema: &Participation, steps: usize, random: &mut Random) -> Vec<Sequence> {
    let count = phases(schema, steps);
    let compared = count.min((MOST_COMPARED / steps).max(MOST_PHASES));
    let patterns: Vec<Vec<usize>> =
        (0..compared).map(|i| phase(schema, steps, i * count / compared)).collect();
    let with = |signs: fn(&[usize]) -> Sequence| {
        let all = patterns.iter().map(|pattern| signs(pattern));
        let mut all: Vec<(f64, Sequence)> = all.map(|g| (length(operator, &g, steps), g)).collect();
        all.sort_by(|x, y| y.0.total_cmp(&x.0));
        all.into_iter().take(MOST_PHASES).map(|(_, sequence)| sequence)
    };
    let mut starts: Vec<Sequence> = with(alternating).chain(with(positive)).collect();
    starts.extend((0..RANDOM_STARTS).map(|_| drawn(schema, steps, random)));
    starts.push(spectral(operator, schema, steps, random));
    starts
}

/// The pattern and signs that best match the vector with the longest image. Ascents from other starts can
/// stop at sequences whose parts have signs that do not match.
fn spectral(operator: &Operator, schema: &Participation, steps: usize, random: &mut Random) -> Sequence {
    let mut g: Vec<f64> = (0..steps).map(|_| random.sign()).collect();
    for _ in 0..POWER_ITERATIONS {
        g = operator.adjoint(&operator.apply(&g), steps);
        let length = norm(&g);
        g.iter_mut().for_each(|x| *x /= length);
    }
    follow(schema, &g)
}

/// The pattern and signs that maximise the inner product with `weights`.
fn follow(schema: &Participation, weights: &[f64]) -> Sequence {
    let magnitudes: Vec<f64> = weights.iter().map(|w| w.abs()).collect();
    let pattern = heaviest(schema, &magnitudes);
    pattern.into_iter().map(|t| (t, if weights[t] < 0.0 { -1.0 } else { 1.0 })).collect()
}

fn ascend(operator: &Operator, schema: &Participation, steps: usize, start: Sequence) -> (Sequence, f64) {
    let mut image = operator.apply(&vector(&start, steps));
    let mut best = (start, norm(&image));
    for _ in 0..MOST_ROUNDS {
        let weights = operator.adjoint(&image, steps);
        let next = follow(schema, &weights);
        image = operator.apply(&vector(&next, steps));
        let found = norm(&image);
        if found <= best.1 * (1.0 + 1e-12) {
            break;
        }
        best = (next, found);
    }
    best
}

fn alternating(pattern: &[usize]) -> Sequence {
    pattern.iter().enumerate().map(|(i, &t)| (t, if i % 2 == 0 { 1.0 } else { -1.0 })).collect()
}

fn positive(pattern: &[usize]) -> Sequence {
    pattern.iter().map(|&t| (t, 1.0)).collect()
}

/// Number of phases, which are the values for which [`phase`] returns a pattern.
fn phases(schema: &Participation, steps: usize) -> usize {
    match schema {
        Participation::Single => steps,
        Participation::FullBatch => 1,
        Participation::Cyclic { min_sep, .. } | Participation::MinSep { min_sep, .. } => {
            (*min_sep).min(steps)
        }
        Participation::EachEpoch { epoch_steps } => (*epoch_steps).min(steps),
        Participation::Patterns { patterns } => patterns.len(),
    }
}

/// The densest pattern that starts at step `phase`; for listed patterns, the one with this index, restricted
/// to the audited steps.
fn phase(schema: &Participation, steps: usize, phase: usize) -> Vec<usize> {
    let pattern: Vec<usize> = match schema {
        Participation::Single => vec![phase],
        Participation::FullBatch => (0..steps).collect(),
        Participation::Cyclic { min_sep, max_participations }
        | Participation::MinSep { min_sep, max_participations } => {
            (phase..steps).step_by(*min_sep).take(*max_participations).collect()
        }
        // The same step of each epoch.
        Participation::EachEpoch { epoch_steps } => (phase..steps).step_by(*epoch_steps).collect(),
        Participation::Patterns { patterns } => {
            patterns[phase].iter().copied().filter(|&t| t < steps).collect()
        }
    };
    pattern
}

/// The pattern with the largest sum of the (non-negative) weights.
fn heaviest(schema: &Participation, weights: &[f64]) -> Vec<usize> {
    let steps = weights.len();
    if let Participation::MinSep { min_sep, max_participations } = schema {
        return heaviest_apart(weights, *min_sep, *max_participations);
    }
    if let Participation::EachEpoch { epoch_steps } = schema {
        let heaviest = |start: usize| {
            (start..steps.min(start + epoch_steps)).max_by(|&t, &tau| weights[t].total_cmp(&weights[tau]))
        };
        return (0..steps).step_by(*epoch_steps).filter_map(heaviest).collect();
    }
    let weight = |i: &usize| phase(schema, steps, *i).iter().map(|&t| weights[t]).sum::<f64>();
    let best = (0..phases(schema, steps)).max_by(|i, j| weight(i).total_cmp(&weight(j)));
    phase(schema, steps, best.expect("a schema has a pattern"))
}

/// The pattern of at most `k` steps, any two at least `b` apart, with the largest sum of weights, by the
/// dynamic program M\[l\]\[t\] = max(w_t + M\[l - 1\]\[t + b\], M\[l\]\[t + 1\]).
fn heaviest_apart(weights: &[f64], b: usize, k: usize) -> Vec<usize> {
    let n = weights.len();
    let mut taken = vec![vec![false; n]; k];
    let mut fewer = vec![0.0; n + b];
    for taken in &mut taken {
        let mut best = vec![0.0; n + b];
        for t in (0..n).rev() {
            let with = weights[t] + fewer[t + b];
            taken[t] = with > best[t + 1];
            best[t] = f64::max(with, best[t + 1]);
        }
        fewer = best;
    }
    let (mut pattern, mut t, mut left) = (Vec::new(), 0, k);
    while t < n && left > 0 {
        if taken[left - 1][t] {
            pattern.push(t);
            left -= 1;
            t += b;
        } else {
            t += 1;
        }
    }
    pattern
}

/// Every pattern with every choice of signs.
fn enumerated(schema: &Participation, steps: usize) -> Vec<Sequence> {
    let patterns: Vec<Vec<usize>> = match schema {
        Participation::MinSep { min_sep, max_participations } => (1u32..1 << steps)
            .map(|bits| (0..steps).filter(|t| bits >> t & 1 == 1).collect::<Vec<_>>())
            .filter(|p| p.len() <= *max_participations && p.windows(2).all(|w| w[1] - w[0] >= *min_sep))
            .collect(),
        _ => (0..phases(schema, steps)).map(|i| phase(schema, steps, i)).collect(),
    };
    let signed = |pattern: &Vec<usize>, bits: u32| -> Sequence {
        let sign = |i: usize| if bits >> i & 1 == 1 { -1.0 } else { 1.0 };
        pattern.iter().enumerate().map(|(i, &t)| (t, sign(i))).collect()
    };
    patterns
        .iter()
        .flat_map(|p| (0..1u32 << p.len().saturating_sub(1)).map(move |bits| signed(p, bits)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If C takes differences, the longest image has alternating signs, which a start with positive signs
    /// does not find.
    #[test]
    fn signs_are_found() {
        for steps in [8, 40] {
            let differences = Operator::Toeplitz(vec![1.0, -0.9]);
            let schema = Participation::FullBatch;
            let (_, found) = longest(&differences, &schema, steps, &mut Random(1));
            let alternating = (0..steps).map(|t| (t, if t % 2 == 0 { 1.0 } else { -1.0 })).collect();
            let want = length(&differences, &alternating, steps);
            assert!((found / want - 1.0).abs() < 1e-12, "{found} against {want}");
            assert!(length(&differences, &densest(&schema, steps), steps) < 0.5 * want);
        }
    }

    #[test]
    fn the_heaviest_pattern_keeps_its_distance() {
        let weights = [1.0, 5.0, 1.0, 5.0, 1.0, 1.0, 9.0];
        let schema = Participation::MinSep { min_sep: 3, max_participations: 3 };
        assert_eq!(heaviest(&schema, &weights), [0, 3, 6]);
        assert_eq!(heaviest(&Participation::Single, &weights), [6]);
        let cyclic = Participation::Cyclic { min_sep: 2, max_participations: 2 };
        assert_eq!(heaviest(&cyclic, &weights), [1, 3]);
    }

    #[test]
    fn drawn_sequences_keep_the_schema() {
        let mut random = Random(3);
        let schema = Participation::MinSep { min_sep: 4, max_participations: 3 };
        for _ in 0..200 {
            let drawn = drawn(&schema, 20, &mut random);
            assert!(!drawn.is_empty() && drawn.len() <= 3);
            assert!(drawn.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 4) && drawn[drawn.len() - 1].0 < 20);
        }
    }
}
