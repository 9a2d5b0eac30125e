//! What scripts rely on: one JSON object with the fixed keys, and whole files.

#[path = "../common/mod.rs"]
mod common;
mod planning;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn antinoise() -> Command {
    Command::new(env!("CARGO_BIN_EXE_antinoise"))
}

fn json(arguments: &[&str]) -> Value {
    let output = antinoise().args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim().lines().count(), 1, "exactly one object: {text}");
    serde_json::from_str(&text).unwrap()
}

fn assert_keys(value: &Value, keys: &str) {
    for key in keys.split(' ') {
        assert!(value.get(key).is_some(), "{key} in {value}");
    }
}

#[test]
fn loss_prints_its_keys_and_saves_a_strategy_that_costs_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strategy.toml");
    let path = file.to_str().unwrap();
    let saved = json(&["loss", "--strategy", "blt", "--order", "3", "--steps", "100", "--out", path]);
    assert_keys(
        &saved,
        "max_loss rms_loss total_loss max_error rms_error sensitivity status gap iterations seconds",
    );
    assert_keys(&saved["sensitivity"], "value kind source");
    assert_eq!(saved["sensitivity"]["kind"], "exact");
    let read = json(&["loss", "--strategy", &format!("file:{path}"), "--steps", "100"]);
    assert_eq!(saved["rms_loss"], read["rms_loss"]);
    let wrong =
        antinoise().args(["loss", "--strategy", &format!("file:{path}"), "--steps", "99"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// What a design was made for, and how it ended, is said in the same words everywhere.
#[test]
fn loss_says_what_a_design_is_for_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let rates = folder.path().join("rates");
    std::fs::write(&rates, "1\n1\n0.5\n0.25 # the last\n").unwrap();
    let schedule = format!("schedule:{},0.9", rates.to_str().unwrap());
    for (workload, designed_for) in
        [("cooldown:2,0.5", "cooldown:2,0.5"), (&schedule, "momentum 0.9 with a schedule of 4 rates")]
    {
        for strategy in ["toeplitz", "blt:2", "banded-inverse:2", "banded:2", "dense"] {
            let found = json(&["loss", "--strategy", strategy, "--steps", "4", "--workload", workload]);
            assert_eq!(found["designed_for"], designed_for, "{strategy}");
            assert_eq!(found["status"], "converged", "{strategy}");
            assert!(found["improved"].is_boolean(), "{strategy}");
        }
    }
    let fixed = ["loss", "--strategy", "toeplitz", "--fixed", "--steps", "4", "--workload", "cooldown:2,0.5"];
    let fixed = json(&fixed);
    assert_eq!((&fixed["status"], &fixed["improved"]), (&"closed-form".into(), &false.into()));
    assert_eq!(fixed["designed_for"], "prefix");
    let identity =
        json(&["loss", "--strategy", "banded-toeplitz:4", "--steps", "4", "--participation", "full-batch"]);
    assert_eq!((&identity["status"], &identity["improved"]), (&"converged".into(), &true.into()));
}

#[test]
fn account_and_calibrate_print_their_keys_and_agree() {
    let found = json(&["calibrate", "--epsilon", "2", "--delta", "1e-6"]);
    assert_keys(&found, "epsilon epsilon_lower delta noise_multiplier mu rho accountant");
    let sigma = found["noise_multiplier"].as_f64().unwrap();
    assert!((sigma - 2.23048).abs() < 1e-5);
    let back = json(&["account", "--noise-multiplier", &sigma.to_string(), "--delta", "1e-6"]);
    assert!(back["epsilon"].as_f64().unwrap() <= 2.0 && back["epsilon_lower"].as_f64().unwrap() > 1.999_999);
}

fn number(arguments: &str, key: &str) -> f64 {
    json(&arguments.split(' ').collect::<Vec<_>>())[key].as_f64().unwrap()
}

#[test]
fn calibrate_finds_any_one_from_the_others() {
    let target = "--epsilon 2 --delta 1e-6";
    let sigma = number(&format!("calibrate {target} --sampling-rate 0.01 --steps 1000"), "noise_multiplier");
    let given = format!("calibrate {target} --noise-multiplier {sigma}");
    let steps = number(&format!("{given} --sampling-rate 0.01"), "steps");
    assert!((1000.0..1003.0).contains(&steps), "{steps}");
    let rate = number(&format!("{given} --steps 1000"), "sampling_rate");
    assert!((0.01 * (1.0 - 1e-6)..0.010_03).contains(&rate), "{rate}");
}

#[test]
fn account_knows_bands_groups_and_bins() {
    // A hundred bands at rate 1/100 sample everything: ten full steps.
    let all = number(
        "account --noise-multiplier 4 --delta 1e-6 --sampling-rate 0.01 --steps 1000 --bands 100",
        "epsilon",
    );
    let ten = number("account --noise-multiplier 1.2649110640673518 --delta 1e-6", "epsilon");
    assert!((all / ten - 1.0).abs() < 1e-9, "{all} against {ten}");
    let group = number("account --noise-multiplier 4 --delta 1e-6 --group-size 2", "epsilon");
    let two = number("account --noise-multiplier 2 --delta 1e-6", "epsilon");
    assert!((group / two - 1.0).abs() < 1e-12, "{group} against {two}");
    // One bin samples nothing: a Gaussian mechanism, found by sampling.
    let bins = "account --noise-multiplier 4 --delta 1e-6 --balls-in-bins 1 --steps 16 --strategy identity";
    let exact = number("account --noise-multiplier 1 --delta 1e-6", "epsilon");
    assert!(number(bins, "epsilon_lower") <= exact && exact <= number(bins, "epsilon"));
    assert!(number(bins, "failure") <= 1e-8);
    let mu = number("account --noise-multiplier 4 --delta 1e-6 --group-size 2", "mu");
    assert!((mu - 0.5).abs() < 1e-12, "the group's, not one unit's");
}

/// Of a plan in bins: its claim at its own point, simulated figures with their failure on both sides of the
/// verified curve, and the bound without amplification where it is smaller, and for groups.
#[test]
fn account_simulates_a_plan_at_any_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("bins.toml");
    let plan = plan.to_str().unwrap();
    let made = "plan --examples 200 --batch-size 20 --epochs 2 --epsilon 1 --delta 1e-3 --setting poisson --strategy blt:2 --out";
    json(&made.split(' ').chain([plan]).collect::<Vec<_>>());
    let at = |more: &str| {
        json(&["account", "--plan", plan].into_iter().chain(more.split(' ')).collect::<Vec<_>>())
    };
    let delta = |epsilon: &str| at(&format!("--epsilon {epsilon}"));
    assert_eq!(delta("1")["delta"].as_f64(), Some(1e-3));
    let mut last = 1.0;
    for epsilon in ["0", "0.2", "0.6", "1", "1.8", "2.5", "40"] {
        let found = delta(epsilon);
        let (delta, failure) = (found["delta"].as_f64().unwrap(), found["failure"].as_f64());
        assert!(delta < last && found["epsilon_lower"].as_f64() <= found["epsilon"].as_f64(), "{found}");
        let is_simulated = epsilon != "40";
        assert_eq!(found["accountant"] == "balls-in-bins", is_simulated, "{found}");
        assert_eq!(
            failure.is_some_and(|failure| 0.0 < failure && failure < 0.02 * delta),
            is_simulated,
            "{found}"
        );
        last = delta;
    }
    let group = at("--group-size 3");
    let sigma = group["noise_multiplier"].as_f64().unwrap();
    let wanted =
        number(&format!("account --noise-multiplier {sigma} --delta 1e-3 --group-size 3"), "epsilon");
    assert_eq!((group["epsilon"].as_f64(), group["failure"].as_f64()), (Some(wanted), None));
}

