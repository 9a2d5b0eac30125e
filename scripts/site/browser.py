#!/usr/bin/env python3
"""Opens the built site in headless Chromium, clicks and searches.

    scripts/site.sh build && python3 scripts/site/browser.py [--pictures DIR] [SITE]

Every page is shown 1400 and 390 pixels wide, light and dark. It must not be wider than its window, write an
error to the console, lack a picture or ask another host for anything. Then navigation, the switch of schemes
and search are used at both widths, from files and from a server. Needs Chromium (Debian: apt install
chromium).
"""

import argparse
import functools
import http.server
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import pages

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20

# JavaScript that returns the faults of a page as a list of sentences.
LOOK = """(() => {
  const wrong = [], root = document.documentElement, width = root.clientWidth;
  const scrolls = e => e.closest('.md-typeset__scrollwrap, pre, .md-tabs, .md-search, [hidden]');
  if (root.scrollWidth > width) {
    const wide = [...document.body.querySelectorAll('*')]
      .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e));
    wrong.push(`${root.scrollWidth} pixels wide: ` + wide.slice(-3).map(e => e.outerHTML.slice(0, 80)).join(' | '));
  }
  for (const image of document.images) if (!image.naturalWidth) wrong.push(`no picture: ${image.src}`);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const [red] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  if (dark !== red < 128) wrong.push(`the ground is ${red} of 255 where the scheme is ${dark ? 'dark' : 'light'}`);
  if (!document.querySelector('h1')) wrong.push('no heading');
  return wrong;
})()"""


class Site(pages.Browser):
    """A browser that notes what pages ask for."""

    def __init__(self, profile):
        self.asked = []
        super().__init__(profile)
        self.call("Network.enable")

    def receive(self):
        message = super().receive()
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(message["params"]["request"]["url"])
        return message

    def go(self, address):
        self.asked = []
        super().go(address)

    def until(self, script, what, seconds=SECONDS):
        """Waits until a script returns something, and returns that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.value(script)
            if found:
                return found
            time.sleep(0.05)
        raise SystemExit(f"not within {seconds} s: {what}")

    def click(self, selector, words=""):
        """Clicks the middle of the first element in sight that matches, and has these words."""
        place = self.until(
            f"""(() => {{
              const found = [...document.querySelectorAll({selector!r})].find(e => {{
                const box = e.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
                return e.textContent.includes({words!r}) && box.width && (document.elementFromPoint(x, y) || {{}}).closest
                  && (e.contains(document.elementFromPoint(x, y)));
              }});
              if (!found) return null;
              const box = found.getBoundingClientRect();
              return [box.left + box.width / 2, box.top + box.height / 2];
            }})()""",
            f"{selector} {words} to click",
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )


def look(browser, site, origin, pictures):
    """The faults of all pages, at both widths and in both schemes."""
    found = sorted(path for path in site.rglob("*.html") if site / "rust" not in path.parents)
    for path in (path for path in found if path.name != "404.html"):
        name = path.relative_to(site).as_posix()
        for width in pages.WIDTHS:
            for scheme in pages.SCHEMES:
                browser.shown_as(width, scheme)
                browser.go(f"{origin}/{name}")
                faults = browser.value(LOOK) + browser.errors
                faults += [
                    f"asks for {url}"
                    for url in browser.asked
                    if not url.startswith((origin, "data:", "about:"))
                ]
                yield from (f"{name}, {width} pixels, {scheme}: {fault}" for fault in faults)
                if pictures:
                    stem = f"{name.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"
                    (pictures / stem).write_bytes(browser.picture())


def use(browser, origin, width):
    """Goes to a page by the navigation, switches the scheme, and finds a page by the search."""
    browser.shown_as(width, "light")
    browser.go(f"{origin}/index.html")
    if width < 1000:
        browser.click("label[for=__drawer]")
        browser.click(".md-nav__link", "Concepts")
        browser.click(".md-nav__link", "Amplification")
    else:
        browser.click(".md-tabs__link", "Concepts")
        browser.until("location.pathname.endsWith('concepts-cancel.html')", "the first page on concepts")
        browser.click(".md-nav__link", "Amplification")
    browser.until("location.pathname.endsWith('concepts-amplification.html')", "the page on amplification")
    # As the system, light, dark.
    for scheme in ("default", "slate"):
        browser.click("form[data-md-component=palette] label:not([hidden])")
        browser.until(f"document.body.dataset.mdColorScheme === '{scheme}'", f"scheme {scheme}")
    browser.click("form[data-md-component=palette] label:not([hidden])")
    browser.click("label[for=__search]" if width < 1000 else ".md-search__input")
    browser.until("document.activeElement.classList.contains('md-search__input')", "a field to search in")
    browser.call("Input.insertText", text="conjecture 4.7")
    browser.call("Input.dispatchKeyEvent", type="keyUp", key="7")
    browser.until("document.querySelectorAll('.md-search-result__item').length", "results of the search")
    browser.click(".md-search-result__link")
    browser.until("location.pathname.endsWith('conjecture-4-7.html')", "the page that was searched for")


def serve(site):
    """A server of the site on a free port of this machine."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "target" / "site")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    pages.chromium()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    site = options.site.resolve()
    server = serve(site)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Site(profile)
        wrong = list(look(browser, site, site.as_uri(), options.pictures))
        for origin in (site.as_uri(), f"http://127.0.0.1:{server.server_port}"):
            for width in pages.WIDTHS:
                use(browser, origin, width)
        browser.close()
    server.shutdown()
    for fault in wrong:
        print(fault, file=sys.stderr)
    print(
        f"all pages at {len(pages.WIDTHS)} widths, light and dark; clicked and searched: {len(wrong)} problems"
    )
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
