//! Plans as files: claims that are met and tight, and files that claim too much.

use antinoise_accounting::{Composition, PoissonSampledGaussian};
use antinoise_input::BadInput;
use antinoise_mechanism::{Adjacency, Participation, Workload};
use antinoise_plan::{
    Accountant, Arithmetic, ArithmeticKind, Length, Plan, PrivacyUnit, Request, Sampler, Setting,
    VerifiedPlan, choose, compose,
};

fn plan() -> VerifiedPlan {
    let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
    (request.epsilon, request.delta) = (4.0, 1e-5);
    choose(&request).unwrap().plan
}

#[test]
fn the_claim_meets_the_request_and_is_tight() {
    let plan = plan();
    assert!(plan.privacy.epsilon <= 4.0 && plan.privacy.epsilon > 4.0 * (1.0 - 1e-6));
    assert!(plan.privacy.epsilon_lower <= plan.privacy.epsilon);
}

/// Each alteration makes the claim untrue; none may be read.
#[test]
fn a_plan_that_claims_too_much_is_refused() {
    type Alteration = fn(&mut Plan);
    let alterations: [(&str, Alteration); 14] = [
        ("less noise", |p| p.noise_multiplier *= 0.9),
        ("smaller sensitivity", |p| p.sensitivity.value *= 0.99),
        ("smaller epsilon", |p| p.privacy.epsilon *= 0.99),
        ("sampler that repeats sooner", |p| p.sampler = Sampler::Cyclic { groups: 6 }),
        ("sampler without a separation", |p| p.sampler = Sampler::Poisson { groups: 1 }),
        ("amplification without sampling", |p| p.privacy.accountant = Accountant::SampledGaussian),
        ("larger lower end", |p| p.privacy.epsilon_lower *= 1.01),
        ("no number for epsilon", |p| p.privacy.epsilon = f64::NAN),
        ("no number for its lower end", |p| p.privacy.epsilon_lower = f64::NAN),
        ("no number for the sensitivity", |p| p.sensitivity.value = f64::NAN),
        ("another proof", |p| p.sensitivity.source = "because".into()),
        ("patterns that leave out the first phases", |p| {
            p.participation = Participation::Patterns { patterns: vec![vec![11, 23, 35]] };
            let mechanism = &*p.strategy;
            p.sensitivity = mechanism.sensitivity(&p.participation).unwrap();
        }),
        ("fewer participations", |p| {
            p.participation = Participation::Cyclic { min_sep: 12, max_participations: 2 }
        }),
        ("more steps", |p| p.steps += 1),
    ];
    for (name, alter) in alterations {
        let mut altered = plan().into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
}

fn amplified() -> VerifiedPlan {
    let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Poisson);
    (request.epsilon, request.delta) = (2.0, 1e-5);
    request.specs = Some(vec!["banded-toeplitz:4".parse().unwrap()]);
    choose(&request).unwrap().plan
}

#[test]
fn an_amplified_claim_meets_the_request_and_is_tight() {
    let plan = amplified();
    assert_eq!(
        (plan.sampler, plan.privacy.accountant),
        (Sampler::Poisson { groups: 4 }, Accountant::SampledGaussian)
    );
    assert!(plan.privacy.epsilon <= 2.0 && plan.privacy.epsilon_lower > 2.0 * (1.0 - 2e-3));
    assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
}

