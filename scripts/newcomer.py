#!/usr/bin/env python3
"""The first hour of a new user: commands, each with words that its output must contain.

    cargo build --release && python3 scripts/newcomer.py [--program target/release/antinoise] [--slow]

Commands run one after the other in a fresh folder that holds two tables. Each command must have its exit
status and print its words; --slow adds the bare `antinoise train`, which takes minutes. Printed are the times
to the first result, to the first own model in use and to the first published count.
"""

import argparse
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = "--label late=no,yes --range hour=0:24 --range distance=0:5000 --category origin=EWR,JFK,LGA"
PLAN = "antinoise plan --examples 1600 --batch-size 200 --epsilon 1 --setting cyclic --quick"
INIT = "antinoise release init visits --keys north,south,east,west --periods 60 --epsilon 2 --delta 1e-6 --unit user"
FREEZE = "antinoise release freeze visits 1 --events visits.csv --time day --user person"
TRAIN = f"antinoise train --data csv:flights.csv {COLUMNS} --epsilon 1 --batch-size 200"

# The command, its exit status, words of what it prints (stdout and stderr), and the milestone that it
# reaches.
STEPS = [
    ("antinoise --version", 0, ["antinoise 0."], None),
    ("antinoise", 2, ["Usage:", "train", "predict"], None),
    ("antinoise trian", 2, ["train"], None),
    ("antinoise calibrate --epsilon 2 --delta 1e-6", 0, ["noise multiplier", "2.23"], "first result"),
    ("antinoise calibrate --epsilon -2 --delta 1e-6", 2, ["--epsilon is -2"], None),
    ("antinoise train --data flights.csv", 2, ["--data is", "csv:PATH"], None),
    ("antinoise train --data csv:flights.csv", 2, ["--label is absent", "COLUMN=CLASS,CLASS"], None),
    ("antinoise train --data csv:flights.csv --label late=no,yes", 2, ["--range is absent"], None),
    ("antinoise train --data csv:flights.csv --label late=no,yes --range hours=0:24", 2, ['"hours"'], None),
    (f"antinoise train --data csv:semicolons.csv {COLUMNS}", 2, ["delimiter ';'"], None),
    (f"antinoise train --data csv:words.csv {COLUMNS}", 2, ['"noon" in line 3, column "hour"'], None),
    (f"{TRAIN} --learning-rate 0.1,0.2", 2, ["--learning-rate is 0.1,0.2", "--compare"], None),
    (TRAIN, 0, ["Model to give away: antinoise-run/model", "statement.txt", "largest class"], None),
    ("antinoise evaluate antinoise-run/model --data csv:flights.csv", 0, ["accuracy", "calibration"], None),
    (
        "antinoise predict antinoise-run/model --data csv:new.csv",
        0,
        ['{"class":"', "probabilities"],
        "own model in use",
    ),
    (
        "antinoise predict antinoise-run/model --data csv:new.csv --out late.csv",
        0,
        ["Predictions for 1 row: late.csv"],
        None,
    ),
    ("antinoise predict antinoise-run/model --data csv:new.csv --out late.csv", 2, ["--force"], None),
    ("antinoise predict antinoise-run --data csv:new.csv", 2, ["antinoise-run/model"], None),
    (
        "antinoise predict antinoise-run/model --data csv:semicolons.csv --delimiter ;",
        0,
        ["probabilities"],
        None,
    ),
    ("antinoise verify antinoise-run/model/plan.toml", 0, ["holds"], None),
    ("antinoise account --plan antinoise-run/model/plan.toml", 0, ["epsilon"], None),
    (f"{TRAIN} --delimiter ,", 0, ["antinoise-run is taken", "antinoise-run-2/model"], None),
    (f"{TRAIN} --out antinoise-run", 2, ["already holds a run", "--resume"], None),
    ("antinoise train --resume antinoise-run", 0, ["Model to give away"], None),
    (
        "antinoise plan --examples 1600 --batch-size 200 --epochs 4 --epsilon 1 --delta 1e-5 --setting cyclic "
        "--quick --examples-per-user 5",
        0,
        ["<- chosen", "with 5 examples"],
        None,
    ),
    (
        "antinoise plan --examples 1600 --batch-size 200 --epsilon 1 --delta 1e-5 --setting cyclic",
        2,
        ["--epochs"],
        None,
    ),
    (f"{PLAN} --epochs 4", 0, ["1e-5)-differential privacy", "--long prints"], None),
    (f"{PLAN} --epochs 4 --delta 0.1", 0, ["WARNING: delta x N"], None),
    (f"{PLAN} --epochs 4 --delta 2", 2, ["--delta is 2"], None),
    (f"{PLAN} --epochs 4 --batch 200", 2, ["--batch-size"], None),
    (f"{PLAN} --epochs 4 --memory 2GB", 2, ["--dim is 0", "a limit on memory needs"], None),
    (f"{PLAN} --epochs 4 --dim 1e6 --long", 0, ["noise time", "Assumptions:"], None),
    (f"{PLAN} --epochs 4 --dim 1e12 --strategy blt:2 --tolerance 0", 0, ["exceeds the memory"], None),
    (f"{PLAN} --epochs 4 --out plan.toml --plot plan.svg", 0, ["<- chosen"], None),
    (f"{PLAN} --epochs 4 --out plan.toml", 2, ["--force"], None),
    ("antinoise statement plan.toml", 0, ["(1, 1e-5)-differential privacy of one example"], None),
    ("antinoise statement plan.toml --long", 0, ["Participation", "Not covered:"], None),
    ("antinoise statement plan.toml --format latex --long", 0, [r"\begin{description}"], None),
    ("antinoise statement plan.toml --format markdown --long", 0, ["| Privacy unit | example |"], None),
    ("antinoise statement plan.toml --format json", 0, ['"epsilon":0.99'], None),
    ("antinoise statement flights.csv", 2, ["flights.csv"], None),
    ("antinoise account --plan plan.toml --delta 1e-6", 0, ["epsilon ", "1e-6"], None),
    ("antinoise advise --examples 1600 --epsilon 1", 0, ["vs DP-SGD", "antinoise plan"], None),
    ("antinoise advise --examples 1600", 2, ["--epsilon"], None),
    ("antinoise loss --strategy blt:2 --steps 100", 0, ["RMS"], None),
    ("antinoise loss --strategy bltt:2 --steps 100", 2, ["--strategy"], None),
    ("antinoise show --plan plan.toml --out c.svg", 0, ["c.svg", "RMS"], None),
    ("antinoise completions bash", 0, ["antinoise"], None),
    (f"{INIT} --max-periods 7", 0, ["60"], None),
    (f"{INIT} --max-periods 7", 2, ["visits"], None),
    ("antinoise release report visits --out empty.html", 0, ["empty.html: 0 periods"], None),
    (f"{FREEZE} --key shop", 2, ["shop"], None),
    (f"{FREEZE} --key branch".replace("visits.csv", "tabs.csv"), 2, ["--events is", r"delimiter '\t'"], None),
    (f"{FREEZE} --key branch".replace("visits.csv", "wide.csv"), 2, ["--events is", "UTF-8"], None),
    (f"{FREEZE} --key branch --check", 0, ["would count"], None),
    (f"{FREEZE} --key branch", 0, ["1"], None),
    (f"{FREEZE} --key branch", 2, ["1"], None),
    ("antinoise release publish visits", 0, ["north"], "first published count"),
    ("antinoise release query visits 'select key, value from published'", 0, ["north"], None),
    ("antinoise release status visits", 0, ["1"], None),
    ("antinoise release report visits --out visits.html", 0, ["visits.html: 1 period"], None),
    ("antinoise release report visits --out visits.html", 2, ["--force"], None),
]
SLOW = [("antinoise train --out digits", 0, ["test accuracy", "Report: digits/report.html"], None)]


