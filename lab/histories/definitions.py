"""Statements that change definitions: each function gives the statements of one session, and updates the ``World``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lab.histories.tables import new_table
from lab.histories.values import number
from lab.histories.world import Column, Table, World, quoted

Script = list[str]


def _alter_columns(world: World) -> Script:
    dice, table = world.dice, world.table()
    count = world.number()
    head = f"ALTER TABLE {table.full}"
    match dice.randrange(7):
        case 0 | 1:
            column = Column(f"a{count}", dice.choice(("INT", "VARCHAR(40)", "DATETIME")))
            place = dice.choice(("", " FIRST", f" AFTER {quoted(table.columns[-1].name)}"))
            if place != " FIRST":
                world.swap(table, replace(table, columns=(*table.columns, column)))
            return [f"{head} ADD COLUMN {column.definition}{place}"]
        case 2 if len(table.plain) > 1:
            gone = table.plain[-1]
            world.swap(table, replace(table, columns=tuple(column for column in table.columns if column != gone)))
            return [f"{head} DROP COLUMN {quoted(gone.name)}"]
        case 3 if table.plain:
            old = table.plain[-1]
            _with_column(world, table, old, replace(old, name=f"r{count}"))
            return [f"{head} RENAME COLUMN {quoted(old.name)} TO `r{count}`"]
        case 4 if table.plain:
            old = table.plain[0]
            kind = {"INT": "BIGINT UNSIGNED", "VARCHAR(40)": "VARCHAR(300) CHARACTER SET utf8mb4"}.get(old.kind, "TEXT")
            new = replace(old, kind=kind, extra="")
            _with_column(world, table, old, new)
            return [f"{head} MODIFY COLUMN {new.definition}"]
        case 5 if table.plain:
            return [f"{head} ALTER COLUMN {quoted(table.plain[0].name)} SET DEFAULT '7'"]
        case _:
            return [f"{head} ADD COLUMN `x{count}` INT DEFAULT {number(dice)}, ADD KEY `kx{count}` (`x{count}`)"]


def _with_column(world: World, table: Table, old: Column, new: Column) -> None:
    world.swap(table, replace(table, columns=tuple(new if column == old else column for column in table.columns)))


def _alter_table(world: World) -> Script:
    dice, table, other = world.dice, world.table(), world.table()
    count = world.number()
    choices = [
        f"ADD {dice.choice(('KEY', 'UNIQUE KEY'))} `n{count}` (`id`)",
        "DROP KEY `k0`",
        f"AUTO_INCREMENT = {dice.choice((50, 100, 3))}",
        f"CONVERT TO CHARACTER SET {dice.choice(('utf8mb4', 'latin1'))}",
        f"DEFAULT CHARACTER SET {dice.choice(('utf8mb4', 'latin1'))}, COMMENT 'c{count}'",
        "ENGINE=InnoDB",
        "FORCE",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`)",
        f"ADD FOREIGN KEY (`id`) REFERENCES {other.full} (`id`) ON DELETE CASCADE",
    ]
    if table.partitions:
        choices += [
            "TRUNCATE PARTITION p0",
            "DROP PARTITION p0",
            "COALESCE PARTITION 1",
            "REMOVE PARTITIONING",
            "REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (12), PARTITION p2 VALUES LESS THAN (20))",
        ]
    if not world.is_mysql:
        choices += ["ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING"]
    return [f"ALTER TABLE {table.full} {dice.choice(choices)}"]


def _create(world: World) -> Script:
    table = new_table(world, world.database())
    world.tables.append(table)
    how = world.dice.choice(("CREATE TABLE", "CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    return [table.create(how)]


def _create_like(world: World) -> Script:
    table = world.table()
    copy = replace(table.called(world.database(), f"like{world.number()}"), has_foreign_keys=False)
    world.tables.append(copy)
    return [f"CREATE TABLE {copy.full} LIKE {table.full}"]


def _create_select(world: World) -> Script:
    table, dice = world.table(), world.dice
    columns = tuple(replace(column, computed="", extra="") for column in table.columns if "INVIS" not in column.extra)
    copy = Table(world.database(), f"copy{world.number()}", columns)
    world.tables.append(copy)
    keyed = dice.choice(("", "", "(PRIMARY KEY (`id`)) IGNORE ", "(`more` INT NOT NULL AUTO_INCREMENT PRIMARY KEY) "))
    names = ", ".join(quoted(column.name) for column in columns)
    if world.is_mysql:
        keyed = keyed.replace("IGNORE ", "")
    how = "CREATE TABLE" if world.is_mysql or dice.one_in(2) else "CREATE OR REPLACE TABLE"
    return [f"{how} {copy.full} {keyed}SELECT {names} FROM {table.full}"]


def _drop(world: World) -> Script:
    dice, table = world.dice, world.table()
    if len(world.tables) < 4:
        return _create(world)
    world.swap(table)
    if dice.one_in(3):
        # drop and create again
        again = new_table(world, table.database).called(table.database, table.name)
        world.tables.append(again)
        return [f"DROP TABLE {table.full}", again.create()]
    other = dice.choice(world.tables)
    if dice.one_in(3):
        return [f"DROP TABLE IF EXISTS {table.full}, {quoted(table.database)}.`never`"]
    if dice.one_in(4):
        world.swap(other)
        return [f"DROP TABLE {table.full}, {other.full}"]
    return [f"DROP TABLE {table.full}"]


def _rename(world: World) -> Script:
    dice, table = world.dice, world.table()
    moved = table.called(world.database(), f"m{world.number()}" if dice.one_in(2) else table.name)
    if moved.full == table.full:
        moved = table.called(table.database, f"m{world.number()}")
    world.swap(table, moved)
    if dice.one_in(2):
        return [f"ALTER TABLE {table.full} RENAME TO {moved.full}"]
    return [f"RENAME TABLE {table.full} TO {moved.full}"]


def _exchange_names(world: World) -> Script:
    dice = world.dice
    if len(world.tables) < 2:
        return _create(world)
    one, two = dice.sample(world.tables, 2)
    free = f"{quoted(world.database())}.`free{world.number()}`"
    world.swap(one, two.called(one.database, one.name))
    world.swap(two, one.called(two.database, two.name))
    return [f"RENAME TABLE {one.full} TO {free}, {two.full} TO {one.full}, {free} TO {two.full}"]


def _exchange_partition(world: World) -> Script:
    parted = [table for table in world.tables if "p0" in table.partitions]
    if not parted:
        return _create(world)
    table = world.dice.choice(parted)
    other = replace(table.called(world.database(), f"ex{world.number()}"), partitions="")
    world.tables.append(other)
    return [
        f"CREATE TABLE {other.full} LIKE {table.full}",
        f"ALTER TABLE {other.full} REMOVE PARTITIONING",
        f"INSERT INTO {other.full} (`id`) VALUES (1), (3)",
        f"ALTER TABLE {table.full} EXCHANGE PARTITION p0 WITH TABLE {other.full}",
        f"INSERT INTO {other.full} (`id`) VALUES (2)",
    ]


def _online_change(world: World) -> Script:
    """An online schema change, like gh-ost or (with triggers) pt-online-schema-change: a copy gets the table's name."""
    dice, table = world.dice, world.table()
    count = world.number()
    shadow = replace(table.called(table.database, f"_{table.name}_gho"), has_foreign_keys=False)
    old = table.called(table.database, f"_{table.name}_del{count}")
    names = ", ".join(quoted(column.name) for column in (table.columns[0], *table.plain))
    script = [f"CREATE TABLE {shadow.full} LIKE {table.full}", f"ALTER TABLE {shadow.full} ADD COLUMN `o{count}` INT"]
    triggers = []
    if dice.one_in(2):
        base = f"{quoted(table.database)}.`osc{count}"
        triggers = [f"{base}_{what}`" for what in ("ins", "del")]
        script += [
            f"CREATE TRIGGER {triggers[0]} AFTER INSERT ON {table.full} FOR EACH ROW "
            f"REPLACE INTO {shadow.full} (`id`) VALUES (NEW.`id`)",
            f"CREATE TRIGGER {triggers[1]} AFTER DELETE ON {table.full} FOR EACH ROW "
            f"DELETE IGNORE FROM {shadow.full} WHERE `id` <=> OLD.`id`",
            f"INSERT INTO {table.full} (`id`) VALUES ({number(dice)})",
        ]
    script += [
        f"INSERT IGNORE INTO {shadow.full} ({names}) SELECT {names} FROM {table.full} ORDER BY `id` LOCK IN SHARE MODE",
        f"UPDATE {shadow.full} SET `o{count}` = {number(dice)} WHERE `id` < 5",
        f"DELETE FROM {table.full} WHERE `id` = {number(dice)}",
        f"RENAME TABLE {table.full} TO {old.full}, {shadow.full} TO {table.full}",
        f"INSERT INTO {table.full} (`id`, `o{count}`) VALUES ({number(dice)}, 1)",
        *(f"DROP TRIGGER IF EXISTS {trigger}" for trigger in triggers),
    ]
    new = replace(shadow, columns=(*shadow.columns, Column(f"o{count}", "INT")))
    world.swap(table, new.called(table.database, table.name))
    if dice.one_in(2):
        script.append(f"DROP TABLE {old.full}")
    return script


