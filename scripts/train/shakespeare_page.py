"""The page docs/results/shakespeare.md, written from the figures that shakespeare.py stores."""

import math
import statistics
import textwrap

from workloads_page import correlation_error, rank_correlation

SCRIPT = "python3 scripts/train/shakespeare.py ../shared/data/shakespeare.txt"
NAMES = {"none": "no noise", "honaker-full": "tree (Honaker, full)", "identity": "independent noise"}
WORKLOADS = {"map": "the server's map", "design": "the last iterate", None: ""}
# The loss of a model that gives all symbols the same probability, and of one that diverged.
UNIFORM = math.log(64)
DIVERGED = UNIFORM + 0.1

HEAD = """# Shakespeare by speaker

<!-- written by scripts/train/shakespeare.py -->

DP-FedAvg of a character LSTM of {parameters:,} parameters on tiny Shakespeare: predicting the next character for
speakers who took no part. Epsilon 8, delta 1e-5, zero-out adjacency, external sampler (min-sep), 100 rounds.
Losses are in nats a character, on the text of the test speakers; means over seeds and their standard errors.

80% of the speakers train, 10% choose what is searched, 10% are reported, by the hash of their names. What is
chosen by the validation speakers and reported of the test speakers is taken to be public: no statement covers
it. Symbols are a vocabulary of 64 that is fixed beforehand. A user shuffles its sequences of 40 characters and
makes at most 4 local steps of rate 3 on 8 of them; the update is clipped to 1; the server runs SGD.

Epsilon 8 is that of one training. Each row is the best of a dozen or more trainings on the same users (rates,
seeds), which epsilon does not pay for, and keys came from seeds: an experiment on public text, not a
publication. No other epsilon was trained: each would need the searches of all rows again.
"""

MOMENTUM = """
## The multi-epoch paper's configuration

As in section 5.3 and Appendix F of Choquette-Choo et al., *Multi-Epoch Matrix Factorization Mechanisms* (2023),
on other data: local steps, updates with an entry above 100 clip norms replaced by zero (hardly any is, at
this local rate: next section), clipping, and on the server momentum 0.9 (in the paper 0.95) and a learning rate that falls
linearly to 0.05 of itself in the last quarter of the rounds. Strategies are designed for the limits of a user
(rounds, separation, cohort), and each for two workloads: the map from updates to models of that server
(momentum times cooldown, as in the paper), and the noise that its last model remembers (the default of
`antinoise train`). {seeds} seeds. No noise is a training that clips all the same.

    {command}
    python3 scripts/train/shakespeare.py --part losses

What was searched: for every row the server's rate, by factors of 2, with the first two seeds on the validation
speakers; for independent noise (DP-FedAvg) also whether the server has momentum and a cooldown, in four rows,
of which the one of smallest validation loss is its best; for the other mechanisms nothing else, and no error
accounts for the search. *Ahead* is the test loss of independent noise at its best minus that of the row,
paired by seed. The predicted RMS losses, of the server's map and of the last iterate, are those of the row's
strategy with the noise of its plan, for a clip norm of 1 and divided by the cohort. They say nothing about a
comparison of servers, and are empty where the server is another.
"""

ORDER = """
### Which predicted loss orders the models

Spearman's correlation of each predicted loss with the test loss, over the rows that have both; its error is the
standard deviation over draws of the test losses by their standard errors. *Designed* leaves out the tree and
independent noise, whose losses are far from the others'.

{table}
Both losses order the models: all correlations are positive, also among the designed mechanisms alone. Which of
the two orders them better cannot be read here: by speaker the loss of the last iterate does, by stretch that of
the server's map, and neither by more than about one error. A mechanism's two designs differ by 1.2% at most in
either loss, which does not say which has the better model.
"""

