"""Grants on single routines of a database that is replaced: what people are told of them.

DROP PROCEDURE and DROP FUNCTION take the grants that any account has on the routine (automatic_sp_privileges, which is
ON by default: sp_revoke_privileges() of both families), and the restored one that has the name then is made without.
Binlane gives no grants, so they are named as statements, in the plan and at the end. Those on databases and tables go
by the name, and stay.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from binlane.apply.refusals import DENIED, target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import contents
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.model import plural
from binlane.safe_text import one_line
from binlane.servers.names import among, literals

_ROUTINES: Final = frozenset({"procedure", "function", "package", "package body"})
_GIVES: Final = "Grant"
_SHOWN: Final = 50
"""Statements that are named."""


def lost_grants(session: Session, databases: Collection[str]) -> str:
    """What is said of the grants that go with the routines of ``databases``, which are replaced; empty: none goes."""
    routines = {(each.database, each.name) for each in contents(session, databases) if each.kind in _ROUTINES}
    [(keeps,)] = session.texts("SELECT @@GLOBAL.automatic_sp_privileges = 0")
    if not routines or keeps == "1":
        return ""
    try:
        with target_errors("target"):
            found = session.texts(
                "SELECT db, routine_name, routine_type, user, host, proc_priv FROM mysql.procs_priv WHERE "
                f"{among('db', literals(databases))} AND CONCAT(user, '@', host) <> CURRENT_USER() "
                "ORDER BY 1, 2, 3, 4, 5"
            )
    except TargetError as exc:
        if exc.__cause__ is None or error_code(exc.__cause__) not in DENIED:
            raise
        return (
            f"of accounts that have EXECUTE on one of the {plural(len(routines), 'routine')} of "
            f"{', '.join(sorted({database for database, _ in routines}))} alone: they lose it when that is replaced, "
            "and nothing names them: this account may not read them (GRANT SELECT ON mysql.procs_priv lets it)"
        )
    statements = [_statement(*each) for each in found]
    if not statements:
        return ""
    more = f" and {len(statements) - _SHOWN:,} more (mysql.procs_priv)" if len(statements) > _SHOWN else ""
    return (
        f"{plural(len(statements), 'grant')} on single routines: they go with the former routines; where a restored "
        f"one has the name, give them again: {'; '.join(statements[:_SHOWN])}{more}"
    )


def _statement(database: str, routine: str, kind: str, user: str, host: str, privileges: str) -> str:
    """Of a row of mysql.procs_priv."""
    given = [each for each in privileges.split(",") if each]
    what = ", ".join(each.upper() for each in given if each != _GIVES) or "USAGE"
    # a role of MariaDB has no host
    account = f"{identifier(user)}@{identifier(host)}" if host else identifier(user)
    option = " WITH GRANT OPTION" if _GIVES in given else ""
    return one_line(f"GRANT {what} ON {kind} {identifier(database)}.{identifier(routine)} TO {account}{option}")
