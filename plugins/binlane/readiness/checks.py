"""All that is looked at before a channel's first write, by name: literal tables; and ``answers``, which runs them.

A check is a function of the situation that gives its findings and writes nothing that is still there when it ends, as
those of ``precheck.checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.errors import BinlaneError, PrecheckError, with_channel
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.precheck.account.privileges import Order
from binlane.precheck.checks import TARGET_CHECKS
from binlane.precheck.situation.finding import Command, Finding
from binlane.precheck.situation.situation import TargetSituation
from binlane.readiness import held, machine, servers
from binlane.readiness.channel_grants import merged
from binlane.readiness.situation import Readiness
from binlane.schema.compare import Severity

Check = Callable[[Readiness], Iterable[Finding]]


def _of_target(check: Callable[[TargetSituation], Iterable[Finding]]) -> Check:
    return lambda situation: check(situation.of_target)


CONNECTIONS: Final[Mapping[str, Check]] = {
    "source-connection": servers.check_source_connection,
    "target-connection": servers.check_target_connection,
}
"""Without these no other check has an answer."""
CHANNEL_CHECKS: Final[Mapping[str, Check]] = {
    # before any other looks at a view
    "view-functions": held.check_view_functions,
    "source-privileges": servers.check_source_privileges,
    "source-log": servers.check_source,
    "database-names": servers.check_database_names,
    "filtered-parents": held.check_filtered_parents,
    "two-servers": servers.check_two_servers,
    **{name: _of_target(check) for name, check in TARGET_CHECKS.items()},
    "privileges": servers.check_target_privileges,
}
"""Before a channel begins."""
COPY_CHECKS: Final[Mapping[str, Check]] = {
    "family": servers.check_family,
    "source-version": servers.check_source_version,
    "letter-case": servers.check_letter_case,
    "prepared-transactions": servers.check_prepared,
    "copied-databases": held.check_copied_databases,
    "copied-tables": servers.check_copied_tables,
    "invoker-routines": held.check_invoker_routines,
    "definers": held.check_definers,
    "accounts": held.check_accounts,
    "programs": held.check_programs,
    "program-texts": held.check_program_texts,
    "event-time-zones": held.check_event_time_zones,
    "spatial-references": held.check_spatial_references,
    "copied-definitions": held.check_table_definitions,
    "target-room": machine.check_target_room,
}
"""Before its first copy, too."""
OTHER_CHECKS: Final[Mapping[str, Check]] = {
    "state": servers.check_state,
    "row-format": servers.check_row_format,
    "log-sync": servers.check_log_sync,
    "packets": servers.check_packets,
    "trust": held.check_trust,
    "clocks": servers.check_clocks,
    "work-folder": machine.check_work_folder,
    "work-room": machine.check_work_room,
    "spark": machine.check_spark,
}
"""Of `binlane doctor` alone: advice, and what `init` brings up or does not use."""

COPY_ALONE: Final = frozenset({"copied-databases"})
"""The checks that stand in the way of a first copy, and not of a channel that begins without one."""
ON_SOURCE: Final = frozenset({"source-connection", "source-privileges", "row-format"})
"""The checks whose statements (``Finding.mend``) are for the source; those of all others are for the target."""

PRIVILEGE_CHECKS: Final = frozenset({"source-privileges", "privileges"})
"""The checks whose findings are missing privileges, one each."""


_NAMED_PRIVILEGES: Final = 2
"""How many missing privileges have a line each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one check has found."""

    check: str
    findings: tuple[Finding, ...]
    was_asked: bool = True
    """Else the finding is the error that came instead of an answer."""
    said: str = ""
    """What was found, where all is well."""

    @property
    def is_ok(self) -> bool:
        """Whether nothing found stands in the way."""
        return all(finding.severity is not Severity.FATAL for finding in self.findings)


def answers(situation: Readiness, checks: Mapping[str, Check]) -> Iterator[Answer]:
    """Each check's answer, in the table's order; the connections' alone if a server cannot be asked."""
    connected = [answer(name, check, situation) for name, check in CONNECTIONS.items()]
    yield from connected
    if all(each.is_ok for each in connected):
        yield from _after_privileges(answer(name, check, situation) for name, check in checks.items())


