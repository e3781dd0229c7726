"""The console's page in a headless Chromium: waits for what it shows, clicks, types, gives orders."""

import os
import pathlib
import shutil
import sys
import tempfile

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

VIEWS = {"overview": "Something is halted", "partition?topic=t&partition=0": "t/0 – halted", "letters": "Dead letters", "letter?which=1": "Dead letter 1",
         "replays": "Replays", "history": "What operators did",
         "explain": "Explain a message", "keys": "keys, in their order", "keys?key=k2": "took effect at", "keys?key=k1": "No key row",
         "outbox": "Outbox", "outbox?topic=r": "Outbox", "record?id=1": "Record 1 for r",
         "outside": "Outside calls", "outside?status=all": "Outside calls"}
PATIENCE = 60
# Where get_axe.sh puts it.
CACHE = pathlib.Path(os.environ.get("HAPAX_CACHE") or pathlib.Path.home() / ".cache/hapax")
AXE = next((file.read_text() for file in sorted(CACHE.glob("axe-core-*/axe.min.js"))), None)


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

    def expect_accessible(self, view):
        """No serious finding by the rules of axe-core, if get_axe.sh has fetched it."""
        if not AXE:
            return
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE})
        found = self.driver.execute_async_script("axe.run().then(arguments[0])")["violations"]
        found = [one for one in found if one["impact"] in ("serious", "critical")]
        assert not found, view + "".join(f"\n{one['id']} ({one['impact']}): {one['help']}\n  {one['nodes'][0]['html']}" for one in found)

    def shoot(self, folder, name):
        if folder:
            self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))
