//! What the figures of the commands show.

use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &str, file: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments.split_whitespace()).arg(file).arg("--json").output().unwrap()
}

/// What a command says with `--json` and what it draws into the file that its last option names.
fn drawn(arguments: &str) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figure.svg");
    let output = run(arguments, file.to_str().unwrap());
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"), "{arguments}");
    (serde_json::from_slice(&output.stdout).unwrap(), svg)
}

/// Numbers at the ticks: of horizontal axes, and of vertical ones.
fn ticks(svg: &str) -> [Vec<f64>; 2] {
    ["middle", "end"].map(|anchor| {
        let place = format!("text-anchor=\"{anchor}\"");
        let elements = svg.split("<text").skip(1).filter(|element| element.contains(&place));
        let text = |element: &str| {
            let (_, rest) = element.split_once('>')?;
            rest.split("</text>").next()?.trim().parse::<f64>().ok()
        };
        elements.filter_map(text).collect()
    })
}

fn figures(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// The bounds that are advised are drawn: bias, noise, and the bound of smallest error by name.
#[test]
fn advised_bounds_are_drawn() {
    let guess = "release init shops --keys a,b --periods 20 --epsilon 2 --delta 1e-6 --users 500 --periods-per-user 3,8";
    let (found, svg) = drawn(&format!("{guess} --plot"));
    let advised = format!("smallest error: max-periods {}", found["advised_max_periods"]);
    for words in [&advised[..], "bias (rows left out)", "noise (standard deviation)"] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    let [periods, _] = ticks(&svg);
    let bounds = found["bounds"].as_array().unwrap();
    let last = bounds[bounds.len() - 1]["max_periods"].as_f64().unwrap();
    assert!(periods.iter().all(|period| (0.0..=1.1 * last).contains(period)), "{periods:?}");
    for (options, named) in [
        (format!("{guess} --plot"), "plot is /nowhere/bounds.svg but must be in a folder"),
        (
            "release init shops --keys a --periods 9 --epsilon 1 --delta 1e-6 --max-periods 2 --plot".into(),
            "--periods-per-user",
        ),
    ] {
        let output = run(&options, "/nowhere/bounds.svg");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(named), "{said}");
    }
}

/// The errors of the queries are those whose largest and mean square `loss` tells.
#[test]
fn show_tells_and_draws_the_noise_of_every_query() {
    for problem in [
        "--strategy dense --steps 24",
        "--strategy tree --steps 24",
        "--strategy banded-toeplitz:4 --steps 24 --participation cyclic:8,3 --adjacency replace-one",
        "--strategy blt:2 --steps 24 --workload momentum:0.9",
    ] {
        let (found, svg) = drawn(&format!("show {problem} --out"));
        let errors = figures(&found["query_errors"]);
        assert_eq!(errors.len(), 24);
        let loss = Command::new(env!("CARGO_BIN_EXE_antinoise"))
            .args(format!("loss {problem} --json").split_whitespace())
            .output()
            .unwrap();
        let loss: Value = serde_json::from_slice(&loss.stdout).unwrap();
        let largest = errors.iter().copied().fold(0.0, f64::max);
        let rms = (errors.iter().map(|x| x * x).sum::<f64>() / 24.0).sqrt();
        for (of, figure) in [("max_loss", largest), ("rms_loss", rms)] {
            assert!((figure / loss[of].as_f64().unwrap() - 1.0).abs() < 1e-9, "{problem}: {of}");
        }
        assert!(svg.contains("Noise of each query") && svg.contains("noise multiplier 1"), "{problem}");
    }
}

/// Dense strategies have orthogonal columns where a unit can take part twice.
#[test]
fn show_draws_which_columns_are_orthogonal() {
    let problem = "--strategy dense --steps 24 --participation cyclic:6,4";
    let (found, svg) = drawn(&format!("show {problem} --out"));
    let products = figures(&found["largest_inner_products"]);
    assert_eq!(products.len(), 24);
    for (lag, product) in products.iter().enumerate() {
        let orthogonal = lag > 0 && lag % 6 == 0;
        assert_eq!(*product < 1e-4 * products[0], orthogonal, "{lag}: {product}");
    }
    assert!(svg.contains("steps between the two columns"));
}

