"""The board in headless Chromium: each page, empty, running and failed, wide and narrow, light and dark, by keyboard.

BINLANE_CHROMIUM names the browser where it is not on PATH under one of its usual names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

import pytest

from binlane.board.host import COOKIE
from lab.servers import private_server
from tests.integration.window.board.board_scene import (
    EDITOR,
    FAILED,
    HOSTILE,
    READER,
    RESTORE,
    RUNNING,
    UNREACHABLE,
    Page,
    Scene,
    scene_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route
    from playwright.sync_api import Page as Tab

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM: Final = os.environ.get("BINLANE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
WIDTHS: Final = {1280: 900, 390: 844}
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
VIEWS: Final = ("channels", "channel", "window", "lane", "block", "rows", "databases", "found", "records")
STATES: Final = ("empty", "running", "failed")
HOSTILE_REASON: Final = "<img src=x onerror=alert(1)> \u202egnp.exe & \"'</td><script>alert(2)</script>"
NOT_FOUND: Final = "Failed to load resource: the server responded with a status of 404 (Not Found)"
"""What Chromium itself says of the only answer here that is no success: a page of what is not there."""

pytestmark = [
    pytest.mark.trial,
    pytest.mark.skipif(
        CHROMIUM is None, reason=f"no Chromium: install one ({', '.join(NAMES)} on PATH) or name it by BINLANE_CHROMIUM"
    ),
    pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is not installed: `make setup`"),
]


class Watch:
    """What a tab must not do: print errors, raise, or ask another host."""

    def __init__(self, tab: Tab, url: str) -> None:
        self.found: list[str] = []
        tab.on("console", lambda message: self._said(message.type, message.text))
        tab.on("pageerror", lambda error: self.found.append(f"raised: {error}"))
        tab.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))
        host = url.removesuffix("binlane/")
        tab.on("request", lambda request: self._asked(request.url, host))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and text != NOT_FOUND:
            self.found.append(f"{kind}: {text}")

    def _asked(self, url: str, host: str) -> None:
        if not url.startswith((host, "data:")):
            self.found.append(f"asked {url}")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("board")
    # servers of its own: some of its channels begin with the oldest log
    with (
        private_server(folder / "source", name="board_source", durable=False) as source,
        private_server(folder / "target", name="board_target", durable=False) as target,
        scene_of(source, target, folder) as scene,
    ):
        yield scene


@dataclass(slots=True)
class Look:
    """Tabs of the board, one for each user."""

    browser: Browser
    url: str
    tabs: dict[str, tuple[Tab, Watch]] = field(default_factory=dict)

    def tab(self, user: str, width: int = 1280, theme: Theme = "light") -> tuple[Tab, Watch]:
        """A user's tab, on a screen of this width and theme."""
        if user not in self.tabs:
            context = self.browser.new_context()
            context.set_default_timeout(60_000)
            context.add_cookies([{"name": COOKIE, "value": user, "url": self.url}])
            tab = context.new_page()
            self.tabs[user] = (tab, Watch(tab, self.url))
        tab, watch = self.tabs[user]
        tab.set_viewport_size({"width": width, "height": WIDTHS[width]})
        tab.emulate_media(color_scheme=theme)
        watch.found.clear()
        return tab, watch

    def open(self, tab: Tab, page: Page) -> None:
        """Load the page anew, and wait for what it shows."""
        tab.goto("about:blank")
        tab.goto(self.url + page.path)
        tab.wait_for_selector("main[aria-busy=false]")
        tab.wait_for_selector(f"main:has-text({json.dumps(page.word)})")


@pytest.fixture(scope="module")
def look(scene: Scene) -> Iterator[Look]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield Look(browser, scene.url)
        browser.close()


LINKS: Final = "[...document.querySelectorAll('main tbody th a')].map((each) => each.getAttribute('href'))"


