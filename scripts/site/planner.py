"""The planner of the site: its WebAssembly as a script, and its plans against those of the command line.

    python3 scripts/site/planner.py pack MODULE.wasm SITE
    python3 scripts/site/planner.py compare SITE PROGRAM [--requests N] [--seed S]

`pack` writes SITE/assets/planner-wasm.js, compressed, because a page that is opened as a file may load
scripts but no other files. `compare` opens the page as a file in headless Chromium, enters random requests by
its address, a tenth of them for the thorough search, and runs the command that the page shows for each. Both
must choose the same mechanism with the same batches, every number of the two plans must agree within `CLOSE`,
the command line must verify the plan of the page, and the page must ask no host for anything. A request that
one refuses, the other must refuse with the same message. The panel of other batch sizes must choose as the
command does at each of them, begin only when it is opened, and give way to a newer request.
"""

import argparse
import base64
import gzip
import json
import math
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import browser
import tomllib

LARGEST = 2_000_000
CLOSE = 1e-6
SECONDS = 300


def pack(module, site):
    """Writes the module as a script, and refuses one that is too large to download."""
    packed = gzip.compress(module.read_bytes(), 9, mtime=0)
    if len(packed) > LARGEST:
        raise SystemExit(
            f"{module.name} has {len(packed)} bytes, compressed, but at most {LARGEST} are allowed"
        )
    text = f'self.PLANNER_WASM = "{base64.b64encode(packed).decode()}";\n'
    (site / "assets" / "planner-wasm.js").write_text(text)
    print(f"the planner has {len(packed)} bytes, compressed ({module.stat().st_size} as they are)")


def log_uniform(chance, least, most):
    """A number with two digits, by its logarithm."""
    return float(f"{math.exp(chance.uniform(math.log(least), math.log(most))):.1e}")


def drawn(chance, thorough):
    """A random request, by the fields of the page. About one in twelve is refused."""
    settings = ["poisson", "cyclic", "shuffled", "single", "stream", "federated"]
    request = {"setting": chance.choice(settings)}
    request["examples"] = int(log_uniform(chance, 300, 1e6))
    batches = log_uniform(chance, 2, 300)
    request["batch_size"] = max(1, int(request["examples"] / batches))
    if request["setting"] == "federated":
        request["steps"] = int(log_uniform(chance, 20, 1000))
        request["min_sep"] = max(1, int(request["steps"] / log_uniform(chance, 1, 20)))
        if chance.random() < 0.5:
            request["max_participations"] = 3
    else:
        once = request["setting"] in ("single", "stream")
        request["epochs"] = chance.randint(1, 1 if once else 10)
    request["epsilon"] = log_uniform(chance, 0.2, 12)
    if chance.random() < 0.5:
        request["delta"] = log_uniform(chance, 1e-9, 1e-4)
    if chance.random() < 0.4:
        request["dim"] = int(log_uniform(chance, 1e3, 1e9))
        if chance.random() < 0.5:
            request["memory"] = int(request["dim"] * log_uniform(chance, 4, 400))
    if chance.random() < 0.05:
        request[chance.choice(["epsilon", "batch_size", "examples"])] = 0
    request["thorough"] = "true" if thorough else "false"
    return request


def difference(found, expected, place="plan"):
    """The largest difference of numbers in two values of TOML, and where anything else differs.

    A number differs relative to itself, or, in a list, to the largest of the list.
    """
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        parts = [difference(found[name], expected[name], f"{place}.{name}") for name in found]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        if all(isinstance(number, float) for number in found + expected):
            size = max((abs(number) for number in expected), default=0.0) or 1.0
            return max((abs(a - b) / size for a, b in zip(found, expected, strict=True)), default=0.0), []
        parts = [difference(*pair, place) for pair in zip(found, expected, strict=True)]
    elif isinstance(found, float) and isinstance(expected, float):
        return abs(found - expected) / (abs(expected) or 1.0), []
    else:
        return 0.0, [] if found == expected else [
            f"{place} is {found!r} but {expected!r} on the command line"
        ]
    return max((part[0] for part in parts), default=0.0), [text for part in parts for text in part[1]]


class Planner:
    """The page, opened as a file."""

    def __init__(self, site, profile):
        self.browser = browser.Site(profile)
        self.origin = site.as_uri()
        self.browser.shown_as(1400, "light")
        begun = time.monotonic()
        self.browser.go(f"{self.origin}/planner.html")
        self.answer(None)
        self.first = time.monotonic() - begun

    def answer(self, request):
        """What the page shows for a request: (seconds, command, TOML), or the message of a refusal."""
        if request is not None:
            # The state is set first, so that it cannot be that of the request before.
            self.browser.value("void (document.getElementById('plan-here').dataset.state = 'asked')")
            self.browser.value(f"void (location.hash = {json.dumps(urlencode(request))})")
        state = "document.getElementById('plan-here').dataset.state"
        end = time.monotonic() + SECONDS
        while (found := self.browser.value(state)) not in (
            "planned",
            "refused",
            "failed",
        ):
            if time.monotonic() > end:
                raise SystemExit(f"no answer within {SECONDS} s: {request}")
            time.sleep(0.01)
        if found != "planned":
            # The message is at the field that is wrong, if one is named.
            field = "document.querySelector('.planner [aria-invalid]')?.closest('.field')"
            place = f"({field} ?? document.querySelector('.planner form > .wrong').parentElement)"
            return self.browser.value(f"{place}.querySelector(':scope > .wrong').textContent")
        seconds = self.browser.value("Number(document.getElementById('plan-here').dataset.seconds)")
        text = [
            self.browser.value(f"document.querySelector('.planner .{name}').textContent")
            for name in ("command", "toml")
        ]
        return seconds, *text

    def batch_sizes(self, request):
        """Rows of the panel of other batch sizes, which a newer request interrupts first."""
        self.answer({**request, "batch_size": 2 * request["batch_size"]})
        state = "document.querySelector('.planner .sizes').dataset.state"
        if self.browser.value(state) is not None:
            raise SystemExit("other batch sizes were planned before their panel was open")
        self.browser.value("void document.querySelector('.planner .sizes summary').click()")
        self.browser.until(f"{state} === 'working'", "the panel of other batch sizes")
        time.sleep(0.5)
        self.answer(request)
        self.browser.until(f"{state} === 'planned'", "plans at other batch sizes", SECONDS)
        rows = "document.querySelectorAll('.planner .sizes tbody tr')"
        found = self.browser.value(f"[...{rows}].map(row => [...row.children].map(cell => cell.textContent))")
        drawn = self.browser.value("document.querySelectorAll('.planner .sizes svg').length")
        self.browser.value("void document.querySelector('.planner .sizes summary').click()")
        return found, drawn

    def faults(self):
        """What the page wrote to the console, and whom it asked."""
        own = (self.origin, "data:", "blob:", "about:")
        asked = [url for url in self.browser.asked if not url.startswith(own)]
        return self.browser.errors + [f"asks for {url}" for url in asked]


