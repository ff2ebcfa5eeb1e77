"""``binlane inspect``: a line a transaction of any binlog file, from the file alone."""

from __future__ import annotations

import gzip
import json
import mmap
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import zstandard
from rich.console import Console
from rich.markup import escape

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import IncompleteTail, Transaction, transactions
from binlane.binlog.wire import Buffer
from binlane.errors import ConfigError, UnsupportedEventError
from binlane.model import Flavor
from binlane.orchestration.row_lines import Contents, row_line, row_object
from binlane.orchestration.row_sql import row_sql
from binlane.plan.classes import classify
from binlane.plan.dissect import LogFormat, MapPart, Part, RowsPart, StatementPart, dissect
from binlane.shards.event_filter import EventMetadataFilter
from binlane.shards.schema_facts import SchemaFacts


@dataclass(frozen=True, slots=True)
class Line:
    """What is shown of a transaction."""

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
    """Why this version cannot apply it."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is shown of a transaction's inside."""

    rows: bool = False
    sql: bool = False
    event_bytes: int = 1 << 30
    """What a TRANSACTION_PAYLOAD may inflate to: all of one is in memory at once."""


_NOTHING: Final = Detail()


def inspect_files(
    paths: Sequence[Path], *, as_json: bool, out: Console, err: Console, detail: Detail = _NOTHING
) -> None:
    """Print every transaction. Raises BinlogError where a file cannot be read on, ConfigError if it is not there."""
    seqno = 0
    for path in paths:
        with _contents(path) as data:
            for line, transaction, log in _lines(data, path.name, seqno, detail.event_bytes, err):
                seqno = line.seqno
                if as_json:
                    inside = _objects(transaction, log, detail)
                    out.file.write(json.dumps(asdict(line) | inside, ensure_ascii=False) + "\n")
                else:
                    text = f"-- {' '.join(_text(line).split(chr(10)))}" if detail.sql else _text(line)
                    out.print(text, highlight=False, soft_wrap=True)
                    _print_inside(transaction, log, detail, out)


def _objects(transaction: Transaction, log: LogFormat, detail: Detail) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    if detail.rows:
        found["changes"] = [row_object(one) for one in Contents(log).of(transaction)]
    if detail.sql:
        found["sql"] = [row_sql(one) for one in Contents(log, text=False).of(transaction)]
    return found


def _print_inside(transaction: Transaction, log: LogFormat, detail: Detail, out: Console) -> None:
    """Written as it is, without markup: statements can be piped, whatever else stands beside them is a comment then."""
    head = ("-- " if detail.sql else "") + " " * 9
    for one in Contents(log).of(transaction) if detail.rows else ():
        text = row_line(one).replace("\n", "\n-- ") if detail.sql else row_line(one)
        out.file.write(f"{head}{text}\n")
    for one in Contents(log, text=False).of(transaction) if detail.sql else ():
        out.file.write(f"{row_sql(one, for_client=True)}\n")


def _lines(
    data: Buffer | mmap.mmap, name: str, seqno: int, event_bytes: int, err: Console
) -> Iterator[tuple[Line, Transaction, LogFormat]]:
    def incomplete(tail: IncompleteTail) -> None:
        state = "the server is still writing this file" if tail.in_use else "the file was cut"
        err.print(f"{name}:{tail.offset}: {tail.reason} ({state})", markup=False)

    reader = LogReader(data, name, event_bytes=event_bytes)
    log = LogFormat(reader.format, name, 0, Flavor.MARIADB)
    rule = EventMetadataFilter(reader.format.flavor, SchemaFacts())
    for number, transaction in enumerate(transactions(reader, incomplete), seqno + 1):
        yield _line(number, transaction, log, rule), transaction, log


def _line(seqno: int, transaction: Transaction, log: LogFormat, rule: EventMetadataFilter) -> Line:
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
    return Line(
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


def _text(line: Line) -> str:
    parts = [f"{count} {kind}" for kind, count in line.statements.items()]
    parts += [f"{table} {count}" for table, count in line.rows.items()]
    what = escape(", ".join(parts)) or "nothing"
    refused = f" [red]{escape(line.refused)}[/]" if line.refused is not None else ""
    return (
        f"{line.seqno:>8} [dim]{escape(line.file)}:{line.position}[/] {line.gtid or '-'} {line.time} "
        f"[bold]{escape(line.shard) or '-'}[/] {what}{refused}"
    )


@contextmanager
def _contents(path: Path) -> Iterator[Buffer | mmap.mmap]:
    """The file's bytes: mapped, or unpacked."""
    try:
        data = _read(path)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as exc:
        said = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"{path}: cannot be read: {said}; name a whole binlog file, plain, .gz or .zst") from exc
    yield data


def _read(path: Path) -> Buffer | mmap.mmap:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return _unpacked_zst(path.read_bytes())
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacked_zst(packed: bytes) -> bytes:
    """All frames. zstandard's own reader ends in silence where the last one was cut."""
    found = b""
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        found += frame.decompress(packed)
        if not frame.eof:
            raise EOFError("the packed file ends too early")
        packed = frame.unused_data
    return found
