"""Statements that change rows: every shape, over one table or several, of one database or more."""

from __future__ import annotations

from lab.histories.values import is_text, number, value
from lab.histories.world import Table, World, quoted

UNSAFE_ALIKE = ("UUID()", "CONNECTION_ID()", "RAND()", "NOW(6)", "@a", "LAST_INSERT_ID()")
"""Expressions that are safe in statement format, because RAND and user variables are logged; for others the server logs
rows, unless the session's format is STATEMENT."""
_VARIABLES = ("1", "3.50", "'ä'", "NULL", "X'00ff'", "NOW(6)", "LAST_INSERT_ID()")


def change(world: World, is_statement: bool, database: str | None) -> str:
    """One statement. ``is_statement``: the session's format is STATEMENT; ``database``: its default database."""
    dice = world.dice
    table, other = world.table(), world.table()
    roll = dice.randrange(100)
    if roll < 34:
        return _insert(world, table, is_statement, database)
    if roll < 54:
        return _update(world, table, is_statement, database)
    if roll < 66:
        return _delete(world, table, database)
    if roll < 72:
        return _insert_select(world, table, other)
    if roll < 78:
        return _many_tables(world, table, other)
    if roll < 82 and world.views:
        return _through_view(world)
    if roll < 86 and world.routines:
        return _call(world, table)
    if roll < 89 and world.sequences:
        return f"SELECT NEXTVAL({_sequence(world)})"
    if roll < 92:
        return f"SET @a = {dice.choice(_VARIABLES)}"
    if roll < 94 and not world.is_mysql and table.versioned:
        return f"DELETE HISTORY FROM {table.full}"
    if roll < 96:
        how = dice.choice(("", "REPLACE ", "IGNORE "))
        return f"LOAD DATA INFILE '{{files}}/rows.txt' {how}INTO TABLE {table.full} (`id`)"
    return _insert(world, table, is_statement, database)


def _name(world: World, table: Table, database: str | None) -> str:
    return quoted(table.name) if table.database == database and world.dice.one_in(2) else table.full


def _sequence(world: World) -> str:
    return ".".join(map(quoted, world.dice.choice(world.sequences)))


def _expression(world: World, table: Table, at: int, is_statement: bool) -> str:
    """A value for a plain column: a literal or an expression of the session."""
    dice, column = world.dice, table.plain[at]
    if dice.one_in(12) and (is_text(column.kind) or column.kind in ("INT", "DOUBLE")):
        asked = UNSAFE_ALIKE[2:] if is_statement else UNSAFE_ALIKE
        return dice.choice(asked)
    return value(dice, column)


def _insert(world: World, table: Table, is_statement: bool, database: str | None) -> str:
    dice = world.dice
    plain = range(len(table.plain))
    chosen = list(plain) if dice.one_in(2) else dice.some(plain, len(plain)) if table.plain else []
    auto = table.auto and dice.one_in(2)
    names = ([] if auto else ["`id`"]) + [quoted(table.plain[at].name) for at in chosen]
    rows = []
    for _ in range(dice.choice((1, 1, 2, 4))):
        values = ([] if auto else [number(dice)]) + [_expression(world, table, at, is_statement) for at in chosen]
        rows.append(f"({', '.join(values)})")
    into = f"INTO {_name(world, table, database)} ({', '.join(names)}) VALUES {', '.join(rows)}"
    match dice.randrange(8):
        case 0:
            return f"REPLACE {into}"
        case 1:
            return f"INSERT IGNORE {into}"
        case 2 if table.plain:
            column = dice.choice(table.plain)
            again = dice.choice((value(dice, column), f"VALUES({quoted(column.name)})"))
            return f"INSERT {into} ON DUPLICATE KEY UPDATE {quoted(column.name)} = {again}"
        case _:
            return f"INSERT {into}"


def _where(world: World, table: Table) -> str:
    dice = world.dice
    match dice.randrange(8):
        case 0:
            return f"`id` % 3 = {dice.randrange(3)}"
        case 1:
            return f"`id` BETWEEN {number(dice)} AND 9"
        case 2 if table.plain:
            column = dice.choice(table.plain)
            return f"{quoted(column.name)} = {value(dice, column)}"
        case 3:
            return "1 = 1"
        case 4:
            return f"`id` IN (SELECT `id` FROM {world.table().full} `s`)"
        case _:
            return f"`id` = {number(dice)}"