/// Nothing lies between two diagonals of C.
#[test]
fn show_draws_diagonals_as_points() {
    let (_, svg) = drawn("show --strategy blt:2 --steps 20 --out");
    assert_eq!(svg.matches("<circle").count(), 2 * 20);
    // The two lines are those of the inner products and of the errors.
    assert_eq!(svg.matches("stroke=\"#0072B2\"").count(), 2);
}

#[test]
fn show_tells_three_steps_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.svg");
    let output = Command::new(env!("CARGO_BIN_EXE_antinoise"))
        .args("show --strategy tree --steps 100 --out".split(' '))
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in ["step 1        2.828", "step 50       4.899", "step 100      2.828", "largest       6.928"] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// The bound of each class that has one holds its loss, and an equation gives it.
#[test]
fn compare_has_the_bounds_of_the_classes_that_are_named() {
    for (objective, classes, count) in [
        (
            "max",
            [
                "identity",
                "workload",
                "toeplitz+square-root",
                "toeplitz+square-root+column-normalized",
                "tree",
            ],
            5,
        ),
        ("rms", ["identity", "workload", "toeplitz+square-root+column-normalized", "fourier", "tree"], 4),
    ] {
        let strategies = classes.join(",");
        let (found, svg) = drawn(&format!(
            "compare --strategies {strategies} --steps 4,16,64,100 --objective {objective} --plot"
        ));
        let bounds = &found["bounds"].as_array().unwrap()[2..];
        assert_eq!(bounds.len(), count, "{bounds:?}");
        for (bound, class) in bounds.iter().zip(classes) {
            let name = bound["name"].as_str().unwrap();
            let column = classes.iter().position(|of| *of == class).unwrap();
            assert!(
                svg.contains(name) && name.starts_with(&class[..4]) || name.starts_with("column"),
                "{name}"
            );
            for (i, value) in bound["values"].as_array().unwrap().iter().enumerate() {
                let (loss, bound) = (found["losses"][i][column].as_f64().unwrap(), value.as_f64().unwrap());
                assert!(loss <= bound * (1.0 + 1e-9), "{name}: {loss} {bound}");
                assert!(!name.contains('=') || loss >= bound * (1.0 - 1e-9), "{name}: {loss} {bound}");
            }
        }
    }
}

/// Curves of the bounds are there where the theorems are: prefix sums, one participation.
#[test]
fn compare_draws_the_bounds_where_they_hold() {
    let compare = "compare --strategies identity,dense";
    let (found, svg) = drawn(&format!("{compare} --steps 4,16,64 --objective max --plot"));
    assert!(svg.contains("best ≥ ln(2n+1)/π") && svg.contains("best ≤ 1+ln(n)/π"));
    assert!(!svg.contains("toeplitz ≤") && !svg.contains("tree ≤"));
    let classes = "compare --strategies tree,toeplitz,tree+x2";
    let (of_classes, drawn_classes) = drawn(&format!("{classes} --steps 4,16,64 --objective max --plot"));
    assert!(drawn_classes.contains("toeplitz ≤") && drawn_classes.contains("tree ≤"));
    assert_eq!(of_classes["bounds"].as_array().unwrap().len(), 4);
    assert_eq!(of_classes["bounds"][3]["values"][2].as_f64().unwrap(), 42f64.sqrt());
    let (rms, svg) = drawn(&format!("{compare} --steps 4,16 --plot"));
    assert!(svg.contains("best ≥ (Henzinger et al.)") && !svg.contains("tree ≤"));
    for i in [0, 1] {
        let (least, dense) = (&rms["least_possible"][i]["at_least"], &rms["losses"][i][1]);
        assert!(least.as_f64().unwrap() < dense.as_f64().unwrap(), "{least} {dense}");
    }
    for (bounds, losses) in
        found["least_possible"].as_array().unwrap().iter().zip(found["losses"].as_array().unwrap())
    {
        let (least, most) = (bounds["at_least"].as_f64().unwrap(), bounds["at_most"].as_f64().unwrap());
        let dense = losses[1].as_f64().unwrap();
        assert!(least < dense && dense < most, "{least} < {dense} < {most}");
    }
    let (twice, _) = drawn(&format!("{compare} --steps 16 --objective max --adjacency replace-one --plot"));
    let once = found["least_possible"][1]["at_least"].as_f64().unwrap();
    assert_eq!(twice["least_possible"][0]["at_least"].as_f64().unwrap(), 2.0 * once);
    for other in [
        "--total",
        "--objective max --total",
        "--objective max --participation cyclic:2,2",
        "--objective max --workload momentum:0.9",
    ] {
        let (found, svg) = drawn(&format!("{compare} --steps 4,16 {other} --plot"));
        assert!(!svg.contains("ln("), "{other}");
        assert_eq!(found["least_possible"], serde_json::json!([null, null]), "{other}");
    }
}

