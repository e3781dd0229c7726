#!/usr/bin/env python3
"""Opens the console on ten thousand dead letters, each with an error as long as hapax keeps one, and as many keys.

No view grows with their number: neither its elements nor the bytes of an answer, and each is there in time.
browser_pgtest.cpp makes them. Argument: the URL with the operator's role. Exits 77 if Chromium or
selenium is not installed.
"""

import sys
import time

from browser_page import By, Keys, Page

LETTERS = 10_000
ROWS = 50
ELEMENTS = 1500
BYTES = 100_000
SECONDS = 20  # for a look on a busy machine; a statement of the console ends after 5

HEARD = """
window.heard = 0;
const asked = window.fetch;
window.fetch = async (...words) => {
  const answer = await asked(...words);
  window.heard = Math.max(window.heard, (await answer.clone().text()).length);
  return answer;
};"""


class Watch:
    """Times what a page does, and looks at how large it has become."""

    def __init__(self, page):
        self.page = page
        self.slowest = 0

    def __call__(self, what, act, text):
        began = time.monotonic()
        act()
        self.page.await_text(text)
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        elements = self.page.run("return document.querySelectorAll('*').length")
        heard = self.page.run("return window.heard")
        assert took < SECONDS and elements < ELEMENTS and heard < BYTES, f"{what}: {took:.1f} s, {elements} elements, {heard} bytes"
        print(f"{what}: {took:.1f} s, {elements} elements, {heard} bytes")


def filter_by(page, name, text):
    field = page.driver.find_element(By.CSS_SELECTOR, f"main [name={name}]")
    field.clear()
    field.send_keys(text, Keys.ENTER)


def ids(page):
    return [int(one) for one in page.run("return [...document.querySelectorAll('main tbody tr td:first-child')].map((one) => one.innerText)")]


def turn(page, label="Older"):
    page.mark_as_old()
    page.run("[...document.querySelectorAll('nav[aria-label=Pages] a')].find((one) => one.innerText === arguments[0]).click()", label)
    page.await_new_view("the next page")


def look_around(page, watch):
    watch("overview", lambda: None, "PostgreSQL answers")
    watch("letters", lambda: page.go("letters"), f"{ROWS} letters, newest first")
    page.expect_accessible("ten thousand letters")
    for number in range(1, 6):
        watch(f"page {number + 1}", lambda: turn(page), f"{ROWS} letters, newest first")
        first = LETTERS - number * ROWS
        assert ids(page) == list(range(first, first - ROWS, -1)), ids(page)
    watch("the last page", lambda: page.go(f"letters?before={ROWS + 1}"), f"{ROWS} letters, newest first")
    assert ids(page)[-1] == 1
    watch("no filter", lambda: page.go("letters"), f"{ROWS} letters, newest first")
    watch("text in the error", lambda: filter_by(page, "error", "(letter 5000)"), "1 letters, newest first")
    assert ids(page) == [5000]
    watch("text in no error", lambda: filter_by(page, "error", "nothing"), "No dead letter fits.")
    watch("a reason", lambda: page.go("letters?reason=rejected"), f"{ROWS} letters, newest first")
    assert all(one % 2 == 0 for one in ids(page))
    watch("a key", lambda: filter_by(page, "key", "k78"), "1 letters, newest first")
    watch("one letter", lambda: page.go("letter?which=5000"), "Dead letter 5000")


def look_at_keys(page, watch):
    watch("keys", lambda: page.go("keys"), f"{ROWS} keys, in their order")
    page.expect_accessible("ten thousand keys")
    for number in (1, 2):
        watch(f"keys, page {number + 1}", lambda: turn(page, "Later"), f"{ROWS} keys, in their order")
        assert page.run("return document.querySelector('main td').innerText") == f"other{number * ROWS + 1:05}"
        assert page.run("return document.querySelector('main .cli code').innerText") == f"hapax keys list -c worker.json --after other{number * ROWS:05} s ''"
    watch("no key", lambda: page.go("keys?status=failed"), "No key fits.")
    watch("the last keys", lambda: page.go("keys?from=other09990"), "11 keys, in their order")


def order_all(page, watch):
    named = "-c worker.json --url \"$OPERATOR\" --all --who ann --why 'it'\\''s fixed' --yes"
    for verb, label, result in (("replay", "Replay", "Wanted"), ("discard", "Discard", "Discarded")):
        page.go("letters")
        page.await_text(f"{ROWS} letters, newest first")
        page.order(f"{label} all that match …", f"hapax dead {verb} {named}", f"{result}: {LETTERS} of {LETTERS}.")
    page.await_text("No dead letter fits.")
    watch("discarded letters", lambda: page.go("letters?state=discarded"), f"{ROWS} letters, newest first")
    watch("replays", lambda: page.go("replays"), f"{ROWS} replays, newest first")
    assert "cancelled 10,000" in page.text()


def main():
    page = Page(sys.argv[1])
    watch = Watch(page)
    try:
        page.await_text("PostgreSQL answers")
        page.run(HEARD)
        look_around(page, watch)
        look_at_keys(page, watch)
        order_all(page, watch)
        page.expect_calm()
    finally:
        page.driver.quit()
    print(f"{LETTERS} dead letters, the slowest view {watch.slowest:.1f} s")


main()
