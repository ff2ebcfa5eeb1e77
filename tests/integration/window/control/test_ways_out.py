"""What somebody has broken on the target is mended by the next step that the message names, typed as it stands."""

from __future__ import annotations

import re
import shlex
from typing import Final

import pytest

from binlane.errors import BinlaneError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone
from tests.ways_out import BEFORE, OVERWRITE, TROUBLES, WINDOW, Trouble

FAMILIES: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
_STEP: Final = re.compile(
    r"`(?P<command>binlane recopy [^`]+)`|(?P<setting>apply\.on_conflict = \"overwrite\")(?= in)"
    r"|(?P<statement>DROP TRIGGER (?:`\w+`|[\w.])+)"
)
MOST_STEPS: Final = 3


def begun(channel: Channel) -> None:
    run_on(channel.source, *BEFORE)
    assert channel.run() is not None


def broken(channel: Channel, trouble: Trouble) -> None:
    run_on(channel.target, "SET SESSION foreign_key_checks = 0", *trouble.breaks, log=False)


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


def led_out(channel: Channel, trouble: Trouble, *, is_inside: bool = False) -> None:
    """Run, and type what the message says, until the window is applied."""
    typed = list[str]()
    while True:
        try:
            channel.run()
        except BinlaneError as exc:
            said = str(exc)
        else:
            break
        assert trouble.seen in said or typed
        found = _STEP.search(said)
        assert found is not None, said
        assert len(typed) < MOST_STEPS, said
        typed.append(next(part for part in found.groups() if part is not None).replace("`", ""))
        if found["command"] is not None:
            assert channel.cli(*shlex.split(found["command"])[1:], "--yes") == 0
        elif found["statement"] is not None:
            run_on(channel.target, found["statement"], log=False)
        else:
            channel.write_channel('on_conflict = "overwrite"\n')
    expected = [each.replace("shop --", f"{CHANNEL} --") for each in trouble.typed]
    # a window that has begun has smaller blocks, of which not each has a table with triggers
    assert typed
    assert typed == (expected[: len(typed)] if is_inside else expected)
    if OVERWRITE in typed:
        channel.write_channel()
    # the triggers and other definitions of what was dropped
    if channel.cli("verify", CHANNEL, "--full") != 0:
        assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert channel.cli("verify", CHANNEL, "--full") == 0
    channel.assert_equal()


@FAMILIES
@pytest.mark.parametrize("trouble", TROUBLES[1:3], ids=lambda one: one.what)
def test_the_next_step_leads_out_of_a_trouble_before_a_window(
    channel_of: ChannelOf, family: str, trouble: Trouble
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    broken(channel, trouble)
    run_on(channel.source, *WINDOW)
    led_out(channel, trouble)


@pytest.mark.trial
@FAMILIES
@pytest.mark.parametrize("trouble", [TROUBLES[0], *TROUBLES[3:]], ids=lambda one: one.what)
def test_each_next_step_leads_out_of_its_trouble(channel_of: ChannelOf, family: str, trouble: Trouble) -> None:
    test_the_next_step_leads_out_of_a_trouble_before_a_window(channel_of, family, trouble)


@pytest.mark.trial
@FAMILIES
@pytest.mark.parametrize(
    ("trouble", "transactions"),
    [
        pytest.param(trouble, transactions, id=f"{trouble.what}-{transactions}")
        for trouble in TROUBLES
        for transactions in (1, 4)
        # the rows that are broken there have been written by the fourth
        if trouble.in_window and (transactions == 1 or OVERWRITE not in trouble.typed)
    ],
)
def test_each_next_step_leads_out_of_its_trouble_inside_a_window(
    channel_of: ChannelOf, family: str, trouble: Trouble, transactions: int
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(channel.source, *WINDOW)
    channel.write_channel(transactions=1)
    stopped_at(channel, transactions)
    broken(channel, trouble)
    led_out(channel, trouble, is_inside=True)
