"""``binlane inspect``: one line per transaction of any binlog file, from the file alone."""

from __future__ import annotations

import errno
import json
import mmap
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile, gettempdir
from typing import IO, Final

import zstandard

from binlane.apply.target_state import target_state
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import IncompleteTail, Transaction, transactions
from binlane.binlog.wire import Buffer, BufferOffset
from binlane.errors import BinlogError, ConfigError, PositionError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.inspection.passed_runs import PassedRuns
from binlane.orchestration.commands.inspection.rows import Contents, Shown, row_line, row_object
from binlane.orchestration.commands.inspection.searched import Searched
from binlane.orchestration.commands.inspection.sequence import FIRST_BYTES, FileSequence
from binlane.orchestration.commands.inspection.statements import row_sql
from binlane.orchestration.effective_rules import renaming_of
from binlane.orchestration.terminal import Style, Terminal
from binlane.plan.transaction.decode import LogFormat, MapPart, Part, RowsPart, StatementPart, dissect
from binlane.plan.transaction.load_data import LaterLoads
from binlane.plan.transaction.route_key import classify
from binlane.regular_files import open_regular
from binlane.safe_text import json_text, one_line
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema
from binlane.servers.catalog import read_schema
from binlane.shards.event_filter import EventMetadataFilter
from binlane.shards.renaming import Renaming
from binlane.source.archive import ArchiveSource
from binlane.source.compressed_pieces import UNPACKED
from binlane.source.protocol import LOG_BYTES, LogLengthError, of_log
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import read_open_window
from binlane.work.lookup import find_seqnos
from binlane.work.plan_inputs import read_inputs

_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line about a transaction."""

    seqno: int
    file: str
    position: int
    gtid: str
    time: str
    shard: str
    databases: list[str]
    statements: dict[str, int]
    rows: dict[str, int]
    """Row changes by table."""
    refused: str | None
    """Why this version cannot apply the transaction; None if it can."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How the inside of a transaction is shown."""

    rows: bool = False
    sql: bool = False
    event_bytes: int = 1 << 30
    """Limit in bytes for a decompressed TRANSACTION_PAYLOAD, which is in memory as a whole."""
    log_bytes: int = LOG_BYTES
    """Limit in bytes for a decompressed file, which is a temporary file."""


_NOTHING: Final = Detail()


@dataclass(frozen=True, slots=True)
class Definitions:
    """A target's, which name columns that the log does not."""

    target: Schema
    renaming: Renaming


