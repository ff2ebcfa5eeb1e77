"""What somebody has broken on the target is mended by the next step that the message names, typed as it stands."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import made_here
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone
from tests.trials.test_each_privilege import ACCOUNT, documented, give
from tests.waiting import wait_until
from tests.ways_out import BEFORE, OVERWRITE, TROUBLES, WINDOW, Trouble

MOST_STEPS: Final = 3
IN_TESTS: Final = frozenset(
    {
        "a table was dropped to which others refer by a foreign key",
        "a table was dropped that statements of the window read, which change another one",
        "a column was added",
        "a column has another name",
        "rows are in the way, in a table with triggers",
    }
)
"""The others are trials."""
FOLLOWED: Final = frozenset(
    {
        "a table was dropped",
        "a column was added",
        "rows are in the way",
        "the connection leads to another target",
    }
)
"""Also typed where `binlane follow` runs the windows; what another try may not meet does not end it."""
READ_ONLY: Final = {Flavor.MARIADB: "read_only", Flavor.MYSQL: "super_read_only"}
"""By family; MySQL's documented account may write where read_only is set."""
_KILLED: Final = "KILL its connection"
_CONNECTED: Final = "the right host in the connection"
_PASSWORD: Final = "the new password in the connection"
_FREED: Final = "free space, or a larger work.uri"
_FREED_TARGET: Final = "free space on the target"
_ADOPTED: Final = "adopt"
_LOGGED: Final = "log_bin in the source's option file, and a restart"
_UNFILTERED: Final = "binlog_ignore_db out of the source's option file, and a restart"
_UNLOCKED: Final = "ALTER USER the account ACCOUNT UNLOCK"
_STEPS: Final[Mapping[str, str]] = {
    r"already, undo it there: (ALTER TABLE .+?)(?:; or SET SESSION| \[logged-tables\])": "undo",
    r"; or (SET SESSION foreign_key_checks = OFF; DROP TABLE \S+) on the target": "target",
    r"`(binlane recopy [^`]+)`": "command",
    r"(apply\.on_conflict = \"overwrite\") in": "setting",
    r"(DROP TRIGGER (?:`\w+`|[\w.])+)": "target",
    r"; on the target: (ALTER TABLE .+?)(?: \[table-definitions\])?$": "target",
    r"\(check_constraint_checks\): (ALTER TABLE .+? DROP CONSTRAINT `\w+`)": "target",
    r"(SET GLOBAL \w+ = \w+) on the target": "target",
    r"(SET GLOBAL gtid_mode = \w+) on the source": "source",
    r"^target: .*?((?:GRANT [A-Z ]+ ON \S+ TO '\w+'@'%'(?:; )?)+): ": "target",
    r"(GRANT [A-Z, ]+ ON \*\.\*) TO the account on the source": "source-account",
    r"SHOW FULL PROCESSLIST on the target and (KILL it)": _KILLED,
    r"(start the source with log_bin)": _LOGGED,
    r"(remove the option from the source)": _UNFILTERED,
    r"(Point the connection at the channel's (?:server|target))": _CONNECTED,
    r"`(binlane adopt-target \w+)` shows": _ADOPTED,
    rf"({_UNLOCKED}) there": _UNLOCKED,
    r"((?:check|compare the connection's) user and password)": _PASSWORD,
    r"(Free space), or set work\.uri to a larger place": _FREED,
    r"(free space on the target), then run again": _FREED_TARGET,
    r"(run (?:the step )?again when the server answers)": "binlane run shop",
    r"\[filter\] (exclude_tables = \['[\w.]+'\])": "filter",
    r"copy everything again: (DELETE .+?) on the target, then (?=`binlane bootstrap)": "target",
    r"`(binlane skip \w+ --seqno \d+) --reason": "command",
}
"""What a message says that is to be done, and who does it; the first that a message has."""
_LEFT: Final = re.compile(
    r"not repaired: .*?(DROP TABLE `\w+`\.`\w+`|DROP TRIGGER `\w+`\.`\w+`|ALTER TABLE [^;\n]+|binlane recopy [^`]+)"
)