/// What a ledger recorded costs no more than what its plan allows, and only where that can be said.
#[test]
fn account_tells_what_was_observed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = common::write_federated(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, ledger) = (at("federated.toml"), at("ledger.db"));
    let found = json(&["account", "--plan", &file, "--observed", &ledger]);
    let observed = &found["observed"];
    assert_keys(observed, "steps_finished steps users participations patterns min_sep max_participations");
    assert_keys(observed, "sensitivity plan_epsilon statement");
    // Only user 0 took part twice, in steps 0 and 5; the last charge came to nothing.
    let numbers = ["steps_finished", "users", "participations", "patterns", "min_sep", "max_participations"]
        .map(|key| &observed[key]);
    assert_eq!(numbers.map(|number| number.as_u64().unwrap()), [6, 11, 12, 7, 5, 2]);
    let patterns = vec![vec![0, 5], vec![1], vec![2], vec![3], vec![4], vec![0], vec![5]];
    let wanted =
        plan.strategy.sensitivity(&antinoise_mechanism::Participation::Patterns { patterns }).unwrap();
    let sensitivity = observed["sensitivity"]["value"].as_f64().unwrap();
    assert!((sensitivity / wanted.value - 1.0).abs() < 1e-12 && sensitivity < plan.sensitivity.value);
    let multiplier = found["noise_multiplier"].as_f64().unwrap();
    let plain = plan.noise_multiplier * plan.sensitivity.value / sensitivity;
    assert!(multiplier <= plain && multiplier > 0.999 * plain, "{multiplier} against {plain}");
    let promised = json(&["account", "--plan", &file]);
    assert_eq!(promised["observed"], Value::Null);
    let epsilon = |found: &Value| found["epsilon"].as_f64().unwrap();
    assert!(epsilon(&found) < epsilon(&promised));
    let statement = observed["statement"].as_str().unwrap();
    for said in
        ["over 6 of 8 steps", "depended neither on anybody's private data", "a statement after the fact"]
    {
        assert!(statement.contains(said), "{said} in {statement}");
    }
    let other = at("other.toml");
    json(&[
        "plan",
        "--examples",
        "40",
        "--batch-size",
        "2",
        "--steps",
        "8",
        "--epsilon",
        "3",
        "--delta",
        "1e-3",
        "--setting",
        "cyclic",
        "--out",
        &other,
    ]);
    for (arguments, message) in [
        (
            ["account", "--plan", &other, "--observed", &ledger],
            "participation of the plan is single of units example",
        ),
        (["account", "--plan", &file, "--observed", &file], "its owner's alone"),
        (["account", "--plan", &file, "--observed", &at("absent.db")], "absent.db: "),
    ] {
        let output = antinoise().args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{said}");
    }
    let without_plan = ["account", "--noise-multiplier", "1", "--delta", "1e-5", "--observed", &ledger];
    assert_eq!(antinoise().args(without_plan).output().unwrap().status.code(), Some(2));
}