def target_now(name: str, folder: Path) -> Definitions:
    """The definitions that a channel's target has now. A table that was logged with others keeps its numbers."""
    channel, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        target = read_schema(connection)
    return Definitions(target, renaming_of(channel, target))


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The files, with those of an archive in place of a folder, in the log's order. Raises SourceError for a folder
    that is no archive of one log."""
    found = list[Path]()
    for path in paths:
        # of a file that is there more than once, one is enough
        names = ArchiveSource(str(path)).stored_files().values() if path.is_dir() else None
        found += [path] if names is None else [path / copies[0] for copies in names]
    return found


def inspect_files(
    paths: Sequence[Path],
    *,
    as_json: bool,
    out: Terminal,
    err: Terminal,
    detail: Detail = _NOTHING,
    known: Definitions | None = None,
    searched: Searched | None = None,
) -> None:
    """Print every transaction, or those that ``searched`` shows, and what is missing between the files. Raises
    BinlogError for a damaged file, ConfigError for a missing one; of several, each one's error is printed, and an error
    that names them is raised. Raises ConfigError for rows that do not have a column that was asked for.
    """
    seqno, unread, passed = 0, list[str](), list[str]()
    sequence = FileSequence(
        lambda refusal: err.print(one_line(f"warning: {refusal}; the files are listed all the same"))
    )
    runs = None if searched is None else PassedRuns(searched, sequence)
    for path in paths:
        if searched is not None and (facts := searched.passed_over(path)) is not None:
            seqno += facts.transactions
            passed.append(path.name)
            # nothing of it is compared with the file behind it
            sequence.leave()
            continue
        try:
            with _contents(path, detail.log_bytes) as data:
                for line, parts, transaction, log in _lines(
                    data, path.name, seqno, detail.event_bytes, err, sequence, runs
                ):
                    seqno += 1
                    contents = _inside(log, known)
                    if (
                        searched is not None
                        and line.refused is None
                        and not searched.shows(parts, contents.of(transaction), path.name)
                    ):
                        continue
                    _print(line, transaction, log, detail, out, known, searched, as_json=as_json)
        except (BinlogError, ConfigError) as exc:
            if len(paths) == 1:
                raise
            sequence.leave()
            unread.append(path.name)
            err.print(one_line(f"{type(exc).__name__}: {exc}"))
    sequence.finish()
    if passed:
        names = f"{passed[0]} to {passed[-1]}" if len(passed) > 1 else passed[0]
        err.print(one_line(f"not read, by the archive's index: {plural(len(passed), 'file')} ({names})"))
    if unread:
        raise BinlogError(
            f"{len(unread)} of {plural(len(paths), 'file')} cannot be read to the end: {', '.join(unread)}: what is "
            "listed lacks their transactions, from the place on that each one's error above names"
        )
    if searched is not None:
        searched.require_columns()


def _print(
    line: Line,
    transaction: Transaction,
    log: LogFormat,
    detail: Detail,
    out: Terminal,
    known: Definitions | None,
    searched: Searched | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        inside = _objects(transaction, log, detail, known, searched)
        out.exactly(json_text(json.dumps(asdict(line) | inside, ensure_ascii=False)) + "\n")
    else:
        out.line(("-- " if detail.sql else "", ""), *_text(line))
        _print_inside(transaction, log, detail, out, known, searched)


def show(name: str, folder: Path, seqno: int, out: Terminal, err: Terminal, detail: Detail) -> None:
    """Print one transaction of the channel's open window from its log. Raises PositionError if no window is open."""
    channel, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        window = read_open_window(connection, name)
    if window is None:
        raise PositionError(
            f"channel {name}: no window is open; `binlane inspect --rows` shows the files of the source's log, "
            f"`binlane skip {name} --show` a skipped transaction"
        )
    work = WindowFolders(channel.work.uri, name).of(window.bounds.window_id, window.bounds.work)
    inputs = read_inputs(work)
    # as they were when the window was extracted
    definitions = Definitions(inputs.schema, inputs.settings.renaming)
    for found in find_seqnos(work, seqno, seqno):
        out.line((f"seqno {found.seqno:,}, GTID {found.gtid or '-'}, {found.source}", "bold"))
        for _, _, transaction, log in _lines(found.log, found.source.file, seqno - 1, detail.event_bytes, err):
            _print_inside(transaction, log, detail, out, definitions)


def _objects(
    transaction: Transaction, log: LogFormat, detail: Detail, known: Definitions | None, searched: Searched | None
) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    if detail.rows:
        found["changes"] = [row_object(one) for one in _shown(transaction, log, known, searched)]
    if detail.sql:
        found["sql"] = [row_sql(one) for one in _shown(transaction, log, known, searched, text=False)]
    return found


def _shown(
    transaction: Transaction,
    log: LogFormat,
    known: Definitions | None,
    searched: Searched | None,
    *,
    text: bool = True,
) -> Iterator[Shown]:
    """What is inside of a transaction, as far as it was asked for."""
    changes = _inside(log, known, text=text).of(transaction)
    return changes if searched is None else searched.rows_of(_inside(log, known).of(transaction), changes)


def _inside(log: LogFormat, known: Definitions | None, *, text: bool = True) -> Contents:
    if known is None:
        return Contents(log, text=text)
    return Contents(log, text=text, target=known.target, renaming=known.renaming)


def _print_inside(
    transaction: Transaction,
    log: LogFormat,
    detail: Detail,
    out: Terminal,
    known: Definitions | None = None,
    searched: Searched | None = None,
) -> None:
    """Print without markup, so that statements can be piped to a client; all other lines are SQL comments then."""
    head = ("-- " if detail.sql else "") + " " * 9
    for one in _shown(transaction, log, known, searched) if detail.rows else ():
        out.exactly(f"{head}{one_line(row_line(one))}\n")
    for one in _shown(transaction, log, known, searched, text=False) if detail.sql else ():
        out.exactly(f"{row_sql(one, for_client=True)}\n")


