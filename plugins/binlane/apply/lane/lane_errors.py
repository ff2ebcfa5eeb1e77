"""Turns a server's error into binlane's: the meaning, the place, and what the operator can do."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.refusals import account_advice
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text
from binlane.apply.temporary_copies import as_a_whole
from binlane.binlog.types.literals import identifier
from binlane.errors import ApplyError, DriftError, TargetError
from binlane.safe_text import one_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.model import Barrier, BlockHeader

_CHECK_FAILED: Final = re.compile(r"\b(?:CONSTRAINT `(?P<mariadb>(?:[^`]|``)+)`|Check constraint '(?P<mysql>.+?)') ")
_CHECK_CODES: Final = frozenset({3819, 4025})
_CHECKS: Final = (
    "SELECT table_schema, table_name FROM information_schema.table_constraints "
    "WHERE constraint_type = 'CHECK' AND CAST(constraint_name AS BINARY) = CAST(:name AS BINARY) LIMIT 2"
)
_CONVERSION: Final = 1105
"""BINLOG's error for a column that cannot be converted: only the server's error log says which."""
_CHOICES: Final = (
    "the block was rolled back and all lanes stop. {show}Choices: {overwrite}correct the target{how} and run the lane "
    'again; `binlane skip {channel} --seqno {seqno} --reason "..."` {which}; or load the target anew'
)
_CHOICES_AS_A_WHOLE: Final = (
    "all lanes stop. {show}Choices: {overwrite}correct the target{how} and run the lane again; or load the target "
    "anew. `binlane skip {channel}` cannot help: {whole}"
)
"""A rename of tables that are not temporary may have run already (``divided_rename``)."""
_OVERWRITE: Final = (
    'let the window overwrite rows that are not as the log has them: apply.on_conflict = "overwrite" in the channel\'s '
    "file, until `binlane run {channel}` has finished it; "
)


def error_for(error: BaseException, verdict: Verdict, engine: Engine) -> TargetError:
    """The error to raise for a server's error that is not retried."""
    code = error_code(error)
    message = f"{code} {error_text(error)}"
    if code == _CONVERSION:
        message += f" ({_logged_conversion(engine)})"
    if advice := account_advice(error):
        message += f"; {advice}"
    return DriftError(message) if verdict is Verdict.DRIFT else ApplyError(message)


def with_place(
    message: str,
    where: str,
    header: BlockHeader,
    channel: str,
    whole: Barrier | None,
    *,
    may_overwrite: bool,
    how: str = "",
    outside: str = "",
) -> str:
    """The message with the block's place and the operator's choices. ``whole``: the indivisible barrier that it is
    in. ``may_overwrite``: rows have drifted, and the channel does not overwrite such rows yet. ``how``: the statement
    that corrects the target, if it is known. ``outside``: the next step, where the transaction is not the cause.

    The message is one line of it: notes and summaries show an error's first lines, and names may have line breaks."""
    told = f"{at(where, header)}: {one_line(message)}"
    if outside:
        return f"{told}; the block was rolled back and all lanes stop: {outside}"
    single = header.transactions == 1
    choices = (_CHOICES if whole is None else _CHOICES_AS_A_WHOLE).format(
        show=f"`binlane show {channel} {header.last_seqno}` shows the transaction. " if single else "",
        how=f" ({how})" if how else "",
        overwrite=_OVERWRITE.format(channel=channel) if may_overwrite else "",
        whole="" if whole is None else as_a_whole(whole),
        channel=channel,
        seqno=header.last_seqno if single else "N",
        which="and run it again" if single else "with the seqno of the transaction that fails, and run it again",
    )
    return f"{told}; {choices}"


def correction(code: int, message: str, engine: Engine) -> str:
    """The statement that lets the target take a row which one of its own constraints refuses; empty if it is not
    known. On the source, whose rows these are, the row has met all constraints, or its session has checked none, which
    a lane on MySQL cannot do."""
    found = _CHECK_FAILED.search(message) if code in _CHECK_CODES else None
    if found is None:
        return ""
    name = found["mariadb"] or found["mysql"]
    with contextlib.suppress(SQLAlchemyError), engine.connect() as connection:
        tables = connection.execute(text(_CHECKS), {"name": name}).all()
        if len(tables) == 1:
            [(database, table)] = tables
            named = f"{identifier(database)}.{identifier(table)}"
            return (
                "only it has this constraint, or the source's session has checked none (check_constraint_checks): "
                f"ALTER TABLE {named} DROP CONSTRAINT {identifier(name)}"
            )
    return ""


def at(where: str, header: BlockHeader) -> str:
    """The block's place."""
    gtid = f", GTID {header.gtid}" if header.gtid else ""
    return f"{where}, seqno {header.first_seqno}..{header.last_seqno}{gtid}, source {header.source}"


def _logged_conversion(engine: Engine) -> str:
    """The conversion error from MySQL's table of its error log (MY-013146); MariaDB logs it to a file only."""
    query = text(
        "SELECT data FROM performance_schema.error_log WHERE error_code = 'MY-013146' ORDER BY logged DESC LIMIT 1"
    )
    with contextlib.suppress(SQLAlchemyError), engine.connect() as connection:
        found = connection.execute(query).scalar_one_or_none()
        if found is not None:
            return str(found)
    return "a column cannot be converted; the target's error log names it"
