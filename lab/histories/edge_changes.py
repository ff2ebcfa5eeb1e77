"""Changes of the kinds beside which a fault of binlane stood once: files that are loaded with separators and character
sets of their own, families of tables whose children have indexed virtual columns, minimal images of sessions without
strict mode."""

from __future__ import annotations

from typing import Final

from lab.histories.values import number, value
from lab.histories.world import Column, Table, World, quoted

FILES: Final = {
    "rows.txt": b"1\n2\n5\n31\n32\n",
    "edges.csv": b'id;text\n1;"a;b"\n2;\\N\n5;"it""s"\n31;a\\nb\n32;\n',
    "edges.txt": ">1|ä|\n#\n>2|\\ä|x\n>33|'a'|\n>5|§\n".encode(),
    "edges.latin1": b"1\t\xe4\n2\t\xa7\xb5\n34\ta\\\tb\n5\t\\0\n",
    "edges.xml": b'<rows>\n<row id="1"/>\n<row id="35"><c0>2</c0></row>\n<row><field name="id">5</field></row>\n',
}
"""Files to load, by name."""
_FORMS: Final = (
    ("edges.csv", "FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\n' IGNORE 1 LINES"),
    ("edges.csv", "FIELDS TERMINATED BY ';' ENCLOSED BY '\"' ESCAPED BY ''"),
    ("edges.csv", "FIELDS TERMINATED BY X'3b' ESCAPED BY '\"' IGNORE 1 ROWS"),
    ("edges.txt", "FIELDS TERMINATED BY '|' ENCLOSED BY '\\'' LINES STARTING BY '>'"),
    ("edges.txt", "FIELDS TERMINATED BY '|' ESCAPED BY '|' LINES STARTING BY '>' TERMINATED BY '\\n'"),
    ("edges.txt", "FIELDS TERMINATED BY 'ä' LINES STARTING BY '>'"),
    ("edges.txt", "FIELDS TERMINATED BY '§' LINES TERMINATED BY '\\n>'"),
    ("edges.latin1", ""),
    ("edges.latin1", "FIELDS ESCAPED BY ''"),
    ("edges.latin1", "FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\'"),
)
_SETS: Final = ("", "", "CHARACTER SET latin1", "CHARACTER SET utf8mb4", "CHARACTER SET binary")
_MODES: Final = ("''", "'NO_BACKSLASH_ESCAPES'", "'ANSI_QUOTES'")


def edge_change(world: World, is_statement: bool) -> list[str]:
    """The statements of one change, which belong together. ``is_statement``: the session's format is STATEMENT."""
    dice = world.dice
    match dice.randrange(7):
        case 0 | 1:
            return _loaded(world, world.table())
        case 2 if not is_statement:  # as a statement it is refused
            return [f"LOAD XML INFILE '{{files}}/edges.xml' {dice.choice(('REPLACE ', 'IGNORE '))}INTO TABLE "
                    f"{world.table().full} ROWS IDENTIFIED BY '<row>'"]  # fmt: skip
        case 3:
            return _family(world)
        case 4 if world.families:
            return _mixed(world, *dice.choice(world.families))
        case _:
            return _not_strict(world, world.table())


def _loaded(world: World, table: Table) -> list[str]:
    """LOAD DATA, in half of the cases by a session with another character set or sql_mode."""
    dice = world.dice
    file, form = dice.choice(_FORMS)
    into = f"'{{files}}/{file}' {dice.choice(('REPLACE', 'IGNORE'))} INTO TABLE {table.full}"
    read = "(`id`)"
    if table.plain:
        name = quoted(dice.choice(table.plain).name)
        read = dice.choice(
            (
                f"(`id`, {name})",
                f"(`id`, @v) SET {name} = @v",
                f"(@n, @v) SET `id` = @n + 2, {name} = CONCAT('ä', @v)",
                f"(`id`, {name}, @rest)",
            )
        )
    load = " ".join(filter(None, ("LOAD DATA INFILE", into, dice.choice(_SETS), form, read)))
    match dice.randrange(4):
        case 0:
            return ["SET NAMES latin1", load, "SET NAMES utf8mb4"]
        case 1:
            return [f"SET SESSION sql_mode = {dice.choice(_MODES)}", load, "SET SESSION sql_mode = DEFAULT"]
        case _:
            return [load]