def by_command(program, command, folder):
    """The plan that a command makes, or its message."""
    ended = subprocess.run(
        [program, *shlex.split(command)[1:], "--force"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    if ended.returncode:
        # Options are named by dashes there.
        return re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), ended.stderr)
    return (folder / "plan.toml").read_text()


def command_of(request):
    """The command of a request that the page refused."""
    options = {name.replace("_", "-"): value for name, value in request.items() if name != "thorough"}
    given = " ".join(f"--{name} {value}" for name, value in options.items())
    return f"antinoise plan {given} --out plan.toml" + ("" if request["thorough"] == "true" else " --quick")


def compare_batch_sizes(planner, program, folder):
    """What differs between the panel of other batch sizes and the command line."""
    request = {"examples": 20000, "batch_size": 1000, "epochs": 3, "epsilon": 3, "thorough": "false"}
    for setting in ("poisson", "cyclic"):
        asked = {**request, "setting": setting}
        rows, drawn = planner.batch_sizes(asked)
        if [row[0] for row in rows] != [
            "125",
            "250",
            "500",
            "1,000",
            "2,000",
            "4,000",
            "8,000",
        ] or drawn != 2:
            yield f"{setting}: {drawn} figures and rows {rows}"
        for batch_size, steps, name, _ in rows:
            command = command_of({**asked, "batch_size": int(batch_size.replace(",", ""))})
            ended = subprocess.run(
                [program, *shlex.split(command)[1:], "--force", "--json"],
                cwd=folder,
                capture_output=True,
                check=True,
                text=True,
            )
            made = json.loads(ended.stdout)
            chosen = made["candidates"][made["chosen"]]
            expected = chosen["spec"] + ", sampled" * chosen["amplified"], f"{made['plan']['steps']:,}"
            if (name, steps) != expected:
                yield f"{command}: {name} over {steps} steps, but {expected} on the command line"


def compare(site, program, requests, seed):
    """Compares the plans of random requests; prints what differs, and returns how many."""
    chance, wrong = random.Random(seed), []
    equal, planned, refused, largest, slowest = 0, 0, 0, 0.0, []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        planner = Planner(site, folder / "profile")
        for number in range(requests):
            request = drawn(chance, number % 10 == 9)
            answer = planner.answer(request)
            if isinstance(answer, str):
                refused += 1
                message = by_command(program, command_of(request), folder)
                if answer not in message:
                    wrong.append(f"{request}: refused with {answer!r}, but the command line says {message!r}")
                continue
            seconds, command, text = answer
            planned += 1
            expected = by_command(program, command, folder)
            if not expected.startswith("version"):
                wrong.append(f"{command}: {expected}")
                continue
            equal += text == expected
            apart, others = difference(tomllib.loads(text), tomllib.loads(expected))
            largest = max(largest, apart)
            if request["thorough"] == "false":
                slowest.append(seconds)
            wrong += [f"{command}: {other}" for other in others]
            if apart > CLOSE:
                wrong.append(f"{command}: a number differs by {apart:.1e} of itself")
            (folder / "page.toml").write_text(text)
            verified = subprocess.run(
                [program, "verify", "page.toml"],
                cwd=folder,
                capture_output=True,
                check=False,
                text=True,
            )
            if verified.returncode:
                wrong.append(f"{command}: the command line refuses the page's plan: {verified.stderr}")
        wrong += compare_batch_sizes(planner, program, folder)
        wrong += planner.faults()
        first = planner.first
        planner.browser.close()
    slowest.sort()
    for fault in wrong:
        print(fault, file=sys.stderr)
    print(
        f"{planned} plans, of which {equal} are those of the command line to the last bit and the others differ by at "
        f"most {largest:.1e}; {refused} requests refused by both: {len(wrong)} problems"
    )
    print(
        f"first plan after {first:.2f} s; a quick plan takes {slowest[len(slowest) // 2]:.3f} s (median), "
        f"{slowest[int(0.9 * len(slowest))]:.3f} s (nine in ten), {slowest[-1]:.3f} s (all)"
    )
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("module", type=Path)
    packing.add_argument("site", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("site", type=Path)
    comparing.add_argument("program", type=Path)
    comparing.add_argument("--requests", type=int, default=100)
    comparing.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.module, options.site)
    else:
        site, program = options.site.resolve(), options.program.resolve()
        wrong = compare(site, program, options.requests, options.seed)
        raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