/// A stream is read once: nothing else may be stated of it.
#[test]
fn a_stream_that_claims_too_much_is_refused() {
    let mut request = Request::new(605, 50, Length::Epochs(1), Setting::Stream);
    (request.epsilon, request.delta) = (2.0, 1e-5);
    let plan = choose(&request).unwrap().plan;
    assert_eq!(
        (plan.sampler, plan.steps, plan.expected_batch_size(), &plan.participation, plan.privacy.accountant),
        (Sampler::Stream, 12, 50.0, &Participation::Single, Accountant::Gdp)
    );
    let said = format!("{:#}", plan.statement());
    assert!(said.contains("in their given order") && said.contains("no amplification is claimed"), "{said}");
    type Alteration = fn(&mut Plan);
    let alterations: [(&str, Alteration); 6] = [
        ("more steps than there are batches", |p| p.batch_size = 51),
        ("fewer examples", |p| p.examples = 599),
        ("users", |p| p.privacy.unit = PrivacyUnit::User),
        ("amplification", |p| p.privacy.accountant = Accountant::SampledGaussian),
        ("batches that come again", |p| p.sampler = Sampler::Cyclic { groups: 11 }),
        ("less noise", |p| p.noise_multiplier *= 0.99),
    ];
    for (name, alter) in alterations {
        let mut altered = plan.clone().into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
    let error = choose(&Request { length: Length::Steps(13), ..request }).unwrap_err();
    assert!(error.to_string().starts_with("steps is 13 but must be from 1 to one epoch's steps"), "{error}");
}

/// Runs of a banded strategy have no more bands than one of them.
#[test]
fn a_banded_strategy_that_restarts_is_amplified_with_as_many_groups_as_bands() {
    for (spec, bands) in [("banded-toeplitz:4+x3", 4), ("banded:5+x3", 5), ("identity", 1)] {
        let mut request = Request::new(600, 50, Length::Steps(36), Setting::Poisson);
        request.specs = Some(vec![spec.parse().unwrap()]);
        let plan = choose(&request).unwrap().plan;
        assert_eq!(plan.sampler, Sampler::Poisson { groups: bands }, "{spec}");
        assert!(plan.schedule().is_amplified(), "{spec}");
        let strategy = &plan.strategy;
        let (encoder, recursion) = (strategy.encoder().unwrap(), strategy.recursion().unwrap());
        assert_eq!((encoder.bandwidth(), recursion.bandwidth(36)), (bands, bands), "{spec}");
        for t in 0..36 {
            let beyond =
                encoder.column(t).into_iter().skip(t + bands).fold(0.0f64, |most, x| most.max(x.abs()));
            assert_eq!(beyond, 0.0, "{spec}: column {t}");
        }
        let mut fewer = plan.into_plan();
        fewer.sampler = Sampler::Poisson { groups: bands - 1 };
        assert!(fewer.verify().unwrap_err().is_bad_input(), "{spec}");
    }
}

/// Each alteration breaks a hypothesis of the amplification or the figure itself.
#[test]
fn an_amplified_plan_that_claims_too_much_is_refused() {
    type Alteration = fn(&mut Plan);
    let alterations: [(&str, Alteration); 8] = [
        ("less noise", |p| p.noise_multiplier *= 0.99),
        ("fewer groups than bands", |p| p.sampler = Sampler::Poisson { groups: 3 }),
        ("groups smaller than a batch", |p| p.sampler = Sampler::Poisson { groups: 13 }),
        ("more steps", |p| p.steps += 1),
        ("larger batches", |p| p.batch_size += 5),
        ("fewer examples", |p| p.examples -= 50),
        ("smaller sensitivity", |p| p.sensitivity.value *= 0.99),
        ("another adjacency", |p| p.privacy.adjacency = Adjacency::ReplaceOne),
    ];
    for (name, alter) in alterations {
        let mut altered = amplified().into_plan();
        alter(&mut altered);
        let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
        assert!(error.is_bad_input(), "{name}: {error}");
    }
}

/// The noise of a replaced example follows from its own pair, and is below that of two zero-out changes.
#[test]
fn replace_one_under_sampling_is_accounted_for_by_its_pair() {
    for epsilon in [0.5, 2.0, 8.0] {
        let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Poisson);
        (request.epsilon, request.delta, request.adjacency) = (epsilon, 1e-5, Adjacency::ReplaceOne);
        request.specs = Some(vec!["banded-toeplitz:4".parse().unwrap()]);
        let plan = choose(&request).unwrap().plan;
        let privacy = &plan.privacy;
        assert_eq!(
            (privacy.accountant, privacy.adjacency),
            (Accountant::SampledGaussian, Adjacency::ReplaceOne)
        );
        assert!(privacy.epsilon <= epsilon && privacy.epsilon_lower > 0.99 * epsilon, "{privacy:?}");
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
        assert!(plan.statement().accountant.contains("no replacement is worse"));
        // The noise over the norm of one contribution is twice that over the sensitivity.
        let run = PoissonSampledGaussian::new(2.0 * plan.noise_multiplier, 4.0 * 50.0 / 600.0, 9).unwrap();
        let own = Composition::new([run.replaced()]).unwrap().delta(privacy.epsilon).unwrap();
        assert!(own.upper <= 1e-5 * (1.0 + 1e-6) && own.upper > 0.97e-5, "epsilon {epsilon}: {own:?}");
        let two_changes = Composition::new([run]).unwrap().group_epsilon(1e-5, 2).unwrap();
        assert!(two_changes.lower > 1.02 * privacy.epsilon, "epsilon {epsilon}: {two_changes:?}");
        let mut zero_out = plan.clone().into_plan();
        zero_out.noise_multiplier *= 2.0;
        zero_out.sensitivity.value *= 0.5;
        zero_out.privacy.adjacency = Adjacency::ZeroOut;
        zero_out.privacy.epsilon_lower = 0.0;
        let zero_out = zero_out.verify().unwrap();
        assert!((zero_out.noise_std() / plan.noise_std() - 1.0).abs() < 1e-12);
        // Two models cost more than one, and no more than two on their own.
        let two = compose(&[(&plan, 2)], 1e-5).unwrap().upper;
        assert!(two > privacy.epsilon && two < 2.2 * privacy.epsilon, "{two}");
        let mut altered = plan.clone().into_plan();
        altered.noise_multiplier *= 0.99;
        assert!(altered.verify().unwrap_err().is_bad_input());
    }
}