@pytest.fixture(scope="module")
def pages(look: Look, scene: Scene) -> dict[tuple[str, str], Page]:
    """With a block and a transaction of it that holds hostile values, which only the lane's page knows."""
    found = dict(scene.pages)
    for state in ("running", "failed"):
        tab, _ = look.tab(EDITOR)
        look.open(tab, found["lane", state])
        for link in tab.evaluate(LINKS):
            look.open(tab, Page(link, "Block at seqno"))
            if "tenant_001.hostile 2 inserted" in tab.locator("main").inner_text():
                found["block", state] = Page(link, "2 inserted")
                row = tab.locator("tr:has-text('tenant_001.hostile 2 inserted') th a").get_attribute("href")
                found["rows", state] = Page(row or "", "gnp.exe")
                break
    return found


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_page_fits_is_themed_keeps_to_itself_and_is_reached_by_keyboard(
    look: Look, pages: dict[tuple[str, str], Page], view: str, state: str
) -> None:
    """Loaded once; it follows the window's width and the system's theme."""
    page, grounds = pages[view, state], set()
    tab, watch = look.tab(page.user)
    look.open(tab, page)
    tab_reaches_all(tab)
    for width, height in WIDTHS.items():
        tab.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            tab.emulate_media(color_scheme=theme)
            tab.wait_for_selector(f"html[data-theme={theme}]")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate(FAINT_TEXT) == []
            grounds.add((theme, tab.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert len(grounds) == len({ground for _, ground in grounds}) == len(THEMES)
    assert watch.found == []


FAINT_TEXT = """() => {
  const channels = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((v, n) => v * a + under[n] * (1 - a));
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    const colour = channels(getComputedStyle(element).backgroundColor);
    return colour.length && (colour[3] ?? 1) === 1 ? colour.slice(0, 3) : over(colour, ground(element.parentElement));
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("noscript, button:disabled")) continue;
    const behind = ground(element), ink = over(channels(getComputedStyle(element).color), behind);
    const [a, b] = [light(ink), light(behind)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = `${element.className || element.nodeName}: ${node.data.slice(0, 30)}`;
    if (contrast < 4.5) found.add(`${what}: ${contrast.toFixed(2)}`);
  }
  return [...found];
}"""
"""Text of less contrast than WCAG 2.2 asks for (1.4.3, AA)."""


CONTROLS = """() => {
  const all = document.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex='0']");
  const there = (each) => !each.disabled && each.checkVisibility() && !each.closest("dialog:not([open])");
  const seen = [...all].filter(there);
  seen.forEach((each, n) => { each.dataset.number = n; });
  return seen.length;
}"""
FOCUSED = """() => {
  const each = document.activeElement, style = getComputedStyle(each);
  if (each === document.body) return null;
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const box = each.getBoundingClientRect();
  const inView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { number: each.dataset.number ?? null, what: each.outerHTML.slice(0, 120), ring, inView };
}"""


def tab_reaches_all(tab: Tab) -> None:
    """Every control, each of them in view and ringed when it is its turn."""
    # the page asks again by a timer, which would number new elements anew
    tab.evaluate("() => { for (let n = setTimeout(() => {}); n > 0; n -= 1) clearTimeout(n); }")
    wanted = tab.evaluate(CONTROLS)
    assert wanted >= 1
    reached: set[str] = set()
    for _ in range(wanted + 40):
        tab.keyboard.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused["ring"], focused["what"]
        assert focused["inView"], focused["what"]
        reached.add(str(focused["number"]))
    missing = {str(number) for number in range(wanted)} - reached
    assert missing == set(), [
        tab.evaluate("(n) => document.querySelector(`[data-number='${n}']`)?.outerHTML.slice(0, 120)", number)
        for number in missing
    ]


def press(tab: Tab, name: str, times: int = 60) -> None:
    """Tab to the control of this name, and Enter."""
    for _ in range(times):
        tab.keyboard.press("Tab")
        if re.sub(r"\s+", " ", tab.evaluate("document.activeElement.innerText ?? ''")).strip() == name:
            tab.keyboard.press("Enter")
            return
    raise AssertionError(f"Tab never reached {name!r}")


def test_enter_follows_links_down_to_a_block(look: Look, pages: dict[tuple[str, str], Page]) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page("#/", RUNNING))
    press(tab, RUNNING)
    tab.wait_for_selector("h2:has-text('Window #2')")
    press(tab, "Window #2")
    tab.wait_for_selector("h2:has-text('Lanes')")
    lane = tab.locator("main tbody th a").first.inner_text()
    press(tab, lane)
    tab.wait_for_selector("p:has-text('commit together')")
    href = pages["block", "running"].path
    press(tab, tab.locator(f"main tbody th a[href='{href}']").inner_text())
    tab.wait_for_selector("h1:has-text('Block at seqno')")
    assert tab.evaluate("location.hash") == href
    href = pages["rows", "running"].path
    press(tab, tab.locator(f"main tbody th a[href='{href}']").inner_text())
    tab.wait_for_selector("h1:has-text('Transaction')")
    values = tab.locator("td.value").all_inner_texts()
    assert values[0] == "1"
    assert HOSTILE[:28] in values[1]
    assert "\\u202egnp.exe" in values[1]
    assert "\u202e" not in tab.locator("main").inner_text()
    assert values[2:] == ["2", "NULL"]
    assert tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert watch.found == []


def test_a_channel_is_stopped_and_resumed_from_the_keyboard(look: Look) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page("#/c/fresh", "No window yet"))
    press(tab, "Stop")
    tab.wait_for_selector("dialog[open]")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("dialog", state="hidden")
    press(tab, "Stop")
    tab.wait_for_selector("dialog[open]")
    press(tab, "Stop")
    tab.wait_for_selector("#said:has-text('is stopped at seqno')")
    tab.wait_for_selector(".pill.stopped")
    press(tab, "Resume")
    tab.wait_for_selector("dialog[open]")
    press(tab, "Resume")
    tab.wait_for_selector(".pill.idle")
    assert watch.found == []


