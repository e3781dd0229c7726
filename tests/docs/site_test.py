#!/usr/bin/env python3
"""Makes the site of the docs, and reads it as a browser does.

Nothing may be loaded from another host, and each link within the site must name a page and a heading
that are there. Then a headless Chromium opens it, searches a word and finds its page. Arguments:
the root, or --self-test. Exits 77 if Sphinx, Chromium or selenium is not installed.
"""

import functools
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
HREF_OF_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif (tag, name) in LOADED or (tag == "link" and name == "href"):
                self.loads.append(value)


def check(site):
    """(what is wrong, a sentence each)."""
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    for path, page in pages.items():
        where = path.relative_to(site)
        loads = [(path, load) for load in page.loads]
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = urllib.parse.unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.is_file():
                yield f"{where} links to {name}, which is not there"
            elif anchor and target in pages and anchor not in pages[target].ids:
                yield f"{where} links to {link}, which has no such heading"
        yield from complaints_about_loads(site, loads)
    for path in site.rglob("*.css"):
        urls = [one or other for one, other in HREF_OF_CSS.findall(path.read_text())]
        yield from complaints_about_loads(site, [(path, url) for url in urls])


def complaints_about_loads(site, loads):
    for path, load in loads:
        if load.startswith(("data:", "#")):
            continue
        if re.match(r"([a-z]+:)?//", load):
            yield f"{path.relative_to(site)} loads {load} from another host"
        elif load.startswith("/") or not (path.parent / load.partition("?")[0].partition("#")[0]).is_file():
            yield f"{path.relative_to(site)} loads {load}, which is not there"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look_in_a_browser(site):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 "--disable-background-networking", "--no-first-run", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    (site / "favicon.ico").touch()  # which each browser asks for
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)

    def look(script, *arguments):
        return driver.execute_script(script, *arguments)

    def wait(script, *arguments):
        WebDriverWait(driver, 120, 0.05).until(lambda _: look(f"return {script}", *arguments), script)

    try:
        driver.get(here)
        wait("location.pathname == '/README.html' && document.readyState == 'complete'")
        driver.find_element(By.CSS_SELECTOR, "input[name=q]").send_keys("payload_drift\n")
        wait("document.body.innerText.includes('Search finished')")
        found = look("return [...document.querySelectorAll('ul.search li > a')].map((one) => one.innerText)")
        assert "Guarantees" in found, found
        assert not any(one.startswith("20") for one in found[:5]), f"lab notes come last: {found}"
        wait("[...document.querySelectorAll('ul.search li')].some((one) => one.innerText.includes('payload_drift'))")
        look("[...document.querySelectorAll('ul.search li > a')].find((one) => one.innerText == 'Guarantees').click()")
        wait("document.querySelector('div.body h1')?.innerText.startsWith('Guarantees')")
        assert look("return document.documentElement.scrollWidth - innerWidth") <= 0, "the page is too wide"
        asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        urls = {one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"}
        foreign = [url for url in urls if not url.startswith((here, "data:"))]
        assert urls and not foreign, f"asked other places: {foreign}"
        severe = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert not severe, severe
    finally:
        driver.quit()
        server.shutdown()


HEALTHY = {"a.html": '<h1 id="a">A</h1><a href="b/c.html#c">c</a><a href="https://example.org">x</a><script src="s.js?v=1"></script>',
           "b/c.html": '<h1 id="c">C</h1><a href="../a.html">a</a><link href="../s.css" rel="stylesheet">',
           "s.js": "", "s.css": "a { background: url(data:image/png;base64,xx) }"}
FAULTS = [({"d.html": '<script src="https://cdn.example.org/x.js"></script>'}, "another host"),
          ({"d.html": '<img src="//example.org/x.png">'}, "another host"),
          ({"d.html": '<link rel="icon" href="/x.ico">'}, "loads /x.ico"),
          ({"d.css": '@import "https://fonts.example.org/f";'}, "another host"),
          ({"d.css": "@font-face { src: url('f.woff') }"}, "loads f.woff"),
          ({"d.html": '<a href="gone.html">x</a>'}, "links to gone.html"),
          ({"d.html": '<a href="a.html#b">x</a>'}, "links to a.html#b")]


def self_test():
    for tree, expected in [({}, None), *FAULTS]:
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder).resolve()
            for name, text in {**HEALTHY, **tree}.items():
                (site / name).parent.mkdir(exist_ok=True)
                (site / name).write_text(text)
            found = list(check(site))
        assert (found == []) if expected is None else (len(found) == 1 and expected in found[0]), (tree, found)


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([root / "scripts/docs_site.sh", folder])
        if made.returncode:
            sys.exit(made.returncode)
        site = pathlib.Path(folder).resolve()
        complaints = list(check(site))
        print("\n".join(complaints) or f"{len(list(site.rglob('*.html')))} pages, each link and each loaded file is there")
        if complaints:
            sys.exit(1)
        try:
            import selenium  # noqa: F401
        except ImportError:
            selenium = None
        if not selenium or not shutil.which("chromium") or not shutil.which("chromedriver"):
            print("NOT TESTED in a browser: scripts/install_packages.sh browser")
            sys.exit(77)
        look_in_a_browser(site)


main()
