"""Changes of rows that a DBA's day has besides those of ``changes``: rows that meet several unique keys, values that
change places, prepared statements, locked tables."""

from __future__ import annotations

from lab.histories.values import number, value
from lab.histories.world import Table, World, quoted


def daily_change(world: World) -> list[str]:
    """The statements of one change, which belong together."""
    dice = world.dice
    table, other = world.table(), world.table()
    match dice.randrange(12):
        case 0 | 1 | 2:
            return [_meeting(world, table)]
        case 3:
            return _swapped(world, table)
        case 4:
            return [_selected(world, table, other)]
        case 5:
            return [_common(world, table, other)]
        case 6:
            return _prepared(world, table)
        case 7:
            return _locked(world, table, other)
        case 8:
            return [_loaded(world, table)]
        case 9:
            return _saved(world, table, other)
        case 10:
            return [_moved(world, table)]
        case _:
            return [_of_family(world, table)]


def _row(world: World, table: Table) -> tuple[str, str]:
    """Column names, and one row's values."""
    dice = world.dice
    chosen = [column for column in table.plain if not dice.one_in(3)]
    names = ", ".join(["`id`", *(quoted(column.name) for column in chosen)])
    return names, ", ".join([number(dice), *(value(dice, column) for column in chosen)])


def _meeting(world: World, table: Table) -> str:
    """Rows that meet others by any of the table's unique keys, and change all of them."""
    dice = world.dice
    names, first = _row(world, table)
    rows = [f"({first})"]
    columns = [column for column in table.plain if f"{quoted(column.name)}" in names]
    for _ in range(dice.choice((0, 1, 3))):
        rows.append(f"({', '.join([number(dice), *(value(dice, column) for column in columns)])})")
    into = f"INTO {table.full} ({names}) VALUES {', '.join(rows)}"
    if dice.one_in(3):
        return f"REPLACE {into}"
    sets = [f"`id` = {dice.choice(('VALUES(`id`) + 3', '`id` + 1', number(dice)))}"] if dice.one_in(2) else []
    sets += [f"{quoted(column.name)} = VALUES({quoted(column.name)})" for column in columns]
    return f"INSERT {into} ON DUPLICATE KEY UPDATE {', '.join(sets or ['`id` = `id` + 1'])}"


def _swapped(world: World, table: Table) -> list[str]:
    """Two rows exchange their ids by a third one, or all move."""
    dice, full = world.dice, table.full
    one, two = number(dice), number(dice)
    swap = [f"UPDATE {full} SET `id` = {new} WHERE `id` = {old}" for old, new in ((one, "-9"), (two, one), ("-9", two))]
    if dice.one_in(2):
        return ["BEGIN", *swap, "COMMIT"]
    if dice.one_in(2):
        return [f"UPDATE {full} SET `id` = -`id`", f"UPDATE {full} SET `id` = 15 + `id` WHERE `id` < 0"]
    return ["BEGIN", f"DELETE FROM {full} WHERE `id` = {one}", f"INSERT INTO {full} (`id`) VALUES ({one})", "COMMIT"]


def _selected(world: World, table: Table, other: Table) -> str:
    tail = world.dice.choice(("", " ON DUPLICATE KEY UPDATE `id` = VALUES(`id`) + 70"))
    return f"INSERT INTO {table.full} (`id`) SELECT `s`.`id` FROM {other.full} `s` ORDER BY `s`.`id`{tail}"


def _common(world: World, table: Table, other: Table) -> str:
    dice = world.dice
    some = f"WITH `w` AS (SELECT `id` FROM {other.full} WHERE `id` < {number(dice)})"
    if world.is_mysql:
        return dice.choice(
            (
                f"{some} UPDATE {table.full} SET `id` = `id` + 80 WHERE `id` IN (SELECT `id` FROM `w`)",
                f"{some} DELETE FROM {table.full} WHERE `id` IN (SELECT `id` FROM `w`)",
                f"INSERT IGNORE INTO {table.full} (`id`) VALUES ROW({number(dice)}), ROW({number(dice)})",
            )
        )
    return f"INSERT IGNORE INTO {table.full} (`id`) {some} SELECT `id` + 50 FROM `w` ORDER BY `id`"