def _family(world: World) -> list[str]:
    """A parent, and a child with an indexed virtual column that follows it by a foreign key."""
    dice, database = world.dice, world.database()
    parent = Table(
        database, f"parent{world.number()}", (Column("id", "INT", "NOT NULL"), Column("c0", "VARCHAR(40)")),
        ("PRIMARY KEY (`id`)",), id_is_key=True,
    )  # fmt: skip
    actions = " ".join(f"ON {what} {dice.choice(('CASCADE', 'SET NULL'))}" for what in ("DELETE", "UPDATE"))
    made, kind = dice.choice((("`ref` + 1", "BIGINT"), ("UPPER(`c0`)", "VARCHAR(60)")))
    # where a server refuses the one over ``ref``, later statements have no child
    made_column = Column("g", "INT", "", f"{kind} AS ({made}) VIRTUAL")
    child = Table(
        dice.choice((database, world.database())), f"child{world.number()}",
        (Column("id", "INT", "NOT NULL"), Column("c0", "VARCHAR(40)"), Column("ref", "INT"), made_column),
        (
            dice.choice(("PRIMARY KEY (`id`)", "KEY (`id`)")),
            f"{dice.choice(('KEY', 'UNIQUE KEY'))} `by_g` (`g`)",
            f"FOREIGN KEY (`ref`) REFERENCES {parent.full} (`id`) {actions}",
        ),
        id_is_key=True, has_foreign_keys=True,
    )  # fmt: skip
    world.tables += [parent, child]
    world.families.append((parent, child))
    rows = ", ".join(f"({key}, 'p{key}')" for key in range(1, 8))
    children = ", ".join(f"({key}, 'c{key}', {1 + key % 7})" for key in range(1, 12))
    return [
        parent.create(), child.create(), f"INSERT INTO {parent.full} (`id`, `c0`) VALUES {rows}",
        f"INSERT IGNORE INTO {child.full} (`id`, `c0`, `ref`) VALUES {children}",
    ]  # fmt: skip


def _mixed(world: World, parent: Table, child: Table) -> list[str]:
    """Changes of every kind to a family in one transaction, in any order."""
    dice = world.dice
    key, other = number(dice), number(dice)
    changes = [
        f"INSERT IGNORE INTO {parent.full} (`id`) VALUES ({key}), ({other} + 20)",
        f"INSERT IGNORE INTO {child.full} (`id`, `c0`, `ref`) VALUES ({other}, 'n', {key})",
        f"UPDATE {child.full} SET `c0` = CONCAT(`c0`, 'x') WHERE `ref` = {other}",
        f"UPDATE IGNORE {child.full} SET `ref` = {key} WHERE `id` = {other} ORDER BY `id`",
        f"DELETE FROM {parent.full} WHERE `id` = {key}",
        f"UPDATE IGNORE {parent.full} SET `id` = `id` + 40 WHERE `id` = {other} ORDER BY `id`",
        f"REPLACE INTO {parent.full} (`id`, `c0`) VALUES ({other}, 'again')",
        f"DELETE FROM {child.full} WHERE `id` > {key}",
    ]
    chosen = dice.some(changes, len(changes))
    return ["BEGIN", *chosen, "COMMIT"] if dice.one_in(2) else chosen


def _not_strict(world: World, table: Table) -> list[str]:
    """Rows with the columns that the log's images leave out, and values that the server bends to their columns."""
    dice = world.dice
    image = dice.choice(("MINIMAL", "MINIMAL", "NOBLOB", "FULL"))
    changes = [
        f"INSERT INTO {table.full} (`id`) VALUES ({number(dice)}), ({number(dice)} + 14)",
        f"DELETE FROM {table.full} WHERE `id` = {number(dice)}",
        f"REPLACE INTO {table.full} (`id`) VALUES ({number(dice)})",
    ]
    for column in table.plain:
        bent = dice.choice(("NULL", "'x'", "-1", "''", value(dice, column)))
        changes.append(f"UPDATE {table.full} SET {quoted(column.name)} = {bent} WHERE `id` <= {number(dice)}")
        changes.append(
            f"INSERT INTO {table.full} (`id`, {quoted(column.name)}) VALUES ({number(dice)}, {bent}), (15, {bent})"
        )
    chosen = dice.some(changes, 4)
    if dice.one_in(2):
        chosen = ["BEGIN", *chosen, "COMMIT"]
    mode = dice.choice(("''", "''", "'NO_ZERO_DATE'", "'NO_AUTO_VALUE_ON_ZERO'"))
    begin = [f"SET SESSION sql_mode = {mode}", f"SET SESSION binlog_row_image = '{image}'"]
    end = ["SET SESSION sql_mode = DEFAULT", "SET SESSION binlog_row_image = 'FULL'"]
    return [*begin, *chosen, *(end if dice.one_in(2) else end[:1])]
