//! Plans with strategies that were not designed for them: matrices of files, and strategies of other crates.

use std::io::Write;
use std::path::{Path, PathBuf};

use antinoise_input::BadInput;
use antinoise_linear::Matrix;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{
    Adjacency, AnyStrategy, Encoder, Participation, Problem, Recursion, Strategy, Workload,
};
use antinoise_plan::{Accountant, ArithmeticKind, Length, Plan, Request, Setting, choose, read_strategy};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Six epochs of ten batches, as MF(k = 6) of the multi-epoch paper has them.
fn six_epochs() -> Request {
    let mut request = Request::new(1000, 100, Length::Epochs(6), Setting::Cyclic);
    (request.epsilon, request.delta) = (2.0, 1e-6);
    request
}

/// The optimum for six epochs.
fn optimum() -> AnyStrategy {
    let problem = Problem {
        steps: 60,
        workload: Workload::Prefix,
        participation: Participation::Cyclic { min_sep: 10, max_participations: 6 },
        objective: Objective::Rms,
    };
    "dense".parse::<StrategySpec>().unwrap().design(&problem).unwrap().value
}

fn dense(strategy: &AnyStrategy) -> Matrix {
    strategy.encoder().unwrap().to_dense()
}

fn npy(c: &Matrix) -> Vec<u8> {
    let (rows, columns) = (c.nrows(), c.ncols());
    let text = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({rows}, {columns}), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    (0..columns).flat_map(|j| c.column(j)).for_each(|x| file.extend(x.to_le_bytes()));
    file
}

fn npz(path: &Path, arrays: &[(&str, &Matrix)]) {
    let mut archive = ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        archive.write_all(&npy(array)).unwrap();
    }
    archive.finish().unwrap();
}

fn rows(name: &str, c: &Matrix) -> String {
    let row = |i: usize| (0..c.ncols()).map(|j| format!("{:?}", c[(i, j)])).collect::<Vec<_>>().join(", ");
    let all: Vec<String> = (0..c.nrows()).map(|i| format!("[{}]", row(i))).collect();
    format!("{name} = [{}]\n", all.join(",\n"))
}

/// The strategy in every form of a file.
fn files(folder: &Path, strategy: &AnyStrategy) -> Vec<PathBuf> {
    let (c, at) = (dense(strategy), |name: &str| folder.join(name));
    let n = c.nrows();
    let a = Matrix::from_fn(n, n, |i, j| if i >= j { 1.0 } else { 0.0 });
    let b = antinoise_linear::product(&a, &antinoise_linear::lower_inverse(&c));
    std::fs::write(at("saved.toml"), toml::to_string(strategy).unwrap()).unwrap();
    std::fs::write(at("rows.toml"), rows("A", &a) + &rows("C", &c)).unwrap();
    std::fs::write(at("c.npy"), npy(&c)).unwrap();
    npz(&at("c.npz"), &[("C", &c)]);
    npz(&at("factors.npz"), &[("A", &a), ("B", &b), ("C", &c)]);
    ["saved.toml", "rows.toml", "c.npy", "c.npz", "factors.npz"].map(at).to_vec()
}

#[test]
fn an_exported_optimum_that_is_read_back_has_the_plan_of_the_design() {
    let folder = tempfile::tempdir().unwrap();
    let request = Request { specs: Some(vec!["dense".parse().unwrap()]), ..six_epochs() };
    let designed = choose(&request).unwrap();
    for file in files(folder.path(), &designed.plan.strategy) {
        let strategy = read_strategy(&file, &Workload::Prefix).unwrap();
        assert_eq!(strategy, designed.plan.strategy, "{}", file.display());
        let plan = Plan::of_strategy(&six_epochs(), strategy.clone()).unwrap();
        assert_eq!(plan, designed.plan, "{}", file.display());
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
        let choice = choose(&Request { strategies: vec![strategy], ..six_epochs() }).unwrap();
        let [given, of_design] = [&choice, &designed].map(|choice| &choice.candidates[choice.chosen]);
        assert!(given.is_given && !of_design.is_given);
        assert_eq!((given.name(), given.rms_loss), ("dense (given)".into(), of_design.rms_loss));
    }
}

