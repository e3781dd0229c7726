#!/usr/bin/env python3
"""Opens the console in a headless Chromium, as an operator at night does.

Loads every view, gives every order, one of them by the keyboard alone, and looks whether what a
message holds can run script. browser_pgtest.cpp makes the database, and looks at it afterwards.
Arguments: the URL with the operator's role, the URL with the worker's, the URL of a console with
console.mask, a folder for screenshots or nothing. Exits 77 if Chromium or selenium is not installed.
"""

import http.server
import pathlib
import shutil
import sys
import threading
import time

from browser_page import AXE, VIEWS, Keys, Page

NAMELESS = """return [...document.querySelectorAll("input, select, textarea, button, a")].filter((one) =>
  !(one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label"))).map((one) => one.outerHTML)"""


def look_at_all(page, folder):
    assert "token" not in page.run("return location.href"), "the token stays in the address"
    for view in VIEWS:
        page.open(view)
        nameless = page.run(NAMELESS)
        assert not nameless, f"{view}: without a name: {nameless}"
        page.expect_accessible(view)
        assert "hapax" in page.run("return document.querySelector('.cli code')?.innerText ?? ''") or view == "explain", view
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
    page.expect_accessible("the dialog of an order")
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
    page.await_text("is not kept (more than")
    assert "tombstone" not in page.text() and "\nReplay …" not in page.text(), page.text()
    page.click("Edit and replay …")
    page.await_text("Write the edited payload to a file")
    assert "--payload edited.json" in page.command()
    page.close()


def hide_what_is_masked(page):
    page.go("letter?which=5")
    page.await_text('{"card":{"month":7,"number":"(masked)"}}')
    assert "4929" not in page.text() and "Download all of it" not in page.text(), page.text()
    page.expect_accessible("a masked letter")
    page.click("Edit and replay …")
    page.await_text("The setting console.mask hides a part of the payload.")
    inside = page.run("return document.querySelector('dialog').innerHTML")
    assert "<textarea" not in inside and "Do it" not in inside, inside
    page.close()
    page.go("letter?which=1")
    page.await_text("not shown, because they are not JSON")
    assert "window.hacked = 1" not in page.text(), page.text()
    page.expect_calm()


def look_a_key_up(page):
    """From the list of keys to one of them, and to its dead letter; as the commands tell it."""
    page.open("keys")
    page.run("document.querySelector('main table a').click()")
    page.await_text("has called for it")
    assert page.run("return location.hash") == "#/keys?key=c1&scope=s"
    assert page.run("return [...document.querySelectorAll('main .cli code')].map((one) => one.innerText)") == [
        "hapax explain -c worker.json --key c1 --scope s", "hapax keys show -c worker.json --scope s c1"]
    page.go("keys?status=unknown&older_than=0s")
    page.await_text("1 keys, in their order")
    assert page.run("return document.querySelector('main .cli code').innerText") == \
        "hapax keys list -c worker.json --status unknown --older-than 0s"
    page.go("keys?key=%3Cb%3Enone")
    page.await_text('nothing is stored about key "<b>none"')
    page.go("keys?key=k1")
    page.await_text("Dead letters under it")
    assert "window.hacked" in page.text()  # its error, as text
    page.run("document.querySelector('main td a').click()")
    page.await_text(VIEWS["letter?which=1"])
    page.driver.get_log("browser")  # what is not there is a 404
    page.expect_calm()


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


def look_back(page):
    """What was ordered is in the views of replays and of orders."""
    page.go("replays")
    page.await_text("5 replays, newest first")  # one is of the call that was decided
    page.go("replays?state=cancelled")
    page.await_text("2 replays, newest first")  # the second by the discard
    page.go("history")
    page.await_text("10 orders, newest first")
    assert page.run("return document.querySelector('main tbody tr td:nth-child(3)').innerText") == "outside decide --happened"
    page.go("history?text=disk")
    page.await_text("1 orders, newest first")
    assert "position('\\''disk'\\'' IN" in page.run("return document.querySelector('main .cli code').innerText")
    page.expect_calm()


PACE = """
const [done] = arguments;
import("/pace.js?fresh").then(({observe, paceOf, sentence, plot}) => {
  const row = (partition, checkpoint, end, generation = 1) => ({topic: "t", partition, checkpoint, end, lag: end - checkpoint, generation});
  const at = (second, ...partitions) => observe({kafka_age_seconds: 0, partitions}, 1e12 + 1000 * second);
  const told = [sentence(paceOf())];
  at(0, row(0, 0, 1000), row(1, 0, 0));
  at(10, row(0, 200, 1000), row(1, 50, 100));
  told.push(sentence(paceOf()), sentence(paceOf("t/1")));
  at(20, row(0, 100, 1000), row(1, 50, 100, 2)); // a rewind; a topic that was made again
  told.push(sentence(paceOf("t/0")), sentence(paceOf("t/1")), plot(paceOf()).querySelectorAll("polyline").length);
  at(30, row(0, 300, 1000)); at(40, row(0, 500, 1000));
  told.push(sentence(paceOf("t/0")), plot(paceOf()).querySelectorAll("polyline").length);
  done(told);
})"""


