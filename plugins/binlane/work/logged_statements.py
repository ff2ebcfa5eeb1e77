"""The statements that lanes will send for a window: one for each distinct text, or form of DML, from the lane files.

A window may have millions of INSERTs that are the same to a parser. DDL, account statements and routines are
distinguished by all of their bytes; DML and LOAD DATA without literals, comments and the lengths of value lists. Of a
text whose literals end elsewhere in another session's modes, or which has other comments, all bytes count as well: two
statements of one form have the same tokens but for the values of literals, whoever has written them. Files and row
groups with row events only are not read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from binlane import arrow_compute as pc
from binlane.binlog.rows_payload import cascading_tables
from binlane.errors import PlanError
from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, TableKey
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.sql.charset import client_charset, decoded, dialect_of, has_eight_bits, is_utf8_client
from binlane.work.files import WorkFolder
from binlane.work.lane_files import context_of, open_parquet, read_rows

MOST_FORMS: Final = 2_000
"""Most distinct forms of DML, since a generated workload may have a new form in every statement."""
_BLOCK: Final = ("first_seqno", "last_seqno", "transactions", "source_file", "source_offset", "gtid", "commit_time")
_STATEMENT: Final = ("kind", "payload", "context")
_WHOLE: Final = ItemKind.DDL.value
_FORMED: Final = (ItemKind.STATEMENT.value, ItemKind.LOAD.value)
_TAIL: Final = r"[0-9A-Za-z_$\x80-\xff]+"
_WORD: Final = rf"[A-Za-z_$\x80-\xff](?:{_TAIL})?"
_TOKEN: Final = (
    rf"((?:`[^`]*`|{_WORD})(?:\.(?:`[^`]*`|{_TAIL}))*|@@?[.0-9A-Za-z_$\x80-\xff]+)"
    r"|'(?:[^'\\]|\\[\s\S]|'')*'|\"(?:[^\"\\]|\\[\s\S]|\"\")*\""
    r"|0[xX][0-9A-Fa-f]+\b|[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+\b"
    rf"|([0-9]+{_WORD})|[0-9]+(?:\.[0-9]+)?|(/\*)(?:[^*!M+](?:[^*]|\*+[^*/])*)?\*+/"
)
"""A name or a word, which is kept whole; a literal; or a comment, of which the beginning is kept."""
_VALUE: Final = r"\s*[-+]?(?:\?|(?:NULL|DEFAULT)\?)\s*"
_FORMS: Final = (
    (_TOKEN, r"\1\2\3?"),
    (rf"\({_VALUE}(?:,{_VALUE})*\)", "(?)"),
    (r"\(\?\)(?:\s*,\s*\(\?\))+", "(?)"),
)
_UNSURE: Final = r"#|--|/\*(?:[^?]|$)|\?[.0-9A-Za-z_$\x80-\xff]|[.@]\?"
"""What may stand for another comment, in a form: behind it a quote need not be one. And a word, a dot
or an at sign beside a literal, of which it may be a part."""
_DEPENDENT: Final = r"[\\\"\x80-\xff]"
"""Characters that are others in some modes and character sets of a session."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_OWN: Final = (
    (
        r'"(?:timestamp": [-+0-9.eE]+|(?:insert_id|last_insert_id|thread_id)": [0-9]+|rand_seeds": \[[0-9, ]*\]'
        rf'|user_variables": \[(?:\[{_STRING}, {_STRING}\](?:, )?)+\]|logged_text": "[A-Za-z0-9+/=]+"), ',
        "",
    ),
)
"""Parts of a context that differ between statements and do not change how a statement is parsed."""


class LaneStatement(NamedTuple):
    """A statement of a lane file."""

    lane: int
    header: BlockHeader
    """The header of its block; a DDL has a block of its own."""
    item: Item

    @property
    def seqnos(self) -> range:
        """The block's seqnos, one of which is the statement's."""
        return range(self.header.first_seqno, self.header.last_seqno + 1)

    @property
    def beginning(self) -> str:
        """The text's first 1,000 bytes."""
        statement, context = self.item.payload[:1000], self.item.context
        return statement.decode("utf-8", "replace") if context is None else decoded(statement, context)


def distinct_statements(folder: WorkFolder, plan: WindowPlan) -> Iterator[LaneStatement]:
    """Each distinct statement of the window; for DML the shortest of each form in each row group.

    Raises PlanError for a file that is missing or not a lane file.
    """
    seen: set[tuple[bytes, bytes]] = set()
    forms = 0
    for lane in plan.all_lanes:
        for file in _with_statements(folder, plan, lane):
            for kind, key, logged in _file(folder, lane, file):
                if key in seen or (kind != _WHOLE and forms >= MOST_FORMS):
                    continue
                seen.add(key)
                forms += kind != _WHOLE
                yield logged