#[cfg(feature = "arrow")]
#[test]
fn a_table_of_arrow_is_the_matrix_of_its_columns() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch};

    let c = dense(&optimum());
    let column = |j: usize| Arc::new(Float64Array::from(c.column(j).to_vec())) as ArrayRef;
    let table = RecordBatch::try_from_iter((0..60).map(|j| (format!("step {j}"), column(j)))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["c.arrow", "c.feather"] {
        let path = folder.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &table.schema()).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        assert_eq!(read_strategy(&path, &Workload::Prefix).unwrap(), optimum());
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(997) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = read_strategy(&path, &Workload::Prefix).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().contains(name), "{error}");
        }
    }
}

/// Q C, for an orthogonal Q, is not triangular; its plan has the figures of C.
#[test]
fn a_rotated_optimum_has_the_figures_of_the_optimum() {
    let c = dense(&optimum());
    let normal: Vec<f64> = (0..60).map(|i| 1.0 + f64::from(i % 7)).collect();
    let square: f64 = normal.iter().map(|x| x * x).sum();
    let reflection = Matrix::from_fn(60, 60, |i, j| f64::from(i == j) - 2.0 * normal[i] * normal[j] / square);
    let rotated = antinoise_linear::product(&reflection, &c);
    let tall = Matrix::from_fn(65, 60, |i, j| if i < 60 { rotated[(i, j)] } else { 0.0 });
    let expected = Plan::of_strategy(&six_epochs(), optimum()).unwrap();
    for c in [rotated, tall] {
        for arithmetic in [ArithmeticKind::Grid, ArithmeticKind::PlainFloatingPoint] {
            let request = Request { arithmetic, ..six_epochs() };
            let plan = Plan::of_strategy(&request, AnyStrategy::of_matrix(&c).unwrap()).unwrap();
            assert!((plan.sensitivity.value / expected.sensitivity.value - 1.0).abs() < 1e-10);
            assert_eq!(plan.noise_multiplier, expected.noise_multiplier);
            let error = |plan: &Plan| plan.strategy.error(&Workload::Prefix).unwrap();
            assert!((error(&plan).rms / error(&expected).rms - 1.0).abs() < 1e-10);
        }
    }
}

#[test]
fn a_stored_plan_of_a_matrix_recomputes_its_claim() {
    let plan = Plan::of_strategy(&six_epochs(), optimum()).unwrap();
    let altered = |change: &dyn Fn(&mut Plan)| {
        let mut numbers = plan.clone().into_plan();
        change(&mut numbers);
        numbers.verify()
    };
    assert!(altered(&|_| ()).is_ok());
    assert!(altered(&|plan| plan.sensitivity.value *= 0.99).is_err());
    assert!(altered(&|plan| plan.noise_multiplier *= 0.99).is_err());
    assert!(altered(&|plan| plan.privacy.epsilon *= 0.99).is_err());
    let c = dense(&plan.strategy);
    let larger = |i: usize, j: usize| c[(i, j)] * if j == 0 { 1.1 } else { 1.0 };
    let larger = AnyStrategy::of_matrix(&Matrix::from_fn(60, 60, larger)).unwrap();
    assert!(altered(&|plan| plan.strategy = larger.clone()).is_err());
}

/// A strategy of another crate.
struct Fading {
    steps: usize,
}

impl Strategy for Fading {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> antinoise_mechanism::Result<()> {
        Ok(())
    }

    fn encoder(&self) -> antinoise_mechanism::Result<Encoder> {
        let entry = |i: usize, j: usize| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            _ => 1.0 / (1.0 + (i - j) as f64) / (1.0 + j as f64).sqrt(),
        };
        Ok(Encoder::Dense(Matrix::from_fn(self.steps, self.steps, entry)))
    }

    fn recursion(&self) -> antinoise_mechanism::Result<Recursion> {
        AnyStrategy::of(self)?.recursion()
    }
}