def _lines(
    data: Buffer | mmap.mmap,
    name: str,
    seqno: int,
    event_bytes: int,
    err: Terminal,
    sequence: FileSequence | None = None,
    passed: PassedRuns | None = None,
) -> Iterator[tuple[Line, Sequence[Part], Transaction, LogFormat]]:
    def incomplete(tail: IncompleteTail) -> None:
        state = "the server is still writing this file" if tail.in_use else "the file was cut"
        err.print(one_line(f"{name}:{tail.offset}: {tail.reason} ({state})"))

    reader = LogReader(data, name, event_bytes=event_bytes)
    # there is no target: the log's own family is taken for the target's
    log = LogFormat(reader.format, name, 0, reader.format.flavor, loads=LaterLoads(reader))
    rule = EventMetadataFilter(reader.format.flavor, SchemaFacts())
    outside = None
    if sequence is not None:
        name_on_server = Path(name).stem if Path(name).suffix in UNPACKED else name
        sequence.begin(name_on_server, bytes(data[:FIRST_BYTES]), reader.format)
        outside = partial(sequence.event, reader=reader)
    if passed is not None:
        passed.begin(data, reader)
    found = transactions(reader, incomplete, outside=outside)
    while (transaction := next(found, None)) is not None:
        seqno += 1
        if sequence is not None:
            sequence.transaction(transaction, reader)
        number = seqno if passed is None else seqno + passed.count
        yield *_line(number, transaction, log, rule), transaction, log
        if passed is not None and (behind := passed.behind(transaction.end)) > transaction.end:
            found = transactions(reader, incomplete, start=BufferOffset(behind), outside=outside)


def _line(
    seqno: int, transaction: Transaction, log: LogFormat, rule: EventMetadataFilter
) -> tuple[Line, Sequence[Part]]:
    parts: tuple[Part, ...] = ()
    refused = None
    try:
        parts = dissect(transaction, log)
    except UnsupportedEventError as exc:
        refused = str(exc)
    described = classify(parts)
    decided = rule.assign(described.row_databases, described.statements)
    rows: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    databases = set(described.row_databases)
    for part in parts:
        match part:
            case RowsPart():
                rows[str(part.table.key)] += part.counts.total
            case StatementPart():
                kinds[part.facts.kind.value] += 1
                databases |= part.facts.databases
            case MapPart():
                pass
    line = Line(
        seqno=seqno,
        file=log.name,
        position=transaction.start,
        gtid=transaction.gtid,
        time=datetime.fromtimestamp(transaction.commit_time, UTC).isoformat(timespec="seconds"),
        shard="+".join(sorted(decided.shards)),
        databases=sorted(databases),
        statements=dict(kinds),
        rows=dict(rows),
        refused=refused,
    )
    return line, parts


def _text(line: Line) -> list[tuple[str, Style]]:
    parts = [f"{count} {kind}" for kind, count in line.statements.items()]
    parts += [f"{table} {count}" for table, count in line.rows.items()]
    return [
        (f"{line.seqno:>8} ", ""),
        (f"{line.file}:{line.position}", "dim"),
        (f" {line.gtid or '-'} {line.time} ", ""),
        (line.shard or "-", "bold"),
        (f" {', '.join(parts) or 'nothing'}", ""),
        ("" if line.refused is None else f" {line.refused}", "red"),
    ]


@contextmanager
def _contents(path: Path, log_bytes: int) -> Iterator[Buffer | mmap.mmap]:
    """The file's bytes, inflated, memory-mapped so that memory does not grow: those of a temporary file, which nobody
    cuts. A page that is gone ends the process by a signal. A plain file has no limit but the temporary folder's room,
    which is asked for first: a damaged one may be sparse, and of any length."""
    try:
        with open_regular(path) as file, TemporaryFile() as plain:
            if (unpacked := UNPACKED.get(path.suffix)) is None:
                _check_room(path, os.fstat(file.fileno()).st_size)
                plain.writelines(_pieces(file))
            else:
                plain.writelines(of_log(unpacked(file), log_bytes))
            plain.flush()
            data = _mapped(plain)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as exc:
        if isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ConfigError(
                f"{path}: cannot be unpacked into {gettempdir()}: {exc.strerror}; name a larger folder by the variable "
                "TMPDIR=/FOLDER"
            ) from exc
        said = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"{path}: cannot be read: {said}; name a complete binlog file, plain, .gz or .zst") from exc
    except LogLengthError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    yield data


def _check_room(path: Path, size: int) -> None:
    folder = gettempdir()
    if size > (free := disk_usage(folder).free):
        raise ConfigError(
            f"{path}: expected room for its {size:,} bytes in {folder}, where they are copied while they are shown, "
            f"found {free:,}; name a larger folder by the variable TMPDIR=/FOLDER"
        )


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _mapped(file: IO[bytes]) -> Buffer | mmap.mmap:
    is_empty = file.seek(0, os.SEEK_END) == 0
    return b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
