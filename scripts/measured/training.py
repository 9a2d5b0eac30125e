"""Trainings, and the part of docs/README.md on what they gain."""

import json
import math
import tempfile
from pathlib import Path

import prose

from .program import ROOT, STORE, antinoise


def training(arguments, figure=None):
    """The report of one training for each line of `arguments`; the accuracy curves of the first are drawn in
    `figure`.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, line in enumerate(arguments):
            report = antinoise(f"train {line} --out {folder}/run-{i}")
            for row in report["runs"]:
                # The curves are shown in the figure.
                del row["accuracy_by_step"]
            found.append({"arguments": line, **report})
        if figure:
            page = (Path(folder) / "run-0" / "report.html").read_text()
            picture = page[page.index("<svg") : page.index("</svg>") + 6]
            head, rest = picture.split(">", 1)
            background = '\n<rect width="100%" height="100%" fill="#FFFFFF"/>'
            figure.write_text(head + ">" + background + rest + "\n")
    return found


def show_training(found):
    lines = []
    for report in found:
        lines += [
            f"`antinoise train {report['arguments']}`",
            "",
            (
                "| mechanism | test accuracy, standard error | against the first, paired | best learning rate"
                " | mean at each rate | RMS loss | seconds a run |"
            ),
            "|---|---|---|---|---|---|---|",
        ]
        first = report["runs"][0]
        for run in report["runs"]:
            error = f" +- {100 * run['standard_error']:.2f}" if run["standard_error"] is not None else ""
            rates = ", ".join(
                f"{rate:g}: {100 * accuracy:.1f}%" for rate, accuracy in run["by_learning_rate"]
            )
            apart = [100 * (x - y) for x, y in zip(run["test_accuracies"], first["test_accuracies"])]
            mean = sum(apart) / len(apart)
            spread = math.sqrt(sum((x - mean) ** 2 for x in apart) / max(1, len(apart) - 1) / len(apart))
            paired = "" if run is first else f"{mean:+.1f} +- {spread:.1f} points"
            loss = f"{run['rms_loss']:.4f}" if run["epsilon"] is not None else "-"
            lines.append(
                f"| {run['mechanism']} | {100 * run['test_accuracy']:.2f}%{error} | {paired} | "
                f"{run['learning_rate']:g} | {rates} | {loss} | {run['seconds']:.1f} |"
            )
        lines += [
            "",
            (
                f"At epsilon {math.ceil(1e4 * first['epsilon']) / 1e4:g}, delta {first['delta']:g},"
                f" {first['steps']} steps, {len(first['test_accuracies'])} repeats. The learning rate is"
                " picked by test accuracy for all alike, which epsilon does not pay for."
            ),
            "",
        ]
    return "\n".join(lines).rstrip()


def digits():
    lines = [
        "--repeats 10 --setting cyclic",
        "--repeats 10",
        "--repeats 10 --setting cyclic --adjacency replace-one",
    ]
    return training(lines, ROOT / "docs" / "digits.svg")


def fashion_mnist():
    return training(["--data fashion-mnist --delta 1e-5"])


def worth():
    """The part of docs/README.md on training, from the last measurements."""
    cyclic, best, replaced = json.loads((STORE / "digits.json").read_text())
    plans = json.loads((STORE / "sampled.json").read_text())

    def cell(report, baseline):
        runs = [run for run in report["runs"] if run["baseline"] == baseline]
        if not runs:
            return "-"
        return f"{100 * runs[0]['test_accuracy']:.1f}% +- {100 * runs[0]['standard_error']:.1f}"

    lines = [
        (
            "| 1,440 digits, epsilon 4, 20 epochs, 10 repeats | independent noise | correlated noise | DP-SGD"
            " with sampling | no privacy |"
        ),
        "|---|---|---|---|---|",
    ]
    for report, where in [
        (cyclic, "cyclic batches"),
        (replaced, "cyclic batches, replace-one adjacency"),
        (best, "sampled batches where they help"),
    ]:
        cells = [
            cell(report, baseline) for baseline in ("independent", None, "independent-amplified", "none")
        ]
        lines.append(f"| {where} | {' | '.join(cells)} |")
    images = json.loads((STORE / "fashion-mnist.json").read_text())[0]["runs"]
    sampled_alone, both, plain = (
        {run["baseline"]: run for run in images}[name] for name in ("independent-amplified", None, "none")
    )
    apart = [100 * (x - y) for x, y in zip(both["test_accuracies"], sampled_alone["test_accuracies"])]
    points = sum(apart) / len(apart)
    error = math.sqrt(sum((x - points) ** 2 for x in apart) / (len(apart) - 1) / len(apart))
    last = plans[-1]
    few, many = (row["chosen"]["rms_loss"] / row["independent"]["rms_loss"] for row in (plans[0], last))
    lines += [
        "",
        (
            "Some batches cannot be drawn at random: federated users, streams, one pass over the data. There"
            " correlated noise in fixed batches has less RMS loss than DP-SGD at epsilon 4 and above; at"
            " epsilon 1 it has more, unless the data are large ([table](results/plans.md)). Where batches"
            " can be sampled, both work together. At 50 million examples, batches of 5,000 and epsilon 1,"
            " the RMS loss (the noise"
            f" accumulated in the model) is {many:.2f} times that of DP-SGD. On the few steps of the digits"
            f" it is {few:.2f} times, and the accuracies are hardly different. On the 60,000 images of"
            " Fashion-MNIST, in 480 steps at epsilon 4, both together reach"
            f" {100 * both['test_accuracy']:.1f}%, {points:.1f} +- {error:.1f} points more than DP-SGD"
            f" ({100 * plain['test_accuracy']:.1f}% without privacy). Correlation gains least when steps are"
            " few and amplification is strong."
        ),
        "",
        (
            "Delta is 1e-5, and 1e-9 for 50 million examples. After +- is the standard error over the repeats."
            " Each row is a comparison of its own, with other random draws: compare accuracies within a row."
            " The learning rates were chosen by test accuracy; epsilon covers one training, not that choice."
        ),
    ]
    return "\n".join(lines)


def write_home():
    path = ROOT / "docs" / "README.md"
    start, end = "<!-- worth: written by scripts/results.py -->", "<!-- end of worth -->"
    text = path.read_text()
    before, rest = text.split(start, 1)
    path.write_text(prose.wrap(path, f"{before}{start}\n\n{worth()}\n\n{end}{rest.split(end, 1)[1]}"))


SECTIONS = {
    "digits": (
        "Training on digits",
        (
            "A network with one hidden layer of 128 on 1,440 images: clip norm 1, momentum 0.9, 20 epochs of"
            ' batches of 96. dp-sgd is independent noise whose privacy sampling amplifies; "no noise" has'
            " neither clipping nor noise."
        ),
        digits,
        show_training,
    ),
    "fashion-mnist": (
        "Training on Fashion-MNIST",
        (
            "A CNN of 26,010 parameters on 60,000 images, clip norm 1, momentum 0.9, 4 epochs of batches of"
            " 500. By epsilon, over 10 epochs: [results/fashion-mnist.md](results/fashion-mnist.md)."
        ),
        fashion_mnist,
        show_training,
    ),
}