#[test]
fn a_strategy_of_another_crate_has_a_plan() {
    let own = Fading { steps: 60 };
    let plan = Plan::of_strategy(&six_epochs(), AnyStrategy::of(&own).unwrap()).unwrap();
    assert_eq!(plan.sensitivity.value, own.sensitivity(&plan.participation).unwrap().value);
    let loss = own.loss(&Workload::Prefix, &plan.participation, Adjacency::ZeroOut).unwrap();
    let choice = Request { strategies: vec![plan.strategy.clone()], ..six_epochs() };
    let choice = choose(&choice).unwrap();
    assert!((choice.candidates[1].unit_loss.rms_loss / loss.rms_loss - 1.0).abs() < 1e-12);
}

fn banded(steps: usize, bands: usize) -> AnyStrategy {
    let entry = |i: usize, j: usize| {
        if i >= j && i - j < bands { 1.0 / (1.0 + (i - j) as f64 + 0.01 * j as f64) } else { 0.0 }
    };
    AnyStrategy::of_matrix(&Matrix::from_fn(steps, steps, entry)).unwrap()
}

#[test]
fn a_matrix_with_few_bands_is_amplified_and_one_with_many_is_not() {
    let request = Request { setting: Setting::Poisson, adjacency: Adjacency::ReplaceOne, ..six_epochs() };
    for (bands, accountant) in [
        (3, Accountant::SampledGaussian),
        (10, Accountant::SampledGaussian),
        (11, Accountant::Gdp),
        (60, Accountant::Gdp),
    ] {
        let plan = Plan::of_strategy(&request, banded(60, bands)).unwrap();
        assert_eq!(plan.privacy.accountant, accountant, "{bands} bands");
    }
    let request = Request { setting: Setting::BMinSep, ..request };
    let error = Plan::of_strategy(&request, banded(60, 11)).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().starts_with("strategy is banded"), "{error}");
}

#[test]
fn a_strategy_of_other_steps_is_refused() {
    let error = Plan::of_strategy(&six_epochs(), banded(59, 3)).unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(error.to_string(), "strategy's steps is 59 but must be 60, the steps of the plan");
}

#[test]
fn files_without_a_strategy_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let good = files(folder.path(), &banded(6, 2));
    let c = dense(&banded(6, 2));
    let refused = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let error = read_strategy(&path, &Workload::Prefix).unwrap_err();
        let expected = format!("strategy file {} is ", path.display());
        assert!(error.is_bad_input() && error.to_string().starts_with(&expected), "{error}");
        error.to_string()
    };
    for file in good {
        let whole = std::fs::read(&file).unwrap();
        let name = format!("cut.{}", file.extension().unwrap().to_str().unwrap());
        let step = (whole.len() / 97).max(1);
        (0..whole.len() - 1).step_by(step).for_each(|length| drop(refused(&name, &whole[..length])));
    }
    let with =
        |at: (usize, usize), x: f64| Matrix::from_fn(6, 6, |i, j| if (i, j) == at { x } else { c[(i, j)] });
    assert!(refused("nan.npy", &npy(&with((3, 3), f64::NAN))).contains("C[3, 3] is NaN"));
    assert!(refused("huge.npy", &npy(&with((3, 0), f64::INFINITY))).contains("C[3, 0] is inf"));
    assert!(refused("wide.npy", &npy(&Matrix::identity(2, 3))).contains("rows of C is 2"));
    assert!(refused("singular.npy", &npy(&with((2, 2), 0.0))).contains("column 2 is a combination"));
    assert!(refused("ragged.toml", b"C = [[1.0], [1.0, 2.0, 3.0]]").contains("a row 0 of C"));
    assert!(refused("other.toml", b"D = [[1.0]]").contains("unknown field"));
    assert!(refused("words.toml", b"C = 'word'").contains("invalid type"));
    npz(&folder.path().join("named.npz"), &[("arr_0", &c)]);
    let named = std::fs::read(folder.path().join("named.npz")).unwrap();
    assert!(refused("again.npz", &named).contains("an archive with the arrays arr_0"));
    npz(&folder.path().join("wrong.npz"), &[("C", &c), ("B", &Matrix::identity(6, 6))]);
    let wrong = std::fs::read(folder.path().join("wrong.npz")).unwrap();
    assert!(refused("wrong-again.npz", &wrong).contains("B C["));
    for absent in [folder.path().join("absent.npy"), folder.path().to_path_buf()] {
        assert!(read_strategy(&absent, &Workload::Prefix).unwrap_err().is_bad_input());
    }
}
