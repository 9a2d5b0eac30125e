"""Writes the ledger that the Rust crate is held against, by the Python package's own code.

    python scripts/python/golden_ledger.py        into crates/ledger/tests/data: plan.toml, ledger.db and what is in it, ledger.json

It needs the compiled module, and nothing of Flower's: the ledger is loaded by its path.
"""

import importlib
import json
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "crates" / "ledger" / "tests" / "data"
sys.path.insert(0, str(ROOT / "python"))

import antinoise as an  # noqa: E402

# The package antinoise.flower imports Flower; its ledger does not.
package = types.ModuleType("antinoise.flower")
package.__path__ = [str(ROOT / "python" / "antinoise" / "flower")]
sys.modules["antinoise.flower"] = package
ledger_module = importlib.import_module("antinoise.flower.ledger")

ROUNDS = [["ada", "grace"], ["edsger", "\N{LATIN SMALL LETTER E WITH ACUTE}mile"], [], ["grace", "kathleen"], ["ada"], ["barbara"]]


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    plan = an.plan(
        examples=40, batch_size=2, steps=8, epsilon=8, delta=1e-5, setting="federated", min_sep=3, max_participations=2, dim=7
    )
    plan.save(DATA / "plan.toml")
    path = DATA / "ledger.db"
    path.unlink(missing_ok=True)
    ledger = ledger_module.Ledger(path, plan, "golden")
    ledger.bind("layout", "w (7,)")
    for step, users in enumerate(ROUNDS):
        ledger.charge(users)
        if step < len(ROUNDS) - 1:
            ledger.release(ledger_module.Release(step, f"model {step}", bytes([step, 1, 2, 3])))
    last = ledger.last_release()
    found = {
        "participations": ledger.participations(),
        "step": ledger.step,
        "last": [last.step, last.base, list(last.noisy_sum)],
        "eligible": ledger.eligible(["ada", "barbara", "edsger", "grace", "kathleen", "\N{LATIN SMALL LETTER E WITH ACUTE}mile", "new"]),
    }
    ledger.close()
    (DATA / "ledger.json").write_text(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