def _truncate(world: World) -> Script:
    return [f"TRUNCATE TABLE {world.table().full}"]


def _view(world: World) -> Script:
    dice, table, other = world.dice, world.table(), world.table()
    if world.views and dice.one_in(4):
        view = world.views.pop()
        return [f"DROP VIEW {quoted(view[0])}.{quoted(view[1])}"]
    database, name = world.database(), f"v{world.number()}"
    world.views.append((database, name))
    how = dice.choice(("CREATE VIEW", "CREATE OR REPLACE VIEW", "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW"))
    body = f"SELECT `id` FROM {table.full}"
    if dice.one_in(4):
        body = f"SELECT `l`.`id` FROM {table.full} `l` JOIN {other.full} `r` ON `l`.`id` = `r`.`id`"
    return [f"{how} {quoted(database)}.{quoted(name)} AS {body}"]


def _trigger(world: World) -> Script:
    dice, table, other = world.dice, world.table(), world.table()
    if world.triggers and dice.one_in(3):
        database, name = world.triggers.pop()
        return [f"DROP TRIGGER {quoted(database)}.{quoted(name)}"]
    name = f"tr{world.number()}"
    world.triggers.append((table.database, name))
    when, what = dice.choice(("BEFORE", "AFTER")), dice.choice(("INSERT", "UPDATE", "DELETE"))
    row = "OLD" if what == "DELETE" else "NEW"
    if when == "BEFORE" and what != "DELETE" and table.plain and dice.one_in(2):
        first = table.plain[0]
        body = f"SET NEW.{quoted(first.name)} = COALESCE(NEW.{quoted(first.name)}, '1')"
    else:
        body = dice.choice(
            (
                f"INSERT IGNORE INTO {other.full} (`id`) VALUES ({row}.`id` + 40)",
                f"DELETE FROM {other.full} WHERE `id` = {row}.`id`",
                f"UPDATE {other.full} SET `id` = `id` + 200 WHERE `id` = {row}.`id`",
            )
        )
    return [f"CREATE TRIGGER {quoted(table.database)}.{quoted(name)} {when} {what} ON {table.full} FOR EACH ROW {body}"]


