"""``make mutations``: delete the guards of docs/invariants.md one by one, and see their tests fail.

Each mutation changes one place of a copy of the project, and runs tests that docs/invariants.md names for that
invariant. A mutation that no test notices is reported as a survivor: the suite has lost a test, or its edge.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

ROOT: Final = Path(__file__).resolve().parent.parent
_PASSED: Final = 0
_FAILED: Final = 1


@dataclass(frozen=True, slots=True)
class Mutation:
    """A guard taken away."""

    invariant: int
    """Its number in docs/invariants.md."""
    name: str
    file: str
    """Below ``plugins/binlane``."""
    old: str
    """Found once in the file."""
    new: str
    tests: tuple[str, ...]
    """Below ``tests``; at least one of them fails with the mutation."""

    def applied(self, text: str) -> str:
        """The file's text with the mutation. Raises ValueError unless ``old`` is there exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.file}: expected {self.old!r} once, found it {count} times ({self.name})")
        return text.replace(self.old, self.new)


MUTATIONS: Final = (
    Mutation(
        1,
        "a shard's lane depends on the transaction",
        "plan/segment/reader.py",
        "lane = route.lane if barrier is None else barrier.owner",
        "lane = seqno % self._routing.lanes if barrier is None else barrier.owner",
        ("unit/plan/segment/test_lane_writer.py", "integration/reduce/test_reduced_equals_replayed.py"),
    ),
    Mutation(
        2,
        "the position is committed before the rows",
        "apply/block.py",
        "            counted = self.write(items, orders, after_ddl)\n",
        "            session.commit()\n            session.begin()\n"
        "            counted = self.write(items, orders, after_ddl)\n",
        ("chaos/test_every_statement.py::test_kill_9_at_every_statement_then_run_again",),
    ),
    Mutation(
        2,
        "a share is committed before the others are executed",
        "apply/lane/together.py",
        "            if not awaited:\n",
        "            if True:\n",
        ("integration/window/readers/test_together.py::test_nobody_sees_a_share_before_all_are_executed",),
    ),
    Mutation(
        2,
        "a lane that was ready for another block is taken for ready",
        "state/meetings.py",
        "{signal}/{lane}/{seqno}",
        "{signal}/{lane}",
        ("integration/state/test_meetings.py",),
    ),
    Mutation(
        2,
        "any connection may say that a lane is ready",
        "state/meetings.py",
        "if mine and held[signal] == mine",
        "if held[signal] is not None",
        ("integration/state/test_meetings.py::test_only_the_connection_that_holds_a_lane_speaks_for_it",),
    ),
    Mutation(
        2,
        "a lane that wanted to be alone is not seen again where it stood",
        "state/meetings.py",
        "        self._held.pop(lane, None)\n        return self._run(calls)[0] == 1",
        "        return self._run(calls)[0] == 1",
        ("integration/state/test_meetings.py",),
    ),
    Mutation(
        2,
        "a share that is rolled back stays ready",
        "apply/lane/together.py",
        "        self.signals.withdraw(lane, at)\n",
        "",
        (
            "integration/window/readers/test_together.py::test_who_rolls_a_share_back_has_said_before_that_it_is_not_ready",
        ),
    ),
    Mutation(
        2,
        "a share is rolled back although another lane has counted on it and committed",
        "apply/lane/together.py",
        "        may_commit = self._is_decided(place)\n",
        "        may_commit = False\n",
        ("unit/apply/lane/test_together.py",),
    ),
    Mutation(
        2,
        "a block is applied alone although a lane is not there yet",
        "apply/lane/together.py",
        "not late and not seen.is_alone and not seen.gives_way",
        "not seen.is_alone and not seen.gives_way",
        ("unit/apply/lane/test_together.py",),
    ),
    Mutation(
        2,
        "an executed share keeps its locks while another lane gives way to a busy target",
        "apply/lane/together.py",
        "                or seen.gives_way\n",
        "",
        ("unit/apply/lane/test_together.py",),
    ),
    Mutation(
        2,
        "a lane that was adopted keeps its signals",
        "apply/lane/barriers.py",
        "                self.blocks.together.leave(other)\n",
        "",
        ("unit/apply/lane/test_alone.py",),
    ),
    Mutation(
        2,
        "the lane that is alone does not compare the headers of the shares",
        "apply/lane/ways/shares.py",
        "if share is None or share.block.header != header:",
        "if share is None:",
        ("unit/apply/lane/test_alone.py",),
    ),
    Mutation(
        2,
        "the lane that is alone takes files that stand elsewhere",
        "apply/lane/ways/shares.py",
        "            if self._stands != place.expected:",
        "            if False:",
        ("unit/apply/lane/test_alone.py",),
    ),
    Mutation(
        2,
        "the ids of tables are not noted before a swap on MariaDB",
        "apply/ddl/run.py",
        "asks = keeps_definitions(item) if begun is None else begun.state != BEGUN",
        "asks = False",
        ("integration/apply/test_ddl.py",),
    ),
    Mutation(
        2,
        "a DDL that MariaDB's recovery has finished runs again",
        "apply/ddl/run.py",
        "        attempt = _resumed(session, decide(session, item, begun, now, place), begun, place)\n",
        "        attempt = item\n",
        ("integration/apply/test_ddl_killed.py",),
    ),
    Mutation(
        2,
        "a lane's DDL passes for another lane's on a table of the same name",
        "apply/ddl/fingerprint.py",
        "tuple(sorted(set(map(_held, databases))))",
        "()",
        ("integration/apply/test_ddl_killed.py",),
    ),
    Mutation(
        2,
        "a DDL that MySQL does not commit with its GTID runs again",
        "apply/ddl/run.py",
        "if begun is not None or not is_atomic(session, item):",
        "if False:",
        ("integration/apply/test_ddl_killed.py",),
    ),
    Mutation(
        2,
        "a DDL of which a part was logged before it was refused counts as run",
        "apply/ddl/run.py",
        "            if _newest_gtid(session) != newest:",
        "            if False:",
        ("integration/apply/test_ddl_killed.py",),
    ),
    Mutation(
        2,
        "a database without its character set passes for a whole one",
        "apply/ddl/outcome.py",
        "if changed and _CREATES_DATABASE.match(statement) is not None:",
        "if False:",
        ("integration/apply/test_ddl_killed.py",),
    ),
    Mutation(
        3,
        "the owner of a barrier does not wait",
        "apply/lane/barriers.py",
        "if at[other] < min(arrived, self.state.goal)]",
        "if False]",
        ("integration/apply/test_lane.py",),
    ),
    Mutation(
        3,
        "barriers are kept by their owner alone",
        "plan/barriers.py",
        "(passed % 2 == 1) & self._takes_part[number, home]",
        "(passed % 2 == 1) & (self._owner[number] == home)",
        ("unit/plan/test_barriers.py",),
    ),
    Mutation(
        4,
        "a position may move back",
        "state/positions.py",
        "    if seqno <= expected:\n",
        "    if False:\n",
        ("integration/state/test_state.py::test_positions_never_move_back",),
    ),
    Mutation(
        4,
        "the watermark moves although a lane is behind",
        "state/windows.py",
        "if lane.seqno != seqno]",
        "if lane.seqno > seqno]",
        ("integration/state/test_state.py::test_the_watermark_stays_if_anything_is_amiss",),
    ),
    Mutation(
        5,
        "the target's Handler counters are not compared",
        "apply/rows/binlog.py",
        "            self._is_accounted_for(expected, counted, tables)\n            or",
        "            True\n            or",
        ("integration/apply/test_writers.py::test_a_count_other_than_the_handler_s_rolls_back",),
    ),
    Mutation(
        5,
        "a window ends although its accounts do not close",
        "state/windows.py",
        "    if planned != instead:\n",
        "    if False:\n",
        ("integration/state/test_state.py::test_the_watermark_stays_if_anything_is_amiss",),
    ),
    Mutation(
        6,
        "an unknown event is skipped",
        "binlog/reader.py",
        "(code not in KNOWN_TYPES and not event.header.flags & IGNORABLE)",
        "False",
        ("unit/binlog/test_reader.py::test_an_event_that_must_not_be_passed_stops_the_log",),
    ),
    Mutation(
        6,
        "an INCIDENT is skipped",
        "binlog/reader.py",
        "if code == EventType.INCIDENT:",
        "if False:",
        ("unit/binlog/test_reader.py::test_an_event_that_must_not_be_passed_stops_the_log",),
    ),
    Mutation(
        6,
        "a file is passed over that is not the one that was indexed",
        "restore/ruled_out.py",
        "if hashed.hexdigest() != facts.blake3:",
        "if False:",
        ("integration/restore/test_log_scan.py",),
    ),
    Mutation(
        6,
        "an event that may concern any database concerns none",
        "restore/archive_index.py",
        "return self.of_any > 0 or not self.names",
        "return not self.names",
        ("integration/restore/test_log_scan.py",),
    ),
    Mutation(
        7,
        "a second plan takes the first one's place",
        "state/windows.py",
        "                windows.c.state == OPEN,\n                windows.c.plan_digest.is_(None),\n"
        "            )\n            .values(",
        "                windows.c.state == OPEN,\n            )\n            .values(",
        ("integration/state/test_state.py::test_a_window_keeps_its_first_plan",),
    ),
    Mutation(
        7,
        "a block is applied under any plan",
        "state/positions.py",
        "    moved = cursor.execute(statement, (seqno, key.channel, expected, key.window_id, key.digest))\n",
        '    statement = statement.replace(" AND window_id = %s AND digest = %s", "")\n'
        "    moved = cursor.execute(statement, (seqno, key.channel, expected))\n",
        ("integration/state/test_state.py::test_a_position_moves_only_from_where_it_stands_and_under_its_plan",),
    ),
    Mutation(
        8,
        "a block is written whether its compare-and-set moved the position or not",
        "apply/block.py",
        "            return None, False\n",
        "            pass\n",
        ("integration/apply/test_crash.py::test_without_any_lease_the_compare_and_set_alone_lets_one_of_four_apply",),
    ),
    Mutation(
        9,
        "the events before the watermark are not compared",
        "source/identity.py",
        "    if expected != found:\n",
        "    if False:\n",
        ("integration/source/test_refusals.py",),
    ),
    Mutation(
        9,
        "any server is the channel's source",
        "source/identity.py",
        "    if is_another_source(start.identity, state.identity):\n",
        "    if False:\n",
        ("integration/source/test_refusals.py::test_another_server_is_another_source",),
    ),
    Mutation(
        10,
        "a finished window is finished once more",
        "state/windows.py",
        "        if window.is_finished:\n            return mark.watermark\n        where",
        "        where",
        ("integration/state/test_state.py::test_the_watermark_moves_once_when_every_lane_is_there",),
    ),
    Mutation(
        10,
        "tasks of a finished window ask for its files",
        "orchestration/steps.py",
        "return window.is_finished and not plans.exists(files.PLAN)",
        "return False",
        ("chaos/test_processes.py::test_cleared_tasks_of_a_finished_window_need_no_file",),
    ),
    Mutation(
        7,
        "any file of a window is read",
        "work/files.py",
        "if self.digests is not None and (expected",
        "if False and self.digests is not None and (expected",
        ("security/test_window_files.py::test_no_file_is_read_that_is_not_the_windows_own",),
    ),
    Mutation(
        7,
        "a plan is adopted whatever it was made of",
        "orchestration/steps.py",
        'inputs = {name: digest for name, digest in made.items() if "/" not in name}',
        "inputs = dict[str, str]()",
        ("security/test_window_files.py::test_a_plan_of_other_inputs_is_refused_by_the_inputs_name",),
    ),
    Mutation(
        7,
        "lane files are compared once",
        "work/checked_file.py",
        "if blake3(piece).digest() != self._pieces[number]:",
        "if False:",
        ("unit/work/test_checked_file.py::test_a_file_that_changes_behind_its_comparison_is_refused",),
    ),
    Mutation(
        11,
        "orders never forbid",
        "state/orders/orders.py",
        "return self.stop_at is not None and seqno > self.stop_at",
        "return False",
        ("integration/apply/test_orders.py",),
    ),
    Mutation(
        12,
        "the view has a row whatever the positions",
        "state/consistent_view.py",
        "p.seqno = p.last_seqno AND p.begun <= p.seqno",
        "p.begun <= p.seqno",
        ("integration/state/test_consistent_view.py",),
    ),
    Mutation(
        11,
        "one lane applies the shares of all whatever the orders say",
        "apply/block.py",
        "        orders, may_write = tasks[0].move()\n        if orders is None or not may_write:\n",
        "        orders, may_write = tasks[0].move()\n        if orders is None:\n",
        ("integration/window/readers/test_together.py::test_a_transaction_is_skipped_by_all_lanes",),
    ),
    Mutation(
        11,
        "orders never skip",
        "state/orders/orders.py",
        "frozenset(int(seqno) for _, _, seqno in rows if seqno is not None)",
        "frozenset()",
        ("integration/apply/test_orders.py",),
    ),
)


