//! Strategy files that a user can write, at random, with the matrix that each of them means.

use antinoise_mechanism::{AnyStrategy, Participation};

use crate::oracle::Matrix;

/// A small generator: the same files in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count
    }

    fn uniform(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Numbers that are all plain, or all of them as bad as a file can hold.
    fn numbers(&mut self, count: usize) -> Vec<f64> {
        let plain = self.below(2) == 0;
        let alternating = self.below(3) == 0;
        let size = if plain { 1.0 } else { self.one_of(&[1e300, 1e160, 1e140, 1e-140, 1e-160, 1e-320, 1.0]) };
        let number = |i: usize, random: &mut Self| match (plain, random.below(8)) {
            (_, 0) => 0.0,
            (false, 1) => random.one_of(&[1e300, -1e300, 1e-320, 1e-160, -1.0, 3.0]),
            _ if alternating => (1.0 - 2.0 * (i % 2) as f64) * size * random.uniform(),
            (_, 2..4) => size * (2.0 * random.uniform() - 1.0),
            _ => size * random.uniform(),
        };
        let mut numbers: Vec<f64> = (0..count).map(|i| number(i, self)).collect();
        // A first number that is not above 0 is refused before anything can be measured.
        if numbers[0] <= 0.0 && self.below(8) > 0 {
            numbers[0] = size;
        }
        numbers
    }

    fn rows(&mut self, n: usize) -> Vec<Vec<f64>> {
        let mut diagonal_last: Vec<Vec<f64>> = (1..=n).map(|length| self.numbers(length)).collect();
        diagonal_last.iter_mut().for_each(|row| row.reverse());
        diagonal_last
    }
}

/// A file and the matrix that it means, rows first; `None` where this test has no definition of its own.
pub struct Written {
    pub text: String,
    pub matrix: Option<Matrix>,
    pub steps: usize,
}

impl Written {
    /// Returns whether the file holds an extreme number.
    pub fn is_extreme(&self) -> bool {
        let words = self.text.split(|c: char| c == ',' || c == '[' || c == ']' || c.is_whitespace());
        let mut numbers = words.filter_map(|word| word.parse::<f64>().ok());
        numbers.any(|x| x != 0.0 && !(1e-20..1e20).contains(&x.abs()))
    }

    pub fn strategy(&self) -> Option<AnyStrategy> {
        let strategy: AnyStrategy = toml::from_str(&format!("strategy = {}", self.text))
            .map(|file: std::collections::BTreeMap<String, AnyStrategy>| file["strategy"].clone())
            .unwrap_or_else(|error| panic!("{}: {error}", self.text));
        strategy.check().ok().map(|()| strategy)
    }
}

fn toeplitz(c: &[f64], n: usize) -> Matrix {
    let entry = |i: usize, j: usize| if i >= j { c.get(i - j).copied().unwrap_or(0.0) } else { 0.0 };
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

/// The first n terms of 1 / b.
fn reciprocal(b: &[f64], n: usize) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::new();
    for t in 0..n {
        let known: f64 = (1..b.len().min(t + 1)).map(|s| b[s] * out[t - s]).sum();
        out.push((f64::from(t == 0) - known) / b[0]);
    }
    out
}

fn list(numbers: &[f64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|x| format!("{x:e}")).collect();
    format!("[{}]", numbers.join(", "))
}

fn nested(rows: &[Vec<f64>]) -> String {
    format!("[{}]", rows.iter().map(|row| list(row)).collect::<Vec<_>>().join(", "))
}

fn square(rows: &[Vec<f64>]) -> Matrix {
    let n = rows.len();
    rows.iter().map(|row| row.iter().copied().chain(vec![0.0; n - row.len()]).collect()).collect()
}

