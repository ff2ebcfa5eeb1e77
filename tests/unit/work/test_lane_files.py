"""Lane files: what goes in comes out, the same blocks give the same bytes, and nothing damaged is handed on."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binlane.errors import PlanError
from binlane.model import BlockHeader, Item, ItemKind, LogPosition, RowCounts, SessionContext
from binlane.plan.window_plan import LaneFile
from binlane.work import lane_files
from binlane.work.files import WorkFolder
from binlane.work.lane_files import SCHEMA, LaneFileWriter, block_outlines, read_blocks
from binlane.work.planned import PlannedLanes
from tests.unit.plan.logs import filtered, rows

FORMAT = b"\0format\xff"
EVERY_FIELD = SessionContext(
    database="größe`'\"",
    timestamp=1_700_000_000.123456,
    sql_mode=1 << 40,
    charset_client=255,
    collation_connection=0,
    collation_server=8,
    default_collation_for_utf8mb4=255,
    collation_database=33,
    character_set_collations=((33, 192), (45, 224)),
    time_zone="Europe/Berlin",
    lc_time_names=4,
    auto_increment_increment=2,
    auto_increment_offset=1,
    foreign_key_checks=False,
    unique_checks=True,
    auto_is_null=False,
    check_constraint_checks=False,
    if_exists=True,
    system_versioning_insert_history=False,
    explicit_defaults_for_timestamp=True,
    sql_require_primary_key=False,
    default_table_encryption=True,
    cascade_triggers=True,
    insert_id=(1 << 64) - 1,
    last_insert_id=0,
    rand_seeds=(1, (1 << 64) - 1),
    user_variables=(("v", "_utf8mb4 x'41' COLLATE utf8mb4_bin"), ("", "NULL")),
    thread_id=7,
    error_code=1062,
    logged_text="VVBEQVRF",
    other_readings=((28, 0), (13, 4)),
)
READ: Final = """
import sys
from pathlib import Path
from binlane.model import BlockHeader, Item, ItemKind, LogPosition
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneFileWriter, block_outlines, read_blocks
folder = WorkFolder(sys.argv[1])
before = len(list(Path("/proc/self/task").iterdir()))
writer = LaneFileWriter(folder, "lane", b"format")
writer.add(BlockHeader(1, 1, 1, LogPosition("binlog.000001", 4), "0-1-1", 1.0), [Item(ItemKind.ROWS, b"rows")])
file = writer.close()
assert [list(block.items) for block in read_blocks(folder, "lane")] == [[Item(ItemKind.ROWS, b"rows")]]
assert [outline.items for outline in block_outlines(folder, file)] == [1]
print(len(list(Path("/proc/self/task").iterdir())) - before)
"""
Blocks = Sequence[tuple[BlockHeader, Sequence[Item]]]


def header(first: int, last: int) -> BlockHeader:
    place = LogPosition("binlog.000007", 5_000_000_000 + first)
    return BlockHeader(first, last, last - first + 1, place, f"0-1-{last}", 1_700_000_000.25 + last)


BLOCKS: Blocks = (
    (
        header(1, 3),
        (Item(ItemKind.ROWS, b"\0\xff", RowCounts(1, 2, 3)), Item(ItemKind.STATEMENT, b"\xe4", context=EVERY_FIELD)),
    ),
    (header(4, 4), (Item(ItemKind.DDL, b"DROP TABLE t", context=SessionContext()),)),
    (header(7, 9), ()),
    (header(10, 12), (Item(ItemKind.ROWS, b"more", RowCounts(deletes=1)),)),
)  # fmt: skip


def write(folder: WorkFolder, blocks: Blocks = BLOCKS, name: str = "lanes/0000/000000.parquet") -> LaneFile:
    writer = LaneFileWriter(folder, name, FORMAT)
    for head, items in blocks:
        writer.add(head, items)
    return writer.close()


def planned(folder: WorkFolder, *files: LaneFile) -> PlannedLanes:
    plan = filtered([rows(1, "a")]).plan
    return PlannedLanes(folder, dataclasses.replace(plan, files=(files, (), (), ())))


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    return WorkFolder(str(tmp_path / "plan"))


def read(lanes: PlannedLanes, after: int = 0) -> list[tuple[BlockHeader, tuple[Item, ...]]]:
    found = []
    for block in lanes.blocks(0, after):
        assert block.format == FORMAT
        found.append((block.header, tuple(block.items)))
    return found


def test_every_field_of_the_session_is_set_in_this_test() -> None:
    nothing = SessionContext()
    same = [
        f.name for f in dataclasses.fields(SessionContext) if getattr(EVERY_FIELD, f.name) == getattr(nothing, f.name)
    ]
    assert same == []


def test_a_lane_file_is_read_as_it_was_written(folder: WorkFolder) -> None:
    file = write(folder)
    assert read(planned(folder, file)) == list(BLOCKS)
    assert (file.first_seqno, file.last_seqno, file.blocks, file.transactions) == (1, 12, 4, 10)
    assert file.bytes == len(folder.read(file.name))
    assert file.blake3 == folder.digest(file.name)


@pytest.mark.parametrize("field", dataclasses.fields(SessionContext), ids=lambda field: field.name)
def test_each_field_of_the_session_survives_alone(field: dataclasses.Field[object], folder: WorkFolder) -> None:
    context = dataclasses.replace(SessionContext(), **{field.name: getattr(EVERY_FIELD, field.name)})
    file = write(folder, [(header(1, 1), [Item(ItemKind.STATEMENT, b"x", context=context)])])
    ((_, (item,)),) = read(planned(folder, file))
    assert item.context == context


@pytest.mark.parametrize(
    ("after", "first"), [(0, [1, 4, 7, 10]), (2, [1, 4, 7, 10]), (3, [4, 7, 10]), (8, [7, 10]), (11, [10]), (12, [])]
)
@pytest.mark.parametrize("group", [1, 1 << 20], ids=["a-group-an-item", "one-group"])
def test_reading_begins_at_the_first_block_that_ends_behind_a_seqno(
    after: int, first: list[int], group: int, folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_files, "_ROW_GROUP_BYTES", group)
    lanes = planned(folder, write(folder, BLOCKS[:2], "one.parquet"), write(folder, BLOCKS[2:], "two.parquet"))
    assert [head.first_seqno for head, _ in read(lanes, after)] == first


def test_files_behind_which_a_lane_stands_are_not_opened(folder: WorkFolder) -> None:
    done, left = write(folder, BLOCKS[:2], "one.parquet"), write(folder, BLOCKS[2:], "two.parquet")
    Path(folder.path("one.parquet")).unlink()
    assert [head.first_seqno for head, _ in read(planned(folder, done, left), 4)] == [7, 10]


def test_a_block_larger_than_a_row_group_is_streamed_as_one_block(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_files, "_ROW_GROUP_BYTES", 1000)
    items = [Item(ItemKind.ROWS, bytes([number]) * 400, RowCounts(1)) for number in range(50)]
    file = write(folder, [(header(1, 1), items), (header(2, 2), items[:1])])
    parquet = pq.ParquetFile(folder.path(file.name))
    assert parquet.num_row_groups > 10
    blocks = read_blocks(folder, file.name)
    first = next(blocks)
    assert list(first.items) == items
    assert [len(list(block.items)) for block in blocks] == [1]


def test_the_same_blocks_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = (write(WorkFolder(str(tmp_path / name))) for name in "ab")
    assert one == other
    assert (tmp_path / "a" / one.name).read_bytes() == (tmp_path / "b" / one.name).read_bytes()
    assert write(WorkFolder(str(tmp_path / "a"))) == one


def test_a_changed_file_is_refused_before_its_first_block(folder: WorkFolder) -> None:
    file = write(folder)
    path = Path(folder.path(file.name))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(PlanError, match=f"expected BLAKE3 {file.blake3}.*run the plan job again"):
        read(planned(folder, file))


@pytest.mark.parametrize("place", ["{}", "memory://{}"], ids=["here", "elsewhere"])
def test_another_file_is_not_outlined(place: str, tmp_path: Path) -> None:
    """A column of equal values has a billion rows in a small file."""
    folder = WorkFolder(place.format(tmp_path))
    file = write(folder)
    assert [each.header for each in block_outlines(folder, file)] == [head for head, _ in BLOCKS]
    data = bytearray(folder.read(file.name))
    data[len(data) // 2] ^= 1
    folder.replace(file.name, bytes(data))
    with pytest.raises(PlanError, match=f"expected BLAKE3 {file.blake3}"):
        next(block_outlines(folder, file))
    folder.replace(file.name, bytes(data) + b"x")
    with pytest.raises(PlanError, match=f"expected {file.bytes:,} bytes as in the plan, found {file.bytes + 1:,}"):
        next(block_outlines(folder, file))


def test_an_outline_of_many_rows_takes_the_memory_of_some(folder: WorkFolder) -> None:
    count, position = 400_000, ["binlog.000001"]
    numbers = pa.array(range(count), pa.int64())
    columns: dict[str, pa.Array] = {"first_seqno": numbers, "last_seqno": numbers, "source_file": position * count}
    columns |= {"gtid": [""] * count, "kind": [ItemKind.ROWS.value] * count, "payload": [b""] * count}
    columns["context"] = pa.nulls(count, pa.string())
    columns = {each.name: columns.get(each.name, [0] * count) for each in SCHEMA}
    table = pa.table(columns, schema=SCHEMA)
    with folder.create("many.parquet") as stream:
        pq.write_table(table, stream, compression="zstd", row_group_size=count)
    whole = table.nbytes
    del table, columns, numbers
    file = LaneFile("many.parquet", 0, count - 1, count, 0, folder.size("many.parquet"), folder.digest("many.parquet"))
    before = pa.total_allocated_bytes()
    outlines = block_outlines(folder, file)
    assert next(outlines).header.first_seqno == 0
    assert pa.total_allocated_bytes() - before < whole / 5
    outlines.close()


def test_a_torn_file_is_refused(folder: WorkFolder) -> None:
    file = write(folder)
    path = Path(folder.path(file.name))
    whole = path.read_bytes()
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(PlanError, match="expected BLAKE3"):
            read(planned(folder, file))
        with pytest.raises(PlanError, match="not a readable lane file"):
            list(read_blocks(folder, file.name))


def test_a_missing_file_is_refused(folder: WorkFolder) -> None:
    file = write(folder)
    Path(folder.path(file.name)).unlink()
    with pytest.raises(PlanError, match=r"000000\.parquet.*is missing"):
        read(planned(folder, file))


def test_another_parquet_file_is_refused(folder: WorkFolder) -> None:
    write(folder)
    pq.write_table(pa.table({"a": [1]}), folder.path("other.parquet"))
    with pytest.raises(PlanError, match="not a lane file of this version"):
        list(read_blocks(folder, "other.parquet"))


def test_an_abandoned_file_never_appears_and_a_finished_one_stays(folder: WorkFolder) -> None:
    done = write(folder)
    writer = LaneFileWriter(folder, "lanes/0001/000000.parquet", FORMAT)
    writer.add(*BLOCKS[0])
    writer.abandon(ValueError("injected"))
    left = [path.name for path in Path(folder.uri).rglob("*") if path.is_file()]
    assert left == [Path(done.name).name]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_arrow_starts_no_thread_that_could_abort_the_interpreter_at_its_end(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr
