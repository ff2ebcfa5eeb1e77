"""Statements that run in their session's default database, which the target does not have because the filter leaves it
out: DATABASE() is asked there, and a procedure is called there. A server selects no database that it lacks (1049)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from binlane.apply.session.context import needs_no_database
from binlane.binlog.types.literals import identifier
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity

_MAY_NEED: Final = re.compile(rb"\b(?:DATABASE|SCHEMA|CALL)\b", re.I)
"""Single words: comments may stand between two."""


def check_default_databases(situation: Situation) -> Iterator[Finding]:
    """Statements that ask for DATABASE(), or are a CALL, in a default database that the filter leaves out and the
    target does not have. The first one of each such database."""
    rules, flavor = situation.settings.rules, situation.plan.flavor
    if not rules.selects or not (situation.needs.statements or situation.needs.ddl):
        return
    compared = situation.planned.letter_case.name
    known = set(map(compared, situation.planned.databases))
    for logged, _ in situation.transactions_with(_MAY_NEED):
        context = logged.item.context
        database = None if context is None else context.database
        if context is None or not database or compared(database) in known or rules.left_out_whole(database) is None:
            continue
        if needs_no_database(context, logged.item.payload, flavor):
            continue
        known.add(compared(database))
        header = logged.header
        yield Finding(
            Severity.FATAL,
            f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}",
            "a default database of its session, in which it runs",
            f"{database}, which the target does not have and the filter leaves out",
            f"CREATE DATABASE {identifier(database)} on the target, which may stay empty, then run again",
            header.first_seqno,
        )