/// A rational strategy: a quotient of polynomials in X, where X^k has the coefficients binomial(t - 1, k -
/// 1).
fn rational(random: &mut Random, n: usize) -> (String, Option<Matrix>) {
    let degree = 1 + random.below(3);
    let (p, q) = (random.numbers(degree), random.numbers(degree));
    let series = |coefficients: &[f64]| {
        let mut power: Vec<f64> = (0..n).map(|t| f64::from(t == 0)).collect();
        let mut sum = power.clone();
        for coefficient in coefficients {
            let earlier = |t: usize| power[..t].iter().sum::<f64>();
            power = (0..n).map(earlier).collect();
            sum.iter_mut().zip(&power).for_each(|(sum, x)| *sum += coefficient * x);
        }
        sum
    };
    let (numerator, inverse) = (series(&p), reciprocal(&series(&q), n));
    let c: Vec<f64> = (0..n).map(|t| (0..=t).map(|s| numerator[s] * inverse[t - s]).sum()).collect();
    let text = format!(
        "{{ class = \"rational\", steps = {n}, numerator = {}, denominator = {} }}",
        list(&p),
        list(&q)
    );
    (text, Some(toeplitz(&c, n)))
}

/// A file of any class over n steps.
pub fn plain(random: &mut Random, n: usize) -> Written {
    let size = 1 + random.below(n);
    let of_steps = |class: &str| (format!("{{ class = \"{class}\", steps = {n} }}"), None);
    let (text, matrix) = match random.below(11) {
        0 => (format!("{{ class = \"identity\", steps = {n} }}"), Some(toeplitz(&[1.0], n))),
        1 => {
            let class = random.one_of(&["toeplitz", "banded-toeplitz"]);
            let c = random.numbers(size);
            let text = format!("{{ class = \"{class}\", steps = {n}, coefficients = {} }}", list(&c));
            (text, Some(toeplitz(&c, n)))
        }
        2 | 3 => {
            let c = random.numbers(size);
            let text =
                format!("{{ class = \"banded-inverse\", steps = {n}, inverse_coefficients = {} }}", list(&c));
            (text, Some(toeplitz(&reciprocal(&c, n), n)))
        }
        4 => blt(random, n),
        5 => {
            let rows: Vec<Vec<f64>> = (0..n).map(|_| random.numbers(size)).collect();
            let entry = |i: usize, j: usize| if j <= i && i - j < size { rows[i][i - j] } else { 0.0 };
            let matrix = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
            (
                format!("{{ class = \"banded\", bands = {size}, rows = {} }}", list(&rows.concat())),
                Some(matrix),
            )
        }
        6 => {
            let rows = random.rows(n);
            (format!("{{ class = \"dense\", rows = {} }}", nested(&rows)), Some(square(&rows)))
        }
        7 => workload(random, n),
        10 => rational(random, n),
        8 => of_steps(random.one_of(&["tree", "honaker-online", "honaker-full"])),
        _ => of_steps(random.one_of(&["fourier", "fourier-optimal"])),
    };
    Written { text, matrix, steps: n }
}

fn blt(random: &mut Random, n: usize) -> (String, Option<Matrix>) {
    let buffers = random.below(4);
    let mut nodes: Vec<f64> = (0..2 * buffers)
        .map(|_| match random.below(6) {
            0 => random.one_of(&[0.0, 1.0, 1e-320, 1e-160, 1e-16, 1.0 - 1e-16]),
            _ => random.uniform(),
        })
        .collect();
    nodes.sort_by(f64::total_cmp);
    let (even, odd): (Vec<usize>, Vec<usize>) = (0..nodes.len()).partition(|i| i % 2 == 0);
    let pick = |places: &[usize]| -> Vec<f64> { places.iter().map(|&i| nodes[i]).collect() };
    let (delta, inverse) = (pick(&even), pick(&odd));
    let alpha = |i: usize| -> f64 {
        let above: f64 = inverse.iter().map(|x| x - delta[i]).product();
        let below: f64 = (0..buffers).filter(|&j| j != i).map(|j| delta[j] - delta[i]).product();
        above / below
    };
    let coefficient = |t: usize| match t {
        0 => 1.0,
        _ => (0..buffers).map(|i| alpha(i) * (1.0 - delta[i]).powi(t as i32 - 1)).sum(),
    };
    let text = format!(
        "{{ class = \"blt\", steps = {n}, decay_complement = {}, inverse_decay_complement = {} }}",
        list(&delta),
        list(&inverse)
    );
    let c: Vec<f64> = (0..n).map(coefficient).collect();
    // Products of differences this small lose their digits here.
    let is_accurate = nodes.windows(2).all(|pair| pair[1] - pair[0] > 1e-9);
    (text, is_accurate.then(|| toeplitz(&c, n)))
}

