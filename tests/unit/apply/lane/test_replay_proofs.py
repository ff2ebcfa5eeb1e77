"""What proves that an INSERT that is there already would be refused the second time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from binlane.apply.lane import replay_skipped
from binlane.binlog.row_values import ABSENT, Change, Image
from binlane.binlog.rows import RowsFlag, RowsKind
from binlane.model import Item, ItemKind, TableKey
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table

ID = Column("id", 1, "int", nullable=False)
A, B = Column("a", 2, "int"), Column("b", 3, "int")
PRIMARY = Key("PRIMARY", True, True, (KeyColumn("id"),))
A_B = Key("a_b", True, False, (KeyColumn("a"), KeyColumn("b")))
KNOWN = Key("known", True, False, (KeyColumn("id"),))
PLAIN = Key("plain", False, False, (KeyColumn("id"),))


def unproved(
    *images: Image,
    keys: tuple[Key, ...],
    columns: tuple[Column, ...] = (ID, A, B),
    flags: int = 0,
    change: RowsKind = RowsKind.INSERT,
) -> list[str]:
    class Event:
        kind = change

    class Decoder:
        def changes(self, _: object) -> list[Change]:
            if change is RowsKind.INSERT:
                return [Change(change, None, image) for image in images]
            return [Change(change, image, image if change is RowsKind.UPDATE else None) for image in images]

    class Bound:
        key = TableKey("app", "t")
        primary_key = (0,) if PRIMARY in keys else ()
        written = frozenset(range(len(columns)))

    class Known:
        target = Table(TableKey("app", "t"), "InnoDB", columns, keys)
        bound = Bound()
        decoder = Decoder()

    class Tables:
        def events(self, _payload: bytes, _seqno: int) -> list[Any]:
            event = Event()
            event.flags = flags  # type: ignore[attr-defined]
            return [(Known(), event, 0)]

    class Rows:
        kind = ItemKind.ROWS
        payload = b""

    return [*replay_skipped._unproved([cast(Item, Rows())], cast(Any, Tables()), 7)]


@pytest.mark.parametrize(
    ("keys", "image"), [((PRIMARY,), (1, None, None)), ((KNOWN,), (1, None, None)), ((A_B,), (1, 2, 3))]
)
def test_a_unique_key_with_values_proves_it(keys: tuple[Key, ...], image: Image) -> None:
    assert unproved(image, keys=keys) == []


@pytest.mark.parametrize(
    ("keys", "image"),
    [
        ((), (1, 2, 3)),
        ((PLAIN,), (1, 2, 3)),
        # any number of rows may have NULL in a part
        ((A_B,), (1, None, 3)),
        ((A_B,), (1, 2, None)),
        ((A_B,), (1, 2, ABSENT)),
        ((Key("f", True, False, (KeyColumn(None, expression="a + b"),)),), (1, 2, 3)),
    ],
)
def test_what_a_unique_key_takes_any_number_of_times_is_asked_about(keys: tuple[Key, ...], image: Image) -> None:
    said = "a row is inserted into app.t that no unique key would refuse the second time"
    assert unproved((1, 2, 3), image, keys=keys) == [said]


def test_a_generated_column_that_no_log_has_proves_nothing() -> None:
    virtual = Column("b", 3, "int", generated=Generated.VIRTUAL)
    assert unproved((1, 2, 3), keys=(A_B,), columns=(ID, A, virtual))


def test_secondary_keys_prove_nothing_where_the_session_did_not_check_them() -> None:
    flags = int(RowsFlag.RELAXED_UNIQUE_CHECKS)
    assert unproved((1, 2, 3), keys=(A_B,), flags=flags)
    assert not unproved((1, 2, 3), keys=(PRIMARY,), flags=flags)


@pytest.mark.parametrize("change", [RowsKind.UPDATE, RowsKind.DELETE])
def test_a_change_is_compared_only_where_a_key_finds_its_row(change: RowsKind) -> None:
    """Without a key the server takes any equal row, also behind a change that somebody has made by hand."""
    keys: tuple[Key, ...]
    for keys in ((PRIMARY,), (KNOWN,)):
        assert unproved((1, 2, 3), keys=keys, change=change) == []
    for keys in ((), (PLAIN,), (A_B,)):
        said = "rows of app.t are changed, and have no key by which they could be compared"
        assert unproved((1, 2, 3), keys=keys, change=change) == [said]
