"""Which tables follow the rows of others by foreign keys, and where the two servers differ in that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from binlane.model import Flavor, TableKey
from binlane.schema.followers import compare_followers, databases_of_followers
from binlane.schema.letter_case import ANY_CASE, AS_TYPED, LetterCase
from binlane.schema.model import ForeignKey, Schema, Table


def foreign_key(parent: str, on_delete: str = "CASCADE", on_update: str = "RESTRICT") -> ForeignKey:
    return ForeignKey("fk", ("p",), TableKey(*parent.split(".")), ("id",), on_update, on_delete)


def schema(*databases: str, folds: bool = False, **tables: tuple[ForeignKey, ...]) -> Schema:
    """Tables by ``database__table``; foreign keys of tables in other databases are references alone."""
    every = {TableKey(*name.split("__")): keys for name, keys in tables.items()}
    named = frozenset(databases or {key.database for key in every})
    return Schema(
        Flavor.MARIADB,
        "11.8.3-MariaDB",
        {"lower_case_table_names": "1"} if folds else {},
        databases=named,
        tables={key: Table(key, "InnoDB", (), (), keys) for key, keys in every.items() if key.database in named},
        references=frozenset((key, each.parent) for key, keys in every.items() for each in keys),
    )


P: Final = TableKey("a", "p")
BOTH: Final = schema(a__p=(), a__c=(foreign_key("a.p"),), a__g=(foreign_key("a.c"),))


def found(source: Schema, target: Schema, *parents: TableKey, letters: LetterCase = AS_TYPED) -> list[str]:
    differences = compare_followers(source, target, parents or (P,), letters, lambda key: key.table != "left_out")
    return [f"{each.table}: {each.expected} / {each.found}" for each in differences]


def test_equal_keys_are_no_difference_nor_are_those_of_tables_that_do_not_follow() -> None:
    assert found(BOTH, BOTH) == []
    other = schema(a__p=(), a__c=(foreign_key("a.p"),), a__g=())
    assert found(BOTH, other, TableKey("a", "g")) == []
    assert found(BOTH, other, TableKey("a", "c")) != []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((foreign_key("a.p"),), ()),
        ((), (foreign_key("a.p"),)),
        ((foreign_key("a.p"),), (foreign_key("a.p", "SET NULL"),)),
        ((foreign_key("a.p"),), (foreign_key("a.p", "RESTRICT"),)),
        ((foreign_key("a.p", "RESTRICT"),), (foreign_key("a.p", "RESTRICT", "CASCADE"),)),
    ],
)
def test_a_key_that_one_server_has_or_that_does_something_else_is_named(
    ours: tuple[ForeignKey, ...], theirs: tuple[ForeignKey, ...]
) -> None:
    source, target = (schema(a__p=(), a__c=keys) for keys in (ours, theirs))
    assert found(source, target) != []


def test_keys_that_change_no_rows_are_not() -> None:
    plain = schema(a__p=(), a__c=(foreign_key("a.p", "RESTRICT"),), a__g=(foreign_key("a.c"),))
    assert found(plain, schema(a__p=(), a__c=(), a__g=())) == []


def test_children_of_children_count_and_tables_that_a_server_lacks_or_that_are_left_out_do_not() -> None:
    no_key = schema(a__p=(), a__c=(foreign_key("a.p"),), a__g=())
    assert found(BOTH, no_key) == ["a.g: (p) to a.c (id) on update RESTRICT on delete CASCADE / none"]
    assert found(BOTH, schema(a__p=(), a__c=(foreign_key("a.p"),))) == []
    with_own = schema(a__p=(), a__left_out=(foreign_key("a.p"),))
    assert found(with_own, schema(a__p=(), a__left_out=())) == []


def test_names_are_compared_as_the_servers_do() -> None:
    upper = schema(folds=True, A__P=(), A__C=(foreign_key("A.P"),))
    lower = schema(folds=True, a__p=(), a__c=(foreign_key("a.p"),))
    assert found(upper, lower, letters=ANY_CASE) == []
    without = schema(folds=True, a__p=(), a__c=())
    assert found(upper, without, letters=ANY_CASE) != []


def test_databases_that_are_not_known_yet_are_those_of_children_at_any_distance() -> None:
    every: dict[str, Any] = {
        "a__p": (),
        "a__c": (foreign_key("a.p"),),
        "b__g": (foreign_key("a.c"),),
        "d__x": (foreign_key("b.g"),),
    }
    near = schema("a", **every)
    assert databases_of_followers([P], [replace(near, references=frozenset())], AS_TYPED) == set()
    assert databases_of_followers([P], [near], AS_TYPED) == {"b", "d"}
    assert databases_of_followers([P], [schema("a", "b", **every), near], AS_TYPED) == {"d"}
    assert databases_of_followers([TableKey("a", "other")], [near], AS_TYPED) == set()