def test_a_verification_is_started_from_the_keyboard(look: Look, scene: Scene) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page(f"#/c/{RUNNING}", "Busiest shards"))
    press(tab, "Verify")
    tab.wait_for_selector("dialog[open]")
    tab.keyboard.press("Space")  # the field has the focus
    press(tab, "Verify")
    tab.wait_for_selector("#said:has-text('run manual__2')")
    tab.wait_for_selector("dialog", state="hidden")
    assert scene.asked == [(f"replicate_{RUNNING}", {"verify": "full", "verify_only": True})]
    assert watch.found == []


def test_a_transaction_is_skipped_from_the_keyboard_and_a_refusal_is_read_where_it_was_asked(look: Look) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page(f"#/c/{FAILED}", "Next step"))
    press(tab, "Skip a transaction of this block …")
    tab.wait_for_selector("dialog[open]")
    seqno = tab.locator("dialog input[name=seqno]").input_value()
    tab.keyboard.type("1")  # the field has the focus, and what stands in it is marked
    tab.keyboard.press("Tab")
    tab.keyboard.type(HOSTILE_REASON)
    press(tab, "Skip it")
    tab.wait_for_selector("dialog .refused:has-text('it is applied already')")
    assert tab.locator("dialog textarea").input_value() == HOSTILE_REASON
    tab.locator("dialog input[name=seqno]").fill(seqno)
    press(tab, "Skip it")
    tab.wait_for_selector("dialog", state="hidden")
    tab.wait_for_selector(".pill.requested")
    shown = HOSTILE_REASON.replace("\u202e", r"\u202e")  # what would turn the line around is spelled
    assert tab.locator("td[data-label=Reason]").inner_text() == shown
    assert tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
    with tab.expect_download() as download:
        press(tab, tab.locator("a[download]").inner_text())
    assert download.value.suggested_filename == f"skipped-{seqno}.binlog"
    assert [each for each in watch.found if "409 (Conflict)" not in each] == []
    press(tab, "Cancel skip")
    tab.wait_for_selector("dialog[open]")
    press(tab, "Cancel the skip")
    tab.wait_for_selector(".pill.requested", state="detached")


def test_a_reader_has_no_button_that_acts(look: Look) -> None:
    tab, _ = look.tab(READER)
    for name in (RUNNING, FAILED):
        look.open(tab, Page(f"#/c/{name}", "Busiest shards"))
        acting = [each for each in tab.locator("main button").all_inner_texts() if not each.endswith("Airflow")]
        assert acting == ["Find"]  # a search


def test_a_reader_is_told_what_the_page_leaves_out_and_why(look: Look) -> None:
    tab, _ = look.tab(READER)
    look.open(tab, Page(f"#/c/{FAILED}", "You may read this channel's DAG and not edit it"))
    assert f"permission to edit replicate_{FAILED}" in tab.locator("main").inner_text()
    tab, _ = look.tab(EDITOR)
    look.open(tab, Page(f"#/c/{FAILED}", "Busiest shards"))
    assert "You may read" not in tab.locator("main").inner_text()


