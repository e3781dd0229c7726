#!/usr/bin/env python3
"""Opens the console in a headless Chromium, as an operator at night does.

Loads every view, gives every order, one of them by the keyboard alone, and looks whether what a
message holds can run script. browser_pgtest.cpp makes the database, and looks at it afterwards.
Arguments: the URL with the operator's role, the URL with the worker's, a folder for screenshots or
nothing. Exits 77 if Chromium or selenium is not installed.
"""

import http.server
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

try:
    from selenium import webdriver
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("NOT TESTED in a browser: scripts/install_packages.sh browser")
    sys.exit(77)

VIEWS = {"overview": "Something is halted", "letters": "Dead letters", "letter?which=1": "Dead letter 1",
         "explain": "Explain a message or a key", "explain?key=k2": "Explain a message or a key",
         "outbox": "Outbox", "outbox?topic=r": "Outbox", "record?id=1": "Record 1 for r",
         "outside": "Outside calls", "outside?status=all": "Outside calls"}
NAMELESS = """return [...document.querySelectorAll("input, select, textarea, button, a")].filter((one) =>
  !(one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label"))).map((one) => one.outerHTML)"""
PATIENCE = 60


class Page:
    def __init__(self, url, mobile=False):
        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--disable-background-networking", "--no-first-run"):
            options.add_argument(flag)
        options.add_argument("--window-size=1280,900")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.base = url.partition("#")[0]
        self.downloads = tempfile.TemporaryDirectory()
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior",
                                    {"behavior": "allow", "downloadPath": self.downloads.name})
        latency = int(os.environ.get("HAPAX_BROWSER_LATENCY_MS", "0"))
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1})
        self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, what):
        try:
            WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"not seen: {what}\n{self.text()[:3000]}") from None

    def text(self):
        return self.run("return document.body.innerText")

    def await_text(self, text):
        self.wait(lambda: text in self.text(), text)

    def go(self, view):
        address = f"#/{view}"
        if self.run("return location.hash") == address:
            return
        self.wait(lambda: self.run("return document.querySelector('h1') !== null"), "the first view")
        self.mark_as_old(address)
        self.await_new_view(view)

    def mark_as_old(self, next_address=None):
        """Of a view that is drawn anew, every element is a new one: the mark on its heading is gone then."""
        self.run("document.querySelector('main h1').dataset.old = 1; if (arguments[0]) location.hash = arguments[0]", next_address)

    def await_new_view(self, what):
        self.wait(lambda: self.run("return document.querySelector('main h1')?.dataset.old === undefined"), what)

    def open(self, view):
        self.go(view)
        self.await_text(VIEWS[view])

    def click(self, label):
        """The first button with this text, in the dialog if one is open. In one step: a view refreshes itself."""
        self.wait(lambda: self.run("""
          const within = document.querySelector("dialog[open]") ?? document.querySelector("main");
          const found = [...within.querySelectorAll("button:enabled")].find((one) => one.innerText === arguments[0]);
          found?.click();
          return found !== undefined""", label), f"button {label}")

    def fill(self, name, text):
        field = self.driver.find_element(By.CSS_SELECTOR, f"dialog [name={name}]")
        field.clear()
        field.send_keys(text)

    def command(self):
        return self.driver.find_element(By.CSS_SELECTOR, "dialog .command code").text

    def order(self, label, command, result, fields=(), dry_run=None):
        """Gives an order, and looks at the command line and at what is told."""
        self.click(label)
        self.wait(lambda: self.run("return document.querySelector('dialog[open]') !== null"), "the dialog")
        for name, value in fields:
            self.fill(name, value)
        self.fill("why", "it's fixed")
        assert self.command() == command, f"{self.command()}\nis not\n{command}"
        if dry_run:
            self.click("Dry run")
            self.await_text(dry_run)
        self.mark_as_old()  # its buttons are about what the order changes
        self.click("Do it")
        self.await_text(result)
        self.await_new_view(f"what is left after {label}")
        self.close()

    def close(self):
        self.click("Close")
        self.wait(lambda: self.run("return document.querySelector('dialog') === null"), "no dialog")

    def tab_to(self, label):
        for _ in range(80):
            if self.run("return document.activeElement.innerText") == label:
                return
            self.type(Keys.TAB)
        raise AssertionError(f"the keyboard does not reach {label}")

    def type(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def expect_calm(self):
        """No script of a message has run, and the browser had nothing to refuse."""
        assert self.run("return window.hacked") is None, "a message ran script"
        log = [line["message"] for line in self.driver.get_log("browser")
               if line["level"] != "INFO" and " 404 " not in line["message"]]
        assert not log, "\n".join(log)

    def shoot(self, folder, name):
        if folder:
            self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))