fn workload(random: &mut Random, n: usize) -> (String, Option<Matrix>) {
    let (kind, matrix) = match random.below(4) {
        0 => {
            let last = random.one_of(&[0.0, 0.3, 1e300, 1e-320]);
            let start = random.below(n);
            let length = (n - 1).saturating_sub(start).max(1) as f64;
            let rate = |j: usize| 1.0 - (1.0 - last) * (j.saturating_sub(start) as f64 / length);
            let entry = |i: usize, j: usize| if i >= j { rate(j) } else { 0.0 };
            let matrix = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
            (format!("{{ kind = \"cooldown\", start = {start}, last = {last:e} }}"), matrix)
        }
        1 => {
            let a = random.numbers(n);
            (format!("{{ kind = \"toeplitz\", coefficients = {} }}", list(&a)), toeplitz(&a, n))
        }
        2 => {
            let rows = random.rows(n);
            (format!("{{ kind = \"matrix\", rows = {} }}", nested(&rows)), square(&rows))
        }
        _ => ("{ kind = \"prefix\" }".into(), toeplitz(&vec![1.0; n], n)),
    };
    (format!("{{ class = \"workload\", steps = {n}, workload = {kind} }}"), Some(matrix))
}

/// `inner` with columns of norm 1.
pub fn normalized(inner: Written) -> Written {
    let norm = |c: &Matrix, j: usize| crate::norm(c.iter().map(|row| row[j]));
    let scaled = |c: &Matrix| -> Matrix {
        let norms: Vec<f64> = (0..inner.steps).map(|j| norm(c, j)).collect();
        c.iter().map(|row| row.iter().zip(&norms).map(|(x, norm)| x / norm).collect()).collect()
    };
    let text = format!("{{ class = \"column-normalized\", inner = {} }}", inner.text);
    Written { text, matrix: inner.matrix.as_ref().map(scaled), ..inner }
}

/// `run` started anew until `steps` are made.
pub fn restarted(run: Written, steps: usize) -> Written {
    let period = run.steps;
    let stamped = |c: &Matrix| -> Matrix {
        let entry =
            |i: usize, j: usize| if i / period == j / period { c[i % period][j % period] } else { 0.0 };
        (0..steps).map(|i| (0..steps).map(|j| entry(i, j)).collect()).collect()
    };
    let matrix = run.matrix.as_ref().map(stamped);
    Written {
        text: format!("{{ class = \"restarted\", steps = {steps}, run = {} }}", run.text),
        matrix,
        steps,
    }
}

/// Every kind of schema over n steps, one of them with its numbers at random.
pub fn schemas(random: &mut Random, n: usize) -> Vec<Participation> {
    let min_sep = 1 + random.below(n);
    let max_participations = 1 + random.below((n - 1) / min_sep + 1);
    let mut pattern = || -> Vec<usize> {
        let some: Vec<usize> = (0..n).filter(|_| random.below(2) == 0).collect();
        if some.is_empty() { vec![n - 1] } else { some }
    };
    vec![
        Participation::Patterns { patterns: vec![pattern(), pattern()] },
        Participation::Single,
        Participation::FullBatch,
        Participation::Cyclic { min_sep, max_participations },
        Participation::MinSep { min_sep, max_participations },
    ]
}
