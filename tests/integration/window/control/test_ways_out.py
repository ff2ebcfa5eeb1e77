"""What somebody has broken on the target is mended by the next step that the message names, typed as it stands."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pytest

from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone
from tests.trials.test_each_privilege import ACCOUNT, documented, give
from tests.waiting import wait_until
from tests.ways_out import BEFORE, OVERWRITE, TROUBLES, Trouble

FAMILIES: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
MOST_STEPS: Final = 3
IN_TESTS: Final = frozenset(
    {
        "a table was dropped to which others refer by a foreign key",
        "a column was added",
        "a column has another name",
        "rows are in the way, in a table with triggers",
    }
)
"""The others are trials."""
READ_ONLY: Final = {Flavor.MARIADB: "read_only", Flavor.MYSQL: "super_read_only"}
"""By family; MySQL's documented account may write where read_only is set."""
_KILLED: Final = "KILL its connection"
_CONNECTED: Final = "the right host in the connection"
_PASSWORD: Final = "the new password in the connection"
_FREED: Final = "free space, or a larger work.uri"
_STEPS: Final[Mapping[str, str]] = {
    r"`(binlane recopy [^`]+)`": "command",
    r"(apply\.on_conflict = \"overwrite\") in": "setting",
    r"(DROP TRIGGER (?:`\w+`|[\w.])+)": "target",
    r"; on the target: (ALTER TABLE .+?)(?: \[table-definitions\])?$": "target",
    r"only it has this constraint: (ALTER TABLE .+? DROP CONSTRAINT `\w+`)": "target",
    r"(SET GLOBAL \w+ = \w+) on the target": "target",
    r"^target: .*?((?:GRANT [A-Z ]+ ON \S+ TO '\w+'@'%'(?:; )?)+): ": "target",
    r"(GRANT [A-Z, ]+ ON \*\.\*) TO the account on the source": "source-account",
    r"SHOW FULL PROCESSLIST on the target and (KILL it)": _KILLED,
    r"(Point the connection at the channel's (?:server|target))": _CONNECTED,
    r"((?:check|compare the connection's) user and password)": _PASSWORD,
    r"(Free space), or set work\.uri to a larger place": _FREED,
    r"(run (?:the step )?again when the server answers)": "binlane run shop",
    r"\[filter\] (exclude_tables = \['[\w.]+'\])": "filter",
    r"already, undo it there: (ALTER TABLE .+?)(?: \[logged-tables\])?$": "undo",
    r"copy everything again: (DELETE .+?) on the target, then (?=`binlane bootstrap)": "target",
    r"`(binlane skip \w+ --seqno \d+) --reason": "command",
}
"""What a message says that is to be done, and who does it; the first that a message has."""
_LEFT: Final = re.compile(r"not repaired: .*?(DROP TABLE `\w+`\.`\w+`|DROP TRIGGER `\w+`\.`\w+`|ALTER TABLE [^;\n]+)")


def read_step(said: str) -> tuple[str, str]:
    """The next step that a message names, and who does it."""
    for pattern, who in _STEPS.items():
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

    def type(self, step: str, who: str) -> str:
        """Do what a message says; as the page names it."""
        channel = self.channel
        if who == "command":
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
    yield Broken(channel, {"binlane run shop": server.restart})


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


BREAKS: Final[Mapping[str, Callable[[Channel], contextlib.AbstractContextManager[Broken]]]] = {
    "somebody holds LOCK TABLES": _locked,
    "read_only was set": lambda channel: _with_account(
        channel, "target", "READ_ONLY ADMIN", f"SET GLOBAL {READ_ONLY[channel.target.flavor]} = ON"
    ),
    "max_allowed_packet was lowered": _packet,
    "the target's account has lost a privilege": lambda channel: _with_account(channel, "target", "SELECT"),
    "the source's account has lost a privilege": lambda channel: _with_account(channel, "source", "REPLICATION SLAVE"),
    "the target's password was changed": lambda channel: _with_password(channel, "target"),
    "the source's password was changed": lambda channel: _with_password(channel, "source"),
    "the target was stopped": lambda channel: _stopped(channel.target, channel),
    "the source was stopped": lambda channel: _stopped(channel.source, channel),
    "the work folder is full": _full,
    "the source has purged its log": _purged,
    "the connection leads to another source": lambda channel: _to_server("target")(channel, "source"),
    "the connection leads to another target": lambda channel: _to_server("source")(channel, "target"),
}
"""Of troubles that are no statements on the target."""


def begun(channel: Channel) -> None:
    run_on(channel.source, *BEFORE)
    assert channel.run() is not None


@contextlib.contextmanager
def broken(channel: Channel, trouble: Trouble) -> Iterator[Broken]:
    if trouble.breaks:
        run_on(channel.target, "SET SESSION foreign_key_checks = 0", *trouble.breaks, log=False)
        yield Broken(channel)
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


def led_out(broken: Broken, trouble: Trouble, capsys: pytest.CaptureFixture[str], *, is_inside: bool = False) -> None:
    """Run, and type what the message says, until the window is applied and all is equal."""
    channel, typed, all_said = broken.channel, list[str](), ""
    while True:
        capsys.readouterr()
        code, said = channel.cli("run", CHANNEL), capsys.readouterr().err
        if code == 0:
            break
        all_said += said
        assert trouble.seen in said or typed, said
        assert len(typed) < MOST_STEPS, said
        step, who = read_step(said)
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
            run_on(channel.target, *dict.fromkeys(left), log=False)
            if typed == ["binlane verify shop --full --repair"]:
                typed = [each.replace("`", "") for each in dict.fromkeys(left)]
    assert trouble.seen in all_said
    expected = list(trouble.typed)
    # a window that has begun has smaller blocks, of which not each has the rows that are in the way
    assert typed
    assert typed == (expected[: len(typed)] if is_inside else expected), all_said
    assert channel.cli("verify", CHANNEL, "--full") == 0, capsys.readouterr().out


@FAMILIES
@pytest.mark.parametrize(
    "trouble",
    [pytest.param(each, id=each.what, marks=() if each.what in IN_TESTS else pytest.mark.trial) for each in TROUBLES],
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
@FAMILIES
@pytest.mark.parametrize(
    ("trouble", "transactions"),
    [
        pytest.param(trouble, transactions, id=f"{trouble.what}-{transactions}")
        for trouble in TROUBLES
        for transactions in (1, 4)
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
