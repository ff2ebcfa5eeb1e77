"""The kinds of refusals that are allowed in trials, each with its row of docs/conformance.md.

Any other refusal is a failure of the trial: either the row is missing, or binlane must not refuse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of error before a window's first write."""

    kind: str
    pattern: str
    """Pattern of the error's class and text."""
    row: str
    """The beginning of the row's first cell."""


REFUSALS: Final = (
    Refusal(
        "a temporary table of which no copy can be kept",
        r"^UnsupportedEventError.*so copies of the table are needed: ",
        "The same with a temporary sequence",
    ),
    Refusal(
        "a temporary table that is open at the log's end",
        r"^WindowOpenError.* temporary table",
        "A temporary table that is still open at the log's end",
    ),
    Refusal(
        "the source leaves changes out of its log",
        r"^PrecheckError.*(leaves changes out of its log|log_(slave|replica)_updates OFF)",
        "A source that leaves changes out of its log",
    ),
    Refusal(
        "changes of the server's own tables (schema mysql)",
        r"^(PrecheckError.*\bmysql\.\w+: table: |UnsupportedEventError.* \(SYSTEM TABLES\): )",
        "Rows of the server's own tables",
    ),
    Refusal(
        "a statement that failed half-way on the source",
        r"^UnsupportedEventError.*a statement that (was interrupted on the source|failed on a lock of another session"
        r"|(was rolled back|ended with error \d+ on the source), whose changes cannot be determined)",
        "Statements that changed an unknown part",
    ),
    Refusal(
        "a statement that failed or was rolled back, on tables that are not known to be alike",
        r"^PrecheckError.*\[rolled-back-engines\]",
        "The same on tables that have engines of two kinds",
    ),
    Refusal(
        "a statement whose result differs from server to server",
        r"^PrecheckError.*\[(unsafe-statements|unsafe-bodies|row-order)\]",
        "UUID(), SLEEP(), @@server_id",
    ),
    Refusal(
        "a statement that takes several numbers of an AUTO_INCREMENT",
        r"^PrecheckError.*\[numbers-between\]",
        "Statements that take several numbers of AUTO_INCREMENT columns",
    ),
    Refusal(
        "a database that is READ ONLY on the target",
        r"^PrecheckError.*\[read-only-databases\]",
        "Changes of a database that is READ ONLY",
    ),
    Refusal(
        "a temporary table that a routine leaves to another transaction",
        r"^PrecheckError.*\[temporary-tables\]",
        "A temporary table that a stored routine or trigger leaves to another transaction",
    ),
    Refusal(
        "a trigger that statements fire and that the two servers do not have alike",
        r"^PrecheckError.*\[fired-triggers\]",
        "The same where only one server has the trigger",
    ),
    Refusal(
        "a routine or view that statements reach and that the two servers do not have alike",
        r"^PrecheckError.*\[stored-programs\]",
        "The same where only one server has the routine or view",
    ),
    Refusal(
        "a loadable function whose library the target may not have",
        r"^PrecheckError.*\[(libraries|loadable-functions)\]",
        "CREATE FUNCTION .. SONAME",
    ),
    Refusal(
        "an encrypted table, for a target without the key",
        r"^PrecheckError.*\[encryption\]",
        "Tables, databases and tablespaces that are encrypted",
    ),
    Refusal(
        "MariaDB 5.3's temporal columns with fractions",
        r"^BinlogError.*or the table has MariaDB 5\.3 columns",
        "A rows event with such fractions",
    ),
    Refusal(
        "MariaDB 5.3's temporal columns with fractions, for a target with another format",
        r"^PrecheckError.*\[unlogged-lengths\]",
        "The same with fractions, as MariaDB 5.3 made them, for a target",
    ),
    Refusal(
        "a rows event that the target's max_allowed_packet does not take",
        r"^UnsupportedEventError.*a rows event and its TABLE_MAP have .* bytes; the target accepts at most",
        "A rows event that is longer than",
    ),
    Refusal(
        "a column that the server computes in the session's sql_mode",
        r"^PrecheckError.*\[generated-columns\]",
        "The same under NO_UNSIGNED_SUBTRACTION",
    ),
    Refusal(
        "a LOAD DATA whose file is in another transaction",
        r"^UnsupportedEventError.*of a LOAD DATA that (is not in this transaction|does not begin in this)",
        "LOAD DATA whose file is in another file of the log",
    ),
    Refusal(
        "a LOAD DATA whose statement is not logged at the log's end",
        r"^WindowOpenError.*a LOAD DATA whose file is logged",
        "LOAD DATA whose statement is not logged yet",
    ),
    Refusal(
        "an end of an XA transaction with changes of its own",
        r"^UnsupportedEventError.*an XA COMMIT or XA ROLLBACK with changes of its own",
        "XA COMMIT with changes of its own",
    ),
    Refusal(
        "a statement that waits for the server's own place as a replica",
        r"^PrecheckError.*the target would wait for transactions",
        "UUID(), SLEEP(), @@server_id",
    ),
    Refusal(
        "a definition that the source logged in two character sets",
        r"^UnsupportedEventError.*which the source logged (in another character set than the rest|with escapes that)",
        "Definitions that a server logs in two character sets at once",
    ),
)


def refusal_of(reason: str) -> Refusal | None:
    """The kind of a refusal, by its error's class and text; None if docs/conformance.md has no row for it."""
    return next((each for each in REFUSALS if re.search(each.pattern, reason, re.IGNORECASE | re.DOTALL)), None)
