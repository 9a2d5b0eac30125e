//! Plans with matrices as jax-privacy makes them. Its version 2.0.0 wrote `data/jax_privacy.npz`, by
//! `scripts/plan/jax_privacy_matrices.py`, with what it says of each matrix.

use std::path::Path;

use antinoise_input::arrays::Archive;
use antinoise_linear::Matrix;
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{AnyStrategy, Participation, Problem, Workload};
use antinoise_plan::{Length, Plan, Request, Setting};

const STEPS: usize = 24;
const THREE_EPOCHS: Participation = Participation::Cyclic { min_sep: 8, max_participations: 3 };

#[test]
fn matrices_of_jax_privacy_have_the_figures_that_it_states() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jax_privacy.npz");
    let mut archive = Archive::open(&file).unwrap();
    let names: Vec<String> = archive.names().map(str::to_string).collect();
    let arrays: std::collections::BTreeMap<String, _> =
        names.into_iter().map(|name| (name.clone(), archive.array(&name).unwrap().unwrap())).collect();
    let problem = Problem { participation: THREE_EPOCHS, ..Problem::prefix(STEPS) };
    let best: antinoise_mechanism::design::StrategySpec = "dense".parse().unwrap();
    let best = best.design(&problem).unwrap().value;
    let optimum = best.error(&Workload::Prefix).unwrap().rms * best.sensitivity(&THREE_EPOCHS).unwrap().value;
    for (name, class, over_optimum) in [
        ("dense", "dense", 1.0),
        ("banded", "banded", 1.031),
        ("blt", "toeplitz", 1.161),
        ("toeplitz", "toeplitz", 1.245),
    ] {
        let of = |what: &str| arrays[&format!("{name}{what}")].values[0];
        let c = Matrix::from_fn(STEPS, STEPS, |i, j| arrays[name].values[i * STEPS + j]);
        let strategy = AnyStrategy::of_matrix(&c).unwrap();
        assert_eq!(strategy.class().name(), class, "{name}");
        let found = strategy.sensitivity(&THREE_EPOCHS).unwrap();
        assert_eq!(found.kind, Kind::Exact, "{name}: {found:?}");
        assert!((found.value / of("_sensitivity") - 1.0).abs() < 1e-9, "{name}: {found:?}");
        let error = strategy.error(&Workload::Prefix).unwrap().rms;
        assert!((error / of("_error") - 1.0).abs() < 1e-9, "{name}: {error}");
        let loss = error * found.value / optimum;
        assert!((loss - over_optimum).abs() < 1e-3, "{name}: {loss} times the optimum");
        let mut request = Request::new(240, 30, Length::Epochs(3), Setting::Cyclic);
        (request.epsilon, request.delta) = (2.0, 1e-5);
        let plan = Plan::of_strategy(&request, strategy).unwrap();
        assert_eq!((plan.steps, plan.sensitivity.value), (STEPS, found.value), "{name}");
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan, "{name}");
    }
}
