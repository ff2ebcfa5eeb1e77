"""``make pictures``: the board's pictures in docs/images, of channels on real servers in headless Chromium."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from binlane.board.host import COOKIE
from binlane.servers.engines import engine_of
from binlane.state.channels import create_channel, read_channel
from binlane.state.leases import bootstrap_lease
from binlane.state.orders.stops import request_stop
from binlane.verify.outcome import Options
from lab.servers import private_server
from tests.integration.window.board.board_scene import EDITOR, FAILED, FRESH, RUNNING, Scene, scene_of
from tests.integration.window.board.test_board_browser import CHROMIUM, WIDTHS, Theme
from tests.integration.window.conftest import Channel, run_on


@dataclass(frozen=True, slots=True)
class Picture:
    """One file: the page, or one panel of it, on a screen of this width and theme."""

    name: str
    page: str
    width: int
    theme: Theme
    panel: str = ""
    silent: bool = False
    """While Airflow's scheduler shows no sign of life."""
    whole: bool = False
    """The page to its end, not the screen's part of it."""


_CITIES: Final[Mapping[str, str]] = {
    "aachen": "eu", "akron": "us", "bergen": "eu", "boise": "us", "cork": "eu", "delft": "eu", "evora": "eu",
    "reno": "us",
}  # fmt: skip
_CHANNEL, _COPY = f"#/c/{RUNNING}", f"#/c/{RUNNING}/r/all"
PICTURES: Final = (
    Picture("board", _CHANNEL, 1280, "light", whole=True),
    Picture("board-channels", "#/", 1280, "light"),
    Picture("board-channels-phone", "#/", 390, "dark"),
    Picture("board-databases", "#/f/tenant_*", 1280, "dark"),
    Picture("board-databases-phone", "#/f/tenant_*", 390, "light"),
    Picture("board-failed", f"#/c/{FAILED}", 1280, "dark"),
    Picture("board-failed-phone", f"#/c/{FAILED}", 390, "light"),
    Picture("board-health", f"#/c/{FRESH}", 1280, "light", silent=True),
    Picture("board-health-phone", f"#/c/{FRESH}", 390, "dark", silent=True),
    Picture("board-phone", _CHANNEL, 390, "light"),
    Picture("board-phone-dark", _CHANNEL, 390, "dark"),
    Picture("board-verification", _CHANNEL, 1280, "light", "Verification"),
    Picture("board-verification-phone", _CHANNEL, 390, "dark", "Verification"),
    Picture("board-copy", _COPY, 1280, "light", "First copy"),
    Picture("board-copy-phone", _COPY, 390, "dark", "First copy"),
)


def take(browser: Browser, scene: Scene, folder: Path) -> None:
    """Write the pictures into a folder."""
    for picture in PICTURES:
        scene.silent[:] = [1_140.0] if picture.silent else []
        size = {"width": picture.width, "height": WIDTHS[picture.width]}
        context = browser.new_context(viewport=size, color_scheme=picture.theme)  # type: ignore[arg-type]
        context.add_cookies([{"name": COOKIE, "value": EDITOR, "url": scene.url}])
        tab = context.new_page()
        tab.goto(scene.url + picture.page)
        tab.wait_for_selector("main[aria-busy=false]")
        tab.wait_for_timeout(700)  # charts and bars are drawn
        path = str(folder / f"{picture.name}.png")
        if picture.panel:
            tab.locator(f"section.panel:has(h2:text-is('{picture.panel}'))").screenshot(path=path)
        else:
            tab.screenshot(path=path, full_page=picture.whole)
        context.close()


def prepare(scene: Scene) -> None:
    """Times and figures of a site: many channels, one that nobody has run for weeks, a round over all rows that is read
    in slices, and a first copy with large tables."""
    _add_fleet(scene.channel)
    sizes = enumerate((("done", 9_000_000), ("planned", 4_200_000), ("planned", 0)))
    run_on(
        scene.channel.target,
        f"UPDATE binlane.channels SET created_at = created_at - INTERVAL 40 DAY WHERE channel = '{FRESH}'",
        "UPDATE binlane.verifications SET started_at = started_at - INTERVAL 1 DAY, seconds = 320, tables = 5, "
        f"compared_rows = 4812000, expected_rows = 20100000 WHERE channel = '{RUNNING}' AND state = 'running'",
        *(
            "INSERT INTO binlane.bootstrap_objects (channel, kind, object_schema, object_name, state, copied_rows, "
            f"source_rows, source_bytes) VALUES ('{RUNNING}', 'table', 'tenant_{n:03}', 'orders', '{state}', {rows}, "
            f"9000000, {n + 1} << 31)"
            for n, (state, rows) in sizes
        ),
        f'UPDATE binlane.bootstraps SET database_names = \'["tenant_000", "tenant_001", "tenant_002"]\', '
        f"attempt_at = UTC_TIMESTAMP(6) - INTERVAL 4 MINUTE WHERE channel = '{RUNNING}'",
    )


def _add_fleet(channel: Channel) -> None:
    """Channels of one template beside those of the scene, two of them stopped; no names that attack a page."""
    for file in channel.channels.glob("*.toml"):
        file.write_text(
            re.sub("^tags = .*\n", 'tags = ["shops", "eu"]\n', file.read_text("utf-8"), flags=re.M), "utf-8"
        )
    connections = (channel.channels / f"{RUNNING}.toml").read_text("utf-8").partition("[lanes]")[0]
    instances = "".join(
        f'shop_{city} = {{ city = "{city.title()}", region = "{at}" }}\n' for city, at in _CITIES.items()
    )
    (channel.channels / "shops.toml").write_text(
        'description = "Shops of ${city}"\ntags = ["shops", "${region}"]\n'
        f"[instances]\n{instances}{connections}", "utf-8"
    )  # fmt: skip
    engine = engine_of(channel.endpoints.target)
    with engine.connect() as connection:
        found = read_channel(connection, FRESH)
    for city in _CITIES:
        create_channel(engine, f"shop_{city}", found.source_identity, found.watermark)
    for city in ("cork", "delft"):
        request_stop(engine, f"shop_{city}", by="anna@ops1")


def main(folder: Path) -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory(prefix="binlane-pictures-") as place:
        root = Path(place)
        with (
            private_server(root / "source", name="board_source", durable=False) as source,
            private_server(root / "target", name="board_target", durable=False) as target,
            scene_of(source, target, root, Options(full=True, chunk_rows=5, seconds=0.001)) as scene,
            target.connect() as holder,
            holder.cursor() as cursor,
            sync_playwright() as driver,
        ):
            prepare(scene)
            # the attempt is running
            cursor.execute("SELECT GET_LOCK(%s, 0)", (bootstrap_lease(RUNNING),))
            browser = driver.chromium.launch(executable_path=CHROMIUM)
            take(browser, scene, folder)
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