def _prepared(world: World, table: Table) -> list[str]:
    dice, key = world.dice, number(world.dice)
    said = dice.choice(
        (
            f"INSERT INTO {table.full} (`id`) VALUES (?)",
            f"DELETE FROM {table.full} WHERE `id` = ?",
            f"UPDATE {table.full} SET `id` = `id` + 90 WHERE `id` = ?",
        )
    )
    text = "'" + said.replace("'", "''") + "'"
    if not world.is_mysql and dice.one_in(2):
        return [f"EXECUTE IMMEDIATE {text} USING {key}"]
    return [f"PREPARE s1 FROM {text}", f"SET @k = {key}", "EXECUTE s1 USING @k", "DEALLOCATE PREPARE s1"]


def _locked(world: World, table: Table, other: Table) -> list[str]:
    locks = f"{table.full} WRITE" + (f", {other.full} WRITE" if other is not table else "")
    return [
        f"LOCK TABLES {locks}",
        f"DELETE FROM {table.full} WHERE `id` = {number(world.dice)}",
        f"INSERT INTO {other.full} (`id`) VALUES ({number(world.dice)})",
        "UNLOCK TABLES",
    ]


def _loaded(world: World, table: Table) -> str:
    how = world.dice.choice(("REPLACE ", "IGNORE "))
    if not table.plain:
        return f"LOAD DATA INFILE '{{files}}/rows.txt' {how}INTO TABLE {table.full} (@n) SET `id` = @n % 7"
    column = world.dice.choice(table.plain)
    return (
        f"LOAD DATA INFILE '{{files}}/rows.txt' {how}INTO TABLE {table.full} (@n) "
        f"SET `id` = @n + 1, {quoted(column.name)} = {value(world.dice, column)}"
    )


def _saved(world: World, table: Table, other: Table) -> list[str]:
    """Savepoints with one name, of which one is released, the other one taken back to."""
    dice = world.dice
    one = f"INSERT IGNORE INTO {table.full} (`id`) VALUES ({number(dice)})"
    two = f"DELETE FROM {other.full} WHERE `id` = {number(dice)}"
    return [
        "BEGIN", one, "SAVEPOINT a", two, "SAVEPOINT b", one, "SAVEPOINT a", two,
        dice.choice(("RELEASE SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b")), one,
        dice.choice(("ROLLBACK TO a", "RELEASE SAVEPOINT a", two)), dice.choice(("COMMIT", "COMMIT", "ROLLBACK")),
    ]  # fmt: skip


def _moved(world: World, table: Table) -> str:
    """Values of a column go from row to row."""
    dice = world.dice
    if not table.plain:
        return f"UPDATE {table.full} SET `id` = `id` + 1 ORDER BY `id` DESC"
    name = quoted(dice.choice(table.plain).name)
    joined = f"{table.full} `l` JOIN {table.full} `r` ON `l`.`id` = `r`.`id` + 1"
    return f"UPDATE {dice.choice(('', 'IGNORE '))}{joined} SET `l`.{name} = `r`.{name}"


def _of_family(world: World, table: Table) -> str:
    dice, key = world.dice, number(world.dice)
    insert = f"INSERT IGNORE INTO {table.full} (`id`) VALUES ({key})"
    if world.is_mysql:
        hint = dice.choice(("sql_mode = ''", "foreign_key_checks = OFF", "unique_checks = OFF"))
        return f"INSERT /*+ SET_VAR({hint}) */ IGNORE INTO {table.full} (`id`) VALUES ({key})"
    return dice.choice(
        (
            f"SET STATEMENT foreign_key_checks = 0 FOR {insert}",
            f"SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR {insert}",
            f"{insert} RETURNING `id`",
            f"DELETE FROM {table.full} WHERE `id` = {key} RETURNING `id`",
            f"/*M!100000 {insert} */",
            f"BEGIN NOT ATOMIC {insert}; DELETE FROM {table.full} WHERE `id` = {key} + 1; END",
        )
    )