#[test]
fn a_file_that_is_no_plan_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    assert!(Plan::load(&path).unwrap_err().to_string().contains("plan.toml"));
    let whole = plan().to_toml();
    for text in [
        "",
        "version = 2",
        &whole[..whole.len() / 2],
        &format!("extra = 1\n{whole}"),
        &format!("{whole}\nextra = 1\n"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Plan::load(&path).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains("plan.toml"), "{error}");
    }
    plan().save(&path).unwrap();
    assert_eq!(Plan::load(&path).unwrap(), plan());
}

/// The sampler shuffles and draws examples; the sensitivity of a user with several of them is larger.
#[test]
fn a_plan_of_users_is_refused_where_the_sampler_draws_examples() {
    for plan in [plan(), amplified()] {
        let text = plan.to_toml().replace("unit = \"example\"", "unit = \"user\"");
        let error = Plan::from_toml(&text).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().starts_with("unit of the plan is user"), "{error}");
    }
    let setting = Setting::Federated { min_sep: 12, max_participations: None };
    let mut request = Request::new(600, 50, Length::Epochs(3), setting);
    request.unit = PrivacyUnit::User;
    assert!(choose(&request).is_ok());
}

/// A sampler that draws users keeps a schema of users if their examples are clipped together, which the plan
/// must say: of how many examples of a user.
#[test]
fn a_plan_whose_sampler_draws_users_says_how_many_of_their_examples_it_clips_together() {
    for setting in [Setting::Cyclic, Setting::Shuffled, Setting::Poisson, Setting::Single, Setting::Stream] {
        let specs = Some(vec!["identity".parse().unwrap()]);
        let of_examples = Request { specs, ..Request::new(600, 50, Length::Steps(12), setting) };
        let (unit, max_examples_per_user) = (PrivacyUnit::User, Some(30));
        let of_users = Request { unit, max_examples_per_user, ..of_examples.clone() };
        let plan = choose(&of_users).unwrap().plan;
        assert_eq!((plan.privacy.unit, plan.max_examples_per_user), (PrivacyUnit::User, Some(30)));
        let of_examples = choose(&of_examples).unwrap().plan;
        let figures = |plan: &Plan| (plan.noise_multiplier, plan.privacy.epsilon, plan.sampler);
        assert_eq!(figures(&plan), figures(&of_examples), "{setting:?}");
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
        let said = format!("{:#}", plan.statement());
        assert!(said.contains("of one user") && said.contains("600 users"), "{said}");
        assert!(
            said.contains("mean over at most 30 of the user's examples") && !said.contains("00 examples")
        );
        assert!(plan.check_draws_no_users().unwrap_err().is_bad_input() && plan.epsilon_of_user(2).is_err());
        let line = "max_examples_per_user = 30\n";
        for (text, parameter) in [
            (plan.to_toml().replace(line, ""), "unit of the plan is user"),
            (plan.to_toml().replace("unit = \"user\"", "unit = \"example\""), "max_examples_per_user is 30"),
            (plan.to_toml().replace(line, "max_examples_per_user = 0\n"), "max_examples_per_user is 0"),
        ] {
            let error = Plan::from_toml(&text).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().starts_with(parameter), "{error}");
        }
        let none = Request { max_examples_per_user: None, ..of_users.clone() };
        assert!(choose(&none).unwrap_err().to_string().starts_with("unit of the plan is user"));
    }
    let setting = Setting::Federated { min_sep: 12, max_participations: None };
    let mut request = Request::new(600, 50, Length::Epochs(3), setting);
    (request.unit, request.max_examples_per_user) = (PrivacyUnit::User, Some(3));
    assert!(choose(&request).unwrap_err().to_string().starts_with("max_examples_per_user is 3"));
}

