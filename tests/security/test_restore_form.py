"""Whoever may trigger a channel's restores names dumps, logs, servers and databases within the channel's file alone."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from binlane.config import ChannelConfig, load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.copies.restore_form import (
    RestoreForm,
    request_of,
    require_allowed,
    require_copied,
    require_own,
)
from binlane.orchestration.terminal import Grid
from binlane.safe_text import one_line
from binlane.state.records.restores import RestoreDefinition
from tests.dags.scene import write_channel

TEXT = """[source]
connection = "source"
[target]
connection = "target"
[filter]
include_databases = ["shop_*", "crm"]
exclude_databases = ["shop_Payroll"]
exclude_tables = ["crm.salaries"]
[restore]
bases = ["/dumps", "/more/dumps"]
logs = ["/logs/", "source"]
"""
ENDS = {"until": "now"}


@pytest.fixture
def shop(tmp_path: Path) -> ChannelConfig:
    return load_channel(write_channel(tmp_path, text=TEXT))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("base", "/etc/passwd", "base: expected"),
        ("base", "../etc/passwd", "base: expected"),
        ("base", "/dumps/../etc/passwd", "base: expected"),
        ("base", "/dumps_of_another/a.sql", "base: expected"),
        ("base", "~/a.sql", ""),
        ("base", "a\0b", "base: expected"),
        ("base", "a.sql\n[target]", "base: expected"),
        ("base", "file:///etc/passwd", ""),
        ("log", "/etc/", "log: expected one of /logs/, source, got '/etc/'"),
        ("log", "/logs/../etc/", "log: expected one of"),
        ("log", "other_connection", "log: expected one of"),
        ("log", "s3://another/", "log: expected one of"),
        ("onto", "source", "onto: expected one of target, got 'source'"),
        ("databases", "payments", r"found payments \(not in include_databases\)"),
        ("databases", "shop_1, shop_Payroll", r"found shop_Payroll \(exclude_databases"),
        # a server whose names are in small letters has another name of it
        ("databases", "shop_payroll", r"found shop_payroll \(exclude_databases"),
        ("databases", "crm", r"found crm \(exclude_tables"),
        ("databases", "binlane", "found binlane"),
        ("databases", "#mysql50#shop_1", "found #mysql50#shop_1"),
    ],
)
def test_a_form_names_nothing_outside_of_the_channels_file(
    field: str, value: str, said: str, shop: ChannelConfig
) -> None:
    form = RestoreForm.of({"databases": "shop_1", **ENDS, field: value})
    if not said:
        # a name in a folder of dumps, and nothing else
        assert request_of(form, shop).base.startswith("/dumps/")
        return
    with pytest.raises(ConfigError, match=said):
        request_of(form, shop)


@pytest.mark.parametrize("tables", [(), ("salaries",), ("customers", "salaries")])
def test_no_table_that_the_channel_leaves_out_is_restored(tables: tuple[str, ...], shop: ChannelConfig) -> None:
    params: dict[str, Any] = {"databases": "crm", "tables": ", ".join(tables) or None, **ENDS}
    with pytest.raises(ConfigError, match=r'found crm \(exclude_tables "crm\.salaries"\)'):
        request_of(RestoreForm.of(params), shop)
    assert request_of(RestoreForm.of(params | {"tables": "customers"}), shop).tables == ("customers",)


def test_what_a_pattern_stands_for_is_looked_at_by_its_names(shop: ChannelConfig) -> None:
    assert request_of(RestoreForm.of({"databases": "*", **ENDS}), shop).databases == ("*",)
    with pytest.raises(ConfigError, match="found payments"):
        require_copied(shop, ["shop_1", "payments"], ())


def test_the_places_of_the_channels_file_are_taken(shop: ChannelConfig) -> None:
    form = RestoreForm.of({"databases": "shop_1", "base": "/more/dumps/day/a.sql", "log": "source", **ENDS})
    found = request_of(form, shop)
    assert (found.base, found.log, found.onto) == ("/more/dumps/day/a.sql", "source", "target")


def test_only_databases_that_the_channel_takes_are_replaced(shop: ChannelConfig) -> None:
    def of(final: str) -> RestoreDefinition:
        databases, replaced = (("shop_1", final),), ((final, f"{final}_replaced"),)
        return RestoreDefinition("", "/logs/", databases, (), "b.000001:4", "b.000001", 9, "now", replaced, "", ())

    require_allowed(shop, of("shop_1_back"))
    with pytest.raises(ConfigError, match=r"found payments \(not in include_databases\)"):
        require_allowed(shop, of("payments"))


@pytest.mark.parametrize(
    ("name", "target", "database", "said"),
    [
        ("mine", "target", "shop_1", ""),
        ("mine", "source", "shop_1", "mine: expected a restore onto one of target, found one onto source"),
        ("mine", "target", "payments", r"found payments \(not in include_databases\)"),
        ("other", "target", "shop_1", "other: expected the name of a restore, found no file of it"),
        ("../dags/channels/shop", "target", "shop_1", "expected up to 64 letters, digits"),
        ("a/../mine", "target", "shop_1", "expected up to 64 letters, digits"),
    ],
)
def test_a_form_extends_and_drops_only_what_it_could_have_begun(
    name: str, target: str, database: str, said: str, shop: ChannelConfig, tmp_path: Path
) -> None:
    (tmp_path / "restores").mkdir()
    (tmp_path / "restores" / "mine.toml").write_text(
        f'[source]\narchive = "/logs"\n[target]\nconnection = "{target}"\n[window]\nschedule = "none"\n'
        f'[filter]\ninclude_databases = ["{database}"]\n[rename]\n{database} = "back"\n'
    )
    if not said:
        require_own(name, shop, tmp_path / "restores")
        return
    with pytest.raises(ConfigError, match=said):
        require_own(name, shop, tmp_path / "restores")


@pytest.mark.parametrize(
    "text",
    [
        "x | y",
        "a \\| b",
        "`code` ``` *bold* __x__ ~~y~~",
        "</td><script>alert(1)</script>",
        "[Approve](https://evil.example/|x)",
        "https://evil.example/a|b `",
        "![](www.evil.example)",
        "line\n\n# Approved\n",
        "&lt;b&gt;",
    ],
)
def test_no_text_of_a_log_is_more_than_the_text_of_its_cell(text: str) -> None:
    grid = Grid("around the end").columns("", "statement")
    grid.row("before", text)
    html = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").render(grid.markdown())
    cells = re.findall("<td>(.*?)</td>", html)
    assert [unescape(re.sub("</?code>", "", each)) for each in cells] == ["before", one_line(text)]
    assert html.count("<tr>") == 2
    assert re.search(r"<(?!/?(?:p|table|thead|tbody|tr|th|td|code)>)", html) is None
