//! `antinoise probe`, and the workload that it saves.
#![cfg(feature = "train")]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments.split_whitespace()).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_a_probe_saves_is_a_workload_with_the_schedule_of_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let (learned, figure) = (folder.path().join("learned.toml"), folder.path().join("probe.svg"));
    let probe = format!(
        "probe --model logistic --batch-size 96 --epochs 3 --learning-rate 0.5 --schedule linear:0.2 \
         --noise-multiplier 6 --probes 5 --repeats 3 --out {} --json --plot {}",
        learned.display(),
        figure.display()
    );
    let found = json(&run(&probe));
    assert_eq!(found["steps"], 45);
    let steps: Vec<u64> =
        found["growths"].as_array().unwrap().iter().map(|growth| growth["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [0, 11, 22, 33, 44]);
    assert_eq!(found["mostly_chance"], false);
    let (text, svg) = (fs::read_to_string(&learned).unwrap(), fs::read_to_string(&figure).unwrap());
    let saved: toml::Value = toml::from_str(&text).unwrap();
    let last = saved["rates"].as_array().unwrap()[44].as_float().unwrap();
    assert!((last - 0.2).abs() < 1e-12, "{last}");
    assert!(svg.contains("growth of the final test loss"), "{svg}");
    // The file is not written over; with --force it is, and the seed makes the same one again.
    assert_eq!(run(&probe).status.code(), Some(2));
    json(&run(&format!("{probe} --force")));
    assert_eq!(fs::read_to_string(&learned).unwrap(), text);

    let loss = |strategy: &str, workload: &str| {
        json(&run(&format!(
            "loss --strategy {strategy} --steps 45 --participation cyclic:15,3 --workload {workload} --json"
        )))
    };
    let path = learned.to_str().unwrap();
    let designed = loss("blt:2", &format!("learned:{path}"));
    assert!(
        designed["workload"].as_str().unwrap().starts_with("last-iterate:0.9 with a schedule of 45 rates")
    );
    let independent = loss("identity", &format!("learned:{path}"));
    assert!(designed["rms_loss"].as_f64() < independent["rms_loss"].as_f64());
}

/// One repeat has no standard errors.
#[test]
fn growths_without_errors_may_be_chance() {
    let probe =
        "probe --model logistic --batch-size 96 --steps 20 --learning-rate 0.5 --probes 3 --repeats 1";
    let found = json(&run(&format!("{probe} --json")));
    assert!(found["mostly_chance"] == true && found["growths"][0]["error"].is_null(), "{found}");
    assert!(
        String::from_utf8(run(probe).stdout).unwrap().contains("how much of the fit is chance is unknown")
    );
}

#[test]
fn the_spectrum_gives_a_workload_with_the_weights_that_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (learned, figure) = (folder.path().join("learned.toml"), folder.path().join("weights.svg"));
    let probe = format!(
        "probe --by spectrum --model logistic --batch-size 96 --epochs 3 --learning-rate 0.2 --products 10 \
         --repeats 2 --out {} --plot {} --force",
        learned.display(),
        figure.display()
    );
    let found = json(&run(&format!("{probe} --json")));
    let numbers =
        |of: &Value| -> Vec<f64> { of.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    let (curvatures, weights) = (numbers(&found["curvatures"]), numbers(&found["weights"]));
    assert_eq!((curvatures.len(), weights.len()), (9, 9));
    assert!(curvatures[0] == 1.0 && curvatures.is_sorted_by(|x, y| x > y), "{curvatures:?}");
    assert!(
        weights.iter().all(|&weight| (0.0..=1.0).contains(&weight)) && weights.contains(&1.0),
        "{weights:?}"
    );
    let number = |node: &Value, name: &str| node[name].as_f64().unwrap();
    let spectrum = found["spectrum"].as_array().unwrap();
    let all: f64 = spectrum.iter().map(|node| number(node, "directions")).sum();
    assert!((all - 650.0).abs() < 1e-6, "{all}");
    let largest = spectrum.iter().map(|node| number(node, "curvature")).fold(0.0, f64::max);
    let sum: f64 =
        spectrum.iter().map(|node| number(node, "curvature").max(0.0) * number(node, "directions")).sum();
    let effective = number(&found, "effective_dimension");
    assert!((effective - sum / largest).abs() < 1e-9 * effective, "{effective} {sum} {largest}");

    let text = fs::read_to_string(&learned).unwrap();
    assert!(text.contains("# Weights from the spectrum of curvatures by 10 products"), "{text}");
    let saved: toml::Value = toml::from_str(&text).unwrap();
    let saved: Vec<f64> =
        saved["weights"].as_array().unwrap().iter().map(|x| x.as_float().unwrap()).collect();
    let apart = saved.iter().zip(&weights).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(saved.len() == weights.len() && apart < 1e-12, "{saved:?} {weights:?}");
    assert!(fs::read_to_string(&figure).unwrap().contains("Curvatures along which noise raises the loss"));
    let shown = String::from_utf8(run(&probe).stdout).unwrap();
    assert!(shown.contains("of 650 parameters") && shown.contains("NOT PRIVATE"), "{shown}");
    let designed = json(&run(&format!(
        "loss --strategy blt:2 --steps 45 --participation cyclic:15,3 --workload learned:{} --json",
        learned.display()
    )));
    assert!(designed["rms_loss"].as_f64().unwrap() > 0.0);
}

#[test]
fn workloads_that_no_probe_has_saved_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.toml");
    let refusal = || {
        let found = run(&format!("loss --strategy blt:2 --steps 45 --workload learned:{}", path.display()));
        assert_eq!(found.status.code(), Some(2), "{found:?}");
        String::from_utf8(found.stderr).unwrap()
    };
    assert!(refusal().contains("unreadable"));
    let weights = |values: &str| format!("kind = \"last-iterate\"\nmomentum = 0.9\nweights = [{values}]\n");
    for (text, must_say) in [
        ("kind = \"prefix\"\n".into(), "a file that antinoise probe --out has written"),
        ("nothing".into(), "a file that antinoise probe --out has written"),
        (weights("0.0, 0.0"), "0 everywhere"),
        (weights("1.0, -1.0"), "0 or above everywhere"),
        (weights("1.0, nan"), "finite everywhere"),
        ("kind = \"last-iterate\"\nweigths = [1.0]\n".into(), "weigths"),
        (weights("1.0, 2.0"), "9, one for each curvature"),
    ] {
        fs::write(&path, &text).unwrap();
        let said = refusal();
        assert!(said.contains(must_say), "{text}: {said}");
    }
}