/// With these no number of noise is a normal one in single precision.
#[test]
fn clip_norms_that_single_precision_cannot_hold_are_refused() {
    for clip_norm in [1e-300, 1e-46, 1e39, 1e308] {
        let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
        for arithmetic in [ArithmeticKind::Grid, ArithmeticKind::PlainFloatingPoint] {
            (request.clip_norm, request.arithmetic) = (clip_norm, arithmetic);
            let error = choose(&request).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().starts_with("clip_norm is"), "{error}");
            let mut altered = plan().into_plan();
            altered.clip_norm = clip_norm;
            altered.arithmetic = Arithmetic::PlainFloatingPoint;
            let error = Plan::from_toml(&altered.to_toml()).unwrap_err().to_string();
            assert!(error.starts_with("clip_norm is") && error.contains("single precision"), "{error}");
        }
    }
}

/// The deviation itself may be out of range while the clip norm is not, and so may a mean of many examples.
#[test]
fn noise_that_single_precision_cannot_hold_is_refused() {
    let noise = |alter: fn(&mut Plan)| {
        let mut altered = plan().into_plan();
        (altered.arithmetic, altered.rounding_factor) = (Arithmetic::PlainFloatingPoint, 1.001);
        alter(&mut altered);
        Plan::from_toml(&altered.to_toml()).unwrap_err().to_string()
    };
    assert!(noise(|p| p.noise_multiplier = 1e39).starts_with("noise_std is"));
    assert!(noise(|p| p.noise_multiplier = 1e-46).starts_with("noise_std is"));
    let mean = noise(|p| {
        (p.clip_norm, p.examples, p.batch_size) = (2f64.powi(-99), 1 << 52, 1 << 40);
        p.participation = Participation::FullBatch;
        p.sensitivity = p.strategy.sensitivity(&p.participation).unwrap();
    });
    assert!(mean.starts_with("least noise of a step's mean is"), "{mean}");
    // Rows of C^-1 are longer than 1, so that a step's sum has more noise than C Z.
    let sum = noise(|p| p.noise_multiplier *= 0.999 * 2f64.powi(100) / p.noise_std());
    assert!(sum.starts_with("least noise of a step's sum is"), "{sum}");
}