ZEROING = """
## With and without zeroing

The paper found that training diverged unless updates with an entry above 100 clip norms were replaced by zero
(Table 2, Figure 11). Here, in the same configuration by speaker, are growing rates of the local steps and of
the server, {seeds} seeds. A run diverged if its test loss is above {diverged:.2f} (that of equal probabilities for all
symbols is {uniform:.2f}) or not a number. *Clipped* is the share of updates longer than the clip norm; one that was
replaced by zero is not. *Zeroed by quarter* is the share of updates that were replaced, in each quarter of the
rounds; empty where they were not counted. Without noise updates are not clipped either (a clip norm of 1e9).

    {command}

{table}
Where updates are clipped, zeroing saved no run: those that diverge without it diverge with it, too. Where local
steps are so large that most updates are replaced, little but the noise is left, and the model is worse than
with clipped updates; at the largest local rate the server gets nothing else, and with a server's rate of 0.4
only the zeroed runs diverge. Without clipping and noise, zeroing helps at a local rate of 30, is not enough at
300, and at 3000 the model stays where it began. In both columns an update with an entry that is not finite
counts as zero.
"""

COMMAND = """
## From the command line, and in Flower

The first configuration by speaker again, {seeds} seeds or keys at the rates that were found above, with designs for
the last iterate: by `antinoise train --characters` on a table of lines, and by Flower's FedAvg in
`CorrelatedNoise` with devices that compute in NumPy. Test accuracies differ by chance: keys are others. Under one key
the command has the bits of Rust (`crates/study/tests/texts.rs`), and so has Flower if its devices answer with the
same updates (`python/tests/test_flower_optimizer.py`).

    {command} --part command
    python scripts/python/flower_shakespeare.py ../shared/data/shakespeare.txt

{table}"""

DAMPING = """
## Momentum alone, and designs with damping

The server runs SGD with momentum 0.9 at a constant rate, and no update is replaced by zero. {seeds} seeds.

    {command}

The predicted RMS loss is that of the plan for `momentum:0.9`, with its noise, for a clip norm of 1 and divided
by the cohort. It counts the noise of all rounds alike; training forgets what early noise did. So a strategy is
also designed for `momentum:0.9,DAMPING`, as if the server had that much weight decay, and the damping is the
one that the validation speakers choose, as they choose the server's rate with the first seed. The tree and
independent noise have no damping to choose.
"""

UNITS = {
    "speakers": (
        "The user is a speaker",
        "{users} users, of whom the first 4,000 characters are used; 46 in a round, at least 5 rounds apart, 20 times\n"
        "at most.",
    ),
    "stretches": (
        "The user is a stretch of 1,280 characters",
        "A speaker's text cut into stretches, each a user of its own: {users} users, 70 in a round, at least 10 rounds\n"
        "apart, 10 times at most. The statement then protects a stretch, not all that a speaker says: this is what\n"
        "the same mechanisms do with a larger population.",
    ),
    "twice": (
        "The same, where a user may come twice",
        "{users} users, 15 in a round, at least 10 rounds apart, twice at most: fewer times than the separation\n"
        "allows.",
    ),
}


def mean_and_error(values):
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def apart(losses, others):
    """The differences by seed."""
    return [loss - other for loss, other in zip(losses, others)]


def with_error(figure, digits, scale=1, sign=""):
    middle, error = figure
    return f"{scale * middle:{sign}.{digits}f} ± {scale * error:.{digits}f}"


def table(head, rows):
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def unit_section(unit, users):
    title, text = UNITS[unit]
    return f"\n### {title}\n\n{text.format(users=users)}\n\n"


def rms(row):
    return "" if row["rms_loss"] is None else f"{row['rms_loss']:.3f}"


def server_in_words(server):
    words = [
        name for name, option in (("momentum", "momentum 0.9"), ("cooldown", "cooldown")) if option in server
    ]
    return ", ".join(words) or "neither"


def losses_of(row, losses):
    """The losses of a row for the server's map and the last iterate, by the names of these workloads."""
    same = [of for of in losses if all(of[key] == row[key] for key in ("mechanism", "workload"))]
    return same[0]["losses"] if same and server_in_words(row["server"]) == "momentum, cooldown" else {}


