"""Who has approved a plan gets that restore or none, and an attempt that was interrupted goes on with it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.connections import environment_resolver
from binlane.errors import BinlaneError, ConfigError, PlanError, PrecheckError
from binlane.model import Flavor
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.restore_digest import PlanFacts, digest_of
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, plan_restore
from binlane.orchestration.terminal import Terminal, as_text
from tests.integration.restore.scene import DATABASE, OTHER, Scene, answer, archive_of, contents, scene_of
from tests.integration.window.conftest import Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_digest_carries_out_its_plan_alone(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    capsys.readouterr()
    assert scene.restore("--json", base="one.sql") == 0
    plan = answer(capsys)
    assert plan["next_steps"] == [f"the same command with --yes --digest {plan['digest']}"]
    assert scene.restore(base="one.sql") == 0
    assert plan["digest"] in capsys.readouterr().out
    early = ("--until", plan["before"][3]["place"])
    for end, given, said in (
        (early, ("--yes", "--digest", plan["digest"]), f"expected the plan that was approved, digest {plan['digest']}"),
        ((), ("--yes", "--digest", "no"), "expected the plan that was approved, digest no"),
        ((), ("--digest", plan["digest"]), "--digest: expected --yes with it"),
    ):
        assert scene.restore(*given, base="one.sql", end=end) != 0
        assert said in capsys.readouterr().err, given
    assert scene.databases() == set()
    assert list((scene.channel.channels.parent / "restores").glob("*")) == []
    # what is written behind the end changes no plan
    run_on(scene.source, f"INSERT INTO {OTHER}.a (v) VALUES ('later')")
    assert scene.restore("--yes", "--digest", plan["digest"], base="one.sql") == 0, capsys.readouterr().err
    assert contents(scene.channel.target, "back") == scene.expected
    later = ("restore", "--extend", plan["name"], "--until", f"{plan['end']}")
    assert scene.channel.cli(*later, "--yes", "--digest", plan["digest"]) != 0
    assert "expected the plan that was approved" in capsys.readouterr().err
    assert scene.channel.cli(*later, "--json") == 0
    assert scene.channel.cli(*later, "--yes", "--digest", answer(capsys)["digest"]) == 0


def requested(scene: Scene, until: str | None = None, log: str = "source_server") -> RestoreRequest:
    before = f"DROP DATABASE {DATABASE}" if until is None else None
    base = str(scene.dump("one.sql"))
    return RestoreRequest(
        None, base, log, (DATABASE,), (), "back", EndRequest(until, before), None, "target_server"
    )  # fmt: skip


def planned(channel: Channel, request: RestoreRequest) -> PlanFacts:
    return plan_restore(request, channel.channels, environment_resolver(channel.environment)).facts


def carried_out(channel: Channel, request: RestoreRequest, facts: PlanFacts) -> str:
    resolve = environment_resolver(channel.environment)
    done = restoring.restore_approved(
        request, facts, channel.channels, Terminal(), require_allowed=lambda _: None, resolve=resolve
    )
    return as_text(done)


Fault = Callable[..., Any]


@pytest.mark.parametrize(
    "stage",
    [
        *("create_restore", "apply_windows", "move"),
        *(pytest.param(stage, marks=pytest.mark.trial) for stage in ("_to_the_end", "_load_dump")),
    ],
)
def test_an_interrupted_attempt_is_continued_and_a_finished_one_is_left_alone(
    stage: str, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(channel)
    request = requested(scene)
    facts = planned(channel, request)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(restoring, stage, killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                carried_out(channel, request, facts)
    assert "back" not in scene.databases()
    for _ in range(2):
        assert f"complete: back (from {DATABASE})" in carried_out(channel, request, facts)
        assert contents(channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    # another plan of the same name does not go on with it
    with pytest.raises(ConfigError, match="expected no restore of the name restore_back, found one"):
        carried_out(channel, request, {**facts, "end": "another"})
    assert channel.cli("restore", "--drop", "restore_back") == 0
    with pytest.raises(PrecheckError, match="back"):
        carried_out(channel, request, facts)


def test_now_is_the_end_of_the_plan_that_was_approved(channel: Channel) -> None:
    scene = scene_of(channel)
    request = replace(requested(scene, "now"), databases=(OTHER,), base="log")
    archive = archive_of(scene.source, channel.project / "archive", scene.start.partition(":")[0])
    request = replace(request, log=str(archive))
    facts, expected = planned(channel, request), contents(scene.source, OTHER)
    run_on(scene.source, f"INSERT INTO {OTHER}.a (v) VALUES ('later')")
    more = archive_of(scene.source, channel.project / "more", scene.start.partition(":")[0])
    for file in more.iterdir():
        file.replace(archive / file.name)
    assert digest_of(planned(channel, request)) != digest_of(facts)
    assert "complete" in carried_out(channel, request, facts)
    assert contents(channel.target, "back") == expected


def _another_end(scene: Scene, request: RestoreRequest, archive: Path) -> RestoreRequest:
    del archive
    place = plan_restore(
        request, scene.channel.channels, environment_resolver(scene.channel.environment)
    ).scan.before[3].start  # fmt: skip
    return replace(request, ends=EndRequest(str(place), None))


def _another_file(scene: Scene, request: RestoreRequest, archive: Path) -> RestoreRequest:
    """The newest one, with the same transactions a second later."""
    del scene
    file = max(archive.iterdir())
    data = bytearray(file.read_bytes())
    at = 4 + struct.unpack_from("<I", data, 4 + 9)[0]
    while at < len(data):
        (time,), (size,) = struct.unpack_from("<I", data, at), struct.unpack_from("<I", data, at + 9)
        struct.pack_into("<I", data, at, time + 1)
        struct.pack_into("<I", data, at + size - 4, zlib.crc32(data[at : at + size - 4]))
        at += size
    file.write_bytes(data)
    return request


def _another_dump(scene: Scene, request: RestoreRequest, archive: Path) -> RestoreRequest:
    del archive
    dump = scene.dump("one.sql")
    dump.write_bytes(dump.read_bytes().replace(b"-- Dump completed", b"-- \n-- Dump completed"))
    return request


def _a_taken_name(scene: Scene, request: RestoreRequest, archive: Path) -> RestoreRequest:
    del archive
    run_on(scene.channel.target, "CREATE DATABASE back", log=False)
    return request


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (_another_end, PlanError, r"end: '.+', now '.+'"),
        (_another_file, PlanError, r"\(places and times of the transactions: '\w+', now '\w+'\)"),
        (_another_dump, PlanError, r"base: '.+', now '.+'"),
        (_a_taken_name, PrecheckError, "back"),
    ],
)
def test_what_has_changed_since_the_approval_is_said_and_nothing_is_written(
    change: Callable[[Scene, RestoreRequest, Path], RestoreRequest],
    error: type[BinlaneError],
    said: str,
    channel: Channel,
) -> None:
    scene = scene_of(channel)
    archive = archive_of(scene.source, channel.project / "archive", scene.start.partition(":")[0])
    request = requested(scene, log=str(archive))
    facts = planned(channel, request)
    before = scene.databases()
    changed = change(scene, request, archive)
    with pytest.raises(error, match=said):
        carried_out(channel, changed, facts)
    assert scene.databases() - {"back"} == before
    assert list((channel.channels.parent / "restores").glob("*")) == []