def every_form(folder: WorkFolder, plan: WindowPlan) -> Iterator[LaneStatement]:
    """Each distinct statement, as ``distinct_statements``, however many there are, and whatever the plan and the files'
    own statistics say: for those who do not trust them.

    Raises PlanError for a file that is missing or not a lane file.
    """
    seen: set[tuple[bytes, bytes]] = set()
    for lane in plan.all_lanes:
        for file in _with_statements(folder, plan, lane):
            for _, key, logged in _file(folder, lane, file, trusts=False):
                if key not in seen:
                    seen.add(key)
                    yield logged


def item_kinds(folder: WorkFolder, plan: WindowPlan) -> frozenset[ItemKind]:
    """The kinds of the items in the lane files, by their rows: who wrote the plan may have counted otherwise.

    Raises PlanError for a file that is missing or not a lane file, and for one whose statistics say that a part has
    rows alone, which it has not: other readers pass such parts over.
    """
    files = (file for lane in plan.all_lanes for file in (plan.files[lane] if plan.files else ()))
    return frozenset(kind for file in files for kind in _kinds_of_file(folder, file.name, file.blake3))


@functools.lru_cache(maxsize=8192)
def _kinds_of_file(folder: WorkFolder, name: str, digest: str) -> frozenset[ItemKind]:
    """Of a file with this digest: it is read once, and who wants statements passes over one with rows alone."""
    kinds = set[ItemKind]()
    with open_parquet(folder, name, digest) as parquet:
        at = parquet.schema_arrow.get_field_index("kind")
        for group in range(parquet.num_row_groups):
            column = parquet.read_row_group(group, columns=["kind"], use_threads=False)["kind"]
            found = {ItemKind(each) for each in {*column.to_pylist()}}
            if _says_rows(parquet, group, at) and found != {ItemKind.ROWS}:
                raise PlanError(
                    f"{folder.path(name)}: expected statistics of its rows, found statements in part {group}, of which "
                    "they say that it has rows alone: no plan job of binlane writes it; find out who can write to the "
                    "work folder, remove the window's folder there, and run again"
                )
            kinds |= found
    return frozenset(kinds)


def _with_statements(folder: WorkFolder, plan: WindowPlan, lane: int) -> Iterator[LaneFile]:
    """A lane's files that have more than rows."""
    for file in plan.files[lane] if plan.files else ():
        if not _kinds_of_file(folder, file.name, file.blake3) <= {ItemKind.ROWS}:
            yield file


def _says_rows(parquet: pq.ParquetFile, group: int, column: int) -> bool:
    """Whether a row group has rows alone, by the file's statistics."""
    kinds = parquet.metadata.row_group(group).column(column).statistics
    return kinds is not None and kinds.has_min_max and (kinds.min, kinds.max) == ("rows", "rows")


def first_rows(folder: WorkFolder, plan: WindowPlan, key: TableKey, after: int) -> int | None:
    """The last seqno of the first block after ``after`` with rows of the table; None if there is no such block."""
    names = (name.encode() for name in (key.database, key.table))
    # in the format of TABLE_MAP
    wanted = b"".join(bytes((len(name),)) + name + b"\0" for name in names)
    found = [
        next(
            (
                row.header.last_seqno
                for _, row in read_rows(folder, file.name, after, file.blake3)
                if wanted in row.item.payload
            ),
            0,
        )
        for files in plan.files
        for file in files
        if file.last_seqno > after
    ]
    return min((seqno for seqno in found if seqno), default=None)


def tables_that_cascade(folder: WorkFolder, plan: WindowPlan) -> frozenset[TableKey]:
    """The tables with updates or deletions of rows for which the target follows its own foreign keys. All rows of the
    window are read. Raises PlanError for a file that is missing or not a lane file."""
    found = set[TableKey]()
    for files in plan.files:
        for file in files:
            for _, row in read_rows(folder, file.name, 0, file.blake3):
                if row.item.kind is ItemKind.ROWS:
                    found |= cascading_tables(row.item.payload)
    return frozenset(found)


def every_ddl(folder: WorkFolder, plan: WindowPlan) -> Iterator[LaneStatement]:
    """All statements that commit by themselves, also those with the same text, lane by lane.

    Raises PlanError for a file that is missing or not a lane file.
    """
    return _every(folder, plan, (_WHOLE,))


def every_statement(folder: WorkFolder, plan: WindowPlan, pattern: re.Pattern[bytes]) -> Iterator[LaneStatement]:
    """All statements in whose text the pattern occurs, lane by lane, also those with the same text.

    Raises PlanError for a file that is missing or not a lane file.
    """
    return _every(folder, plan, (_WHOLE, *_FORMED), pattern)