/// Steps are where they are, one number of steps has a row for each strategy, and axes have ticks within a
/// decade.
#[test]
fn every_figure_has_ticks_a_unit_and_a_legend() {
    let (_, svg) = drawn("compare --strategies identity,toeplitz --steps 48,64,96 --plot");
    let [across, up] = ticks(&svg);
    assert_eq!(across, [48.0, 64.0, 96.0, 48.0, 64.0, 96.0]);
    assert!(up.iter().filter(|&&tick| tick > 1.0 && tick < 10.0).count() >= 2, "{up:?}");
    assert!(svg.contains("RMS loss (standard deviations") && svg.contains("\nidentity\n"));
    let (_, svg) = drawn("compare --strategies identity,toeplitz --steps 48 --plot");
    assert!(svg.contains("Loss at 48 steps") && svg.contains("\nidentity\n") && svg.contains("\ntoeplitz\n"));
    assert!(ticks(&svg)[0].len() >= 4, "{:?}", ticks(&svg));
    let (_, svg) = drawn(
        "bands --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --delta 1e-5 --bands 4,6,8 --plot",
    );
    let [across, up] = ticks(&svg);
    assert!(across == [4.0, 6.0, 8.0] && up.len() >= 2, "{across:?} {up:?}");
    assert!(svg.contains("in clip norms") && svg.contains("\nunamplified bands\n"));
}

/// Where nothing can be drawn, there is a figure still.
#[test]
fn a_figure_of_nothing_has_axes() {
    for steps in ["3", "3,5"] {
        let (found, svg) = drawn(&format!("compare --strategies banded-toeplitz:64 --steps {steps} --plot"));
        assert!(found["losses"][0][0].is_null());
        let [across, up] = ticks(&svg);
        assert!(across.len() >= 2 && (steps == "3" || up.len() >= 2), "{across:?} {up:?}");
    }
}

/// Errors of several strategies step by step are those that `show` prints for each.
#[test]
fn compare_draws_the_noise_of_each_step_at_one_privacy() {
    let (found, svg) =
        drawn("compare --strategies identity,tree --steps 64 --objective max --by-step --plot");
    assert!(svg.contains("Noise of each query, at one privacy") && svg.contains("\ntree\n"));
    let errors = found["query_errors"].as_array().unwrap();
    let independent: Vec<f64> = serde_json::from_value(errors[0].clone()).unwrap();
    assert!(independent.iter().enumerate().all(|(t, x)| (x - ((t + 1) as f64).sqrt()).abs() < 1e-12));
    let tree: Vec<f64> = serde_json::from_value(errors[1].clone()).unwrap();
    let largest = tree.iter().copied().fold(0.0, f64::max);
    assert!((largest - found["losses"][0][1].as_f64().unwrap()).abs() < 1e-12 && tree.len() == 64);
}
