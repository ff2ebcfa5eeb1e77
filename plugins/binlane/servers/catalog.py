"""Reads a server's information_schema into a ``Schema``, in a dozen queries for any number of tables.

For MariaDB 10.3 and newer and MySQL 5.6 and newer. An account sees only objects that it has privileges on: TRIGGER for
triggers, EVENT for events, EXECUTE for routines, any privilege for tables; ``precheck.target.server`` checks them by
name.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row, bindparam, text
from sqlalchemy.exc import DBAPIError

from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import STRING
from binlane.errors import PrecheckError
from binlane.model import Flavor, TableKey
from binlane.rename_rules import is_system
from binlane.schema.model import Column, ForeignKey, Generated, Key, KeyColumn, Schema, Table, Trigger
from binlane.schema.normalize import (
    charset_name,
    collation_name,
    expression_sql,
    mariadb_default,
    mysql_default,
    parse_type,
)
from binlane.servers import catalog_queries as queries
from binlane.servers.names import among, folded_values, values_of
from binlane.servers.packed import PackedRow, PackedView, read_names, whole_texts
from binlane.servers.variables import global_variables, server_version, session_variable, version_number
from binlane.sessions.pins import SessionKind, pinned
from binlane.sql.parse.analyze import analyze

_MERGE: Final = ("MRG_MYISAM", "MRG_MyISAM")
_MERGE_OF_NOTHING: Final = 1168
"""ER_WRONG_MRG_TABLE: a table of the UNION is missing or has a different definition."""
SETTINGS: Final = (
    "character_set_server",
    "collation_server",
    "enforce_gtid_consistency",
    "explicit_defaults_for_timestamp",
    "lower_case_table_names",
    "max_allowed_packet",
    "slave_run_triggers_for_rbr",
)
"""Variables that are stored in a ``Schema``: the plan or the comparison depends on them."""

_Rows = list[Row[Any]]
_Made = TypeVar("_Made")


def column_of_collations(flavor: Flavor, number: tuple[int, int, int]) -> str:
    """The column of ``COLLATIONS`` with the full names of a server's collations."""
    # from MariaDB 10.10 on, uca1400_ai_ci is the short name of one collation in each Unicode character set
    return "full_collation_name" if flavor is Flavor.MARIADB and number >= (10, 10, 1) else "collation_name"


def read_schema(connection: Connection, databases: Collection[str] | None = None) -> Schema:
    """All objects in ``databases``; None: in all databases but the system's and binlane's own."""
    flavor, version = server_version(connection)
    present = _databases(connection, databases)
    if not present:
        # the columns of information_schema are dear to list
        return _server_alone(connection, flavor, version)
    catalog = _Catalog(connection, flavor, _known_columns(connection), queries.Databases(present), queries.REFERENCES)
    tables = catalog.tables()
    merged = {table.key: _union(connection, flavor, table.key) for table in tables if table.engine in _MERGE}
    return replace(
        _server_alone(connection, flavor, version),
        databases=present,
        tables={table.key: table for table in tables},
        # treated as a view: the UNION of a MERGE table that cannot be opened is not known
        views=frozenset(_key(row) for row in catalog.rows(queries.VIEWS))
        | {key for key, union in merged.items() if union is None},
        routines=frozenset((row.db, row.name) for row in catalog.rows(queries.ROUTINES)),
        events=frozenset((row.db, row.name) for row in catalog.rows(queries.EVENTS)),
        references=frozenset((_key(row), TableKey(row.parent_db, row.parent)) for row in catalog.foreign_keys)
        | frozenset((key, part) for key, union in merged.items() for part in union or ()),
    )


def _server_alone(connection: Connection, flavor: Flavor, version: str) -> Schema:
    """The server's settings and collations, and no database."""
    return Schema(
        flavor=flavor,
        version=version,
        settings=read_settings(connection),
        collations=_collations(connection, flavor, version_number(version)),
    )


def read_settings(connection: Connection) -> Mapping[str, str]:
    """The server's present ``Schema.settings``."""
    return global_variables(connection, SETTINGS)