def correlations(rows, losses):
    """The rank correlations of both losses with the test loss, as cells of a table."""
    pairs = [(losses_of(row, losses), mean_and_error(row["loss"])) for row in rows]
    pairs = [(predicted, tested) for predicted, tested in pairs if predicted]
    test_losses = [{"accuracy": -middle, "error": error} for _, (middle, error) in pairs]
    for workload in ("map", "design"):
        predicted = [of_both[workload] for of_both, _ in pairs]
        rho = rank_correlation(predicted, [-row["accuracy"] for row in test_losses])
        yield with_error((rho, correlation_error(predicted, test_losses)), 2)


def section_of_order(units, losses):
    cells = []
    for unit, found in units.items():
        designed = [row for row in found["rows"] if row["workload"]]
        for name, rows in (("all", found["rows"]), ("designed", designed)):
            cells.append([unit, name, *correlations(rows, losses[unit])])
    head = ["users", "mechanisms", "the server's map", "the last iterate"]
    return ORDER.format(table=table(head, cells))


def section_of_momentum(units, losses):
    seeds = len(units["speakers"]["rows"][0]["loss"])
    text = MOMENTUM.format(seeds=seeds, command=f"{SCRIPT} --part momentum")
    head = [
        "mechanism",
        "designed for",
        "server",
        "RMS loss of the map",
        "of the last iterate",
        "test loss",
        "ahead",
        "accuracy",
        "rate",
    ]
    for unit, found in units.items():
        independent = [row for row in found["rows"] if row["mechanism"] == "identity"]
        base = min(independent, key=lambda row: statistics.mean(row["validation_loss"]))
        rows = []
        for row in found["rows"]:
            mechanism, ahead = row["mechanism"], apart(base["loss"], row["loss"])
            predicted = losses_of(row, losses.get(unit, []))
            rows.append(
                [
                    NAMES.get(mechanism, f"`{mechanism}`") + (", its best" if row is base else ""),
                    WORKLOADS[row["workload"]],
                    server_in_words(row["server"]),
                    f"{predicted['map']:.3f}" if predicted else "",
                    f"{predicted['design']:.4f}" if predicted else "",
                    with_error(mean_and_error(row["loss"]), 4),
                    "" if row is base else with_error(mean_and_error(ahead), 4, sign="+"),
                    with_error(mean_and_error(row["accuracy"]), 2, 100) + "%",
                    f"{row['rate']:g}",
                ]
            )
        text += unit_section(unit, found["users"]) + table(head, rows) + designs_compared(found["rows"])
    return text + (section_of_order(units, losses) if losses else "")


def designs_compared(rows):
    """A sentence: each mechanism by the workload that it is designed for."""
    losses = {(row["mechanism"], row["workload"]): row["loss"] for row in rows}
    ahead = [
        f"`{mechanism}` {with_error(mean_and_error(apart(losses[mechanism, 'map'], design)), 4, sign='+')}"
        for (mechanism, workload), design in losses.items()
        if workload == "design"
    ]
    return (
        f"\nThe design for the last iterate is ahead of that for the server's map by: {', '.join(ahead)}.\n"
    )


def diverged(losses):
    return sum(loss is None or loss > DIVERGED for loss in losses)


def percent(share):
    return f"{100 * share:.0f}%"


def arm_of_zeroing(losses):
    """The mean loss, and the number of diverged runs if there are some."""
    finite = [loss for loss in losses if loss is not None]
    middle = with_error(mean_and_error(finite), 3) if len(finite) == len(losses) else "not a number"
    count = diverged(losses)
    return f"{middle}; {count} of {len(losses)} diverged" if count else middle


