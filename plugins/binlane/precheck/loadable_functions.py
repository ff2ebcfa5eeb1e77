"""Loadable functions that the window makes: does the target have their library?

A server tells of its libraries only by the functions that it has of them (``mysql.func``); no log holds a library. What
is there as it is logged, the lanes leave as it is (``apply.ddl``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text

from binlane.model import Flavor
from binlane.precheck.finding import Finding
from binlane.precheck.privileges import read_grants
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText

_Version = tuple[int, int, int]
_SONAME: Final = re.compile(
    r"\bRETURNS\s+(?P<returns>\w+)\s+SONAME\s+(?P<quote>['\"])(?P<library>[^'\"]+)(?P=quote)", re.I
)
_RETURNS: Final = {"STRING": 0, "REAL": 1, "INT": 2, "INTEGER": 2, "DECIMAL": 4}
"""``mysql.func.ret``: Item_result."""
_SINCE_IF_NOT_EXISTS: Final = {Flavor.MARIADB: (10, 1, 3), Flavor.MYSQL: (8, 0, 29)}


@dataclass(frozen=True, slots=True)
class _Function:
    returns: int | None
    library: str
    is_aggregate: bool


def check_libraries(
    connection: Connection, flavor: Flavor, number: _Version, statements: Iterable[LoggedText]
) -> Iterator[Finding]:
    """Loadable functions of libraries that the target is not known to have, or that are others there. Only reads."""
    made: list[tuple[LoggedText, str, _Function]] = []
    dropped: dict[str, int] = {}
    for statement in statements:
        name = _name(statement)
        if name is not None and statement.words[0] == "DROP":
            dropped.setdefault(name, statement.seqno)
        elif name is not None and (match := _SONAME.search(statement.sql)) is not None:
            returns = _RETURNS.get(match["returns"].upper())
            made.append((statement, name, _Function(returns, match["library"], "AGGREGATE" in statement.words[:4])))
    if not made or read_grants(connection).missing(("SELECT",), "mysql"):
        return  # which has a finding of its own
    there = _read(connection)
    libraries = {each.library for each in there.values()}
    plugin_dir = str(connection.execute(text("SELECT @@plugin_dir")).scalar_one())
    for statement, name, function in made:
        found = there.get(name) if dropped.get(name, statement.seqno) >= statement.seqno else None
        if function.library not in libraries:
            todo = (
                f"copy the library into {plugin_dir} of the target and make the function there by hand, out of its "
                "binlog: where it is, the window leaves it"
            )
            yield Finding(Severity.FATAL, statement.where, f"the library {function.library}", "no function of it", todo)
        elif found is not None and (found != function or number < _SINCE_IF_NOT_EXISTS[flavor]):
            what = f"one of {found.library}, which returns another type" if found != function else "the same"
            todo = f"DROP FUNCTION {name} on the target, out of its binlog: the server refuses the statement (1125)"
            yield Finding(Severity.FATAL, statement.where, f"no other loadable function {name}", what, todo)


def _name(statement: LoggedText) -> str | None:
    """Of a function that is made or dropped without a database, in lower case."""
    words = statement.words[:8]
    if not words or words[0] not in ("CREATE", "DROP") or "FUNCTION" not in words:
        return None
    rest = [token for token in statement.tokens[words.index("FUNCTION") + 1 :][:4] if token.upper not in _CONDITION]
    if not rest or (len(rest) > 1 and rest[1].text == "."):
        return None
    return rest[0].text.lower()


def _read(connection: Connection) -> Mapping[str, _Function]:
    rows = connection.execute(text("SELECT name, ret, dl, type FROM mysql.func"))
    return {str(name).lower(): _Function(int(ret), str(dl), str(kind) == "aggregate") for name, ret, dl, kind in rows}


_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})
