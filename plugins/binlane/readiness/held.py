"""What the source holds, and a first copy makes on the target: may the account make it, and does the server take it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.model import plural
from binlane.precheck.definers import lacking_for_definers
from binlane.precheck.finding import Finding
from binlane.precheck.grants import lacking_for_grants
from binlane.precheck.portability import OF_OTHERS, trust, unsupported, untrusted_account
from binlane.precheck.server import check_time_zones
from binlane.precheck.situation import Needs, TargetSituation
from binlane.readiness.situation import Readiness
from binlane.schema.compare import Severity
from binlane.sql.accounts import accounts
from binlane.sql.requirements import TRUSTED_FUNCTION, TRUSTED_MAKER

_SHOWN: Final = 3
"""How many objects a finding names."""
_FUNCTION: Final = "function"
_TRUSTED: Final = frozenset({TRUSTED_FUNCTION, TRUSTED_MAKER})


def check_definers(situation: Readiness) -> Iterator[Finding]:
    """Views, routines, triggers and events whose definers the target's account may not set."""
    if situation.source is not None:
        made = [each for name, _ in situation.accounts.made for each in accounts(name)]
        # of no transaction: seqno 0
        requirements = {requirement: 0 for asked in situation.requirements.values() for requirement in asked}
        yield from joined(lacking_for_definers(situation.target, requirements, made))


def check_accounts(situation: Readiness) -> Iterator[Finding]:
    """Accounts, roles and privileges of the source that the target's account may not create and grant."""
    if situation.source is not None:
        yield from lacking_for_grants(situation.target, situation.account_statements)


def check_programs(situation: Readiness) -> Iterator[Finding]:
    """Views, routines, triggers and events that the target does not take: its version, its settings."""
    if situation.source is not None:
        yield from joined(_unsupported(situation))


def check_trust(situation: Readiness) -> Iterator[Finding]:
    """The target would not let the account make the triggers and functions of the log; advice while there are none."""
    target, asked = situation.target, situation.asked
    # a first copy looks at each of them
    if asked.copies or not situation.needs.ddl or target.trusts_account:
        return
    has_some = bool(target.triggers) or any(each.kind == _FUNCTION for each in target.programs)
    found, todo = untrusted_account(target)
    severity = Severity.FATAL if has_some else Severity.INFO
    expected = "a target that takes them from the account"
    todo += "; a restart forgets SET GLOBAL: write it into the option file, too, or SET PERSIST on MySQL"
    yield Finding(severity, "target: triggers and functions", expected, found, todo, mend=(trust(target),))


def check_event_time_zones(situation: Readiness) -> Iterator[Finding]:
    """Time zones of the source's events that the target does not know."""
    if situation.source is not None:
        zones = frozenset(each.time_zone for each in situation.programs if each.time_zone)
        yield from check_time_zones(TargetSituation(situation.target, Needs(time_zones=zones)))


def _unsupported(situation: Readiness) -> Iterator[Finding]:
    target, source = situation.target, situation.source
    assert source is not None
    for obj, requirements in situation.requirements.items():
        for requirement in sorted(requirements):
            if requirement.feature in OF_OTHERS:
                continue
            missing = unsupported(requirement, target, source.flavor, situation.collations)
            if missing is not None:
                found, todo = missing
                is_named = requirement.feature in _TRUSTED
                subject = str(obj) if is_named else f"{obj}: {requirement.feature} {requirement.detail}".rstrip()
                mend = (trust(target),) if is_named else ()
                yield Finding(Severity.FATAL, subject, "a target that takes it", found, todo, mend=mend)


def joined(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings that the same statement mends as one, which names the first of their objects."""
    same: dict[tuple[str, str, str], list[Finding]] = {}
    for each in findings:
        same.setdefault((each.expected, each.found, each.todo), []).append(each)
    for found in same.values():
        where = "; ".join(each.where for each in found[:_SHOWN])
        more = f" and {plural(len(found) - _SHOWN, 'more object')}" if len(found) > _SHOWN else ""
        yield replace(found[0], where=where + more)
