"""State that a server caches per session although other sessions can change it, and how a lane's session renews it.

A statement of the source has the meaning of the definitions at its seqno; in a session with older ones it would
silently mean something else. Tried on MariaDB 10.11 and MySQL 9.7 (``tests/integration/apply/test_session_state.py``, a
test for each entry). Not listed, because sessions do not cache them: privileges on single tables, the definitions of
time zones (the server caches them until its restart), and temporary tables, which no other session can change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sql.session_variables import VARIABLES

_BOTH: Final = frozenset(Flavor)


class Renewal(StrEnum):
    """When a lane's session gets a new value."""

    STATEMENT = "set before every logged statement"
    DATABASE = (
        "with the default database: at a block's first statement, and before each statement that is not plain DML"
    )
    CONNECTION = "with the connection of the next attempt or window"
    NEVER_KEPT = "not cached: the server reads the present definition each time"


@dataclass(frozen=True, slots=True)
class CachedState:
    """A piece of session state that a server caches."""

    name: str
    changed_by: str
    """The statements of another session that change it."""
    renewal: Renewal
    flavors: frozenset[Flavor] = _BOTH
    """The flavors that have it."""


SESSION_STATE: Final = (
    # MariaDB keeps it even if the session selects its current database again; MySQL reads it for each new table
    CachedState("the default database's character set", "ALTER DATABASE", Renewal.DATABASE),
    CachedState("collation_database", "ALTER DATABASE", Renewal.DATABASE),
    CachedState("the default database's identity", "DROP DATABASE, CREATE DATABASE", Renewal.DATABASE),
    CachedState("the default database's READ ONLY", "ALTER DATABASE", Renewal.NEVER_KEPT, frozenset({Flavor.MYSQL})),
    CachedState("the default database's encryption", "ALTER DATABASE", Renewal.NEVER_KEPT, frozenset({Flavor.MYSQL})),
    CachedState("privileges on the default database", "GRANT, REVOKE", Renewal.DATABASE),
    # the precheck reads these privileges before the window's first write
    CachedState("privileges on all databases", "GRANT, REVOKE", Renewal.CONNECTION),
    CachedState("roles", "GRANT, REVOKE", Renewal.CONNECTION),
    CachedState("variables that the log holds", "SET GLOBAL", Renewal.STATEMENT),
    # those that the window was checked with are set to their values of then: see ``unlogged_value``
    CachedState("variables that no log holds", "SET GLOBAL", Renewal.DATABASE),
    CachedState("prepared statements of the precheck's parser", "ALTER TABLE", Renewal.NEVER_KEPT),
)

NEUTRAL_DATABASE: Final = "information_schema"
"""A database of every server, open to every account, without tables that a user's unqualified name could mean."""

NON_UNIQUE_REFERENCES: Final = "restrict_fk_on_non_standard_key"
"""MySQL 8.4 and later: ON refuses a foreign key to a key that is not unique, or to a part of a key, and every later
ALTER and RENAME of the table that it refers to. Earlier servers and MariaDB accept them."""

UNLOGGED_VARIABLES: Final[Mapping[str, str]] = {
    **{each.name: "DEFAULT" for each in VARIABLES if each.is_renewed},
    NON_UNIQUE_REFERENCES: "OFF",
}
"""Session variables that may change the effect of statements and that no server logs, with the values of a replica's
applier: its own server's global values, but OFF for NON_UNIQUE_REFERENCES. Not every version has every variable."""
_WORD: Final = re.compile(r"[\w,\-]*", re.ASCII)


def unlogged_value(name: str, checked: Mapping[str, str]) -> str:
    """What a lane sets one of ``UNLOGGED_VARIABLES`` to. ``checked``: global values of the target with which the window
    was checked; what somebody has set there since is for no statement of it. Raises ApplyError for a value that no
    server has."""
    value = checked.get(name)
    if value is None:
        return UNLOGGED_VARIABLES[name]
    if _WORD.fullmatch(value) is None:
        raise ApplyError(f"{name}: expected a value of a server's variable in the window's files, found {value!r}")
    if value.isdecimal():
        return value
    # MariaDB has no engine of its own for temporary tables
    return f"_ascii'{value}'" if value or not name.endswith("_engine") else "NULL"