def _tail(world: World, table: Table) -> str:
    """LIMIT, only with a complete order: otherwise the server chooses the rows."""
    return f" ORDER BY `id` LIMIT {world.dice.randint(1, 3)}" if table.id_is_key and world.dice.one_in(5) else ""


def _update(world: World, table: Table, is_statement: bool, database: str | None) -> str:
    dice = world.dice
    where = f"WHERE {_where(world, table)}{_tail(world, table)}"
    name = _name(world, table, database)
    if not table.plain or dice.one_in(6):
        moved = dice.choice((f"`id` + {dice.choice((1, 20, 100))}", number(dice), "-`id`"))
        order = " ORDER BY `id` DESC" if "ORDER" not in where else ""
        return f"UPDATE {dice.choice(('', '', 'IGNORE '))}{name} SET `id` = {moved} {where}{order}"
    sets = []
    for at in dice.some(range(len(table.plain)), 3):
        column = table.plain[at]
        new = _expression(world, table, at, is_statement)
        if column.kind == "JSON" and dice.one_in(2):
            new = f"JSON_SET({quoted(column.name)}, '$.a', {number(dice)})"
        elif column.kind == "INT" and dice.one_in(3):
            new = f"{quoted(column.name)} + 1"
        elif is_text(column.kind) and dice.one_in(5):
            new = f"CONCAT({quoted(column.name)}, 'x')"
        sets.append(f"{quoted(column.name)} = {new}")
    return f"UPDATE {dice.choice(('', '', '', 'IGNORE '))}{name} SET {', '.join(sets)} {where}"


def _delete(world: World, table: Table, database: str | None) -> str:
    if world.dice.one_in(20):
        return f"DELETE FROM {table.full}"
    return f"DELETE FROM {_name(world, table, database)} WHERE {_where(world, table)}{_tail(world, table)}"


def _insert_select(world: World, table: Table, other: Table) -> str:
    dice = world.dice
    how = dice.choice(("INSERT", "INSERT IGNORE", "REPLACE"))
    if table.auto and dice.one_in(2) and table.plain and other.plain:
        return (
            f"{how} INTO {table.full} ({quoted(table.plain[0].name)}) "
            f"SELECT {quoted(other.plain[0].name)} FROM {other.full} ORDER BY `id`"
        )
    return f"{how} INTO {table.full} (`id`) SELECT `id` + {dice.choice((0, 30, 60))} FROM {other.full} ORDER BY `id`"


def _many_tables(world: World, table: Table, other: Table) -> str:
    dice, key = world.dice, number(world.dice)
    if dice.one_in(2) and table.plain and other.plain:
        one, two = dice.choice(table.plain), dice.choice(other.plain)
        return (
            f"UPDATE {table.full} `l`, {other.full} `r` SET `l`.{quoted(one.name)} = {value(dice, one)}, "
            f"`r`.{quoted(two.name)} = {value(dice, two)} WHERE `l`.`id` = `r`.`id` AND `l`.`id` <= {key}"
        )
    if dice.one_in(2):
        joined = f"{table.full} `l` JOIN {other.full} `r` ON `l`.`id` = `r`.`id`"
        return f"DELETE `l`, `r` FROM {joined} WHERE `l`.`id` = {key}"
    return f"DELETE FROM `l` USING {table.full} `l`, {other.full} `r` WHERE `l`.`id` = `r`.`id` + 1"


def _through_view(world: World) -> str:
    dice = world.dice
    view = ".".join(map(quoted, dice.choice(world.views)))
    return dice.choice(
        (
            f"INSERT INTO {view} (`id`) VALUES ({number(dice)})",
            f"UPDATE {view} SET `id` = `id` + 15 WHERE `id` = {number(dice)}",
            f"DELETE FROM {view} WHERE `id` = {number(dice)}",
        )
    )


def _call(world: World, table: Table) -> str:
    kind, database, name = world.dice.choice(world.routines)
    full = f"{quoted(database)}.{quoted(name)}"
    if kind == "PROCEDURE":
        return f"CALL {full}({number(world.dice)})"
    return f"UPDATE {table.full} SET `id` = {full}(`id`) WHERE `id` = {number(world.dice)}"
