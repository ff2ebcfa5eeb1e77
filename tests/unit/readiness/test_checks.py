"""One thing that is wrong is found by its check, with what mends it; nothing is found where nothing is wrong."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import create_engine

from binlane.bootstrap.definition_copy import Definition
from binlane.connections import Endpoint
from binlane.errors import PrecheckError, SourceError, SourceUnavailableError
from binlane.model import Flavor, TableKey
from binlane.orchestration.commands.setup.connections_held import Connections
from binlane.orchestration.commands.setup.doctor import _show
from binlane.orchestration.terminal import Terminal
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.situation.finding import Finding
from binlane.readiness.checks import (
    CHANNEL_CHECKS,
    CONNECTIONS,
    COPY_CHECKS,
    OTHER_CHECKS,
    Answer,
    answer,
    answers,
    require,
)
from binlane.readiness.machine import check_target_room, check_work_folder
from binlane.readiness.servers import check_row_format, check_source_privileges
from binlane.readiness.situation import Readiness, ReadinessRequest, SourceServer
from binlane.schema.compare import Severity
from binlane.schema.model import ForeignKey
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from tests.unit.precheck.situations import CHANNEL, VERSIONS, target_of

MYSQL: Final = (Flavor.MYSQL, VERSIONS[Flavor.MYSQL])
ROW: Final = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "sync_binlog": "1",
    "max_allowed_packet": "67108864",
    "lower_case_table_names": "0",
    "log_bin": "ON",
    "datadir": "/var/lib/my sql",
    "pid_file": "/nowhere/pid",
}


def ready(
    source: Mapping[str, Any] | None = None, target: Mapping[str, Any] | None = None, **changes: Any
) -> Readiness:
    """A channel whose servers answer with these facts; for any other they would have to be there."""
    engine = create_engine("mysql+pymysql://nobody@127.0.0.1:1/")
    server = SourceServer(engine, Endpoint("s", "127.0.0.1", 1, "nobody", ""), None)  # type: ignore[arg-type]
    vars(server).update(
        {"_version": MYSQL, "variables": ROW, "rows": lambda *_, **__: [], "account": "nobody@%", **(source or {})}
    )
    found = target_of(
        **{"account": "nobody@%", "variables": ROW, "rows": lambda *_, **__: [(time.time(),)], **(target or {})}
    )
    situation = Readiness(
        CHANNEL,
        server,
        found,
        Endpoint("t", "127.0.0.1", 1, "nobody", ""),
        ReadinessRequest(),
        lambda _: (Selection(), Renaming()),
    )
    vars(situation).update(databases=("shop",))
    return replace(situation, **changes) if changes else situation


def told(rows: list[tuple[Any, ...]]) -> Callable[..., list[tuple[Any, ...]]]:
    return lambda *_, **__: rows


def with_event(situation: Readiness) -> Readiness:
    event = Definition("EVENT", "shop", "e", b"CREATE EVENT e ...", time_zone="Mars/Base")
    vars(situation).update(programs=(event,))
    return situation


def with_default(collation: str) -> Readiness:
    """Of a program from under a default that the target may not have."""
    situation = ready()
    event = Definition("EVENT", "shop", "e", b"CREATE EVENT e ...", database_collation=collation)
    vars(situation).update(programs=(event,), requirements={}, collations=frozenset({"utf8mb4_general_ci"}))
    return situation


CASES: Final = {
    "family": (ready(source={"_version": (Flavor.MARIADB, "10.11.6-MariaDB")}), "expected a mariadb server", ""),
    "source-version": (ready(source={"_version": (Flavor.MYSQL, "5.7.44")}), "8.0.0 or newer, found 5.7.44", ""),
    "letter-case": (ready(source={"variables": {**ROW, "lower_case_table_names": "1"}}), "expected 1, as on", ""),
    "prepared-transactions": (ready(source={"rows": told([("x",)])}), "1 XA transactions are prepared", ""),
    "event-time-zones": (
        with_event(ready(target={"rows": told([(None,)])})),
        "target: time zone Mars/Base: expected known, found unknown",
        "mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql --user=root --password mysql",
    ),
    "programs": (
        with_default("utf8mb4_uca1400_ai_ci"),
        "event shop.e: utf8mb4_uca1400_ai_ci, its database's collation when it was made: expected a target that has it",
        "",
    ),
    "row-format": (
        ready(source={"variables": {**ROW, "binlog_format": "MIXED"}}),
        "source: binlog_format: expected ROW, found MIXED",
        "SET PERSIST binlog_format = ROW",
    ),
    "log-sync": (
        ready(source={"variables": {**ROW, "sync_binlog": "0"}}),
        "source: sync_binlog: expected 1, found 0",
        "SET PERSIST sync_binlog = 1",
    ),
    "packets": (
        ready(target={"variables": {**ROW, "max_allowed_packet": "4194304"}}),
        "expected 67108864 as on the source, found 4194304",
        "SET PERSIST max_allowed_packet = 67108864",
    ),
    "clocks": (
        ready(source={"rows": lambda *_: [(time.time(),)]}, target={"rows": lambda *_: [(time.time() - 60,)]}),
        "target: clock: expected this machine's time, found -60 s",
        "chronyc makestep",
    ),
    "target-room": (
        ready(source={"rows": told([(3 << 30,)])}),
        "expected 6.0 GiB free for the copied tables, found unknown",
        "df -h '/var/lib/my sql'",
    ),
}
FOUND_NOTHING: Final = {
    **dict.fromkeys(("family", "source-version", "letter-case", "prepared-transactions", "row-format", "packets")),
    "log-sync": None,
    "clocks": {"rows": lambda *_: [(time.time(),)]},
}


@pytest.mark.parametrize("name", CASES)
def test_one_thing_that_is_wrong_is_found_by_its_check(name: str) -> None:
    situation, said, mend = CASES[name]
    found = answer(name, {**COPY_CHECKS, **OTHER_CHECKS}[name], situation).findings

    assert len(found) == 1
    assert said in str(found[0])
    assert str(found[0]).endswith(f"[{name}]")
    assert [str(each) for each in found[0].mend] == ([mend] if mend else [])


@pytest.mark.parametrize(
    ("selection", "severity"),
    [(Selection(), Severity.FATAL), (Selection(include_databases=("shop",)), Severity.INFO)],
)
def test_a_database_with_its_folder_s_name_is_told_before_the_channel_begins(
    selection: Selection, severity: Severity
) -> None:
    """Its rows stop a window, also where the filter leaves it out; a folder without tables is no database."""

    def rows(query: str, name: str = "") -> list[tuple[Any, ...]]:
        names = ("shop", "#mysql50#a-b", "#mysql50#lost+found")
        return [(1,)] * (name == "#mysql50#a-b") if name else [(each,) for each in names]

    situation = ready(source={"rows": rows}, read_rules=lambda _: (selection, Renaming()))
    [found] = answer("database-names", CHANNEL_CHECKS["database-names"], situation).findings

    assert found.severity is severity
    assert "found #mysql50#a-b with tables" in str(found)
    assert "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME" in str(found)


@pytest.mark.parametrize(("excluded", "lacking"), [((), True), (("shop",), False)])
def test_a_privilege_revoked_on_a_database_of_the_channel_is_missing(excluded: tuple[str, ...], lacking: bool) -> None:
    lines = ["GRANT ALL PRIVILEGES ON *.* TO `u`@`%`", "REVOKE SELECT ON `shop`.* FROM `u`@`%`"]
    situation = ready(source={"grants": parse_grants(lines), "account": "u@%"})
    situation = replace(situation, read_rules=lambda _: (Selection(exclude_databases=excluded), Renaming()))

    assert [str(mend) for each in check_source_privileges(situation) for mend in each.mend] == (
        ["GRANT SELECT ON *.* TO 'u'@'%'"] if lacking else []
    )


def test_a_privilege_that_two_reasons_ask_for_is_missing_once() -> None:
    server = {"_version": (Flavor.MARIADB, VERSIONS[Flavor.MARIADB]), "account": "u@%", "grants": parse_grants([])}
    found = list(check_source_privileges(ready(source=server, asked=ReadinessRequest(copies=True, users=True))))
    mysql = [one for one in found if "`mysql`.*" in one.expected]

    assert [(one.where, one.expected) for one in mysql] == [("source: privilege SELECT", "granted on `mysql`.*")]


def with_a_small_disk(mounted: str, asked: ReadinessRequest) -> Readiness:
    """A target with 1 MiB free, for 6 GiB."""
    target = target_of(
        Flavor.MARIADB, variables=ROW, rows=told([(mounted, 1 << 10)]),
        ask=lambda question, *arguments: question(None, *arguments),
    )  # fmt: skip
    situation = replace(ready(source={"rows": told([(3 << 30,)])}), target=target, asked=asked)
    vars(situation).update(databases=("shop",))
    return situation


@pytest.mark.parametrize(
    ("begun", "replaces", "severity"),
    [(False, False, Severity.FATAL), (True, False, Severity.INFO), (False, True, Severity.INFO)],
)
def test_a_copy_that_finds_its_own_tables_may_need_less_room(
    monkeypatch: pytest.MonkeyPatch, begun: bool, replaces: bool, severity: Severity
) -> None:
    monkeypatch.setattr("binlane.readiness.situation.has_bootstrap", lambda *_: begun)
    situation = with_a_small_disk("/var", ReadinessRequest(replaces=replaces))

    assert [each.severity for each in check_target_room(situation)] == [severity]


@pytest.mark.parametrize(("mounted", "found"), [("/var/lib", "1.0 MiB"), ("/var/li", "unknown")])
def test_only_a_disk_whose_mount_is_above_the_data_is_the_targets(
    monkeypatch: pytest.MonkeyPatch, mounted: str, found: str
) -> None:
    monkeypatch.setattr("binlane.readiness.situation.has_bootstrap", lambda *_: False)
    situation = with_a_small_disk(mounted, ReadinessRequest())

    assert [each.found for each in check_target_room(situation)] == [found]


def test_a_folder_that_may_not_be_looked_into_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)

    assert [each.found for each in check_target_room(ready(source={"rows": told([(3 << 30,)])}))] == ["unknown"]


@pytest.mark.parametrize(
    ("binlog_format", "executed", "is_named"), [("MIXED", 1005, True), ("MIXED", 0, False), ("ROW", 1005, False)]
)
def test_prepared_statements_are_one_more_reason_to_log_rows(binlog_format: str, executed: int, is_named: bool) -> None:
    rows = told([("Com_execute_sql", "0"), ("Com_stmt_execute", str(executed))])
    found = list(check_row_format(ready(source={"variables": {**ROW, "binlog_format": binlog_format}, "rows": rows})))

    assert len(found) == (binlog_format != "ROW")
    assert all(each.severity is Severity.INFO for each in found)
    named = ["it has executed 1,005 prepared statements, whose parameters lose" in each.todo for each in found]
    assert any(named) == is_named


@pytest.mark.parametrize(
    ("check", "server"), [("accounts", "target"), ("source-privileges", "source"), ("row-format", "source")]
)
def test_a_statement_is_for_the_server_of_its_check(check: str, server: str) -> None:
    told = io.StringIO()
    finding = Finding(Severity.FATAL, "source: GRANT SELECT", "x", "y", "z", mend=("GRANT x",))
    _show(Answer(check, (finding,)), Terminal(file=told))

    assert told.getvalue().endswith(f"GRANT x;  -- on the {server}\n")


@pytest.mark.parametrize("name", FOUND_NOTHING)
def test_a_situation_without_problems_has_no_findings(name: str) -> None:
    assert answer(name, {**COPY_CHECKS, **OTHER_CHECKS}[name], ready(source=FOUND_NOTHING[name])).findings == ()


def test_a_program_from_under_a_default_that_the_target_has_is_taken() -> None:
    assert answer("programs", COPY_CHECKS["programs"], with_default("utf8mb4_general_ci")).findings == ()


def test_a_work_folder_that_cannot_be_written_is_named_and_another_is_left_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    work = replace(CHANNEL.work, uri=str(tmp_path / "file" / "work"))
    situation = ready(channel=replace(CHANNEL, work=work))

    failed = answer("work-folder", check_work_folder, situation)
    assert (failed.is_ok, failed.was_asked) == (False, True), "no missing privilege of a server explains it"
    assert [str(each) for one in failed.findings for each in one.mend] == [
        f"install -d -o {os.getuid()} {tmp_path}/file/work"
    ]
    work = replace(CHANNEL.work, uri=str(tmp_path / "work"))
    assert answer("work-folder", check_work_folder, ready(channel=replace(CHANNEL, work=work))).is_ok
    assert not list((tmp_path / "work").glob("*"))


@pytest.mark.parametrize(
    ("variable", "mend"),
    [
        (None, ["export AIRFLOW_CONN_AIRFLOW_API='https://user:password@host:8080/'"]),
        ("mysql://a:b@c/", ["export AIRFLOW_CONN_AIRFLOW_API='https://user:password@host:8080/'"]),
        ("https://a:b@c:8080/", []),
    ],
)
def test_the_airflow_that_gets_the_watermarks_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, mend: list[str]
) -> None:
    if variable is not None:
        monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_API", variable)
    channel = replace(CHANNEL, announce=replace(CHANNEL.announce, airflow="airflow_api"))
    *_, found = Connections(channel, None).answers()

    assert found.check == "announce-airflow-connection"
    assert [str(each) for one in found.findings for each in one.mend] == mend
    assert found.check not in {each.check for each in Connections(CHANNEL, None).answers()}


def test_a_machine_without_spark_and_java_is_told_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    found = answer("spark", OTHER_CHECKS["spark"], ready())

    assert [one.where for one in found.findings] == ["spark-submit", "java"]
    assert found.is_ok


def test_a_server_that_does_not_answer_is_asked_nothing_else() -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise SourceUnavailableError("s: cannot be reached")

    found = list(answers(ready(source={"rows": gone}), {"clocks": OTHER_CHECKS["clocks"]}))

    assert [(each.check, each.is_ok) for each in found] == [("source-connection", False), ("target-connection", True)]


@pytest.mark.parametrize("part", ["source", "target"])
def test_a_server_that_names_another_account_than_the_login_s_is_noted(part: str) -> None:
    check = CONNECTIONS[f"{part}-connection"]
    [found] = answer("x", check, ready(**{part: {"account": "mallory@%"}})).findings

    assert (found.where, found.severity) == (f"{part}: account", Severity.INFO)
    assert found.found.startswith("'mallory'@'%', an anonymous or a proxied account, or an answer of another program")
    assert answer("x", check, ready()).findings == ()


def test_behind_a_missing_privilege_an_error_is_a_note() -> None:
    def denied(_: Readiness) -> Any:
        raise SourceError("denied")

    def missing(_: Readiness) -> list[Finding]:
        return [Finding(Severity.FATAL, "source: privilege RELOAD", "granted", "not granted", "GRANT RELOAD")]

    alone = list(answers(ready(), {"source-log": denied}))[2:]
    behind = list(answers(ready(), {"source-privileges": missing, "source-log": denied}))[2:]

    assert [each.is_ok for each in alone] == [False]
    assert [each.is_ok for each in behind] == [False, True]
    told = io.StringIO()
    for each in (alone[0], behind[1]):
        _show(each, Terminal(file=told))
    assert told.getvalue().split("\n")[:2] == [
        "FAIL  source-log: denied", "note  source-log: not asked, because source-privileges failed",
    ]  # fmt: skip


def test_readiness_raises_retryable_errors_unchanged_and_all_findings_in_one_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable(_: Readiness) -> Any:
        raise SourceUnavailableError("s: cannot be reached")

    def missing(_: Readiness) -> list[Finding]:
        return [Finding(Severity.FATAL, "source: privilege RELOAD", "granted", "not granted", "GRANT RELOAD")]

    monkeypatch.setattr("binlane.readiness.checks.CHANNEL_CHECKS", {"source-privileges": missing})
    monkeypatch.setattr("binlane.readiness.checks.COPY_CHECKS", {"family": missing})
    with pytest.raises(PrecheckError, match=r"(?s)2 findings; nothing was written:.*\[source-privileges\].*\[family\]"):
        require(ready())
    monkeypatch.setattr("binlane.readiness.checks.COPY_CHECKS", {"family": unavailable})
    with pytest.raises(SourceUnavailableError):
        require(ready())


@pytest.mark.parametrize(
    ("selection", "action", "is_named"),
    [
        (Selection(exclude_databases=("crm",)), "CASCADE", True),
        (Selection(exclude_databases=("crm",)), "RESTRICT", False),
        (Selection(exclude_tables=("shop.orders",)), "CASCADE", False),
        (Selection(exclude_tables=("shop.other",)), "CASCADE", False),
        (Selection(), "CASCADE", False),
    ],
)
def test_a_child_whose_parent_the_filter_leaves_out_is_told_before_the_channel_begins(
    selection: Selection, action: str, is_named: bool
) -> None:
    key = ForeignKey("fk", ("c",), TableKey("crm", "customer"), ("id",), "RESTRICT", action)
    keys = {TableKey("shop", "orders"): (key,)}
    situation = ready(source={"ask": lambda *_: keys}, read_rules=lambda _: (selection, Renaming()))
    vars(situation).update(databases=("shop",))
    found = answer("filtered-parents", CHANNEL_CHECKS["filtered-parents"], situation).findings
    assert ["shop.orders: foreign key fk" in str(each) for each in found] == [True] * is_named
