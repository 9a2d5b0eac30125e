//! The same of plans.

use super::*;

#[test]
fn plan_prints_its_keys_and_saves_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    let arguments =
        "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic --out";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.push(file.to_str().unwrap());
    let found = json(&arguments);
    assert_keys(&found, "candidates chosen plan");
    let chosen = &found["candidates"][found["chosen"].as_u64().unwrap() as usize];
    assert_keys(chosen, "strategy bands order noise_multiplier sensitivity max_loss rms_loss");
    assert_keys(chosen, "relative_to_independent state_bytes");
    assert!(std::fs::read_to_string(&file).unwrap().contains("noise_multiplier"));
}

#[test]
fn a_plan_weighs_state_and_says_what_it_left_out() {
    let federated = "plan --examples 342477 --batch-size 1000 --steps 2052 --epsilon 2 --delta 1e-7 \
                     --setting federated --min-sep 342 --dim 4e6";
    let plan =
        |more: &str| json(&federated.split_whitespace().chain(more.split_whitespace()).collect::<Vec<_>>());
    let chosen = |found: &Value| found["candidates"][found["chosen"].as_u64().unwrap() as usize].clone();
    let (cheap, best) = (plan(""), plan("--tolerance 0"));
    assert_eq!(
        (chosen(&cheap)["strategy"].as_str(), chosen(&cheap)["order"].as_u64()),
        (Some("varying-blt"), Some(4))
    );
    assert!(cheap["explanation"].as_str().unwrap().contains("banded-toeplitz:342 has 0.98"), "{cheap}");
    assert_eq!(chosen(&best)["bands"], 342);
    assert!(best["candidates"].as_array().unwrap().iter().filter(|row| row["on_front"] == true).count() > 2);
    let tight = plan("--tolerance 0 --noise-time 0.02");
    assert!(chosen(&tight)["noise_seconds"].as_f64().unwrap() <= 0.02);
    let left_out = tight["left_out"].as_array().unwrap();
    assert!(left_out.iter().any(|row| row["strategy"] == "banded-toeplitz:342"), "{left_out:?}");
}

/// The loss by which the mechanism was chosen, in the text as in the JSON.
#[test]
fn the_short_table_has_the_loss_of_the_objective() {
    for (objective, shown, other, key) in
        [("max", "max loss", "RMS loss", "max_loss"), ("rms", "RMS loss", "max loss", "rms_loss")]
    {
        let plan = "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic \
                    --strategy blt:2 --objective";
        let arguments: Vec<&str> = plan.split_whitespace().chain([objective]).collect();
        let output = antinoise().args(&arguments).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let table = text.split("\n\n").nth(1).unwrap();
        assert!(table.contains(shown) && !table.contains(other), "{text}");
        let found = json(&arguments);
        for row in found["candidates"].as_array().unwrap() {
            assert!(table.contains(&format!("{:.6}", row[key].as_f64().unwrap())), "{row} not in {text}");
        }
        let long = antinoise().args(arguments.iter().chain(&["--long"])).output().unwrap();
        let long = String::from_utf8(long.stdout).unwrap();
        assert!(long.contains(shown) && long.contains(other), "{long}");
    }
}

/// The same candidates and statement in every form, and nothing that points to an option where it is pasted.
#[test]
fn a_plan_is_printed_in_the_form_that_is_asked_for() {
    let plan = "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic --strategy \
                banded-toeplitz:2";
    let printed = |more: &str| {
        let output =
            antinoise().args(plan.split_whitespace()).args(more.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{more}");
        String::from_utf8(output.stdout).unwrap()
    };
    let markdown = printed("--format markdown");
    assert!(markdown.contains("|---|---:|") && markdown.contains("| banded-toeplitz:2 |"), "{markdown}");
    let latex = printed("--format latex");
    assert!(latex.contains("\\begin{tabular}{lrrrr}") && latex.contains("\\paragraph{Privacy.}"), "{latex}");
    for pasted in [&markdown, &latex] {
        assert!(pasted.contains("(2, 1e-5)") && !pasted.contains("--long"), "{pasted}");
    }
    assert!(printed("--format latex --long").contains("\\begin{description}"));
    assert_eq!(printed("--format json"), printed("--json"));
    for format in ["markdown", "latex"] {
        let swept = printed(&format!("--sweep epsilon --format {format}"));
        assert!(swept.contains("gradients") && !swept.contains("noise state"), "{swept}");
    }
}

#[test]
fn a_plan_and_its_plot_are_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both");
    let path = file.to_str().unwrap();
    let arguments =
        "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic --out";
    let both = arguments.split(' ').chain([path, "--plot", path]);
    let output = antinoise().args(both).output().unwrap();
    assert_eq!((output.status.code(), file.exists()), (Some(2), false));
}