#[test]
fn a_plan_states_its_arithmetic_and_what_that_assumes() {
    let on_grid = plan();
    let Arithmetic::Grid { spacing, dim } = on_grid.arithmetic else { panic!("{:?}", on_grid.arithmetic) };
    assert_eq!((spacing, dim), (2f64.powi(-26), 1 << 30));
    let widened = 1.0 + 2f64.powi(-20) + 2f64.powi(-11);
    assert!((widened..widened * (1.0 + 1e-15)).contains(&on_grid.widened_clip_norm()));
    assert!(
        on_grid.noise_std()
            > on_grid.noise_multiplier * on_grid.sensitivity.value * on_grid.widened_clip_norm()
    );
    assert!(on_grid.check_dim(1 << 30).is_ok() && on_grid.check_dim((1 << 30) + 1).is_err());
    let text = on_grid.statement().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("multiples of 2^-26") && !text.contains("last bits"), "{text}");

    let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
    request.arithmetic = ArithmeticKind::PlainFloatingPoint;
    let plain = choose(&request).unwrap().plan;
    assert_eq!(plain.arithmetic, Arithmetic::PlainFloatingPoint);
    assert!(plain.to_toml().contains("kind = \"plain-floating-point\""));
    let text = plain.statement().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("nobody uses the last bits of the noisy sums"), "{text}");
}

/// The grid is the coarsest that 2^-11 of the clip norm allows, and so coarse that the noise crate takes it.
#[test]
fn the_grid_fits_the_model_and_the_noise() {
    use antinoise_noise::{Grid, Key, NoiseStream};
    for (dim, clip_norm, epsilon) in [(1, 1.0, 4.0), (1000, 0.3, 4.0), (1 << 20, 7.0, 0.5), (0, 1.0, 0.003)] {
        let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
        (request.dim, request.clip_norm, request.epsilon) = (dim, clip_norm, epsilon);
        request.delta = 1e-9;
        for spec in
            ["identity", "blt:2", "banded-toeplitz:12", "toeplitz", "blt:2+x3", "toeplitz+column-normalized"]
        {
            request.specs = Some(vec![spec.parse().unwrap()]);
            let plan = choose(&request).unwrap().plan;
            let Arithmetic::Grid { spacing, dim: most } = plan.arithmetic else {
                panic!("{:?}", plan.arithmetic)
            };
            let widening = spacing * (most as f64).sqrt() / clip_norm;
            assert!(widening <= 2f64.powi(-7) && widening > 2f64.powi(-12), "{widening}");
            let recursion = plan.strategy.recursion().unwrap();
            let stream = NoiseStream::builder(recursion, plan.steps, 8, plan.noise_std());
            stream.grid(Grid::new(spacing).unwrap()).build(Key::from_seed_insecure(1)).unwrap();
        }
    }
}

#[test]
fn plain_is_only_where_it_is_asked_for_and_a_grid_too_fine_is_refused() {
    let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
    request.specs = Some(vec!["tree".parse().unwrap()]);
    assert_eq!(choose(&request).unwrap().plan.arithmetic.kind(), ArithmeticKind::Grid);
    request.arithmetic = ArithmeticKind::PlainFloatingPoint;
    let plan = choose(&request).unwrap().plan;
    assert_eq!(plan.arithmetic, Arithmetic::PlainFloatingPoint);
    let mut finer = self::plan().into_plan();
    finer.arithmetic = Arithmetic::Grid { spacing: 2f64.powi(-40), dim: 1 };
    let error = Plan::from_toml(&finer.to_toml()).unwrap_err().to_string();
    assert!(error.starts_with("arithmetic is a grid of spacing"), "{error}");
}

