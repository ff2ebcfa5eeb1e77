"""What a database may be called, on a terminal, in JSON, in a note and on the page."""

from __future__ import annotations

import io
import json
import re
import sys
import time
import unicodedata
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt

from binlane import safe_text
from binlane.errors import LONGEST_MESSAGE, BinlaneError, ConfigError, has_secret, without_accounts
from binlane.orchestration.terminal import Grid, Terminal, as_text
from binlane.safe_text import cut, cut_markdown, json_text, markdown, markdown_cell, one_line, printable

HOSTILE: Final = "a[/x][bold]b[/]:smile:\x1b[31m\x1b]0;title\x07\u202egnp.exe\u2066\u200b\x9b2J\r\ud800%s{0}"
SHOWN: Final = "a[/x][bold]b[/]:smile:\\x1b[31m\\x1b]0;title\\x07\\u202egnp.exe\\u2066\\u200b\\x9b2J\\r\\ud800%s{0}"
DRAW: Final = Path(safe_text.__file__).parent / "board" / "static" / "draw.js"


def test_every_character_that_acts_or_hides_is_shown_as_an_escape() -> None:
    for number in range(sys.maxunicode + 1):
        one = chr(number)
        acts = unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(one) in (
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        )
        if acts and one not in "\n\t":
            assert printable(one) != one, hex(number)
        if unicodedata.category(one)[0] in "LNPS":
            assert printable(one) == one_line(one) == one, hex(number)
    assert printable("a\n\tb") == "a\n\tb"
    assert one_line("a\n\tb") == "a\\n\\tb"
    assert printable(HOSTILE) == one_line(HOSTILE) == SHOWN


def test_json_keeps_every_value() -> None:
    text = "\U000e0041" + HOSTILE.replace("\ud800", "")
    encoded = json_text(json.dumps({"x": text}, ensure_ascii=False))
    assert printable(encoded) == encoded
    assert json.loads(encoded) == {"x": text}


def test_a_note_makes_neither_links_nor_html() -> None:
    assert markdown("![x](http://e) <b> \\ tenant_1") == "!\\[x\\](`http://e`) \\<b\\> \\\\ tenant_1"


@pytest.mark.parametrize(
    "text", ["x [y](http://e.example/a) and `www.evil.example` ``` a@evil.example, behind", "https://evil.example/" * 3]
)
def test_a_note_that_is_cut_anywhere_makes_no_link(text: str) -> None:
    whole = markdown(text)
    for characters in range(len(whole) + 1):
        cut = cut_markdown(whole, characters)
        assert len(cut) <= characters
        html = MarkdownIt("commonmark").render(f"{cut}\n\nhealth: healthy")
        assert re.search("://|www|evil", re.sub("<code>.*?</code>", "", html)) is None, cut
    assert cut_markdown(whole, len(whole)) == whole


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a." * 100_000, "a@" * 100_000, "a@" + "-" * 200_000, "+" * 200_000, "x`" * 100_000]
)
def test_a_long_text_takes_a_time_that_grows_with_its_length(text: str) -> None:
    begun = time.process_time()
    markdown(text)
    markdown_cell(text)
    cut_markdown(text, 1_000)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "text", ["1http://e.example/a", "-http://e.example", "x http+x://e", "\u017f://e", "a..b@e.example"]
)
def test_an_address_is_code_from_its_first_letter_on(text: str) -> None:
    before, _, address = text.rpartition(" ")
    assert markdown(text) == f"{before} `{address}`".strip()


@pytest.mark.parametrize("kind", [BinlaneError, ConfigError])
def test_an_error_keeps_its_place_and_its_next_step_whatever_it_quotes(kind: type[BinlaneError]) -> None:
    short, long = "x" * LONGEST_MESSAGE, f"f:4: found {'a' * (1 << 20)}; put the right file there"
    assert str(kind(short)) == short
    said = str(kind(long))
    assert len(said) < LONGEST_MESSAGE + 100
    assert said.startswith("f:4: found aaa")
    assert said.endswith("aaa; put the right file there")
    assert f"aaa ... ({len(long) - LONGEST_MESSAGE:,} characters are left out) ... aaa" in said


def test_a_long_text_of_many_lines_keeps_whole_ones() -> None:
    lines = [f"table t{number}: no key" for number in range(1_000)]
    first, last = cut("\n".join(lines), 4_000).split(" ... (")
    assert set(first.splitlines()) | set(last.splitlines()[1:]) < set(lines)


@pytest.mark.parametrize("kind", [BinlaneError, ConfigError])
def test_an_errors_message_is_safe_from_its_birth(kind: type[BinlaneError]) -> None:
    assert str(kind(HOSTILE)) == SHOWN


def test_a_terminal_shows_the_text_itself_and_never_reads_it() -> None:
    shown = io.StringIO()
    out = Terminal(file=shown, width=400)
    out.print(HOSTILE)
    out.line((HOSTILE, "bold"), ("\nnext", ""))
    grid = Grid(HOSTILE, caption=HOSTILE).columns(HOSTILE, "value")
    grid.row(HOSTILE, "1\n2")
    out.print(grid)
    out.print([grid, grid])
    facts = Grid.of_facts(HOSTILE)
    facts.row("lines", "one\ntwo")
    out.print(facts)
    text = shown.getvalue()
    assert text.splitlines()[:2] == [SHOWN, SHOWN + "\\nnext"]
    assert text.count(SHOWN) >= 2 + 3 * 3
    assert "1\\n2" in text
    assert printable(text) == text
    assert printable(as_text([grid])) == as_text([grid])


def test_a_pipe_gets_the_exact_text_and_a_terminal_what_can_be_shown() -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    pipe, tty = io.StringIO(), Tty()
    Terminal(file=pipe).exactly(HOSTILE)
    Terminal(file=tty).exactly(HOSTILE)
    assert (pipe.getvalue(), tty.getvalue()) == (HOSTILE, SHOWN)


def test_the_page_has_the_same_list() -> None:
    listed = re.search(r"const ACTIVE = /\[(.*)\]/gu;", DRAW.read_text())
    assert listed is not None
    point = r"\\u(?:\{([0-9a-f]+)\}|([0-9a-f]{4}))"
    found = []
    for match in re.finditer(f"{point}(?:-{point})?", listed[1]):
        first = int(match[1] or match[2], 16)
        last = match[3] or match[4]
        found.append((first, first if last is None else int(last, 16)))
    # a browser's text has no halves of pairs: they are replaced where it reads the answer
    assert found == [each for each in safe_text.ACTIVE if each != (0xD800, 0xDFFF)]


def test_a_uri_of_any_length_is_looked_at_in_no_time() -> None:
    text = "hdfs://" + "nn:8020/" * 100_000

    assert has_secret(text)
    assert without_accounts(text) == "hdfs://***"
    assert not has_secret("nn:8020/" * 100_000)
    assert not has_secret(text[:4000])