def section_of_zeroing(rows):
    head = [
        "mechanism",
        "server rate",
        "local rate",
        "loss with zeroing",
        "without",
        "clipped, with",
        "without",
        "zeroed by quarter",
    ]
    seeds, cells = len(rows[0]["with"]["loss"]), []
    for row in rows:
        arms = [row["with"], row["without"]]
        is_noisy = row["mechanism"] != "none"
        shares = [percent(statistics.mean(arm["clipped"])) if is_noisy else "" for arm in arms]
        name = NAMES.get(row["mechanism"], f"`{row['mechanism']}`") + ("" if is_noisy else ", not clipped")
        losses = [arm_of_zeroing(arm["loss"]) for arm in arms]
        quarters = zip(*row.get("zeroed", []))
        zeroed = ", ".join(percent(statistics.mean(of_seeds)) for of_seeds in quarters)
        rates = [f"{row['server_rate']:g}", f"{row['local_rate']:g}"]
        cells.append([name, *rates, *losses, *shares, zeroed])
    command = f"{SCRIPT} --part zeroing"
    return ZEROING.format(
        seeds=seeds, uniform=UNIFORM, diverged=DIVERGED, command=command, table=table(head, cells)
    )


def section_of_command(found):
    rows = {
        (row["mechanism"], row["rate"]): row["accuracy"]
        for row in found["momentum"]["speakers"]["rows"]
        if row["workload"] in ("design", None)
    }
    flower, cells = {row["mechanism"]: row["accuracy"] for row in found.get("flower", [])}, []
    for row in found["command"]:
        mechanism, rate = row["mechanism"], row["rate"]
        name = NAMES.get(mechanism, f"`{mechanism}`")
        server = "momentum, cooldown" if row["momentum"] else "cooldown"
        figures = [rows[mechanism, rate], row["accuracy"], flower.get(mechanism)]
        shown = [with_error(mean_and_error(of), 2, 100) + "%" if of else "" for of in figures]
        cells.append([name, server, f"{rate:g}", *shown])
    head = ["mechanism", "server", "rate", "Rust", "`antinoise train`", "Flower"]
    seeds = len(found["command"][0]["accuracy"])
    return COMMAND.format(seeds=seeds, command=SCRIPT, table=table(head, cells))


def section_of_damping(units):
    text = DAMPING.format(seeds=units["speakers"]["seeds"], command=f"{SCRIPT} --part damping")
    head = [
        "mechanism",
        "predicted RMS loss",
        "loss as predicted",
        "damping",
        "loss at that damping",
        "accuracy",
        "server rate",
    ]
    for unit, found in units.items():
        rows = []
        for row in found["rows"]:
            is_designed = "damping" in row
            undamped = with_error(row["undamped"], 4) if is_designed else ""
            damping = f"{row['damping']:g}" if is_designed else ""
            figures = [with_error(row["loss"], 4), with_error(row["accuracy"], 2, 100) + "%"]
            rows.append([row["name"], rms(row), undamped, damping, *figures, f"{row['rate']:g}"])
        ahead = found["ahead"]
        behind = f"{ahead['next']}, {with_error(ahead['behind'], 4)} behind over the same seeds"
        text += unit_section(unit, found["users"]) + table(head, rows)
        text += f"\nLeast loss: {ahead['best']}; next: {behind}.\n"
    return text


def filled(text):
    """The page with its paragraphs in lines of at most 110 columns."""
    blocks = [
        block
        if block.lstrip("\n").startswith(("    ", "|", "#", "<"))
        else textwrap.fill(block, 110, break_on_hyphens=False)
        for block in text.strip().split("\n\n")
    ]
    return "\n\n".join(blocks) + "\n"


def page(found):
    """The page of these figures."""
    text = HEAD.format(parameters=found["momentum"]["speakers"]["parameters"])
    text += section_of_momentum(found["momentum"], found.get("losses", {}))
    if "command" in found:
        text += section_of_command(found)
    parts = {"zeroing": section_of_zeroing, "damping": section_of_damping}
    return filled(text + "".join(section(found[part]) for part, section in parts.items() if part in found))
