"""Fingerprints of a server's accounts, to find out whether an interrupted account statement was executed.

CREATE USER and GRANT commit implicitly, so no row of binlane's commits with them; the grant tables are the evidence.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, bindparam, text

SERVERS_OWN: Final = frozenset(
    {"root", "mysql", "mariadb.sys", "mysql.sys", "mysql.session", "mysql.infoschema", "PUBLIC", ""}
)
"""Names of accounts that every server has of its own."""
_TABLES: Final = (
    "columns_priv",
    "db",
    "default_roles",
    "global_grants",
    "global_priv",
    "procs_priv",
    "proxies_priv",
    "role_edges",
    "roles_mapping",
    "tables_priv",
    "user",
)
_OWNER: Final = (("user", "host"), ("to_user", "to_host"))
"""The columns that name the account of a row; those of role_edges last."""
_VOLATILE: Final = frozenset({"grantor", "password_last_changed", "timestamp"})
"""Columns with time and grantor, which differ between two executions of one statement."""


def read_accounts(connection: Connection) -> Mapping[str, str]:
    """SHA-256 of an account's rows in the grant tables, by account (``name@host``).

    Equal on two servers of one version for accounts made by the same statements with the same password hash. Needs
    SELECT on ``mysql.*``.
    """
    evidence: dict[str, list[str]] = defaultdict(list)
    for table in _present(connection):
        result = connection.execute(text(f"SELECT * FROM mysql.`{table}`"))
        names = [str(name).lower() for name in result.keys()]  # noqa: SIM118
        for row in result:
            values = dict(zip(names, (_plain(value) for value in row), strict=True))
            account = _account(values)
            kept = {name: value for name, value in values.items() if name not in _VOLATILE}
            evidence[account].append(f"{table} {json.dumps(kept, sort_keys=True)}")
    return {account: _digest(lines) for account, lines in sorted(evidence.items())}


def _present(connection: Connection) -> list[str]:
    query = text(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mysql' AND table_name IN :names"
    ).bindparams(bindparam("names", expanding=True))
    found = {str(row[0]).lower() for row in connection.execute(query, {"names": list(_TABLES)})}
    # from MariaDB 10.4 on, user is a view of global_priv
    return sorted(found - {"user"} if "global_priv" in found else found)


def _account(values: Mapping[str, Any]) -> str:
    user, host = next((names for names in _OWNER if names[0] in values), _OWNER[0])
    return f"{values[user]}@{values[host]}"


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str) and value.startswith("{"):
        # MariaDB's global_priv.Priv, MySQL's user.User_attributes
        document = json.loads(value)
        return {name: item for name, item in document.items() if name not in _VOLATILE}
    return value if value is None or isinstance(value, (str, int)) else str(value)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