#[test]
fn bands_prints_a_row_for_each_number_and_draws_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bands.svg");
    let arguments =
        "bands --examples 1000 --batch-size 50 --epochs 4 --epsilon 1,4 --delta 1e-5 --against tree --plot";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.push(file.to_str().unwrap());
    let found = json(&arguments);
    assert_keys(&found, "examples steps delta objective targets");
    for target in found["targets"].as_array().unwrap() {
        assert_keys(target, "batch_size epsilon rows best against");
        let bands: Vec<u64> =
            target["rows"].as_array().unwrap().iter().map(|row| row["bands"].as_u64().unwrap()).collect();
        assert_eq!(bands, [1, 2, 4, 8, 16, 20]);
        assert_keys(&target["rows"][0]["amplified"], "noise_multiplier sensitivity max_loss rms_loss");
    }
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
}

fn npy(path: &Path) -> Vec<u8> {
    let file = std::fs::read(path).unwrap();
    let header = u16::from_le_bytes([file[8], file[9]]) as usize;
    file[10 + header..].to_vec()
}

/// Any step and any shard of a stream are the same bits as those of the whole.
#[test]
fn noise_can_be_made_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (key, out) = (folder.path().join("key"), folder.path().join("noise.npy"));
    std::fs::write(&key, b"antinoise tests use this as key.").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let make = |more: &str| {
        let common = "noise --strategy blt:2 --steps 20 --dim 100";
        let arguments = common.split(' ').chain(more.split_whitespace());
        let (key, out) = (key.to_str().unwrap(), out.to_str().unwrap());
        let report = json(&arguments.chain(["--key-file", key, "--out", out, "--force"]).collect::<Vec<_>>());
        assert_keys(&report, "out rows columns from");
        npy(Path::new(out))
    };
    let whole = make("");
    assert_eq!(whole.len(), 20 * 100 * 4);
    assert_eq!(make("--from 5 --count 3"), whole[5 * 400..8 * 400]);
    let (left, right) = (make("--shard 0/2"), make("--shard 1/2"));
    let columns = left.len() / 20;
    for row in 0..20 {
        let joined =
            [&left[row * columns..][..columns], &right[row * (400 - columns)..][..400 - columns]].concat();
        assert_eq!(joined, whole[row * 400..(row + 1) * 400]);
    }
}

#[test]
fn bench_noise_prints_its_keys() {
    let report = json(&["bench", "noise", "--dim", "10000", "--threads", "1"]);
    assert_keys(&report, "ns_per_coordinate memory_bytes_per_second");
    assert_keys(
        &report["ns_per_coordinate"],
        "identity banded-toeplitz:16 banded-toeplitz:64 blt:2 blt:4 blt:8",
    );
}

#[test]
fn schemas_and_workloads_can_be_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("file:{}", path.display())
    };
    let cyclic = write("patterns", "0 2 4 # the even ones\n1, 3, 5\n");
    let ones = write("workload", "1\n1\n1\n1\n1\n1\n");
    let rows = write("matrix", "1\n1 1\n1 1 1\n1 1 1 1\n1 1 1 1 1\n1 1 1 1 1 1\n");
    let cost = |participation: &str, workload: &str| {
        let arguments = ["loss", "--strategy", "identity", "--steps", "6", "--participation", participation];
        json(&[&arguments[..], &["--workload", workload]].concat())["total_loss"].as_f64().unwrap()
    };
    let named = cost("cyclic:2,3", "prefix");
    for (participation, workload) in [(&cyclic, "prefix"), (&cyclic, &ones), (&cyclic, &rows)] {
        assert!((cost(participation, workload) - named).abs() < 1e-9 * named, "{participation} {workload}");
    }
    let bad = write("bad", "0 2\n2 1\n");
    let arguments = ["loss", "--strategy", "identity", "--steps", "6", "--participation", &bad];
    assert_eq!(antinoise().args(arguments).output().unwrap().status.code(), Some(2));
}