def _union(connection: Connection, flavor: Flavor, key: TableKey) -> frozenset[TableKey] | None:
    """The tables in the UNION of a MERGE table, from its SHOW CREATE TABLE; None if it cannot be opened."""
    database, name = (part.replace("`", "``") for part in (key.database, key.table))
    # a per cent sign in a name is no placeholder
    query = f"SHOW CREATE TABLE `{database}`.`{name}`".replace("%", "%%")
    try:
        row = connection.exec_driver_sql(query, ()).one()
    except DBAPIError as exc:
        if exc.orig is None or exc.orig.args[:1] != (_MERGE_OF_NOTHING,):
            raise
        return None
    return analyze(str(row[1]), database=key.database, flavor=flavor).union


def read_partitioned(connection: Connection, databases: Collection[str]) -> frozenset[TableKey]:
    """The partitioned tables of these databases."""
    flavor, _ = server_version(connection)
    catalog = _Catalog(connection, flavor, frozenset(), queries.Databases(_databases(connection, databases)))
    return frozenset(_key(row) for row in catalog.rows(queries.PARTITIONED))


def is_partitioned(connection: Connection, key: TableKey) -> bool:
    """Whether there is a partitioned table of this name."""
    flavor, _ = server_version(connection)
    return bool(_Catalog(connection, flavor, frozenset(), key).rows(queries.PARTITIONED))


def read_foreign_keys(connection: Connection, databases: Collection[str]) -> Mapping[TableKey, tuple[ForeignKey, ...]]:
    """The foreign keys of the tables in these databases, by table; none of a table without one."""
    flavor, _ = server_version(connection)
    catalog = _Catalog(connection, flavor, frozenset(), queries.Databases(_databases(connection, databases)))
    return catalog.foreign_keys_by_table()


def read_databases(connection: Connection) -> frozenset[str]:
    """The names of all databases but the system's and binlane's own."""
    return _databases(connection, None)


def read_default_collations(connection: Connection, databases: Collection[str]) -> dict[str, str]:
    """The default collation of each existing database."""
    query = text(queries.DEFAULTS).bindparams(*(bindparam(each, expanding=True) for each in ("databases", "folded")))
    rows = connection.execute(query, {"databases": values_of(databases), "folded": folded_values(databases)})
    return {str(name): collation_name(str(collation)) or "" for name, collation in rows}


def read_table_collation(connection: Connection, key: TableKey) -> str | None:
    """The default collation of a table; None if there is no table of that name."""
    query = text(
        "SELECT table_collation FROM information_schema.tables WHERE table_schema = :database AND table_name = :name"
    )
    found = connection.execute(query, {"database": key.database, "name": key.table}).scalar()
    return None if found is None else collation_name(str(found))


_LOCK_WAIT_TIMEOUT: Final = 1205
_READ_TOGETHER: Final = 100
"""Tables of a database that are read at once although perhaps one of them is needed: its queries cost as much as those
of some tables."""


class TableReader:
    """Reads single tables as ``read_schema`` reads all.

    For a lane, whose transaction has locked the sequences that it has written, on MariaDB as a DDL would: no other
    connection can open them, not even to list the columns of a whole database. So only the tables that are asked for
    are opened, and a database's tables together only if all can be opened at once.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._server: tuple[Flavor, frozenset[str]] | None = None

    def read(self, key: TableKey) -> Table | None:
        """The table's present definition; None if there is no such table or the account may not see it."""
        return next(iter(self._catalog(key).tables()), None)

    def read_database(self, database: str) -> Mapping[TableKey, Table]:
        """``read_databases`` of one."""
        return self.read_databases((database,))

    def read_databases(self, databases: Iterable[str]) -> Mapping[TableKey, Table]:
        """The present definitions of all tables of some databases, without those that have more than
        ``_READ_TOGETHER``; none if one of them is locked."""
        count = text(
            "SELECT MIN(table_schema), COUNT(*) FROM information_schema.tables "
            f"WHERE {among('table_schema', ':databases')} GROUP BY CAST(table_schema AS BINARY)"
        ).bindparams(bindparam("databases", expanding=True))
        counts = self._connection.execute(count, {"databases": values_of(databases)})
        small = frozenset(str(name) for name, tables in counts if tables <= _READ_TOGETHER)
        catalog = self._catalog(queries.Databases(small))
        with catalog.without_waiting():
            found = {table.key: table for table in catalog.tables()}
        return {} if catalog.lacks_tables else found

    def _catalog(self, scope: queries.Scope) -> _Catalog:
        if self._server is None:
            self._server = server_version(self._connection)[0], _known_columns(self._connection)
        return _Catalog(self._connection, *self._server, scope)


