"""May the account make the window's views, routines, triggers and events in their definers' names, and change accounts?

Without the right to, the server refuses the statement when its turn has come (1227). Which privilege is for what: tried
on MySQL 9.7 and MariaDB 10.11; since when: the release notes of MySQL 8.0.16, 8.2 and 8.4, MariaDB 10.5.2 and 11.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.precheck.account.privileges import EVERYWHERE, Grants, Order
from binlane.precheck.situation.facts import SINCE_SYSTEM_USER, SYSTEM_USER, Accounts, Target
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText
from binlane.sql.program_names import folded_name
from binlane.sql.programs.reach import routine_key
from binlane.sql.requirements import CHANGED, DEFINER, PRIVILEGE, Requirement

_Version = tuple[int, int, int]
_SINCE_ABSENT: Final = (8, 2, 0)
_ACCOUNT: Final = "account "
_TODO_OF_LIBRARY: Final = (
    "drop on the target by hand, out of its binlog, the function that the source has dropped, and leave the statement "
    "out (binlane skip)"
)


def check_statement_privileges(situation: Situation) -> Iterator[Finding]:
    """Privileges that a single statement needs, such as RELOAD for FLUSH."""
    for requirement, seqno in situation.plan.requirements.items():
        if requirement.feature == PRIVILEGE and situation.target.grants.missing(
            (requirement.detail,), requirement.subject or None
        ):
            scope = f"`{requirement.subject}`.*" if requirement.subject else "*.*"
            where = f"target: privilege {requirement.detail} for the statement of seqno {seqno}"
            todo = f"GRANT {requirement.detail} ON {scope} TO the account: without it the server refuses the statement"
            yield Finding(Severity.FATAL, where, f"granted on {scope}", "not granted", todo, seqno)


def check_definers(situation: Situation) -> Iterator[Finding]:
    """Definers that the account may not set; accounts and objects that only SYSTEM_USER may change."""
    target, requirements = situation.target, dict(situation.plan.requirements)
    for each in situation.asked.texts if _knows_system_users(target) else ():
        for name in each.accounts_without_host:
            requirements.setdefault(Requirement(CHANGED, f"{_ACCOUNT}{name}"), each.seqno)
    yield from lacking_for_definers(target, requirements)


def lacking_for_definers(
    target: Target, requirements: Mapping[Requirement, int], made: Collection[str] = ()
) -> Iterator[Finding]:
    """The same for any requirements. Seqno 0: of an object that a first copy makes, behind the accounts ``made``."""
    asked = [
        (requirement, seqno) for requirement, seqno in requirements.items() if requirement.feature in (DEFINER, CHANGED)
    ]
    if not asked:
        return
    grants, own, there = target.grants, target.account, target.accounts
    named = {
        requirement.subject.removeprefix(_ACCOUNT): seqno
        for requirement, seqno in asked
        if requirement.feature == CHANGED
    }
    for requirement, seqno in asked:
        who = requirement.detail
        needed: tuple[str, ...] = ()
        if requirement.feature == DEFINER and who != own:
            needed = _lacking(grants, setters(target.flavor, target.number))
            is_made = named.get(who, seqno) < seqno
            if (
                not needed
                and target.number >= _SINCE_ABSENT
                and there.known is not None
                and who not in there.known | {own, *made}
            ):
                needed = () if is_made else _lacking(grants, ("ALLOW_NONEXISTENT_DEFINER", "SUPER"))
        if not needed and (who in there.system or _is_owned(requirement, there)):
            needed = _lacking(grants, SYSTEM_USER)
        if there.are_unseen and (needed == SYSTEM_USER or (not needed and _is_of_another(requirement, own))):
            yield _unseen(target, requirement, seqno)
        elif needed:
            yield _finding(target, requirement, seqno, needed)


def check_owned(situation: Situation) -> Iterator[Finding]:
    """DROP FUNCTION without a database name, for a function of an account with SYSTEM_USER, or for one of a library.

    The session's own database stands for it, but servers look for a function of a library first, which is nobody's.
    The log does not say which of them the source has dropped, unless its session had no database, or the window has
    made the function of the library, or there is no other one: without IF EXISTS it has dropped something.
    """
    target, made, stored = situation.target, set[str](), set[TableKey]()
    for each in situation.asked.texts:
        stored.update(key for key, _ in programs_made_by(each))
        if (of_library := _made_of_library(each)) is not None:
            made.add(of_library)
        name = _dropped(each)
        if name is None or not each.context.database:
            continue
        is_of_library = name.lower() not in made and name.lower() in _loadable(target)
        if is_of_library and ("EXISTS" in each.words or _is_stored(situation, each.context.database, name, stored)):
            what = f"{name} of a library, which would be dropped in place of {each.context.database}.{name}"
            yield Finding(Severity.FATAL, each.where, "no function of a library", what, _TODO_OF_LIBRARY, each.seqno)
            continue
        if not _knows_system_users(target):
            continue
        requirement = Requirement(CHANGED, f"function {each.context.database}.{name}")
        needed = _lacking(target.grants, SYSTEM_USER) if _is_owned(requirement, target.accounts) else ()
        if needed and target.accounts.are_unseen:
            yield _unseen(target, requirement, each.seqno)
        elif needed:
            yield _finding(target, requirement, each.seqno, needed)


def _is_stored(situation: Situation, database: str, name: str, made: Collection[TableKey]) -> bool:
    """Whether the target, or the window, has made a stored function of that name in the database."""
    key = routine_key(database, name)
    there = (each.key for each in situation.target.programs if each.kind == "function")
    return key in made or any(key == routine_key(each.database, each.table) for each in there)


def _knows_system_users(target: Target) -> bool:
    return target.flavor is Flavor.MYSQL and target.number >= SINCE_SYSTEM_USER


def _dropped(statement: LoggedText) -> str | None:
    if statement.words[:2] != ("DROP", "FUNCTION"):
        return None
    rest = statement.tokens[4 if statement.words[2:4] == ("IF", "EXISTS") else 2 :]
    return rest[0].text if len(rest) == 1 else None


def _made_of_library(statement: LoggedText) -> str | None:
    """The name of the function of a library that it makes, in lower case."""
    words = statement.words[:9]
    if words[:1] != ("CREATE",) or "FUNCTION" not in words or "SONAME" not in statement.words:
        return None
    return statement.tokens[statement.words.index("SONAME") - 3].text.lower()


def _loadable(target: Target) -> Collection[str]:
    """In lower case. An account that may not read their table may not drop one either."""
    return () if target.grants.missing(("SELECT",), "mysql") else target.loadable_functions


def _finding(target: Target, requirement: Requirement, seqno: int, needed: tuple[str, ...]) -> Finding:
    of = f": definer {requirement.detail}" if requirement.feature == DEFINER else ""
    todo = f"GRANT {needed[0]} ON *.* TO the account: without it the server refuses the statement (1227)"
    place = f", in the statement of seqno {seqno}" if seqno else ""
    return Finding(
        Severity.FATAL,
        f"{requirement.subject}{of}{place}",
        f"an account with {' or '.join(needed)}",
        "an account without it",
        todo,
        seqno or None,
        mend=(Order((needed[0],), EVERYWHERE, target.account),),
    )


def _unseen(target: Target, requirement: Requirement, seqno: int) -> Finding:
    """Of what the server refuses (1227) if the other account holds SYSTEM_USER, which this one cannot see."""
    of = f": definer {requirement.detail}" if requirement.feature == DEFINER else ""
    place = f", in the statement of seqno {seqno}" if seqno else ""
    return Finding(
        Severity.FATAL,
        f"{requirement.subject}{of}{place}",
        "an account that sees who holds SYSTEM_USER, or holds it",
        "an account that may not read `mysql`",
        "GRANT SELECT ON `mysql`.* TO the account: only SYSTEM_USER may touch what belongs to an account that holds it "
        "(1227), and nobody else can tell",
        seqno or None,
        mend=(Order(("SELECT",), "mysql", target.account),),
    )


def _is_of_another(requirement: Requirement, own: str) -> bool:
    """A definer or an account that is not the session's own."""
    if requirement.feature == DEFINER:
        return requirement.detail != own
    name = requirement.subject
    return name.startswith(_ACCOUNT) and name.removeprefix(_ACCOUNT) != own


def _lacking(grants: Grants, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names if the account holds none of them."""
    return names if len(grants.missing(names)) == len(names) else ()


def setters(flavor: Flavor, number: _Version) -> tuple[str, ...]:
    """Any of these lets an account set another one as definer."""
    if flavor is Flavor.MARIADB:
        if number < (10, 5, 2):
            return ("SUPER",)
        return ("SET USER", "SUPER") if number < (11, 0, 1) else ("SET USER",)
    if number < (8, 0, 0):
        return ("SUPER",)
    if number < _SINCE_ABSENT:
        return ("SET_USER_ID", "SUPER")
    return ("SET_ANY_DEFINER", "SUPER") if number >= (8, 4, 0) else ("SET_ANY_DEFINER", "SET_USER_ID", "SUPER")


def _is_owned(requirement: Requirement, there: Accounts) -> bool:
    if requirement.feature != CHANGED:
        return False
    subject = requirement.subject
    return subject.removeprefix(_ACCOUNT) in there.system or folded_name(subject) in there.owners