def answer(name: str, check: Check, situation: Readiness, *, tries_again: bool = False) -> Answer:
    """What one check finds. An error of a server, or of the work folder, is a finding, too; retryable ones are raised
    if somebody ``tries_again``."""
    try:
        with target_errors(situation.place), doing(f"check {name}"):
            found = [(each, with_channel(each.todo, situation.channel.name)) for each in check(situation)]
            return Answer(name, tuple(replace(finding, check=name, todo=todo) for finding, todo in found))
    except (BinlaneError, OSError) as exc:
        if tries_again and isinstance(exc, BinlaneError) and exc.retryable:
            raise
        finding = Finding(Severity.FATAL, "asking", "an answer", str(exc), "mend that, then ask again", check=name)
        return Answer(name, (finding,), was_asked=False)


def _after_privileges(found: Iterable[Answer]) -> Iterator[Answer]:
    """Errors behind a privilege that is missing are notes: they may be gone with it."""
    lacking = ""
    for each in found:
        if each.check in PRIVILEGE_CHECKS and not each.is_ok:
            lacking = lacking or each.check
        if each.was_asked or not lacking:
            yield each
        else:
            why = f"not asked, because {lacking} failed"
            note = Finding(Severity.INFO, each.check, "an answer", why, "mend that, then ask again")
            yield replace(each, findings=(note,))


def require(situation: Readiness) -> None:
    """Raises PrecheckError with everything that stands in the way of a channel's beginning, or its first copy;
    retryable errors of the servers as they are."""
    checks = {**CHANNEL_CHECKS, **COPY_CHECKS} if situation.asked.copies else CHANNEL_CHECKS
    asked = (answer(name, check, situation, tries_again=True) for name, check in checks.items())
    found = [one for each in _after_privileges(asked) for one in counted(each)]
    fatal = [finding for finding in found if finding.severity is Severity.FATAL]
    if fatal:
        name = situation.channel.name
        lines = [f"channel {name} is not ready: {plural(len(fatal), 'finding')}; nothing was written:"]
        lines += map(str, fatal)
        source = "the source" if situation.source is None else f"the source, {situation.source.endpoint}"
        places = ((True, source), (False, f"the target, {situation.endpoint}"))
        statements = [
            line
            for is_on_source, server in places
            for line in mends((each for each in fatal if (each.check in ON_SOURCE) is is_on_source), server)
        ]
        if statements:
            lines += ("what mends it:", *(f"  {each}" for each in statements))
        raise PrecheckError("\n".join(lines))


def counted(answer: Answer) -> tuple[Finding, ...]:
    """Its findings; many missing privileges as one that counts them, because their GRANT statements name them."""
    findings = answer.findings
    if answer.check not in PRIVILEGE_CHECKS or len(findings) <= _NAMED_PRIVILEGES:
        return findings
    mend = tuple(each for finding in findings for each in finding.mend)
    lacking = sum(len(each.names) for each in merged(mend) if isinstance(each, Order))
    severity = Severity.INFO if answer.is_ok else Severity.FATAL
    where = f"{'source' if answer.check in ON_SOURCE else 'target'}: account"
    expected, todo = f"the {plural(lacking, 'privilege')} of the statements below", "run the statements"
    return (Finding(severity, where, expected, "none of them", todo, mend=mend, check=answer.check),)


def mends(findings: Iterable[Finding], server: str) -> Iterator[str]:
    """What mends the findings of one server: a statement for each scope, and commands."""
    for each in merged(mend for finding in findings for mend in finding.mend):
        yield str(each) if isinstance(each, Command) else f"{each};  -- on {server}"