class _Catalog:
    """One server's answers, grouped by table."""

    def __init__(
        self,
        connection: Connection,
        flavor: Flavor,
        has: frozenset[str],
        scope: queries.Scope,
        foreign_keys: queries.Query = queries.FOREIGN_KEYS,
    ) -> None:
        self._connection = connection
        self._flavor = flavor
        self._scope = scope
        self._foreign_keys = foreign_keys
        self._waits = True
        self.lacks_tables = False
        """Whether a query has left out a table that was locked; only ``without_waiting``."""
        self._has = has
        """``known``: columns of the information_schema views, as ``view.column``."""

    @contextlib.contextmanager
    def without_waiting(self) -> Iterator[None]:
        """MariaDB opens tables to describe them: leave out those that are locked, with a warning. MySQL opens none."""
        if self._flavor is not Flavor.MARIADB:
            yield
            return
        usual = pinned("lock_wait_timeout", self._flavor, SessionKind.STATE)
        with session_variable(self._connection, "lock_wait_timeout", 0, usual):
            self._waits = False
            try:
                yield
            finally:
                self._waits = True

    @cached_property
    def foreign_keys(self) -> _Rows:
        """One row for each column of a foreign key."""
        return self.rows(self._foreign_keys)

    def rows(self, query: queries.Query) -> _Rows:
        """Run one of the queries below for the chosen scope. Database and name are its first columns."""
        return self._run(query.over(self._scope))

    def _run(self, query: str) -> _Rows:
        statement, scope = text(query), self._scope
        if isinstance(scope, TableKey):
            values: dict[str, object] = {"database": scope.database, "table": scope.table}
        elif not scope.names:
            return []
        else:
            statement = statement.bindparams(bindparam("databases", expanding=True))
            values = {"databases": values_of(scope.names)}
        found = list(self._connection.execute(statement, values))
        if not self._waits:
            warnings = self._connection.exec_driver_sql("SHOW WARNINGS")
            self.lacks_tables |= any(code == _LOCK_WAIT_TIMEOUT for _, code, _ in warnings)
        return found

    def tables(self) -> list[Table]:
        """Base tables, system-versioned tables and sequences. Tables with equal columns or keys share the objects."""
        with whole_texts(self._connection):
            columns, keys, triggers = (
                self._packed(queries.COLUMNS),
                self._packed(queries.KEYS),
                self._packed(queries.TRIGGERS),
            )
            # only MariaDB's: MySQL's CHECK_CONSTRAINTS has no table name, and its checks are not needed
            checks = self._packed(queries.CHECKS) if "check_constraints.table_name" in self._has else {}
        foreign = self.foreign_keys_by_table()
        columns_of, keys_of, triggers_of, checks_of = (
            cache(self._columns),
            cache(_keys),
            cache(_triggers),
            cache(_checks),
        )
        tables = []
        for row in self.rows(queries.TABLES):
            key = _key(row)
            own_keys, own_checks = keys_of(keys.get(key, "")), checks_of(checks.get(key, ""))
            tables.append(
                Table(
                    key=key,
                    engine=str(row.engine),
                    columns=columns_of(columns.get(key, ""), own_checks),
                    keys=own_keys,
                    foreign_keys=foreign.get(key, ()),
                    triggers=triggers_of(triggers.get(key, "")),
                    system_versioned=row.kind == "SYSTEM VERSIONED",
                    without_overlaps=_may_be_without_overlaps(own_keys, own_checks),
                )
            )
        return tables

    def foreign_keys_by_table(self) -> Mapping[TableKey, tuple[ForeignKey, ...]]:
        """The foreign keys of each table of the scope that has some; of tables elsewhere, which refer to one of it, the
        rules are not read."""
        scope, foreign = self._scope, _grouped(self.foreign_keys)
        if not isinstance(scope, TableKey):
            foreign = {key: rows for key, rows in foreign.items() if key.database in scope.names}
        # for this query MariaDB opens every table
        found = self.rows(queries.FOREIGN_KEY_RULES) if foreign else []
        rules = {(row.db, row.name, row.key_name): row for row in found}
        return {key: tuple(_foreign_keys(rows, rules)) for key, rows in foreign.items()}

    def _packed(self, view: PackedView) -> Mapping[TableKey, str]:
        """The rows of each table; a value whose column this server's view does not have is NULL."""
        lacks = {column for column in queries.NEWER.get(view.view, ()) if f"{view.view}.{column}" not in self._has}
        fields = {name: "NULL" if column in lacks else column for name, column in view.fields.items()}
        condition = queries.Query("{scope}", view.database, view.table).over(self._scope)
        return replace(view, fields=fields).read(condition, self._run)

    def _columns(self, packed: str, checks: Sequence[str]) -> tuple[Column, ...]:
        json_columns = _json_columns(checks)
        rows = queries.COLUMNS.unpacked(packed)
        return tuple(self._column(row, is_json=row["column_name"] in json_columns) for row in rows)

    def _column(self, row: PackedRow, *, is_json: bool) -> Column:
        kind = parse_type(str(row["type"]))
        extra = str(row["extra"]).lower()
        is_json = is_json and kind.data_type == "longtext"
        expression = expression_sql(row["expression"] or "", self._flavor) or None
        generated = _generated(extra, expression)
        if self._flavor is Flavor.MARIADB:
            default = mariadb_default(row["column_default"])
        else:
            is_binary = kind.data_type in ("binary", "varbinary")
            is_expression = "default_generated" in extra
            default = mysql_default(row["column_default"], is_expression=is_expression, is_binary=is_binary)
        is_vector = kind.data_type == "vector" and self._flavor is Flavor.MARIADB
        octets = row["octets"] if is_vector or sql_type(kind.data_type).values is STRING else None
        return Column(
            name=str(row["column_name"]),
            ordinal=int(str(row["ordinal"])),
            data_type="json" if is_json else kind.data_type,
            unsigned=kind.unsigned,
            length=kind.length,
            octets=None if octets is None else int(octets),
            precision=kind.precision,
            scale=kind.scale,
            fsp=kind.fsp,
            charset=charset_name(row["charset"]),
            collation=collation_name(row["collation"]),
            members=kind.members,
            nullable=row["nullable"] == "YES",
            generated=generated,
            expression=None if generated is None else expression,
            default=default,
            on_update="on update" in extra,
            auto_increment="auto_increment" in extra,
            invisible="invisible" in extra,
            compressed=kind.compressed,
        )