#[test]
fn version_1_is_refused_with_the_way_to_make_it_anew() {
    let text = plan().to_toml().replace("version = 2", "version = 1");
    let without: String = text.split("[arithmetic]").next().unwrap().into();
    for text in [&text, &without] {
        let error = Plan::from_toml(text).unwrap_err().to_string();
        assert!(
            error.starts_with("version is 1 but must be 2") && error.contains("antinoise plan"),
            "{error}"
        );
    }
}

#[test]
fn several_models_cost_what_their_composition_costs() {
    let (gdp, sampled) = (plan(), amplified());
    let delta = 1e-5;
    // mu sqrt(9), against the curve itself.
    let nine =
        antinoise_accounting::Gdp::new(3.0 / gdp.noise_multiplier).unwrap().epsilon_upper(delta).unwrap();
    let found = compose(&[(&gdp, 9)], delta).unwrap();
    assert!(found.upper >= nine * (1.0 - 1e-12) && found.upper < nine * (1.0 + 1e-9));
    let parts = compose(&[(&gdp, 4), (&gdp, 5)], delta).unwrap().upper;
    assert!((parts / found.upper - 1.0).abs() < 1e-12);
    assert!((compose(&[(&gdp, 1)], delta).unwrap().upper / gdp.privacy.epsilon - 1.0).abs() < 1e-9);
    let once = compose(&[(&sampled, 1)], delta).unwrap();
    assert!((once.upper / sampled.privacy.epsilon - 1.0).abs() < 1e-9);
    let both = compose(&[(&sampled, 2), (&gdp, 1)], delta).unwrap();
    assert!(both.upper > once.upper && both.upper > gdp.privacy.epsilon);
    assert!(both.upper < 2.0 * once.upper + gdp.privacy.epsilon);
    let statement = gdp.statement_of_models(9).unwrap();
    assert_eq!(statement.epsilon, found.upper);
    assert!(
        statement
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("9 models from the same data")
    );
    assert_eq!(gdp.statement_of_models(1).unwrap(), gdp.statement());
    assert!(gdp.statement_of_models(0).is_err() && compose(&[], delta).is_err());
}

#[test]
fn the_statement_holds_delta_against_the_number_of_examples() {
    let small = plan().statement().to_string();
    assert!(small.contains("delta x N = 0.0060") && !small.contains("WARNING"), "{small}");
    let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
    request.delta = 0.01;
    let large = choose(&request).unwrap().plan.statement().to_string();
    assert!(large.contains("WARNING: delta x N = 6.0."), "{large}");
}

/// Statements name add-or-remove exactly where no other example's steps change with an example's presence.
#[test]
fn statements_name_add_or_remove_where_examples_are_drawn_independently() {
    let names_it = |setting, spec: &str, adjacency| {
        let specs = Some(vec![spec.parse().unwrap()]);
        let request = Request::new(2000, 50, Length::Steps(16), setting);
        let plan = choose(&Request { specs, adjacency, ..request }).unwrap().plan;
        let named = plan.statement().to_string().contains("add-or-remove");
        assert!(!named || plan.sampler.draws_examples_independently());
        (named, plan.sampler.name())
    };
    let zero_out = Adjacency::ZeroOut;
    assert_eq!(names_it(Setting::Poisson, "identity", zero_out), (true, "poisson"));
    assert_eq!(names_it(Setting::BMinSep, "banded-toeplitz:4", zero_out), (true, "b-min-sep"));
    assert_eq!(names_it(Setting::Poisson, "banded-toeplitz:4", zero_out), (false, "poisson"));
    assert_eq!(names_it(Setting::Cyclic, "identity", zero_out), (false, "cyclic"));
    assert_eq!(names_it(Setting::Stream, "identity", zero_out), (false, "stream"));
    assert_eq!(names_it(Setting::Poisson, "identity", Adjacency::ReplaceOne), (false, "poisson"));
}