def prepare(folder):
    """Writes the tables: two good ones, four with mistakes, and a row without a label."""
    for name in ("flights.csv", "visits.csv"):
        shutil.copy(ROOT / "docs" / name, folder / name)
    good = (folder / "flights.csv").read_text()
    (folder / "semicolons.csv").write_text(good.replace(",", ";"))
    lines = good.splitlines()
    lines[2] = "noon," + lines[2].split(",", 1)[1]
    (folder / "words.csv").write_text("\n".join(lines) + "\n")
    visits = (folder / "visits.csv").read_text()
    (folder / "tabs.csv").write_text(visits.replace(",", "\t"))
    (folder / "wide.csv").write_text(visits, encoding="utf-16")
    (folder / "new.csv").write_text("hour,distance,origin\n19,800,EWR\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/antinoise")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    program, surprises, reached, begun = options.program.resolve(), [], [], time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for command, status, words, milestone in STEPS + (SLOW if options.slow else []):
            arguments = shlex.split(command)[1:]
            ran = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
            said = ran.stdout + ran.stderr
            absent = [word for word in words if word not in said]
            if ran.returncode != status or absent:
                surprises.append(command)
                print(
                    f"UNEXPECTED: {command}\n  exit status {ran.returncode}, not {status}; absent: {absent}\n{said[:2000]}"
                )
            elif milestone:
                reached.append(f"{milestone}: after {time.monotonic() - begun:.1f} s")
    print("\n".join(reached))
    count = len(STEPS) + (len(SLOW) if options.slow else 0)
    print(f"{count - len(surprises)} of {count} commands print what a new user expects")
    raise SystemExit(1 if surprises else 0)


if __name__ == "__main__":
    main()