def _known_columns(connection: Connection) -> frozenset[str]:
    """The columns of this server's information_schema views, which differ between versions."""
    return frozenset(f"{row[0]}.{row[1]}".lower() for row in connection.execute(text(queries.CATALOG_COLUMNS)))


def _databases(connection: Connection, wanted: Collection[str] | None) -> frozenset[str]:
    if wanted is not None and not wanted:
        return frozenset()
    rows = connection.execute(text("SELECT schema_name FROM information_schema.schemata"))
    # MariaDB shows each folder of its data directory (lost+found) as a database of a name that is_system knows
    present = frozenset(name for row in rows if not is_system(name := str(row[0])))
    return present if wanted is None else present & frozenset(wanted)


def _collations(connection: Connection, flavor: Flavor, number: tuple[int, int, int]) -> frozenset[str]:
    return _spelled(tuple(read_names(connection, queries.COLLATIONS, column_of_collations(flavor, number))))


@functools.lru_cache(maxsize=4)
def _spelled(collations: tuple[str, ...]) -> frozenset[str]:
    """The names of a server's collations in one spelling: a window asks three times, and MariaDB has 1,242."""
    return frozenset(name for name in map(collation_name, collations) if name is not None)


def _key(row: Row[Any]) -> TableKey:
    return TableKey(row.db, row.name)


def _grouped(rows: _Rows) -> Mapping[TableKey, _Rows]:
    grouped: dict[TableKey, _Rows] = {}
    for (database, name), found in itertools.groupby(rows, key=lambda row: (row.db, row.name)):
        grouped.setdefault(TableKey(database, name), []).extend(found)
    return grouped