def tell_the_pace(page):
    page.await_text("PostgreSQL answers")
    nothing = "The pace is known once the page has been open for 5 seconds."
    told = page.driver.execute_async_script(PACE)
    assert told == [
        nothing,
        "25 offsets/s settled, 10/s arrive. At this pace the lag of 850 is gone in about 57 s.",
        "5 offsets/s settled, 10/s arrive. At this pace the lag of 50 grows.",
        "5 offsets/s settled, 0/s arrive. At this pace the lag of 900 is gone in about 3 min.",
        nothing, 0,
        "10 offsets/s settled, 0/s arrive. At this pace the lag of 500 is gone in about 50 s.", 2], told


# As console_kafkatest.cpp gets it from a real console: here Kafka is away.
FATES = """
const run = (from, to, verdict) => ({from, to, verdict});
const counts = {completed: 905, duplicate: 40, dead_letter: 3, waiting: 0, in_flight: 50, unaccounted: 2};
const told = {partition: 2, from: 142, to: 1142, generation: 1, checkpoint: 1092, counts, deleted_unsettled: 0, other_keys: false,
  left_out: [], unaccounted: [{offset: 600, why: "<img src=x onerror=window.hacked=1>"}],
  runs: [run(142, 400, "completed"), run(400, 440, "duplicate"), run(440, 600, "completed"), run(600, 602, "unaccounted"),
    run(602, 900, "completed"), run(900, 903, "dead_letter"), run(903, 1092, "completed"), run(1092, 1142, "in_flight")]};
window.kept = window.fetch;
window.fetch = (path, options) => path.startsWith("/api/audit") ? Promise.resolve(new Response(JSON.stringify(told), {headers: {"Content-Type": "application/json"}})) : kept(path, options);"""


def show_the_fates_of_offsets(page, folder):
    page.go("audit?topic=t&partition=2&from=142")
    page.await_text("Kafka: ")  # does not answer, and the page tells so
    page.driver.get_log("browser")
    page.run(FATES)
    page.open("overview")
    page.go("partition?topic=t&partition=2")
    page.await_text("around the checkpoint")
    page.run("document.querySelector('main a[href*=audit]').click()")
    page.await_text("What became of the offsets of t/2")
    page.await_text("Nothing explains 2 of these offsets.")
    assert page.run("return location.hash") == "#/audit?topic=t&partition=2&from=142"
    # Of squares, as many as offsets, each in its place.
    drawn = page.run("""return [...document.querySelectorAll("figure.fates rect")].map((one) =>
      ["class", "x", "y", "width"].map((name) => one.getAttribute(name)).join(" "))""")
    assert sum(int(one.split()[-1]) for one in drawn) == 1000, drawn
    assert all(int(one.split()[2]) + int(one.split()[4]) <= 50 for one in drawn), drawn
    assert [one for one in drawn if "unaccounted" in one] == ["fate unaccounted 8 9.05 2"], drawn
    assert "<img src=x" in page.text() and "t/2/600" in page.text()
    assert page.run("return document.querySelector('main .cli code').innerText") == \
        "hapax audit -c worker.json --topic t --partition 2 --from 142 --to 1142"
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        page.expect_accessible(f"audit, {scheme}")
        page.shoot(folder, f"{scheme}-audit")
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 780, "deviceScaleFactor": 1, "mobile": True})
    wide = page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 0, f"audit is {wide} px too wide for a phone"
    page.run("window.fetch = window.kept")
    page.expect_calm()


def fit_a_phone(page, folder):
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 780, "deviceScaleFactor": 1, "mobile": True})
        for view in VIEWS:
            page.open(view)
            wide = page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{view} is {wide} px too wide for a phone"
            page.expect_accessible(f"{view}, {scheme}, on a phone")
            page.shoot(folder, f"phone-{scheme}-{list(VIEWS).index(view)}-{view.partition('?')[0]}")
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        for view in ("overview", "letters", "letter?which=1", "keys?key=k2"):
            page.open(view)
            page.expect_accessible(f"{view}, {scheme}")
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
    operator, worker, masked = sys.argv[1:4]
    folder = sys.argv[4] if len(sys.argv) > 4 else None
    began = time.monotonic()
    page = Page(operator)
    try:
        keep_the_token_from_another_port(page, operator)
        need_the_token(page, operator)
        look_at_all(page, folder)
        tell_the_pace(page)
        show_the_fates_of_offsets(page, folder)
        download(page)
        fit_a_phone(page, folder)
        look_a_key_up(page)
        meet_hostile_bytes(page)
        page.driver.get(page.base)
        end_a_halt_by_keyboard(page, folder)
        page.driver.get(worker)
        read_only(page)
        page.driver.get(masked)
        page.await_text("you act as role")
        hide_what_is_masked(page)
        page.driver.get(operator)
        edit_nothing_that_a_browser_would_change(page)
        tell_a_message_that_was_not_kept(page)
        match_what_the_list_shows(page)
        tell_that_an_order_may_have_been_carried_out(page)
        give_all_orders(page)
        look_back(page)
    finally:
        page.driver.quit()
    checked = "" if AXE else "; NOT CHECKED by axe-core: tests/console/get_axe.sh"
    print(f"every view and order in {time.monotonic() - began:.0f} s{checked}")


main()