#[test]
fn a_sweep_plans_at_every_point_and_draws_them() {
    let folder = tempfile::tempdir().unwrap();
    for (sweep, varied) in [("batch-size", "batch_size"), ("epsilon", "epsilon")] {
        let file = folder.path().join(sweep).with_extension("svg");
        let arguments = "plan --examples 4000 --batch-size 100 --steps 80 --epsilon 2 --delta 1e-5 --quick \
                         --setting poisson --plot";
        let options = [file.to_str().unwrap(), "--sweep", sweep];
        let found = json(&arguments.split_whitespace().chain(options).collect::<Vec<_>>());
        let points = found["points"].as_array().unwrap();
        assert_eq!(points.len(), 7);
        for pair in points.windows(2) {
            let grows = |key: &str| pair[0][key].as_f64().unwrap() < pair[1][key].as_f64().unwrap();
            assert!(grows(varied) && !grows("rms_loss"), "{pair:?}");
        }
        assert!(std::fs::read_to_string(&file).unwrap().contains("Loss of the chosen mechanism"));
    }
}

#[test]
fn advise_proposes_what_can_be_planned() {
    let found = json(&["advise", "--examples", "20000", "--epsilon", "4", "--dim", "1e7", "--memory", "2e9"]);
    let proposals = found["proposals"].as_array().unwrap();
    assert_eq!(proposals.len(), 6);
    for proposal in proposals {
        assert_keys(proposal, "setting batch_size epochs delta strategy rms_loss reason");
        assert!(proposal["state_bytes"].as_u64().unwrap() <= 2_000_000_000);
        assert_eq!(proposal["delta"].as_f64(), Some(1e-6));
        let command = proposal["command"].as_str().unwrap().strip_prefix("antinoise ").unwrap();
        let planned = json(&command.split(' ').collect::<Vec<_>>());
        let chosen = &planned["candidates"][planned["chosen"].as_u64().unwrap() as usize];
        assert_eq!(chosen["rms_loss"], proposal["rms_loss"], "{command}");
    }
    let short =
        ["advise", "--examples", "1000", "--epsilon", "4", "--time", "1", "--examples-per-second", "10"];
    let output = antinoise().args(short).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--time is 1 but must be at least 100 s"));
}