/// Dropped in silence, a field would leave its writer to believe in what it says.
#[test]
fn a_field_that_plans_have_not_is_refused_wherever_it_stands() {
    let text = plan().to_toml();
    let tables: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert!(tables.len() > 4, "{text}");
    let mut altered: Vec<String> = vec![format!("extra = 1\n{text}")];
    altered.extend(tables.iter().map(|table| text.replacen(table, &format!("{table}\nextra = 1"), 1)));
    for altered in altered {
        let error = Plan::from_toml(&altered).expect_err("an unknown field");
        assert!(error.is_bad_input() && error.to_string().contains("extra"), "{error}\n{altered}");
    }
}

#[test]
fn what_is_no_text_file_is_refused_as_bad_input() {
    let folder = std::env::temp_dir().join(format!("antinoise-claims-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("plan.toml");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let mut refused = vec![path.clone(), folder.clone()];
    #[cfg(unix)]
    refused.push("/dev/zero".into());
    for path in refused {
        let error = Plan::load(&path).expect_err("no plan");
        assert!(error.is_bad_input(), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Plans of shuffled batches state the noise that is run: no bound is looser as it is run than as it is
/// stated. A sensitivity that is called exact is neither below nor above the true one.
#[test]
fn shuffled_plans_run_with_the_noise_that_they_state() {
    for (examples, batch_size, steps, spec) in [
        (1000, 37, 100, "blt:2"),
        (1000, 37, 1005, "blt:3"),
        (2700, 187, 71, "blt:1"),
        (800, 100, 24, "blt:2+column-normalized+x3"),
        (800, 100, 24, "banded-toeplitz:4"),
        (800, 100, 24, "identity"),
    ] {
        let mut request = Request::new(examples, batch_size, Length::Steps(steps), Setting::Shuffled);
        request.specs = Some(vec![spec.parse().unwrap()]);
        let choice = choose(&request).unwrap();
        let plan = choice.plan_of(&request, choice.candidates.len() - 1).unwrap();
        assert!(plan.rounding_factor < 1.0 + 1e-3, "{spec}: {}", plan.rounding_factor);
        let mut more = (*plan).clone();
        more.sensitivity.value *= 2.0;
        let is_exact = plan.sensitivity.kind == antinoise_mechanism::sensitivity::Kind::Exact;
        assert_eq!(more.verify().is_err(), is_exact, "{spec}: {:?}", plan.sensitivity);
    }
}

/// Otherwise a training by the plan would fail after its last step, where its loss is computed.
#[test]
fn a_workload_for_another_number_of_steps_is_refused() {
    let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic)).unwrap().plan.into_plan();
    let last = Workload::last_iterate(0.9);
    let others = [
        Workload::Schedule { rates: vec![1.0, 0.5], momentum: 0.0 },
        Workload::Matrix { rows: vec![vec![1.0], vec![1.0, 1.0]] },
        Workload::Cooldown { start: 40, last: 0.5 },
        last.clone().with_schedule(vec![1.0, 0.5], 0.0),
        last.with_weights(vec![1.0, 0.5]),
    ];
    for workload in others {
        let name = workload.to_string();
        let mut altered = plan.clone();
        altered.workload = workload;
        assert!(altered.verify().is_err_and(|error| error.is_bad_input()), "{name}");
    }
}

#[test]
fn fitted_weights_are_assumed_to_come_from_public_data() {
    let equal = Workload::last_iterate(0.9);
    let count = equal.responses(40).unwrap().len();
    let weighted = equal.clone().with_weights((0..count).map(|i| i as f64).collect());
    let said = |workload: Workload| {
        let mut request = Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic);
        request.workload = workload;
        format!("{:#}", choose(&request).unwrap().plan.statement())
    };
    let assumed = "weights of the workload were measured on public data";
    let (equal, weighted) = (said(equal), said(weighted));
    assert!(!equal.contains(assumed) && equal.contains("workload last-iterate:0.9"), "{equal}");
    assert!(weighted.contains(assumed), "{weighted}");
}
