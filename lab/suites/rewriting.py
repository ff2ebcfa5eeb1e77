"""Rewrites test files: dropped tables are kept aside, and the test's end asks for the verdict.

A test of the suites drops its objects, so nothing would be left to compare. Each plain DROP TABLE becomes a RENAME into
the database ``keep``, followed by the DROP for tables that cannot be renamed. The language is ``mysqltest``'s:
https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_MYSQL_TEST_COMMANDS.html
Files have different encodings: they are read and written as Latin-1, which keeps every byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

KEEP: Final = "keep"
"""The database for tables that tests drop."""
KEEPS: Final = "BINLANE_KEEPS"
"""Environment variable: 1: dropped tables are kept; empty: the test runs unchanged."""
ASK: Final = "BINLANE_ASK"
"""Environment variable: the command by which a test asks the trial."""

_DROP: Final = re.compile(
    r"\s*DROP\s+TABLES?\s+(?:IF\s+EXISTS\s+)?(?P<names>[\w$.`,\s]+?)\s*;\s*(?:#.*)?", re.IGNORECASE
)
_TEMPORARY: Final = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?TEMPORARY\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w$.`]+)", re.IGNORECASE
)
_NAME: Final = re.compile(r"(?:(?:`[^`]+`|[\w$]+)\s*\.\s*)?(?:`[^`]+`|[\w$]+)")
_DELIMITER: Final = re.compile(r"\s*(?:--\s*)?delimiter\s+(?P<new>\S+)\s*", re.IGNORECASE)
_HEREDOC: Final = re.compile(
    r"\s*(?:--\s*)?(?:perl|(?:write|append)_file\s+\S+)\s*(?P<end>[^\s;]+)?\s*;?\s*", re.IGNORECASE
)
_NEXT_ONLY: Final = re.compile(
    r"\s*--\s*(?:error|send|reap|sorted_result|partially_sorted_result|replace_\w+|lowercase_result|horizontal_results)\b|"
    r"\s*(?:error|send|replace_\w+)\s[^;]*;\s*",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"(?:if|while)\s*\(", re.IGNORECASE)
_ABORTS: Final = re.compile(r"(?:disable|enable)_abort_on_error", re.IGNORECASE)


def with_kept_tables(text: str, prefix: str) -> str:
    """``text`` with its plain DROP TABLE statements changed; ``prefix`` makes the kept names unique for a file.

    Unchanged: a DROP that belongs to a command before it (``--error``, ``--send``), a DROP inside a longer statement, a
    stored program or an embedded script, a DROP of a name that the file also uses for a temporary table (MariaDB would
    rename that table), and files that switch error handling themselves.
    """
    if _ABORTS.search(text) is not None:
        return text
    temporary = {name.lower() for name in _TEMPORARY.findall(text)}
    changed: list[str] = []
    number = 0
    for line in _lines(text):
        names = _dropped(line)
        if names and temporary.isdisjoint(name.lower() for name in names):
            number += 1
            changed += [f"if (${KEEPS})\n{{\n", *_kept(names, f"{prefix}{number}", line.text), "}\n"]
            changed += [f"if (!${KEEPS})\n{{\n", line.text, "}\n"]
        else:
            changed.append(line.text)
    return "".join(changed)


def with_verdict(text: str, test: str, *, ends_by_itself: bool) -> str:
    """A test's file that reports its name and asks for the verdict at its end.

    If the test uses the include file that ends replication (``ends_by_itself``), that file asks first
    (``with_question``).
    """
    start = f"if (!$binlane_test)\n{{\n--let $binlane_test= {test}\n--exec ${ASK} start $binlane_test\n}}\n"
    if ends_by_itself:
        return start + text
    return f"{start}{text}\n{_QUESTION}"


def with_question(text: str) -> str:
    """The include file that ends replication, with the question for the verdict before it changes the source."""
    return _QUESTION + text


_QUESTION: Final = (
    "if (!$binlane_judged)\n{\nif ($binlane_test)\n{\n--let $binlane_judged= 1\n"
    f"--exec ${ASK} judge $binlane_test\n}}\n}}\n"
)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    plain: bool
    """Whether the line begins a statement under the delimiter ``;`` that no earlier command belongs to."""


def _lines(text: str) -> Iterator[_Line]:
    delimiter, heredoc, inside, bound = ";", "", False, False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if heredoc:
            heredoc = "" if bare == heredoc else heredoc
            yield _Line(line, plain=False)
            continue
        if not bare or bare.startswith("#"):
            yield _Line(line, plain=False)
            continue
        is_command = bare.startswith("--")
        yield _Line(line, plain=not (inside or bound or is_command) and delimiter == ";")
        if inside:
            inside = not _is_end(bare, delimiter)
            bound = False
            continue
        if (new := _DELIMITER.fullmatch(bare.removesuffix(delimiter))) is not None:
            delimiter = new["new"]
        elif (script := _HEREDOC.fullmatch(bare)) is not None:
            heredoc = script["end"] or "EOF"
        elif not is_command and bare[-1] not in "{}" and _CONTROL.match(bare) is None:
            inside = not _is_end(bare, delimiter)
        bound = _NEXT_ONLY.match(bare) is not None


def _is_end(bare: str, delimiter: str) -> bool:
    return bare.endswith(delimiter) or re.search(re.escape(delimiter) + r"\s*#[^'\"]*$", bare) is not None


def _dropped(line: _Line) -> list[str]:
    found = _DROP.fullmatch(line.text.rstrip("\r\n")) if line.plain else None
    if found is None:
        return []
    names = [name.strip() for name in found["names"].split(",")]
    return names if all(_NAME.fullmatch(name) for name in names) else []


def _kept(names: list[str], prefix: str, drop: str) -> Iterator[str]:
    yield "--disable_abort_on_error\n"
    yield f"CREATE DATABASE IF NOT EXISTS {KEEP};\n"
    for at, name in enumerate(names):
        plain = re.sub(r"\W+", "_", name.replace("`", "")).strip("_")[:40]
        yield f"RENAME TABLE {name} TO {KEEP}.{prefix}_{at}_{plain};\n"
    yield re.sub(r"(?i)\bTABLE(S?)\s+(?:IF\s+EXISTS\s+)?", r"TABLE\1 IF EXISTS ", drop, count=1)
    yield "--enable_abort_on_error\n"
