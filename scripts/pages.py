#!/usr/bin/env python3
"""Opens the HTML pages that antinoise writes in a headless browser, and checks how they look.

    cargo build --release && python3 scripts/pages.py [--pictures DIR] [PAGE.html ...]

Without pages, the program trains on docs/flights.csv and publishes docs/visits.csv, and the pages of both are
opened. Each page is shown 1400 and 390 pixels wide, light and dark, and must not be wider than its window,
write an error to the console, or hold a panel without content or a row of dashes. Needs Chromium (Debian:
apt install chromium).
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = [1400, 390]
SCHEMES = ["light", "dark"]
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
TRAIN = (
    "train --data csv:flights.csv --label late=no,yes --range hour=0:24 --range distance=0:5000 "
    "--category origin=EWR,JFK,LGA --epsilon 1 --batch-size 200"
)
COMMANDS = [
    f"{TRAIN} --out one",
    f"{TRAIN} --compare --out several",
    "release init visits --keys north,south,east,west --periods 60 --epsilon 2 --delta 1e-6 --unit user "
    "--max-periods 7",
    "release report visits --out empty.html",
    "release freeze visits " + " ".join(map(str, range(1, 31))) + " --events visits.csv --time day "
    "--user person --key branch",
    "release publish visits",
    "release report visits --out visits.html",
]
PAGES = ["one/report.html", "several/report.html", "empty.html", "visits.html"]

# JavaScript that returns the faults of a page as a list of sentences.
LOOK = """(() => {
  const wrong = [], shown = e => e.getClientRects().length > 0;
  const root = document.documentElement, width = root.clientWidth;
  if (root.scrollWidth > width) {
    const wide = [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > width + 1);
    wrong.push(`${root.scrollWidth} pixels wide: ` + wide.slice(-3).map(e => e.outerHTML.slice(0, 80)).join(' | '));
  }
  for (const panel of document.querySelectorAll('.panel, .card')) {
    const name = (panel.querySelector('h2, .name') || panel).textContent.slice(0, 40);
    const charts = [...panel.querySelectorAll('svg.chart')];
    if (charts.length && charts.filter(shown).length !== 1) wrong.push(`${name}: not one chart is shown`);
    const marks = 'polyline, circle, path, rect';
    if (charts.some(chart => !chart.querySelector(marks))) wrong.push(`${name}: an empty chart`);
    const content = panel.textContent.replace(panel.querySelector('h2')?.textContent ?? '', '').trim();
    if (!content && !charts.length) wrong.push(`${name}: an empty panel`);
  }
  for (const row of document.querySelectorAll('tbody tr')) {
    const cells = [...row.querySelectorAll('td')].map(cell => cell.textContent.trim());
    if (cells.length && cells.every(cell => cell === '' || cell === '\\u2013')) wrong.push(`a row of dashes: ${row.textContent}`);
  }
  return wrong;
})()"""


def chromium():
    """The path of Chromium, or of a browser of its kind."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"{Path(sys.argv[0]).name} needs Chromium (Debian: apt install chromium)")
    return found


class Browser:
    """A headless Chromium, controlled through two pipes (the DevTools protocol)."""

    def __init__(self, profile):
        here_out, there_in = os.pipe()
        there_out, here_in = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        wrapper = f'exec "$0" "$@" 3<&{here_out} 4>&{here_in}'
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--hide-scrollbars",
        ]
        command = ["bash", "-c", wrapper, chromium(), *flags, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(here_out, here_in), stderr=subprocess.DEVNULL)
        os.close(here_out)
        os.close(here_in)
        self.commands, self.answers = os.fdopen(there_in, "wb"), os.fdopen(there_out, "rb")
        self.number, self.session, self.rest, self.errors = 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers.fileno(), 1 << 16)
            if not part:
                raise SystemExit("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        said = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(said["exceptionDetails"]["text"])
            case "Log.entryAdded" if said["entry"]["level"] == "error":
                self.errors.append(said["entry"]["text"])
            case "Runtime.consoleAPICalled" if said["type"] == "error":
                self.errors.append(str(said["args"]))
        return message

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        self.commands.flush()
        while (message := self.receive()).get("id") != self.number:
            pass
        if "error" in message:
            raise SystemExit(f"{method}: {message['error']}")
        return message["result"]

    def shown_as(self, width, scheme):
        """Sets the width of the window and the scheme of colours."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def go(self, address):
        """Opens an address and waits until the page is loaded."""
        self.errors = []
        self.call("Page.navigate", url=address)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def value(self, script):
        """The value of a script in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise SystemExit(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def picture(self, **options):
        """A picture of the page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", **options)["data"])

    def close(self):
        self.call("Browser.close")
        self.process.wait()


def write_pages(program, folder):
    for name in ("flights.csv", "visits.csv"):
        shutil.copy(ROOT / "docs" / name, folder / name)
    for command in COMMANDS:
        subprocess.run([program, *command.split()], cwd=folder, check=True, capture_output=True)
    return [folder / page for page in PAGES]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/antinoise")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    chromium()
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        pages = options.pages or write_pages(options.program.resolve(), folder)
        browser = Browser(folder / "profile")
        for page in pages:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    browser.shown_as(width, scheme)
                    browser.go(page.resolve().as_uri())
                    for problem in browser.errors + browser.value(LOOK):
                        wrong += 1
                        print(
                            f"{page.parent.name}/{page.name}, {width} pixels, {scheme}: {problem}",
                            file=sys.stderr,
                        )
                    if options.pictures:
                        options.pictures.mkdir(parents=True, exist_ok=True)
                        stem = f"{page.parent.name}-{page.stem}-{width}-{scheme}.png"
                        (options.pictures / stem).write_bytes(browser.picture(captureBeyondViewport=True))
        browser.close()
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, light and dark: {wrong} problems")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