#[test]
fn verify_tells_a_plan_that_holds_from_one_that_was_altered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    let path = file.to_str().unwrap();
    let arguments =
        "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic --out";
    json(&arguments.split(' ').chain([path]).collect::<Vec<_>>());
    let found = json(&["verify", path]);
    assert_keys(&found, "holds digest statement problems");
    assert_eq!((&found["holds"], &found["problems"]), (&Value::Bool(true), &Value::Array(Vec::new())));
    assert_eq!(found["digest"].as_str().unwrap().len(), 64);
    assert!(found["statement"].as_str().unwrap().contains("differential privacy of one example"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("unit = \"example\"", "unit = \"user\"")).unwrap();
    let output = antinoise().args(["verify", path, "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["holds"], false);
    assert!(found["problems"][0].as_str().unwrap().contains("unit of the plan is user"), "{found}");
    for bad in [text.replace("version = 2", "version = 1"), String::new()] {
        std::fs::write(&file, bad).unwrap();
        assert_eq!(antinoise().args(["verify", path]).output().unwrap().status.code(), Some(2));
    }
    let absent = antinoise().args(["verify", "/nonexistent/plan.toml"]).output().unwrap();
    assert_eq!((absent.status.code(), absent.stdout.is_empty()), (Some(2), true));
}

#[test]
fn a_plan_adds_noise_on_a_grid_unless_plain_is_asked_for() {
    let arguments =
        "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting cyclic";
    let arithmetic = |more: &str| {
        let found = json(&arguments.split(' ').chain(more.split_whitespace()).collect::<Vec<_>>());
        (found["plan"]["arithmetic"].clone(), found["statement"]["arithmetic"].as_str().unwrap().to_owned())
    };
    let (grid, said) = arithmetic("--dim 1e6");
    assert_eq!((&grid["kind"], &grid["dim"]), (&Value::from("grid"), &Value::from(1_000_000)));
    assert!(said.contains("whole numbers"), "{said}");
    let (plain, said) = arithmetic("--release plain");
    assert_eq!(plain["kind"], "plain-floating-point");
    assert!(said.contains("LAST BITS"), "{said}");
}

#[test]
fn a_poisson_plan_is_amplified_and_says_so() {
    let arguments =
        "plan --examples 1000 --batch-size 50 --epochs 3 --epsilon 2 --delta 1e-5 --setting poisson";
    let found = json(&arguments.split(' ').collect::<Vec<_>>());
    assert!(found["plan"]["privacy"]["accountant"] != "gdp", "by Poisson sampling or in bins");
    let sigma = |i: usize| found["candidates"][i]["noise_multiplier"].as_f64().unwrap();
    // One band is DP-SGD with Poisson sampling; more bands leave less amplification.
    let sgd =
        "calibrate --epsilon 2 --delta 1e-5 --sampling-rate 0.05 --steps 60".split(' ').collect::<Vec<_>>();
    let sgd = json(&sgd)["noise_multiplier"].as_f64().unwrap();
    assert!((sigma(0) / sgd - 1.0).abs() < 3e-4 && sigma(1) > sigma(0));
    assert_keys(
        &found["statement"],
        "unit adjacency schema sampler mechanism accountant epsilon epsilon_lower",
    );
}

/// A plan takes the place of the options that it was made with, and what is written of it is what it runs.
#[test]
fn a_plan_takes_the_place_of_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, key, rows) = (at("plan.toml"), at("key"), at("rows.npy"));
    for setting in ["cyclic", "poisson"] {
        let made =
            "plan --examples 600 --batch-size 50 --epochs 3 --epsilon 4 --delta 1e-5 --force --setting";
        let arguments: Vec<&str> = made.split(' ').chain([setting, "--out", &plan]).collect();
        let made = json(&arguments);
        let privacy = &made["plan"]["privacy"];
        let found = json(&["account", "--plan", &plan]);
        // Each bounds the same figure from above; the rate is a quotient here and two numbers there.
        let epsilon = |found: &Value| found["epsilon"].as_f64().unwrap();
        assert!((epsilon(&found) / epsilon(privacy) - 1.0).abs() < 1e-6, "{setting}: {found}");
        assert_eq!(found["delta"], privacy["delta"]);
        let stricter = json(&["account", "--plan", &plan, "--delta", "1e-7"]);
        assert!(stricter["epsilon"].as_f64() > found["epsilon"].as_f64(), "{setting}");
        let weaker = json(&["account", "--plan", &plan, "--epsilon", "5"]);
        assert!(weaker["delta"].as_f64() < found["delta"].as_f64(), "{setting}: {weaker}");
        let chosen = &made["candidates"][made["chosen"].as_u64().unwrap() as usize];
        let loss = json(&["loss", "--plan", &plan]);
        assert_eq!(loss["sensitivity"]["value"], chosen["sensitivity"], "{setting}");
        assert_eq!(loss["steps"], made["plan"]["steps"]);
        let shown = json(&["show", "--plan", &plan, "--out", &at(&format!("{setting}.svg"))]);
        assert_eq!(shown["strategy_column"].as_array().unwrap().len(), 36);
        std::fs::write(&key, (7u8..39).collect::<Vec<u8>>()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        }
        json(&["noise", "--plan", &plan, "--dim", "90", "--key-file", &key, "--out", &rows, "--force"]);
        let bytes = std::fs::read(&rows).unwrap();
        let numbers = bytes[bytes.len() - 36 * 90 * 4..].chunks_exact(4);
        let numbers: Vec<f64> =
            numbers.map(|x| f64::from(f32::from_le_bytes(x.try_into().unwrap()))).collect();
        let spacing = made["plan"]["arithmetic"]["spacing"].as_f64().unwrap();
        assert!(numbers.iter().all(|x| x % spacing == 0.0) && numbers.iter().any(|&x| x != 0.0), "{setting}");
        let refused = antinoise().args(["loss", "--plan", &plan, "--steps", "3"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
    }
}

/// Independent noise is listed with and without amplification by sampling, and the choice is explained by
/// both.
#[test]
fn a_plan_tells_independent_noise_with_sampling_and_without() {
    for (setting, amplified) in
        [("cyclic", [false, true]), ("single", [false, true]), ("poisson", [true, false])]
    {
        let length = if setting == "single" { ["--epochs", "1"] } else { ["--epochs", "3"] };
        let made = "plan --examples 600 --batch-size 50 --epsilon 4 --delta 1e-5 --setting";
        let arguments: Vec<&str> = made.split(' ').chain([setting]).chain(length).collect();
        let found = json(&arguments);
        let candidates = found["candidates"].as_array().unwrap();
        let independent: Vec<&Value> = candidates.iter().filter(|c| c["strategy"] == "identity").collect();
        let told: Vec<bool> = independent.iter().map(|c| c["amplified"].as_bool().unwrap()).collect();
        assert_eq!(told, amplified, "{setting}");
        let of = |amplified: bool| independent.iter().find(|c| c["amplified"] == amplified).unwrap();
        assert_eq!(
            (&of(true)["accountant"], &of(false)["accountant"]),
            (&"sampled-gaussian".into(), &"gdp".into())
        );
        assert!(of(true)["rms_loss"].as_f64() < of(false)["rms_loss"].as_f64(), "{setting}");
        assert!(found["explanation"].as_str().unwrap().contains("DP-SGD"), "{setting}");
        assert!(found["chosen"].as_u64().unwrap() + 1 < candidates.len() as u64, "the last is a reference");
    }
    let federated = "plan --examples 600 --batch-size 50 --steps 24 --epsilon 4 --delta 1e-5 --setting federated \
                     --min-sep 6";
    let found = json(&federated.split(' ').collect::<Vec<_>>());
    assert!(found["candidates"].as_array().unwrap().iter().all(|c| c["amplified"] == false));
}

/// The memory that a plan tells is that of the stream that makes its noise.
#[cfg(unix)]
#[test]
fn a_plan_tells_the_memory_of_its_stream() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (key, out, file) = (path("key"), path("noise.npy"), path("plan.toml"));
    std::fs::write(&key, [7u8; 31].iter().chain(&[9]).copied().collect::<Vec<u8>>()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    for strategy in
        ["smooth-tree", "honaker-online", "weighted-tree", "tree", "banded-toeplitz:5", "toeplitz"]
    {
        let plan = "plan --examples 20000 --batch-size 100 --steps 200 --epsilon 2 --delta 1e-6 --setting single --dim 1000";
        let mut arguments: Vec<&str> = plan.split(' ').collect();
        arguments.extend(["--strategy", strategy, "--out", &file, "--force"]);
        let plan = json(&arguments);
        let chosen = &plan["candidates"][plan["chosen"].as_u64().unwrap() as usize];
        let noise = "noise --dim 1000 --count 1 --force --plan";
        let arguments: Vec<&str> =
            noise.split(' ').chain([file.as_str(), "--key-file", &key, "--out", &out]).collect();
        let noise = json(&arguments);
        assert_eq!(chosen["state_bytes"], noise["state_bytes"], "{strategy}: {noise}");
    }
}

/// A user with several examples has a larger epsilon than one example, and the plan says which.
#[test]
fn plan_prints_the_epsilon_of_users_with_several_examples() {
    let plan = "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 0.5 --delta 1e-5 --quick --setting";
    let words = |setting: &str, more: &str| -> Vec<String> {
        format!("{plan} {setting} {more}").split_whitespace().map(str::to_owned).collect()
    };
    for setting in ["cyclic", "poisson"] {
        let words = words(setting, "--examples-per-user 5");
        let found = json(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let epsilon = found["epsilon_of_user"].as_f64().unwrap();
        assert!(epsilon > 5.0 * 0.49, "{setting}: {epsilon}");
        let by = found["epsilon_by_examples"].as_array().unwrap();
        let examples: Vec<u64> = by.iter().map(|by| by["examples"].as_u64().unwrap()).collect();
        assert_eq!(examples, [1, 2, 5]);
        assert_eq!(by[0]["epsilon"], found["plan"]["privacy"]["epsilon"]);
        assert_eq!(by[2]["epsilon"], found["epsilon_of_user"]);
    }
    let none = json(&words("cyclic", "").iter().map(String::as_str).collect::<Vec<_>>());
    assert!(none.get("epsilon_of_user").is_none());
    let text = antinoise().args(words("cyclic", "--examples-per-user 2")).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("all of whose examples change together") && text.contains("with 2 examples"),
        "{text}"
    );
    for (setting, most) in [("cyclic", "0"), ("cyclic", "1001"), ("federated --min-sep 4", "2")] {
        let output =
            antinoise().args(words(setting, &format!("--examples-per-user {most}"))).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("--examples-per-user is"), "{said}");
    }
}

/// Without --delta it follows N; the short form has the claim alone, and no markup loses its figures.
#[test]
fn plans_and_statements_are_short_unless_they_are_asked_to_be_long() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    let path = file.to_str().unwrap();
    let said = |arguments: &[&str]| {
        let output = antinoise().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let plan = "plan --examples 20000 --batch-size 1000 --epochs 3 --epsilon 2 --setting cyclic --quick";
    let plan = |more: &[&str]| said(&plan.split(' ').chain(more.iter().copied()).collect::<Vec<_>>());
    let (short, long) = (plan(&["--out", path]), plan(&["--long"]));
    assert!(short.contains("(2, 1e-6)-differential privacy") && short.contains("<- chosen"), "{short}");
    assert!(!short.contains("Assumptions") && long.contains("Assumptions") && long.len() > 2 * short.len());
    let statement = json(&["statement", path]);
    assert_keys(&statement, "unit adjacency schema sampler mechanism accountant epsilon epsilon_lower delta");
    assert!(statement["epsilon"].as_f64().unwrap() <= 2.0);
    let by = said(&["statement", path, "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&by).unwrap(), statement);
    for (format, row) in
        [("text", "Privacy unit"), ("markdown", "| Privacy unit"), ("latex", r"\item[Privacy")]
    {
        let short = said(&["statement", path, "--format", format]);
        let long = said(&["statement", path, "--format", format, "--long"]);
        assert!(short.contains("(2, 1e-6)") && !short.contains(row), "{short}");
        assert!(long.contains("(2, 1e-6)") && long.contains(row), "{long}");
    }
}

/// A matrix from a file in each form has one plan, which later commands read as any other.
#[test]
fn a_plan_takes_a_matrix_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // The same matrix times a reflection from the left, so that it is not triangular.
    let c = |i: usize, j: usize| if i >= j { 1.0 / (1.0 + (i - j) as f64) } else { 0.0 };
    let reflected = |i: usize, j: usize| c(i, j) - (0..12).map(|k| c(k, j)).sum::<f64>() / 6.0;
    let bytes = (0..144).flat_map(|at| reflected(at / 12, at % 12).to_le_bytes());
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (12, 12), }\n";
    let length = (header.len() as u16).to_le_bytes();
    let npy: Vec<u8> =
        b"\x93NUMPY\x01\x00".iter().copied().chain(length).chain(header.bytes()).chain(bytes).collect();
    std::fs::write(at("c.npy"), &npy).unwrap();
    let mut archive = zip::ZipWriter::new(std::fs::File::create(at("c.npz")).unwrap());
    archive.start_file("C.npy", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut archive, &npy).unwrap();
    archive.finish().unwrap();
    let row = |i: usize| format!("{:?}", (0..12).map(|j| reflected(i, j)).collect::<Vec<_>>());
    std::fs::write(at("c.toml"), format!("C = [{}]", (0..12).map(row).collect::<Vec<_>>().join(", ")))
        .unwrap();
    let plan = |file: &str, out: &str| {
        let options =
            "plan --examples 600 --batch-size 100 --epochs 2 --epsilon 2 --delta 1e-6 --setting cyclic";
        let (strategy, out) = (format!("file:{}", at(file)), at(out));
        json(&options.split(' ').chain(["--strategy", &strategy, "--out", &out]).collect::<Vec<_>>())
    };
    let found = ["npy", "npz", "toml"].map(|form| plan(&format!("c.{form}"), &format!("{form}-plan")));
    let chosen = &found[0]["candidates"][1];
    assert_eq!(
        (&found[0]["chosen"], &chosen["strategy"], &chosen["is_given"]),
        (&1.into(), &"dense".into(), &true.into())
    );
    assert!(found.iter().all(|other| other["plan"] == found[0]["plan"]), "{found:?}");
    let verified = json(&["verify", &at("npz-plan")]);
    assert_eq!(verified["holds"], true);
    let own = json(&[
        "loss",
        "--strategy",
        &format!("file:{}", at("c.npy")),
        "--steps",
        "12",
        "--participation",
        "cyclic:6,2",
    ]);
    assert_eq!(own["sensitivity"]["value"], found[0]["plan"]["sensitivity"]["value"]);
    std::fs::write(at("cut.npy"), &npy[..500]).unwrap();
    let options = "plan --examples 600 --batch-size 100 --epochs 2 --epsilon 2 --setting cyclic --strategy";
    let output = antinoise()
        .args(options.split(' ').chain([format!("file:{}", at("cut.npy")).as_str()]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cut.npy is unusable: C is fewer than 1152 bytes")
    );
}
