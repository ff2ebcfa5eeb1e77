"""Changes of definitions that a DBA's day has besides those of ``definitions``: keys that become others, checks, tables
that refer to themselves, periods, partitions that come and go, triggers of several statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lab.histories.values import is_keyless, is_long, is_text, number
from lab.histories.world import Column, Table, World, quoted

Script = list[str]


def _parts(table: Table) -> list[str]:
    """Columns that a key can have, as key parts."""
    return [
        f"{quoted(column.name)}(5)" if is_long(column.kind) else quoted(column.name)
        for column in table.plain
        if not is_keyless(column.kind)
    ]


def _other_key(world: World) -> Script:
    """The primary key becomes another one, by columns, type or place: rows before and behind have different keys."""
    dice, table = world.dice, world.table()
    head, count = f"ALTER TABLE {table.full}", world.number()
    parts = _parts(table)
    one = dice.choice(parts) if parts else "`id`"
    auto = " AUTO_INCREMENT" if table.auto else ""
    choices = [
        f"MODIFY `id` BIGINT NOT NULL{auto}",
        f"MODIFY `id` SMALLINT NOT NULL{auto}",
        f"MODIFY `id` INT NOT NULL{auto} AFTER {quoted(table.columns[-1].name)}",
        f"MODIFY `id` INT NOT NULL{auto} FIRST",
        f"DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, {one})",
        f"DROP PRIMARY KEY, ADD PRIMARY KEY ({one}, `id`)",
        f"ADD PRIMARY KEY (`id`, {one})",
        f"ADD UNIQUE KEY `u{count}` ({one})",
        f"ADD UNIQUE KEY `u{count}` ({one}, `id`)",
        "DROP PRIMARY KEY",
        "DROP KEY `by_id`, ADD PRIMARY KEY (`id`)",
        "DROP KEY `k0`, DROP KEY `k1`",
    ]
    if not table.auto:
        choices.append("MODIFY `id` VARCHAR(20) NOT NULL")
    if world.is_mysql:
        choices += ["ALTER INDEX `k0` INVISIBLE", "ALTER COLUMN `id` SET INVISIBLE", "ALTER COLUMN `id` SET VISIBLE"]
    else:
        choices += ["ALTER INDEX `k0` IGNORED", f"MODIFY `id` INT NOT NULL{auto} INVISIBLE"]
    return [f"{head} {dice.choice(choices)}"]


def _check(world: World) -> Script:
    dice, table, count = world.dice, world.table(), world.number()
    head = f"ALTER TABLE {table.full}"
    script = [f"{head} ADD CONSTRAINT `ck{count}` CHECK (`id` {dice.choice(('< 100', '<> 3', '> -1000'))})"]
    script.append(f"INSERT INTO {table.full} (`id`) VALUES ({number(dice)}), (150)")
    if world.is_mysql and dice.one_in(2):
        script.append(f"{head} ALTER CHECK `ck{count}` NOT ENFORCED")
    if dice.one_in(2):
        script += [f"{head} DROP CONSTRAINT `ck{count}`", f"UPDATE {table.full} SET `id` = `id` + 100 WHERE `id` = 3"]
    return script


def _online(world: World) -> Script:
    """DDL that the servers make in place, while rows are written before and behind it."""
    dice, table, count = world.dice, world.table(), world.number()
    how = dice.choice((", ALGORITHM=INSTANT", ", ALGORITHM=INPLACE, LOCK=NONE", ", ALGORITHM=COPY", ""))
    column = Column(f"w{count}", "INT")
    choices = [f"ADD COLUMN `w{count}` INT NOT NULL DEFAULT {number(dice)}{how}"] * 2
    texts = [each for each in table.plain if is_text(each.kind)]
    if texts:
        choices.append(f"ADD FULLTEXT KEY `ft{count}` ({quoted(texts[0].name)})")
        kept = "NOT NULL" if "NOT NULL" in texts[0].extra else ""
        choices.append(f"MODIFY {quoted(texts[0].name)} {texts[0].kind} {kept} FIRST{how}")
    stored = f"`w{count}` BIGINT AS ({'7' if table.auto else '`id` * 2'}) {dice.choice(('STORED', 'VIRTUAL'))}"
    choices.append(f"ADD COLUMN {stored}, ADD {dice.choice(('KEY', 'UNIQUE KEY'))} `wk{count}` (`w{count}`)")
    chosen = dice.choice(choices)
    if chosen.startswith("ADD COLUMN") and " AS " not in chosen:
        world.swap(table, replace(table, columns=(*table.columns, column)))
    row = f"INSERT INTO {table.full} (`id`) VALUES ({number(dice)})"
    return [row, f"ALTER TABLE {table.full} {chosen}", row, f"UPDATE {table.full} SET `id` = `id` + 40 WHERE `id` = 5"]


def _tree(world: World) -> Script:
    """A table whose rows refer to rows of its own, and another one that refers to it by a key that is not primary."""
    dice, count = world.dice, world.number()
    action = dice.choice(("ON DELETE CASCADE", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE RESTRICT"))
    columns = (Column("id", "INT", "NOT NULL"), Column("ref", "INT"), Column("code", "INT"))
    keys = ("PRIMARY KEY (`id`)", "UNIQUE KEY `by_code` (`code`)")
    tree = Table(world.database(), f"tree{count}", columns, keys, id_is_key=True, has_foreign_keys=True)
    self = f"FOREIGN KEY (`ref`) REFERENCES {tree.full} (`id`) {action}"
    tree = replace(tree, keys=(*keys, self))
    leaf_columns = (Column("id", "INT", "NOT NULL"), Column("code", "INT"), Column("ref", "INT"))
    leaf_action = dice.choice(("ON UPDATE CASCADE ON DELETE SET NULL", "ON DELETE CASCADE ON UPDATE CASCADE"))
    other = f"FOREIGN KEY (`code`) REFERENCES {tree.full} (`code`) {leaf_action}"
    leaf = Table(
        world.database(), f"leaf{count}", leaf_columns, ("PRIMARY KEY (`id`)", other), True, has_foreign_keys=True
    )
    world.tables += [tree, leaf]
    return [
        tree.create(),
        leaf.create(),
        f"INSERT INTO {tree.full} VALUES (1, NULL, 10), (2, 1, 20), (3, 2, 30), (4, 2, NULL), (5, 5, 50)",
        f"INSERT INTO {leaf.full} VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, NULL, 4), (5, 50, NULL)",
        "BEGIN",
        f"UPDATE {tree.full} SET `code` = `code` + 1 WHERE `id` = {number(dice)}",
        f"INSERT INTO {tree.full} VALUES (6, 3, 60), (7, 6, 70)",
        dice.choice((f"DELETE FROM {tree.full} WHERE `id` = 2", f"DELETE FROM {tree.full} WHERE `id` = 3")),
        "COMMIT",
        f"REPLACE INTO {tree.full} VALUES ({number(dice)}, NULL, 20)",
    ]


def _computed_key(world: World) -> Script:
    """A generated column in the primary key, on MariaDB in a unique key: what the log has of it differs."""
    dice, count = world.dice, world.number()
    computed = Column("g", "INT", "NOT NULL" if world.is_mysql else "", "INT AS (`n` % 7) STORED")
    key = "PRIMARY KEY (`g`, `id`)" if world.is_mysql else "UNIQUE KEY `gk` (`g`, `id`)"
    columns = (Column("id", "INT", "NOT NULL"), Column("n", "INT"), computed)
    if dice.one_in(2):
        columns = (columns[0], computed, columns[1])
    unique = ("UNIQUE KEY `un` (`n`)",) if dice.one_in(2) else ()
    table = Table(world.database(), f"gen{count}", columns, (key, *unique))
    world.tables.append(table)
    return [
        table.create(),
        f"INSERT INTO {table.full} (`id`, `n`) VALUES (1, 3), (2, 9), (3, 10), (4, 11)",
        f"UPDATE {table.full} SET `n` = `n` + 1 ORDER BY `n` DESC",
        f"DELETE FROM {table.full} WHERE `id` = {number(dice)}",
        f"INSERT INTO {table.full} (`id`, `n`) VALUES (1, 17) ON DUPLICATE KEY UPDATE `n` = `n` + 7",
    ]


def _partitioned(world: World) -> Script:
    """A table gets partitions, gets more, loses some."""
    dice, table = world.dice, world.table()
    head = f"ALTER TABLE {table.full}"
    by = dice.choice(
        (
            "PARTITION BY LIST (`id`) (PARTITION p0 VALUES IN (1, 2, 3, 4, 5, 6, 7), PARTITION p1 VALUES IN "
            "(8, 9, 10, 11, 12, 13, 14, 0, -1))",
            "PARTITION BY RANGE (`id`) (PARTITION p0 VALUES LESS THAN (8), PARTITION p1 VALUES LESS THAN (200))",
            "PARTITION BY RANGE (`id`) SUBPARTITION BY HASH (`id`) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (8), "
            "PARTITION p1 VALUES LESS THAN (500))",
        )
    )
    more = dice.choice(
        (
            "ADD PARTITION (PARTITION p2 VALUES LESS THAN (900))",
            "ADD PARTITION (PARTITION p2 VALUES IN (31, 32, 40))",
            "DROP PARTITION p1",
            "TRUNCATE PARTITION p0",
            "REBUILD PARTITION p0",
        )
    )
    world.swap(table, replace(table, partitions=by))
    return [
        f"DELETE FROM {table.full} WHERE `id` > 14",
        f"{head} {by}",
        f"INSERT IGNORE INTO {table.full} (`id`) VALUES ({number(dice)}), (31)",
        f"{head} {more}",
        f"INSERT IGNORE INTO {table.full} (`id`) VALUES (31), (3)",
    ]


def _period(world: World) -> Script:
    """MariaDB: rows that are valid for a time, and versions with columns of their own."""
    if world.is_mysql:
        return _check(world)
    dice, count = world.dice, world.number()
    columns = [Column("id", "INT", "NOT NULL"), Column("v", "INT")]
    database = world.database()
    name = f"{quoted(database)}.`per{count}`"
    match dice.randrange(3):
        case 0:
            more = "`b` DATE, `e` DATE, PERIOD FOR app (`b`, `e`), " + dice.choice(
                ("PRIMARY KEY (`id`, app WITHOUT OVERLAPS)", "KEY (`id`)", "PRIMARY KEY (`id`, `b`)")
            )
            rows = [
                f"INSERT INTO {name} VALUES (1, 1, '2000-01-01', '2001-01-01'), (2, 1, '2000-01-01', '2002-01-01')",
                f"UPDATE {name} FOR PORTION OF app FROM '2000-03-01' TO '2000-04-01' SET v = 2",
                f"DELETE FROM {name} FOR PORTION OF app FROM '2000-10-01' TO '2001-10-01'",
            ]
        case 1:
            more = (
                "rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START, re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, "
                "PERIOD FOR SYSTEM_TIME (rs, re), PRIMARY KEY (`id`)"
            )
            rows = [f"INSERT INTO {name} (id, v) VALUES (1, 1), (2, 2)", f"UPDATE {name} SET v = v + 1"]
        case _:
            more = "PRIMARY KEY (`id`)"
            rows = [f"INSERT INTO {name} VALUES (1, 1), (2, 2)", f"UPDATE {name} SET v = 3", f"DELETE FROM {name}"]
    tail = "WITH SYSTEM VERSIONING" if "PERIOD FOR app" not in more or dice.one_in(3) else ""
    if more == "PRIMARY KEY (`id`)" and dice.one_in(2):
        tail += " PARTITION BY SYSTEM_TIME (PARTITION ph HISTORY, PARTITION pc CURRENT)"
    made = ", ".join([*(column.definition for column in columns), more])
    world.tables.append(Table(database, f"per{count}", tuple(columns), versioned=bool(tail)))
    return [f"CREATE TABLE {name} ({made}) {tail}".rstrip(), *rows, f"DELETE FROM {name} WHERE id = 1"]


def _triggers(world: World) -> Script:
    """Triggers of several statements, one behind another, that number the rows of a log in another database."""
    dice, table, count = world.dice, world.table(), world.number()
    base = f"{quoted(table.database)}.`tg{count}"
    columns = (Column("id", "INT", "NOT NULL AUTO_INCREMENT"), Column("of", "INT"), Column("n", "INT"))
    kept = Table(world.database(), f"log{count}", columns, ("PRIMARY KEY (`id`)",), id_is_key=True, auto=True)
    world.tables.append(kept)
    other = world.table()
    script = [kept.create()]
    for at, what in enumerate(dice.some(("INSERT", "UPDATE", "DELETE"), 3)):
        row = "OLD" if what == "DELETE" else "NEW"
        script.append(
            f"CREATE TRIGGER {base}{at}` AFTER {what} ON {table.full} FOR EACH ROW BEGIN "
            f"INSERT INTO {kept.full} (`of`, `n`) VALUES ({row}.`id`, {at}); "
            f"IF {row}.`id` % 2 THEN DELETE FROM {other.full} WHERE `id` = {row}.`id` + 1; END IF; END"
        )
        if dice.one_in(3):
            script.append(
                f"CREATE TRIGGER {base}{at}x` AFTER {what} ON {table.full} FOR EACH ROW PRECEDES `tg{count}{at}` "
                f"INSERT IGNORE INTO {kept.full} (`id`, `of`) VALUES ({row}.`id` + 100, {row}.`id`)"
            )
    some = f"INSERT INTO {table.full} (`id`) VALUES ({number(dice)}), ({number(dice)})"
    script += [some, f"UPDATE {table.full} SET `id` = `id` + 20 WHERE `id` = {number(dice)}"]
    if dice.one_in(3):
        script.append(f"DROP TABLE {kept.full}")
    return script


def _references(world: World) -> Script:
    """Foreign keys that come and go on tables that are there, and a parent that is emptied."""
    dice, table, other, count = world.dice, world.table(), world.table(), world.number()
    action = dice.choice(("ON DELETE CASCADE", "ON DELETE SET NULL ON UPDATE CASCADE", "ON UPDATE CASCADE"))
    script = [
        f"ALTER TABLE {table.full} ADD COLUMN `fr{count}` INT",
        f"UPDATE {table.full} SET `fr{count}` = (SELECT MIN(`id`) FROM {other.full} `o`)",
        f"ALTER TABLE {table.full} ADD CONSTRAINT `fk{count}` FOREIGN KEY (`fr{count}`) REFERENCES {other.full} (`id`) "
        f"{action}",
        f"DELETE FROM {other.full} WHERE `id` < {number(dice)}",
        f"UPDATE {other.full} SET `id` = `id` + 60 WHERE `id` < 9 ORDER BY `id` DESC",
    ]
    world.swap(table, replace(table, columns=(*table.columns, Column(f"fr{count}", "INT")), has_foreign_keys=True))
    if dice.one_in(2):
        script.append(f"ALTER TABLE {table.full} DROP FOREIGN KEY `fk{count}`")
    return script


def _numbered(world: World) -> Script:
    """MariaDB: a table whose key's default is a sequence."""
    if world.is_mysql:
        return _computed_key(world)
    count, database = world.number(), world.database()
    sequence = f"{quoted(database)}.`sq{count}`"
    world.sequences.append((database, f"sq{count}"))
    columns = (Column("id", "INT", f"NOT NULL DEFAULT NEXTVAL({sequence})"), Column("n", "INT"))
    table = Table(world.database(), f"num{count}", columns, ("PRIMARY KEY (`id`)",), id_is_key=True)
    world.tables.append(table)
    return [
        f"CREATE SEQUENCE {sequence} START {world.dice.choice((1, 30))} CACHE {world.dice.choice((0, 3))}",
        table.create(),
        f"INSERT INTO {table.full} (`n`) VALUES (1), (2), (3)",
        "BEGIN",
        f"INSERT INTO {table.full} (`n`) VALUES (LASTVAL({sequence}))",
        world.dice.choice(("ROLLBACK", "COMMIT")),
        f"INSERT INTO {table.full} (`n`) VALUES (5)",
    ]


_KINDS: Final[tuple[tuple[Callable[[World], Script], int], ...]] = (
    (_other_key, 14), (_check, 4), (_online, 10), (_tree, 7), (_computed_key, 5), (_partitioned, 4), (_period, 5),
    (_triggers, 7), (_references, 6), (_numbered, 4),
)  # fmt: skip


def daily_definition(world: World) -> Script:
    """The statements of one change of definitions."""
    makers, weights = zip(*_KINDS, strict=True)
    (chosen,) = world.dice.choices(makers, weights)
    script: Script = chosen(world)
    return script