def read_step(said: str, without: str = "") -> tuple[str, str]:
    """The next step that a message names, and who does it. ``without``: what does not fit the trouble."""
    for pattern, who in _STEPS.items():
        if who == without:
            continue
        found = re.search(pattern, said, re.MULTILINE)
        if found is not None:
            return found[1].rstrip("; "), who
    raise AssertionError(said)


@dataclass(slots=True)
class Broken:
    """What is broken beside the servers' data, and who mends it."""

    channel: Channel
    mends: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By who does it."""
    without: str = ""
    """What a message names first for another trouble."""

    def type(self, step: str, who: str) -> str:
        """Do what a message says; as the page names it."""
        channel = self.channel
        if who in ("command", _ADOPTED):
            extra = ("--reason", "it has run") if " skip " in step else ("--yes",)
            assert channel.cli(*shlex.split(step)[1:], *extra) == 0
            return step.replace(f" {CHANNEL}", " shop").partition(" --seqno")[0]
        if who == "setting":
            channel.write_channel('on_conflict = "overwrite"\n')
            return step
        if who == "filter":
            channel.write_channel(f"[filter]\n{step}\n")
            return f"[filter] {step}".replace("'", '"')
        if who == "undo":
            undone = step.replace("ADD", "DROP").removesuffix(" INT")
            run_on(channel.target, undone, log=False)
            return undone
        if who == "target":
            run_on(channel.target, *step.split("; "), log=False)
            if step.startswith("DELETE"):
                # in the same message, behind it
                assert channel.cli("bootstrap", CHANNEL, "--replace") == 0
                return f"{step.replace(CHANNEL, 'shop')}; binlane bootstrap shop --replace"
            return step.replace("`", "")
        if who == "source":
            run_on(channel.source, step, log=False)
            return step
        if who == "source-account":
            run_on(channel.source, f"{step} TO {ACCOUNT}", log=False)
            return step
        if who in self.mends:
            self.mends[who]()
        return who


@contextlib.contextmanager
def _locked(channel: Channel) -> Iterator[Broken]:
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [number] = cursor.fetchone() or ()
        cursor.execute("LOCK TABLES shop.orders WRITE")
        channel.write_channel("lock_wait_timeout = 1\n", transactions=1)

        def killed() -> None:
            holders = [row[0] for row in channel.target.query("SHOW FULL PROCESSLIST") if row[4] == "Sleep"]
            assert number in holders
            run_on(channel.target, f"KILL {number}", log=False)

        yield Broken(channel, {_KILLED: killed})


@contextlib.contextmanager
def _with_account(channel: Channel, side: str, without: str, *settings: str) -> Iterator[Broken]:
    """An account of the documented privileges, which has lost one since."""
    server = channel.source if side == "source" else channel.target
    held = documented(channel.source.flavor.value, side)
    give(server, [f"GRANT {name} ON {scope} TO {ACCOUNT}" for name, scope in held if (name, scope) != (without, "*.*")])
    channel.connect(f"{side}_server", server, "test_binlane")
    run_on(server, *settings, log=False)
    try:
        yield Broken(channel)
    finally:
        channel.connect(f"{side}_server", server)
        run_on(server, "SET GLOBAL read_only = OFF", f"DROP USER {ACCOUNT}", log=False)


@contextlib.contextmanager
def _locked_account(channel: Channel) -> Iterator[Broken]:
    with _with_account(channel, "target", "") as broken:
        run_on(channel.target, f"ALTER USER {ACCOUNT} ACCOUNT LOCK", log=False)
        broken.mends[_UNLOCKED] = lambda: run_on(channel.target, f"ALTER USER {ACCOUNT} ACCOUNT UNLOCK", log=False)
        yield broken


@contextlib.contextmanager
def _packet(channel: Channel) -> Iterator[Broken]:
    usual = channel.target.query("SELECT @@GLOBAL.max_allowed_packet")[0][0]
    run_on(channel.target, "SET GLOBAL max_allowed_packet = 1024", log=False)
    try:
        yield Broken(channel)
    finally:
        run_on(channel.target, f"SET GLOBAL max_allowed_packet = {usual}", log=False)


@contextlib.contextmanager
def _connected_otherwise(channel: Channel, side: str, who: str, change: Callable[[str], str]) -> Iterator[Broken]:
    name = f"AIRFLOW_CONN_{side.upper()}_SERVER"
    usual = channel.environment[name]
    channel.environment[name] = change(usual)
    yield Broken(channel, {who: lambda: channel.environment.update({name: usual})})


def _to_server(other: str) -> Callable[[Channel, str], contextlib.AbstractContextManager[Broken]]:
    def change(channel: Channel, side: str) -> contextlib.AbstractContextManager[Broken]:
        server = channel.source if other == "source" else channel.target
        return _connected_otherwise(
            channel, side, _CONNECTED, lambda usual: re.sub(r":\d+/", f":{server.port}/", usual)
        )

    return change


def _with_password(channel: Channel, side: str) -> contextlib.AbstractContextManager[Broken]:
    return _connected_otherwise(channel, side, _PASSWORD, lambda usual: re.sub(r":[^:@/]+@", ":another@", usual))


@contextlib.contextmanager
def _stopped(server: PrivateServer, channel: Channel) -> Iterator[Broken]:
    server.stop()
    try:
        yield Broken(channel, {"binlane run shop": server.restart})
    finally:
        if not server.is_running():
            server.restart()


@contextlib.contextmanager
def _restarted(channel: Channel, option: str, step: str) -> Iterator[Broken]:
    """The source, with another option."""
    usual = channel.source.options
    channel.source.restart([*usual, option])

    def restarted_as_usual() -> None:
        channel.source.restart(usual)

    try:
        yield Broken(channel, {step: restarted_as_usual})
    finally:
        if channel.source.options != usual:
            restarted_as_usual()


def _unlogged(channel: Channel) -> contextlib.AbstractContextManager[Broken]:
    options = {Flavor.MARIADB: "--skip-log-bin", Flavor.MYSQL: "--disable-log-bin"}
    return _restarted(channel, options[channel.source.flavor], _LOGGED)


@contextlib.contextmanager
def _full(channel: Channel) -> Iterator[Broken]:
    """A work folder with a disk of its own, which another program has filled."""
    folder = channel.project / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        channel.write_channel(f'[work]\nuri = "{folder}"\n')
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield Broken(channel, {_FREED: filler.unlink})
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        channel.write_channel()


@contextlib.contextmanager
def _purged(channel: Channel) -> Iterator[Broken]:
    run_on(channel.source, "FLUSH BINARY LOGS")
    last = channel.source.query("SHOW BINARY LOGS")[-1][0]

    def purged() -> bool:
        # a file that InnoDB may still need for a recovery is left out
        run_on(channel.source, f"PURGE BINARY LOGS TO '{last}'", log=False)
        return bool(channel.source.query("SHOW BINARY LOGS")[0][0] == last)

    wait_until(purged)
    yield Broken(channel)


@contextlib.contextmanager
def _replaced(channel: Channel) -> Iterator[Broken]:
    """The data and the address are those of the target, the server is another one."""
    target = channel.target
    number = target.query("SELECT @@GLOBAL.server_id")[0][0]
    if target.flavor is Flavor.MARIADB:
        run_on(target, "SET GLOBAL server_id = 4711", log=False)
    else:
        target.stop()
        (target.datadir / "auto.cnf").unlink()
        target.restart()
    try:
        yield Broken(channel, without=_CONNECTED)
    finally:
        run_on(target, f"SET GLOBAL server_id = {number}", log=False)


@contextlib.contextmanager
def _full_target(channel: Channel) -> Iterator[Broken]:
    """A database with a disk of its own, which another program has filled."""
    folder, target = channel.target.datadir / "shop", channel.target
    beside = channel.project / "beside"
    target.stop()
    shutil.move(folder, beside)
    folder.mkdir(mode=0o777)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=777", "tmpfs", str(folder)], check=True)
    filler = folder / "filler.txt"
    try:
        shutil.copytree(beside, folder, dirs_exist_ok=True)
        owned(folder, like=beside)
        target.restart()
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

        def freed() -> None:
            filler.unlink()
            subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)

        yield Broken(channel, {_FREED_TARGET: freed})
    finally:
        target.stop()
        filler.unlink(missing_ok=True)
        shutil.rmtree(beside)
        shutil.copytree(folder, beside)
        owned(beside, like=folder)
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()
        shutil.move(beside, folder)
        target.restart()


def owned(folder: Path, like: Path) -> None:
    """Give the files of a folder to the owner that they have in another one."""
    for path in (folder, *folder.iterdir()):
        there = like if path == folder else like / path.name
        os.chown(path, there.stat().st_uid, there.stat().st_gid)


@contextlib.contextmanager
def _without_gtids(server: PrivateServer, channel: Channel) -> Iterator[Broken]:
    modes = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
    run_on(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in modes), log=False)
    try:
        yield Broken(channel)
    finally:
        now = server.query("SELECT @@GLOBAL.gtid_mode")[0][0]
        back = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
        run_on(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in back[back.index(now) + 1 :]), log=False)


BREAKS: Final[Mapping[str, Callable[[Channel], contextlib.AbstractContextManager[Broken]]]] = {
    "somebody holds LOCK TABLES": _locked,
    "read_only was set": lambda channel: _with_account(
        channel, "target", "READ_ONLY ADMIN", f"SET GLOBAL {READ_ONLY[channel.target.flavor]} = ON"
    ),
    "max_allowed_packet was lowered": _packet,
    "the target's account has lost a privilege": lambda channel: _with_account(channel, "target", "SELECT"),
    "the source's account has lost a privilege": lambda channel: _with_account(channel, "source", "REPLICATION SLAVE"),
    "the target's account was locked": _locked_account,
    "the target's password was changed": lambda channel: _with_password(channel, "target"),
    "the source's password was changed": lambda channel: _with_password(channel, "source"),
    "the target was stopped": lambda channel: _stopped(channel.target, channel),
    "the source was stopped": lambda channel: _stopped(channel.source, channel),
    "the source was started without its binary log": _unlogged,
    "the source was restarted with other settings (`binlog_ignore_db`)": (
        lambda channel: _restarted(channel, "--binlog-ignore-db=scratch", _UNFILTERED)
    ),
    "the work folder is full": _full,
    "the source has purged its log": _purged,
    "the connection leads to another source": lambda channel: _to_server("target")(channel, "source"),
    "another server has replaced the target, with all its data": _replaced,
    "the target's disk is full": _full_target,
    "GTIDs were switched off on the source (`gtid_mode = OFF`), and the log behind the watermark has some": (
        lambda channel: _without_gtids(channel.source, channel)
    ),
    "the connection leads to another target": lambda channel: _to_server("source")(channel, "target"),
}
"""Of troubles that are no statements on the target."""


_NOTHING_WRITTEN: Final = re.compile(r"nothing (?:of the window )?(?:was|has been) written")


def begun(channel: Channel) -> None:
    run_on(channel.source, *BEFORE)
    assert channel.run() is not None


@contextlib.contextmanager
def broken(channel: Channel, trouble: Trouble) -> Iterator[Broken]:
    if trouble.breaks:
        run_on(channel.target, "SET SESSION foreign_key_checks = 0", *trouble.breaks, log=False)
        yield Broken(channel, without=trouble.without)
        return
    with BREAKS[trouble.what](channel) as found:
        yield found


def stopped_at(channel: Channel, transactions: int) -> None:
    """A window that has begun to write, and whose files are there."""
    first = channel.status.channel.watermark.seqno
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    stop = str(first + transactions)
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"], stop_at=stop)
    for each in adopted["lanes"]:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], each["lane"])
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.cli("resume", CHANNEL) == 0


def as_shown(statement: str) -> str:
    """As the page has it: without the account, the rest of a list of privileges, and the number of a setting."""
    shown = re.sub(r"^(GRANT [A-Z ]+?)(?:, [A-Z ,]+?)? (ON \S+).*", r"\1 \2", statement).replace("super_", "")
    return re.sub(r" = \d+$|(?<= int)\(11\)", "", shown)


def said_in_a_shell(channel: Channel, capsys: pytest.CaptureFixture[str], *command: str) -> Callable[[], str | None]:
    """See ``led_out``."""

    def run() -> str | None:
        capsys.readouterr()
        code = channel.cli(*command)
        return capsys.readouterr().err if code != 0 else None

    return run


def led_out(
    broken: Broken,
    trouble: Trouble,
    capsys: pytest.CaptureFixture[str],
    *,
    is_inside: bool = False,
    run: Callable[[], str | None] | None = None,
) -> None:
    """Run, and type what the message says, until the window is applied and all is equal.

    ``run``: what a run says that fails, None for one that succeeds; without it those of `binlane run`.
    """
    channel, typed, all_said = broken.channel, list[str](), ""
    run = said_in_a_shell(channel, capsys, "run", CHANNEL) if run is None else run
    while (said := run()) is not None:
        all_said += said
        assert trouble.seen in said or typed, said
        # its lanes have applied a part
        assert not is_inside or not _NOTHING_WRITTEN.search(said), said
        assert len(typed) < MOST_STEPS, said
        step, who = read_step(said, broken.without)
        named = broken.type(step, who)
        typed += map(as_shown, named.split("; "))
    if any(" = " in each and "SET" not in each for each in typed):
        # of the channel's file
        channel.write_channel()
    # the triggers and other definitions of what was dropped
    if channel.cli("verify", CHANNEL, "--full") != 0:
        all_said += capsys.readouterr().out
        if not typed:
            typed.append("binlane verify shop --full --repair")
        if channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") != 0:
            left = _LEFT.findall(capsys.readouterr().out)
            assert left, all_said
            mended = [
                broken.type(each, "command" if each.startswith("binlane") else "target") for each in dict.fromkeys(left)
            ]
            if typed == ["binlane verify shop --full --repair"]:
                typed = mended
    assert trouble.seen in all_said
    expected = list(trouble.typed)
    # a window that has begun has smaller blocks, of which not each has the rows that are in the way
    assert typed
    assert typed == (expected[: len(typed)] if is_inside else expected), all_said
    assert channel.cli("verify", CHANNEL, "--full") == 0, capsys.readouterr().out


def _in_families(
    trouble: Trouble, *more: object, name: str, marks: Sequence[pytest.MarkDecorator] = ()
) -> Iterator[Any]:
    for family in trouble.families:
        needs = (requires_mysql,) if family == "mysql" else ()
        yield pytest.param(family, trouble, *more, id=f"{name}-{family}", marks=(*needs, *marks))


@pytest.mark.parametrize(
    ("family", "trouble"),
    [
        case
        for each in TROUBLES
        for case in _in_families(each, name=each.what, marks=() if each.what in IN_TESTS else (pytest.mark.trial,))
    ],
)
def test_the_next_step_leads_out_of_a_trouble_before_a_window(
    channel_of: ChannelOf, family: str, trouble: Trouble, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(channel.source, *trouble.window)
    with broken(channel, trouble) as found:
        led_out(found, trouble, capsys)
    channel.assert_equal()


@pytest.mark.trial
@pytest.mark.parametrize(
    ("family", "trouble", "transactions"),
    [
        case
        for trouble in TROUBLES
        for transactions in (1, 4)
        for case in _in_families(trouble, transactions, name=f"{trouble.what}-{transactions}")
        # the rows that are broken there have been written by the fourth
        if trouble.in_window and (transactions == 1 or (trouble.breaks and OVERWRITE not in trouble.typed))
    ],
)
def test_each_next_step_leads_out_of_its_trouble_inside_a_window(
    channel_of: ChannelOf, family: str, trouble: Trouble, transactions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(channel.source, *trouble.window)
    channel.write_channel(transactions=1)
    stopped_at(channel, transactions)
    with broken(channel, trouble) as found:
        led_out(found, trouble, capsys, is_inside=True)
    channel.assert_equal()


@pytest.mark.trial
@pytest.mark.parametrize(
    ("family", "trouble"),
    [case for each in TROUBLES if each.what in FOLLOWED for case in _in_families(each, name=each.what)],
)
def test_the_next_step_leads_out_where_windows_follow_each_other(
    channel_of: ChannelOf, family: str, trouble: Trouble, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(channel.source, *trouble.window)
    with broken(channel, trouble) as found:
        led_out(found, trouble, capsys, run=said_in_a_shell(channel, capsys, "follow", CHANNEL, "--for", "1s"))
    channel.assert_equal()


@pytest.mark.trial
@requires_mysql
def test_windows_go_on_without_gtids_on_the_target(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    begun(channel)
    for is_begun in (False, True):
        run_on(
            channel.source, *(WINDOW if not is_begun else ("UPDATE shop.orders SET v = v + 1", "CREATE DATABASE other"))
        )
        if is_begun:
            channel.write_channel(transactions=1)
            stopped_at(channel, 1)
        with _without_gtids(channel.target, channel):
            assert channel.cli("run", CHANNEL) == 0
        channel.assert_equal()


def test_a_task_that_is_cleared_behind_the_command_that_has_finished_its_window_is_a_no_op(
    channel_of: ChannelOf,
) -> None:
    """The command has read the window's part of the log anew, without the table that it has copied."""
    channel = channel_of("mariadb", "mariadb")
    begun(channel)
    run_on(channel.source, *WINDOW)
    run_on(channel.target, "DROP TABLE shop.heap", log=False)
    work = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))["work"]
    run_plan_job(WorkFolder(work), InProcess())
    made = made_here(work)
    with pytest.raises(PrecheckError, match="found no such table"):
        steps.adopt_plan(channel.config, channel.endpoints, work, made=made)
    assert channel.cli("recopy", CHANNEL, "--table", "shop.heap", "--yes") == 0
    assert steps.adopt_plan(channel.config, channel.endpoints, work, made=made) == {"plan": None, "lanes": []}
    assert channel.status.window is None
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_statement_of_a_window_reads_the_later_rows_of_a_table_that_is_copied_alone(
    channel_of: ChannelOf, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(
        channel.source,
        "UPDATE shop.heap SET b = 5 WHERE a = 1",
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO shop.orders SELECT id + 100, u FROM shop.parent",
        "UPDATE shop.parent SET u = u + 50 WHERE id = 1",
    )
    channel.write_channel(transactions=1)
    stopped_at(channel, 1)
    run_on(channel.target, "SET SESSION foreign_key_checks = 0", "DROP TABLE shop.parent", log=False)
    capsys.readouterr()
    for command in (("recopy", CHANNEL, "--table", "shop.parent", "--yes"), ("run", CHANNEL)):
        # the second finds the table there, with the rows of now
        assert channel.cli(*command) == 1
        said = capsys.readouterr().err
        assert "shop.parent: rows: expected those of the window's moment, found later ones" in said
        assert channel.target.query("SELECT * FROM shop.orders WHERE id > 100") == []
    step, _ = read_step(said)
    assert channel.cli(*shlex.split(step)[1:], "--yes") == 0
    assert channel.cli("run", CHANNEL) == 0
    channel.cli("verify", CHANNEL, "--full", "--repair", "--yes")
    channel.assert_equal()
