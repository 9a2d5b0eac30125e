"""Noise multipliers, and plans with sampled batches."""

from .program import antinoise, head

# Multi-epoch paper, Table 3, as printed: noise multipliers at delta 1e-6 of matrix factorization, DP-SGD
# (1000 of 342,477 users in each of 2052 rounds) and gradient descent on all users.
NOISE_MULTIPLIERS = {
    17.648: [0.341, 0.402, 15.518],
    8.841: [0.600, None, None],
    8.824: [None, 0.491, 27.493],
    2.0: [2.231, 0.757, 106.023],
}


SAMPLING = ["", f"--sampling-rate {1000 / 342477!r} --steps 2052", "--sampling-rate 1 --steps 2052"]


def noise_multipliers():
    rows = []
    for epsilon, printed in NOISE_MULTIPLIERS.items():
        for column, figure in enumerate(printed):
            if figure is not None:
                found = antinoise(f"calibrate --epsilon {epsilon} --delta 1e-6 {SAMPLING[column]}")
                rows.append({"epsilon": epsilon, "column": column, "found": found["noise_multiplier"]})
    return rows


def show_noise_multipliers(rows):
    lines = head("epsilon", "one release", "DP-SGD", "all users in each step")
    for epsilon, printed in NOISE_MULTIPLIERS.items():
        cells = []
        for column, figure in enumerate(printed):
            found = [row["found"] for row in rows if (row["epsilon"], row["column"]) == (epsilon, column)]
            cells.append(f"{found[0]:.3f} ({figure:.3f})" if found else "")
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    lines.append(
        "\nIn brackets what the paper prints. Its accountant of that time has up to 5% more noise where steps are"
        " composed. The last column is a Gaussian mechanism, whose figure is exact:"
        " sqrt(2052) times that of the first column. For the noise that they print there, epsilon is 17.545, 8.721"
        " and 1.897 (`antinoise account --delta 1e-6 --noise-multiplier 0.342568`, 15.518 / sqrt(2052), and so on):"
        " 2052 x 5e-5 = 0.103 below the epsilon that they print, as if each of the 2052 steps had been charged 5e-5 more."
    )
    return "\n".join(lines)


def sampled():
    lines = [
        "--examples 1440 --batch-size 96 --epochs 20 --epsilon 4 --delta 1e-5",
        "--examples 60000 --batch-size 500 --epochs 4 --epsilon 4 --delta 1e-5",
        "--examples 1e6 --batch-size 1000 --epochs 4 --epsilon 2 --delta 1e-8",
        "--examples 50e6 --batch-size 5000 --epochs 4 --epsilon 1 --delta 1e-9",
    ]
    found = []
    for line in lines:
        report = antinoise(f"plan {line} --setting poisson")
        found.append(
            {
                "arguments": line,
                "chosen": report["candidates"][report["chosen"]],
                "independent": report["candidates"][0],
            }
        )
    return found


def show_sampled(found):
    lines = head("`antinoise plan --setting poisson ...`", "chosen", "RMS loss", "DP-SGD's", "quotient")
    for row in found:
        chosen, independent = row["chosen"], row["independent"]
        lines.append(
            f"| `{row['arguments']}` | {chosen['name']} | {chosen['rms_loss']:.5f} |"
            f" {independent['rms_loss']:.5f} | {chosen['rms_loss'] / independent['rms_loss']:.2f} |"
        )
    return "\n".join(lines)


SECTIONS = {
    "noise-multipliers": (
        "Noise multipliers",
        "Multi-epoch paper, Table 3: 2052 rounds with 1000 of 342,477 users, delta 1e-6.",
        noise_multipliers,
        show_noise_multipliers,
    ),
    "sampled": (
        "Correlation and sampling together",
        (
            "Standard deviation of the averaged prefix sums, of the plan that "
            "is chosen where every example can be sampled, against DP-SGD."
        ),
        sampled,
        show_sampled,
    ),
}