def look_at_all(page, folder):
    assert "token" not in page.run("return location.href"), "the token stays in the address"
    for view in VIEWS:
        page.open(view)
        nameless = page.run(NAMELESS)
        assert not nameless, f"{view}: without a name: {nameless}"
        assert "hapax " in page.run("return document.querySelector('.cli code')?.innerText ?? ''") or view == "explain", view
        page.shoot(folder, f"{list(VIEWS).index(view)}-{view.partition('?')[0]}")
    page.expect_calm()


class Neighbour(http.server.BaseHTTPRequestHandler):
    """Another service on 127.0.0.1. It answers with what the browser told it."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"heard: {self.path} {self.headers}".encode())

    def log_message(self, *_):
        pass


def keep_the_token_from_another_port(page, url):
    token = url.partition("#token=")[2]
    page.await_text("PostgreSQL answers")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Neighbour) as neighbour:
        threading.Thread(target=neighbour.serve_forever, daemon=True).start()
        page.driver.get(f"http://127.0.0.1:{neighbour.server_port}/")
        page.await_text("heard: / Host")
        heard = page.text() + page.run("return JSON.stringify(sessionStorage) + document.cookie")
        neighbour.shutdown()
    assert token not in heard and "Cookie" not in heard, heard
    page.driver.get(page.base)
    page.await_text("PostgreSQL answers")  # this tab still has it
    page.driver.get_log("browser")


def need_the_token(page, url):
    page.run("sessionStorage.clear()")
    page.driver.refresh()
    page.await_text("Open the URL that")
    page.driver.get(url)  # of the same page: nothing but # is another
    page.await_text("PostgreSQL answers")
    page.driver.get_log("browser")  # it was refused without the token
    assert "token" not in page.run("return location.href"), "the token stays in the address"


def download(page):
    page.open("letter?which=1")
    page.click("Download all of it")
    file = pathlib.Path(page.downloads.name) / "payload.bin"
    page.wait(lambda: file.exists() and file.stat().st_size > 0, "the file")
    assert file.read_text() == "<script>window.hacked = 1</script>", file.read_text()


def meet_hostile_bytes(page):
    page.open("letter?which=1")
    assert "<script>window.hacked = 1</script>" in page.text()
    assert "\\u{1b}[2J" in page.text() and "\\u{202e}" in page.text(), page.text()
    page.go("letters?reason=crashed")
    page.await_text("<img src=x onerror=window.hacked=1>")
    page.go("letters?topic=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E")
    page.await_text("No dead letter fits.")
    # The policy holds even if a script of the page made an element out of a message.
    refused = page.run("""try { document.body.innerHTML = "<img src=x onerror=window.hacked=1>" } catch (error) { return error.name }""")
    assert refused == "TypeError", refused
    page.driver.get_log("browser")
    page.expect_calm()


def end_a_halt_by_keyboard(page, folder):
    page.open("overview")
    page.run("document.activeElement.blur()")
    page.tab_to("retry …")
    page.type(Keys.ENTER)
    page.wait(lambda: page.run("return document.activeElement.name") == "why", "the field why")
    page.type("disk is back", Keys.ENTER)
    page.await_text("Dry run: nothing was changed.")
    page.shoot(folder, "dialog")
    page.type(Keys.ENTER)  # twice by mistake
    page.tab_to("Do it")
    assert "Resumed" not in page.text()
    page.type(Keys.ENTER)
    page.await_text("Resumed; workers notice")
    page.type(Keys.ESCAPE)
    page.wait(lambda: page.run("return document.querySelector('dialog') === null"), "no dialog")
    page.wait(lambda: "handler_ended_transaction" not in page.text(), "the end of the halt")


def edit_nothing_that_a_browser_would_change(page):
    page.open("letter?which=1")
    page.go("letter?which=3")
    page.click("Edit and replay …")
    page.await_text("carriage return")
    inside = page.run("return document.querySelector('dialog').innerHTML")
    assert "<textarea" not in inside and "Do it" not in inside, inside
    assert "--payload edited.json" in page.command()
    page.close()


def tell_a_message_that_was_not_kept(page):
    page.go("letter?which=6")
    page.await_text("and was not kept")
    assert "tombstone" not in page.text() and "\nReplay …" not in page.text(), page.text()
    page.click("Edit and replay …")
    page.await_text("Write the edited payload to a file")
    assert "--payload edited.json" in page.command()
    page.close()


def match_what_the_list_shows(page):
    for view in ("letters?handler=other", "letters?until=1d"):
        page.go(view)
        page.await_text("No dead letter fits.")
        name = view.partition("?")[2].partition("=")[0]
        assert page.run("return document.querySelector(`main [name=${arguments[0]}]`).value", name)
        assert f" --{name} " in page.run("return document.querySelector('main .cli code').innerText")


def tell_that_an_order_may_have_been_carried_out(page):
    page.open("letter?which=1")
    page.run("window.kept = window.fetch; window.fetch = (path, options) => options?.method === 'POST' ? Promise.reject(new TypeError()) : kept(path, options)")
    page.click("Replay …")
    page.fill("why", "x")
    page.click("Do it")
    page.await_text("the order may have been carried out")
    page.close()
    page.run("window.fetch = window.kept")


def give_all_orders(page):
    option = "-c worker.json --url \"$OPERATOR\""
    by = "--who ann --why 'it'\\''s fixed'"
    page.open("letter?which=1")
    page.order("Replay …", f"hapax dead replay {option} {by} --yes 1", "Wanted: 1 of 1.")
    page.await_text("open, runs: 0")
    page.order("Cancel the replay …", f"hapax dead replay {option} --cancel {by} --yes 1", "Cancelled: 1 of 1.")
    page.order("Edit and replay …", f"hapax dead replay {option} --payload edited.json {by} --yes 1", "Wanted: 1 of 1.",
               fields=[("payload", '{"amount": 7}')])
    page.order("Discard …", f"hapax dead discard {option} {by} --yes 1", "Discarded: 1 of 1.")
    page.await_text("discarded at")

    page.go("letters?reason=rejected")
    page.await_text("2 letters, newest first")
    page.order("Replay all that match …", f"hapax dead replay {option} {by} --yes 2 4", "Wanted: 2 of 2.")
    page.go("letters?reason=missing_key")
    page.await_text("50 letters, newest first")
    page.order("Discard all that match …", f"hapax dead discard {option} --reason missing_key {by} --yes", "Discarded: 60 of 60.")
    page.await_text("No dead letter fits.")

    page.open("outbox")
    page.order("Retry …", f"hapax outbox retry {option} {by} 1", "1 halts ended", dry_run="record 1 – record_refused: the record is too large")
    page.order("Skip …", f"hapax outbox skip {option} {by} --yes 2", "1 records removed", dry_run="remove 1 records")
    page.open("outside")
    page.order("It happened …", f"hapax outside decide {option} --token 100 --happened '{{\"charge\": 1}}' {by} --yes c1",
               "Decided: ", fields=[("answer", '{"charge": 1}')], dry_run='The answer: {"charge": 1}')
    page.await_text("c1 – answered")  # until a worker books it
    page.expect_calm()


def fit_a_phone(page, folder):
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
        for view in VIEWS:
            page.open(view)
            wide = page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{view} is {wide} px too wide for a phone"
            page.shoot(folder, f"phone-{scheme}-{list(VIEWS).index(view)}")
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        for view in ("overview", "letter?which=1"):
            page.open(view)
            page.shoot(folder, f"{scheme}-{view.partition('?')[0]}")


def read_only(page):
    page.await_text("read-only: role hapax_worker may change nothing")
    for view in ("letters", "letter?which=5", "outbox"):
        page.go(view)
        page.await_text({"letters": "newest first", "outbox": "unsent"}.get(view, "What was given up on"))
        buttons = page.run("return [...document.querySelectorAll('main button')].map((one) => one.innerText)")
        assert not [label for label in buttons if "…" in label], f"{view}: {buttons}"
    page.expect_calm()


def main():
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("NOT TESTED in a browser: scripts/install_packages.sh browser")
        sys.exit(77)
    operator, worker = sys.argv[1:3]
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    began = time.monotonic()
    page = Page(operator)
    try:
        keep_the_token_from_another_port(page, operator)
        need_the_token(page, operator)
        look_at_all(page, folder)
        download(page)
        fit_a_phone(page, folder)
        meet_hostile_bytes(page)
        page.driver.get(page.base)
        end_a_halt_by_keyboard(page, folder)
        page.driver.get(worker)
        read_only(page)
        page.driver.get(operator)
        edit_nothing_that_a_browser_would_change(page)
        tell_a_message_that_was_not_kept(page)
        match_what_the_list_shows(page)
        tell_that_an_order_may_have_been_carried_out(page)
        give_all_orders(page)
    finally:
        page.driver.quit()
    print(f"every view and order in {time.monotonic() - began:.0f} s")


main()