def test_lists_show_ten_lines_and_what_is_solved_is_closed(look: Look) -> None:
    """The scene's channel with longer lists, as it will have them after months."""

    def longer(route: Route) -> None:
        found = route.fetch().json()
        [first, *_], [error, *_] = found["history"], found["errors"]
        found["history"] = [{**first, "window_id": f"w{number}", "number": number} for number in range(26, 0, -1)]
        found["errors"] = [{**error, "id": at, "current": at < 2, "text": f"error {at}"} for at in range(5)]
        found["coverage"]["unshown"] = [f"reason {at}" for at in range(12)]
        compared = {"through_seqno": 5, "tables": 1, "chunks": 1, "rows": 1, "drift": 11, "pending": 0}
        times = {"started_at": 1.0, "ended_at": 2.0}
        found["verifications"] = [{"id": 1, "kind": "full", "scope": [], "state": "drift", **compared, **times}]
        pair = {"name": "<b>v", "source": "1", "target": None}
        row = {"table": "app.t", "key": [["id", "1"]], "missing_on": None, "columns": [pair], "note": ""}
        found["drifted"] = [{**row, "key": [["id", str(at)]]} for at in range(11)]
        uuid = "3e11fa47-71ca-11e1-9e33-c80aa942956"
        found["card"]["mark"]["gtid_set"] = ",".join(f"{uuid}{server}:1-{server}77" for server in range(3))
        found["card"]["run_before"] = {**found["card"]["run"], "state": "failed", "failed_tasks": ["apply_lane"]}
        route.fulfill(json=found)

    tab, _ = look.tab(EDITOR)
    address = re.compile(rf"/api/channels/{FAILED}$")
    tab.route(address, longer)
    look.open(tab, Page(f"#/c/{FAILED}", "Known to differ"))
    for heading, closed in (
        ("Windows", ["16 more windows"]),
        ("Errors that stopped a lane or a window", ["3 solved errors"]),
        ("Verification", ["2 more reasons", "1 more line"]),
    ):
        panel = tab.locator(f"section.panel:has(h2:text-is('{heading}'))")
        assert panel.locator("details > summary").all_inner_texts() == closed
        assert panel.locator("details[open]").count() == 0
    text = tab.locator("main").inner_text()
    assert ("error 1" in text, "error 2" in text) == (True, False)
    assert ("reason 9" in text, "reason 10" in text) == (True, False)
    assert "…9560:1-077" in text
    assert "and 1 more" in text
    assert "failed at apply_lane" in text
    assert text.index("Known to differ") < text.index("\nWindows\n")
    tab.unroute(address)


def test_the_list_is_filtered_and_channels_are_stopped_and_resumed_together(look: Look) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page("#/", RUNNING))
    names = tab.locator("main tbody th a").all_inner_texts()
    assert len(names) == 5
    tab.locator("input[placeholder^=name]").fill("fre")
    tab.wait_for_selector("main tbody:has(tr:nth-child(1):last-child)")
    tab.locator("input[placeholder^=name]").fill("")
    tab.wait_for_selector("main tbody:has(tr:nth-child(5):last-child)")
    assert tab.locator(".filters button").count() == 0  # nothing acts on all of them by one press
    tab.locator("button.tag", has_text="pair").first.click()
    tab.wait_for_selector("main tbody:has(tr:nth-child(2):last-child)")
    for verb, answer in (("Stop", "stop"), ("Resume", "is resumed")):
        tab.locator(".filters button", has_text=f"{verb} 2").click()
        tab.wait_for_selector("dialog[open]")
        tab.locator("dialog button.go").click()
        tab.wait_for_selector("dialog .refused:has(.notice:nth-child(2):last-child)")
        assert all(answer in each for each in tab.locator("dialog .notice").all_inner_texts())
        tab.keyboard.press("Escape")
        tab.wait_for_selector("dialog", state="hidden")
        tab.wait_for_selector(f".filters button:has-text('{'Resume' if verb == 'Stop' else 'Stop'} 2')")
    tab.locator("button.tag", has_text="pair").first.click()
    assert watch.found == []