def _every(
    folder: WorkFolder, plan: WindowPlan, kinds: Sequence[str], pattern: re.Pattern[bytes] | None = None
) -> Iterator[LaneStatement]:
    for lane in plan.all_lanes:
        for file in plan.files[lane] if plan.files else ():
            for table in _groups(folder, file):
                found = table.filter(pc.is_in(table["kind"], pa.array(kinds)))
                for row in range(found.num_rows):
                    if pattern is None or pattern.search(found["payload"][row].as_py()) is not None:
                        yield _logged(found, row, lane, found["kind"][row].as_py())


def first_statement(folder: WorkFolder, plan: WindowPlan, after: int, is_wanted: Callable[[Item], bool]) -> int | None:
    """The last seqno of the first block after ``after`` with such a statement that commits with others; None if there
    is none."""
    found = [
        next(
            (
                row.header.last_seqno
                for _, row in read_rows(folder, file.name, after, file.blake3)
                if row.item.kind.value in _FORMED and is_wanted(row.item)
            ),
            0,
        )
        for files in plan.files
        for file in files
        if file.last_seqno > after
    ]
    return min((seqno for seqno in found if seqno), default=None)


def _file(
    folder: WorkFolder, lane: int, file: LaneFile, *, trusts: bool = True
) -> Iterator[tuple[str, tuple[bytes, bytes], LaneStatement]]:
    for table in _groups(folder, file, trusts=trusts):
        for kind in (_WHOLE, *_FORMED):
            found = table.filter(pc.equal(table["kind"], kind)).combine_chunks()
            if found.num_rows:
                yield from _distinct(found, lane, kind)


def _groups(folder: WorkFolder, file: LaneFile, *, trusts: bool = True) -> Iterator[pa.Table]:
    """The row groups of a lane file that hold a statement. ``trusts``: by the file's statistics, else by its rows."""
    with open_parquet(folder, file.name, file.blake3) as parquet:
        at = parquet.schema_arrow.get_field_index("kind")
        for group in range(parquet.num_row_groups):
            if trusts and _says_rows(parquet, group, at):
                continue
            if not trusts:
                found = parquet.read_row_group(group, columns=["kind"], use_threads=False)["kind"]
                if {*found.to_pylist()} <= {"rows"}:
                    continue
            yield parquet.read_row_group(group, columns=[*_BLOCK, *_STATEMENT], use_threads=False)


def _distinct(table: pa.Table, lane: int, kind: str) -> Iterator[tuple[str, tuple[bytes, bytes], LaneStatement]]:
    payload, context = table["payload"], pc.fill_null(table["context"], "")
    contexts = _rewritten(context, _OWN)
    forms = payload if kind == _WHOLE else forms_of(payload, contexts)
    numbers = pc.dictionary_encode(forms).combine_chunks().indices.to_numpy().astype(np.int64)
    sessions = pc.dictionary_encode(contexts).combine_chunks().indices.to_numpy().astype(np.int64)
    shortest_first = np.argsort(pc.binary_length(payload).to_numpy(), kind="stable")
    _, first = np.unique((numbers * (sessions.max() + 1) + sessions)[shortest_first], return_index=True)
    for row in np.sort(shortest_first[first]).tolist():
        logged = _logged(table, row, lane, kind)
        yield kind, (forms[row].as_py(), contexts[row].as_py().encode()), logged


def forms_of(payload: pa.ChunkedArray, contexts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The form of each text in its session; the text itself where it is not certain which parts are literals."""
    forms = _rewritten(payload, _FORMS)
    unsure = pc.match_substring_regex(forms, pattern=_UNSURE)
    sessions = pa.array([each for each in contexts.unique().to_pylist() if not _is_usual(each)], contexts.type)
    if len(sessions):
        dependent = pc.match_substring_regex(payload, pattern=_DEPENDENT)
        unsure = pc.or_(unsure, pc.and_(dependent, pc.is_in(contexts, sessions)))
    return pc.if_else(unsure, payload, forms)


def _is_usual(text: str) -> bool:
    """Whether quotes and backslashes in a session's statements are what they are by default, in each byte."""
    context = context_of(text or None)
    if context is None:
        return False
    dialect, charset = dialect_of(context, Flavor.MARIADB), client_charset(context)
    in_bytes = is_utf8_client(context) or (has_eight_bits(charset) and charset != "swe7")
    return in_bytes and not dialect.ansi_quotes and not dialect.no_backslash_escapes


def _logged(table: pa.Table, row: int, lane: int, kind: str) -> LaneStatement:
    item = Item(ItemKind(kind), table["payload"][row].as_py(), context=context_of(table["context"][row].as_py()))
    first_seqno, last_seqno, count, file, offset, *rest = (table[column][row].as_py() for column in _BLOCK)
    return LaneStatement(lane, BlockHeader(first_seqno, last_seqno, count, LogPosition(file, offset), *rest), item)


def _rewritten(values: pa.ChunkedArray, rules: tuple[tuple[str, str], ...]) -> pa.ChunkedArray:
    for pattern, replacement in rules:
        values = pc.replace_substring_regex(values, pattern=pattern, replacement=replacement)
    return values