def _routine(world: World) -> Script:
    dice, table, other = world.dice, world.table(), world.table()
    if world.routines and dice.one_in(4):
        kind, database, name = world.routines.pop()
        return [f"DROP {kind} {quoted(database)}.{quoted(name)}"]
    database, name = world.database(), f"r{world.number()}"
    full = f"{quoted(database)}.{quoted(name)}"
    if dice.one_in(2):
        world.routines.append(("FUNCTION", database, name))
        return [f"CREATE FUNCTION {full}(n INT) RETURNS INT DETERMINISTIC RETURN n + 1"]
    world.routines.append(("PROCEDURE", database, name))
    return [
        f"CREATE PROCEDURE {full}(n INT) BEGIN DECLARE x INT DEFAULT 2; INSERT IGNORE INTO {table.full} (`id`) "
        f"VALUES (n + 20); UPDATE {other.full} SET `id` = `id` + x WHERE `id` = n; END"
    ]


def _event(world: World) -> Script:
    if world.events and world.dice.one_in(3):
        database, name = world.events.pop()
        return [f"DROP EVENT {quoted(database)}.{quoted(name)}"]
    if world.events and world.dice.one_in(2):
        database, name = world.events[-1]
        return [f"ALTER EVENT {quoted(database)}.{quoted(name)} COMMENT 'c{world.number()}'"]
    database, name = world.database(), f"e{world.number()}"
    world.events.append((database, name))
    table = world.table()
    return [
        f"CREATE EVENT {quoted(database)}.{quoted(name)} ON SCHEDULE EVERY 1 YEAR STARTS '2035-01-01 00:00:00' "
        f"DO DELETE FROM {table.full} WHERE `id` = 1"
    ]