def _json_columns(checks: Sequence[str]) -> frozenset[str]:
    """MariaDB's JSON columns: LONGTEXT columns with the check ``json_valid(`column`)``."""
    matches = (_JSON_VALID.fullmatch(clause) for clause in checks)
    return frozenset(_name(match[1]) for match in matches if match is not None)


def _name(quoted: str) -> str:
    return quoted.replace("``", "`")


def _generated(extra: str, expression: str | None) -> Generated | None:
    if expression in ("ROW START", "ROW END"):
        return Generated.ROW_START if expression == "ROW START" else Generated.ROW_END
    if "virtual generated" in extra:
        return Generated.VIRTUAL
    return Generated.STORED if "stored generated" in extra or "persistent" in extra else None


def _triggers(packed: str) -> tuple[Trigger, ...]:
    rows = queries.TRIGGERS.unpacked(packed)
    return tuple(Trigger(str(row["trigger_name"]), str(row["timing"]), str(row["event"])) for row in rows)


def _checks(packed: str) -> tuple[str, ...]:
    return tuple(str(row["clause"]) for row in queries.CHECKS.unpacked(packed))


def _keys(packed: str) -> tuple[Key, ...]:
    grouped: dict[str, list[PackedRow]] = defaultdict(list)
    for row in queries.KEYS.unpacked(packed):
        grouped[str(row["key_name"])].append(row)
    return tuple(
        Key(
            name=name,
            unique=parts[0]["non_unique"] == "0",
            primary=name == "PRIMARY",
            columns=tuple(
                KeyColumn(
                    name=part["column_name"],
                    prefix=None if part["prefix"] is None else int(part["prefix"]),
                    descending=part["direction"] == "D",
                    # MariaDB has no keys over expressions
                    expression=None if part["expression"] is None else expression_sql(part["expression"], Flavor.MYSQL),
                )
                for part in parts
            ),
            kind=str(parts[0]["kind"]),
        )
        for name, parts in sorted(grouped.items())
    )


def _foreign_keys(rows: _Rows, rules: Mapping[tuple[str, str, str], Row[Any]]) -> list[ForeignKey]:
    grouped: dict[str, _Rows] = defaultdict(list)
    for row in rows:
        grouped[row.key_name].append(row)
    found = []
    for name, parts in sorted(grouped.items()):
        rule = rules.get((parts[0].db, parts[0].name, name))
        if rule is None:
            raise PrecheckError(
                f"foreign key {name} of {parts[0].db}.{parts[0].name}: expected its ON UPDATE and ON DELETE, "
                "found an account that may not see them: MariaDB hides them from one that has SELECT alone. "
                "GRANT TRIGGER ON *.* TO the account (docs/accounts.md)"
            )
        found.append(
            ForeignKey(
                name=name,
                columns=tuple(part.column_name for part in parts),
                parent=TableKey(parts[0].parent_db, parts[0].parent),
                parent_columns=tuple(part.parent_column for part in parts),
                on_update=_rule(rule.on_update),
                on_delete=_rule(rule.on_delete),
            )
        )
    return found


def _rule(rule: str) -> str:
    return "RESTRICT" if rule == "NO ACTION" else rule


def _may_be_without_overlaps(keys: tuple[Key, ...], checks: Sequence[str]) -> bool:
    """Whether a unique key may be WITHOUT OVERLAPS.

    Before 11.4 MariaDB shows neither the period nor the clause in information_schema, but it shows the period's check
    ``start < end`` and, as the key's last two parts, end and start. A table with both by chance is only not reduced.
    """
    matches = (_BEFORE.fullmatch(clause) for clause in checks)
    periods = [(_name(match[1]), _name(match[2])) for match in matches if match is not None]
    if not periods:
        return False
    ends = [tuple(part.name for part in key.columns[-2:]) for key in keys if key.unique]
    return any((end, start) in ends for start, end in periods)


_JSON_VALID: Final = re.compile(r"json_valid\(`((?:[^`]|``)+)`\)", re.IGNORECASE)
_BEFORE: Final = re.compile(r"`((?:[^`]|``)+)` < `((?:[^`]|``)+)`")