def main(
    only: Annotated[int, typer.Option(help="The mutations of one invariant; 0: all.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes of pytest for the run without a mutation.")] = 2,
) -> None:
    """Try the mutations; ends with 1 if one survives, 2 if the tests fail without any."""
    chosen = [each for each in MUTATIONS if only in (0, each.invariant)]
    with tempfile.TemporaryDirectory(prefix="binlane-mutations-") as place:
        copy = Path(place) / "project"
        _copy(copy)
        tests = sorted({test for each in chosen for test in each.tests})
        if (code := _tested(copy, tests, jobs)) != _PASSED:
            print(f"mutations: the tests fail without a mutation (pytest's exit code {code})")
            raise typer.Exit(2)
        survivors = [each for each in chosen if not _is_killed(copy, each)]
    print(f"mutations: {len(chosen) - len(survivors)} of {len(chosen)} killed")
    if survivors:
        raise typer.Exit(1)


def _is_killed(copy: Path, mutation: Mutation) -> bool:
    file = copy / "plugins" / "binlane" / mutation.file
    original = file.read_text()
    file.write_text(mutation.applied(original))
    try:
        code = _tested(copy, mutation.tests, 0)
    finally:
        file.write_text(original)
    # only a failed test counts: a mutation must not break what pytest imports
    result = {_PASSED: "SURVIVED", _FAILED: "killed"}.get(code, f"INVALID (pytest's exit code {code})")
    print(f"invariant {mutation.invariant}: {mutation.name}: {result}", flush=True)
    return code == _FAILED


def _tested(copy: Path, tests: Sequence[str], jobs: int) -> int:
    """pytest's exit code. Of several processes a failure under ``-x`` would be an interruption (2)."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", str(jobs), "--dist", "loadfile", "--no-header"]
    command += [f"tests/{test}" for test in tests]
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'plugins'}{os.pathsep}{copy}"}
    return subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


def _copy(place: Path) -> None:
    for name in _tracked():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)


def _tracked() -> Iterator[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return (name for name in listed.split("\0") if name and (ROOT / name).is_file())


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