#[test]
fn bad_numbers_of_a_probe_are_named() {
    let probe = "probe --model logistic --batch-size 96";
    for (bad, must_say) in [
        ("--probes 1", "--probes is 1"),
        ("--repeats 0", "--repeats is 0"),
        ("--products 3", "--products is 3 but must be left out with --by trainings"),
        ("--by spectrum --probes 3", "--probes is 3 but must be left out with --by spectrum"),
        ("--by spectrum --products 0", "--products is 0 but must be at least 4"),
        ("--by spectrum --repeats 0", "--repeats is 0"),
        ("--by curvature", "--by"),
        ("--noise-multiplier 0", "--noise-multiplier is 0"),
        ("--clip-norm 0", "--clip-norm is 0"),
        ("--prefix-share 0", "--prefix-share is 0"),
        ("--momentum 1", "--momentum is 1"),
        ("--schedule linear:2", "schedule"),
        ("--steps 20000", "--steps is 20000 but must be at most 16,384"),
        ("--learning-rate nan", "--learning-rate is NaN"),
        ("--weight-decay 3", "--weight-decay is 3 but must be below 1 / learning_rate"),
        ("--noise-multiplier 1e300", "final test loss is"),
        ("--learning-rate 1e30", "must be below 100 times that before the training"),
        ("--by spectrum --noise-multiplier 1e9", "must be below 100 times that before the training"),
        ("--out same.svg --plot same.svg", "--plot is same.svg but must be a file other than --out's"),
        ("--label late=no,yes", "--label is given"),
        ("--data nothing", "--data is \"nothing\""),
        ("--out /nonexistent/learned.toml", "in a folder that exists"),
    ] {
        let steps = if bad.starts_with("--steps") { "" } else { "--steps 20" };
        let rate = if bad.starts_with("--learning-rate") { "" } else { "--learning-rate 0.5" };
        let found = run(&format!("{probe} {steps} {rate} {bad}"));
        let said = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(2), "{bad}: {said}");
        assert!(said.contains(must_say), "{bad}: {said}");
    }
}