def test_channels_that_cannot_be_asked_are_named_and_cancel_ends_what_is_not_sent(look: Look) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page("#/", RUNNING))
    tab.locator("input[placeholder^=name]").fill("Rolls the channel")
    sent: list[str] = []

    def held(route: Route) -> None:
        sent.append(route.request.url)
        tab.locator("dialog button", has_text="Cancel").click()
        route.fulfill(json={"message": "asked to stop"})

    tab.route("**/stop", held)
    tab.locator(".filters button", has_text="Stop 4").click()
    tab.wait_for_selector("dialog[open]")
    without = tab.locator("dialog .without").inner_text()
    assert "Not done for 1 channel:" in without
    assert f"{UNREACHABLE}: TargetUnavailableError" in without
    tab.locator("dialog button.go").click()
    tab.wait_for_selector("dialog button:has-text('Close')")
    done, left = tab.locator("dialog .refused .notice").all_inner_texts()
    assert (done, left.partition(": ")[0]) == ("asked to stop", "Cancelled. Not sent for 3 channels")
    assert len(sent) == 1
    tab.keyboard.press("Escape")
    tab.unroute("**/stop")
    assert watch.found == []


def test_a_database_is_found_from_the_list_and_its_numbers_are_explained(look: Look) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page("#/", RUNNING))
    tab.locator(".finder input").fill("tenant_001")
    tab.locator(".finder input").press("Enter")
    tab.wait_for_selector("h1:has-text('Databases')")
    row = tab.locator("main tbody tr", has_text=RUNNING).first
    assert "tenant_001" in row.inner_text()
    assert "seqno" in row.inner_text()
    tab.locator("summary:has-text('What these numbers mean')").click()
    assert "The last transaction with a change of the database" in tab.locator(".glossary").inner_text()
    assert [each for each in watch.found if "404" not in each] == []


def test_repairs_a_first_copy_and_restores_are_shown_and_their_names_do_nothing(
    look: Look, pages: dict[tuple[str, str], Page]
) -> None:
    tab, watch = look.tab(READER)
    look.open(tab, pages["records", "running"])
    row = tab.locator("main tbody tr").first
    assert row.locator("td[data-label=Updated]").inner_text() == "2"
    assert row.locator("td[data-label='Left alone']").inner_text() == "4"
    restore = tab.locator(f"tr[data-key={RESTORE}]")
    assert restore.locator("td[data-label=Databases] div").first.inner_text() == "tenant_001 as <b>x\\u202e"
    assert restore.locator("td[data-label=Stage]").inner_text().split("\n")[0] == "interrupted"
    assert restore.locator("td[data-label=Base]").inner_text() == "\u2013"
    drill = tab.locator("section.panel:has(h2:text-is('Drills')) tbody tr")
    assert drill.locator("td[data-label=Result]").inner_text() == "failed"
    assert drill.locator("td[data-label=Equal]").inner_text() == "0 of 0"
    shown = tab.locator("main").inner_text()
    assert "<b>x\\u202e, tenant_001" in shown
    assert "\u202e" not in shown
    assert tab.evaluate("document.querySelectorAll('main img, main script, main b').length") == 0
    assert watch.found == []


def test_an_error_leads_to_its_transaction_and_rows(look: Look, pages: dict[tuple[str, str], Page]) -> None:
    tab, watch = look.tab(EDITOR)
    look.open(tab, Page(f"#/c/{FAILED}", "Next step"))
    tab.locator("a.button", has_text="Transaction and rows").click()
    tab.wait_for_selector("h1:has-text('Transaction')")
    assert "/t/" in tab.evaluate("location.hash")
    assert tab.locator("td.value").count() > 0
    tab, _ = look.tab(READER)
    look.open(tab, Page(f"#/c/{FAILED}", "Next step"))
    tab.locator("a.button", has_text="Transaction and rows").click()
    tab.wait_for_selector("h1:has-text('Block at seqno')")  # a reader may not see rows
    assert watch.found == []


def test_a_user_who_is_signed_out_is_told(look: Look) -> None:
    tab, _ = look.tab(EDITOR)
    look.open(tab, Page("#/", RUNNING))
    tab.context.clear_cookies()
    look.tabs.clear()
    tab.evaluate("location.hash = '#/c/fresh'")
    tab.wait_for_selector("main:has-text('You are signed out')")
    assert tab.locator("#live").inner_text() == "signed out"
