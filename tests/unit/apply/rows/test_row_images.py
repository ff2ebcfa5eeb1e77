"""Which tables get short images, and when it is worth it. Their effect: tests/integration/apply/test_row_images.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from binlane.apply.rows import row_images
from binlane.apply.rows.row_images import ShortImages, key_of_short_images
from binlane.apply.rows.table_guard import TableGuard
from binlane.binlog.wire import EventType, build_event
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table, Trigger
from tests.unit.binlog.row_events import EVERY_COLUMN, bitmap, image, rows_body, table_map_body

KEY = TableKey("db", "t")
ID, NAME, TEXT = Column("id", 1, "int"), Column("Name", 2, "varchar"), Column("story", 3, "text")
PRIMARY = Key("PRIMARY", True, True, (KeyColumn("name"), KeyColumn("id")))
PLAIN = Table(KEY, "InnoDB", (ID, NAME, TEXT), (PRIMARY, Key("story", False, False, (KeyColumn("story", 20),))))
COLUMNS = [EVERY_COLUMN["long"], EVERY_COLUMN["varchar-255"], EVERY_COLUMN["blob"]]
ONE = RowCounts(updates=1)


def with_key(**changes: object) -> Table:
    return replace(PLAIN, keys=(PRIMARY, replace(PLAIN.keys[1], **changes)))  # type: ignore[arg-type]


def test_the_key_is_named_by_its_columns_in_the_tables_order() -> None:
    assert key_of_short_images(PLAIN) == (0, 1)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(replace(PLAIN, keys=PLAIN.keys[1:]), id="no-primary-key"),
        pytest.param(replace(PLAIN, engine="MyISAM"), id="another-engine"),
        pytest.param(replace(PLAIN, system_versioned=True), id="versions"),
        pytest.param(replace(PLAIN, without_overlaps=True), id="periods"),
        pytest.param(replace(PLAIN, triggers=(Trigger("a", "BEFORE", "UPDATE"),)), id="triggers"),
        *(
            pytest.param(replace(PLAIN, columns=(ID, NAME, replace(TEXT, generated=kind))), id=f"generated-{kind}")
            for kind in Generated
        ),
        pytest.param(
            replace(PLAIN, columns=(ID, NAME, replace(TEXT, data_type="timestamp (old format)", fsp=2))),
            id="length-that-is-not-logged",
        ),
        pytest.param(with_key(kind="FULLTEXT"), id="words"),
        pytest.param(with_key(kind="HASH", unique=True), id="hash"),
        pytest.param(with_key(columns=(KeyColumn(None, expression="id + 1"),)), id="expression"),
        pytest.param(
            replace(PLAIN, keys=(replace(PRIMARY, columns=(KeyColumn("id"), KeyColumn("name", 3))),)),
            id="key-of-a-prefix",
        ),
    ],
)
def test_images_of_other_tables_stay_whole(table: Table) -> None:
    assert key_of_short_images(table) == ()


def payload(length: int = 600, name: str = "db") -> bytes:
    whole = [True] * len(COLUMNS)
    old = [b"\1\0\0\0", b"somebody", b"x" * length]
    images = image(COLUMNS, whole, old) + image(COLUMNS, whole, [*old[:2], b"x" * (length - 1)])
    body = rows_body(EventType.UPDATE_ROWS_V1, 1, 3, [bitmap(whole)] * 2, images)
    return b"".join(
        build_event(code, each, timestamp=1, server_id=7)
        for code, each in ((EventType.TABLE_MAP, table_map_body(1, COLUMNS, name)), (EventType.UPDATE_ROWS_V1, body))
    )


def shortener(altered: Alterations | None = None, table: Table | None = PLAIN) -> tuple[ShortImages, list[TableKey]]:
    """With the tables that it has read."""
    read = list[TableKey]()

    def found(key: TableKey) -> Table | None:
        read.append(key)
        return table

    return ShortImages(TableGuard(altered or Alterations(), Flavor.MARIADB, found)), read


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_images, "_WORTH_READING", 0)


@pytest.mark.usefixtures("_at_once")
def test_wide_rows_are_short_and_others_are_not() -> None:
    images, _ = shortener()
    assert len(images.of(payload(), ONE)) < len(payload()) - 600
    assert images.of(payload(100), ONE) == payload(100)
    assert images.of(payload(), RowCounts(inserts=1)) == payload(), "a payload without updates and deletions"


@pytest.mark.usefixtures("_at_once")
def test_a_table_that_the_window_alters_or_that_is_another_one_keeps_whole_images() -> None:
    for images, _ in (
        shortener(Alterations({KEY: (5,)})),
        shortener(Alterations(unread=(5,))),
        shortener(table=None),
        shortener(table=replace(PLAIN, columns=(ID, NAME))),
    ):
        assert images.of(payload(), ONE) == payload()


@pytest.mark.usefixtures("_at_once")
def test_a_definition_is_read_once_until_tables_are_forgotten() -> None:
    images, read = shortener()
    for _ in range(3):
        images.of(payload(), ONE)
    assert read == [KEY]
    images.forget_tables()
    images.of(payload(), ONE)
    assert read == [KEY, KEY]


def test_definitions_are_read_together_once_enough_of_their_rows_were_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_images, "_WORTH_READING", 3 * len(payload()))
    together, one_by_one = list[frozenset[str]](), list[TableKey]()

    def databases(names: Iterable[str]) -> Mapping[TableKey, Table]:
        together.append(frozenset(names))
        return {TableKey(name, "t"): PLAIN for name in together[-1]}

    def one(key: TableKey) -> Table | None:
        one_by_one.append(key)
        return PLAIN

    guard = TableGuard(Alterations(), Flavor.MARIADB, one, lambda _: {}, databases)
    images = ShortImages(guard)
    assert [images.of(payload(name=name), ONE) == payload(name=name) for name in ("db", "de", "db", "de", "db")] == [
        *(True, True, False, False, False)
    ]
    assert together == [{"db", "de"}]
    assert images.of(payload(name="df"), ONE) == payload(name="df")
    assert one_by_one == []