def _sequence(world: World) -> Script:
    if world.is_mysql:
        return _alter_table(world)
    dice = world.dice
    if world.sequences and dice.one_in(2):
        full = ".".join(map(quoted, world.sequences[-1]))
        return [dice.choice((f"ALTER SEQUENCE {full} RESTART 50", f"SELECT SETVAL({full}, 300)"))]
    database, name = world.database(), f"s{world.number()}"
    world.sequences.append((database, name))
    return [f"CREATE SEQUENCE {quoted(database)}.{quoted(name)} INCREMENT BY {dice.choice((1, 3))} CACHE 5"]


def _database(world: World) -> Script:
    dice, database = world.dice, world.database()
    name = quoted(database)
    match dice.randrange(5):
        case 0 | 1 | 2:
            charset = dice.choice(("utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_bin"))
            return [f"ALTER DATABASE {name} CHARACTER SET {charset}"]
        case 3:
            new = f"n{world.number()}"
            world.databases.append(new)
            return [f"CREATE DATABASE {quoted(new)} CHARACTER SET {dice.choice(('latin1', 'utf8mb4'))}"]
        case _ if len(world.databases) > 2:
            world.databases.remove(database)
            world.tables = [table for table in world.tables if table.database != database] or world.tables
            again = [f"CREATE DATABASE {name}"] if dice.one_in(2) else []
            if again:
                world.databases.append(database)
            return [f"DROP DATABASE {name}", *again]
        case _:
            return [f"CREATE DATABASE IF NOT EXISTS {name}"]


def _upkeep(world: World) -> Script:
    what = world.dice.choice(("ANALYZE TABLE", "OPTIMIZE TABLE", "CHECK TABLE", "FLUSH TABLE"))
    return [f"{what} {world.table().full}"]


_KINDS: Final[tuple[tuple[Callable[[World], Script], int], ...]] = (
    (_alter_columns, 12), (_alter_table, 14), (_create, 9), (_create_like, 5), (_create_select, 6), (_drop, 6),
    (_rename, 9), (_exchange_names, 4), (_exchange_partition, 4), (_online_change, 6), (_truncate, 4), (_view, 6),
    (_trigger, 6), (_routine, 4), (_event, 2), (_sequence, 4), (_database, 5), (_upkeep, 3),
)  # fmt: skip


def definition(world: World) -> Script:
    """The statements of one change of definitions."""
    makers, weights = zip(*_KINDS, strict=True)
    (chosen,) = world.dice.choices(makers, weights)
    return list(chosen(world))
