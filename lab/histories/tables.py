"""Tables of generated histories: every kind of key, generated and hidden columns, foreign keys, partitions."""

from __future__ import annotations

from dataclasses import replace

from lab.histories.values import VALUES, is_keyless, is_long, is_text, kinds
from lab.histories.world import Column, Table, World, quoted

_NAMES = ("t", "T", "order", "tä b", "a`b", "x.y", "tbl")


def new_table(world: World, database: str) -> Table:
    """A table that nothing refers to yet."""
    dice = world.dice
    stem = dice.choice(_NAMES) if dice.one_in(6) else "t"
    columns = [Column("id", "INT", "NOT NULL")]
    columns += [_column(world, f"c{number}") for number in range(dice.randint(1, 5))]
    table = Table(database, f"{stem}{world.number()}", tuple(columns), has_foreign_keys=False)
    table = _with_key(world, table)
    table = _with_more_keys(world, table)
    table = _with_computed(world, table)
    table = _with_foreign_key(world, table)
    return _with_options(world, table)


def _column(world: World, name: str) -> Column:
    dice = world.dice
    kind = dice.choice(kinds(world.flavor))
    extra = ""
    if dice.one_in(6):
        extra = "NOT NULL"
        if dice.one_in(2) and not is_long(kind) and not is_keyless(kind):
            extra += f" DEFAULT {_constant(kind)}"
    elif dice.one_in(8) and kind in ("INT", "VARCHAR(40)"):
        extra = "DEFAULT 5"
    elif kind == "DATETIME(6)" and dice.one_in(2):
        extra = "DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"
    if dice.one_in(12) and (not extra or "DEFAULT" in extra):
        extra += " INVISIBLE"
    return Column(name, kind, extra.strip())


def _constant(kind: str) -> str:
    return next(each for each in VALUES[kind] if "(" not in each and not each.startswith(("-0", "_", "X", "1/")))


def _part(world: World, column: Column) -> str:
    """A key part: a column or a prefix of a column."""
    if is_long(column.kind) or (is_text(column.kind) and world.dice.one_in(4)):
        return f"{quoted(column.name)}({world.dice.choice((1, 2, 5))})"
    return quoted(column.name)


def _with_key(world: World, table: Table) -> Table:
    """The table with no key, a key on ``id`` (with or without AUTO_INCREMENT), on several columns, or on another
    column, also by prefix."""
    dice = world.dice
    others = [column for column in table.plain if not is_keyless(column.kind)]
    match dice.randrange(10):
        case 0:
            return table
        case 1 | 2 | 3 | 4:
            first = replace(table.columns[0], extra="NOT NULL AUTO_INCREMENT")
            return replace(
                table, columns=(first, *table.columns[1:]), keys=("PRIMARY KEY (`id`)",), id_is_key=True, auto=True
            )
        case 5 | 6:
            return replace(table, keys=("PRIMARY KEY (`id`)",), id_is_key=True)
        case 7 if others:
            return replace(table, keys=(f"PRIMARY KEY ({_part(world, dice.choice(others))}, `id`)",))
        case 8 if others:
            return replace(table, keys=(f"PRIMARY KEY ({_part(world, dice.choice(others))})",))
        case _:
            return replace(table, keys=("UNIQUE KEY `by_id` (`id`)",), id_is_key=True)


def _with_more_keys(world: World, table: Table) -> Table:
    dice, keys = world.dice, list(table.keys)
    others = [column for column in table.plain if not is_keyless(column.kind)]
    for number in range(dice.choice((0, 0, 1, 1, 2))):
        if not others:
            break
        parts = [_part(world, column) for column in dice.some(others, 2)]
        unique = "UNIQUE KEY" if dice.one_in(2) else "KEY"
        keys.append(f"{unique} `k{number}` ({', '.join(parts)})")
    whole = [column for column in others if column.kind in ("TEXT", "BLOB")]
    if whole and not world.is_mysql and dice.one_in(3):
        # on MariaDB a HASH key
        keys.append(f"UNIQUE KEY `whole` ({quoted(whole[0].name)})")
    texts = [column for column in table.plain if column.kind == "VARCHAR(40)"]
    numbers = [column for column in table.plain if column.kind == "INT"]
    if world.is_mysql and texts and dice.one_in(4):
        keys.append(f"{dice.choice(('KEY', 'UNIQUE KEY'))} `low` ((LOWER({quoted(texts[0].name)})))")
    if world.is_mysql and numbers and dice.one_in(4):
        keys.append(f"{dice.choice(('KEY', 'UNIQUE KEY'))} `more` (({quoted(numbers[0].name)} + 1))")
    if dice.one_in(12):
        keys.append("CHECK (`id` < 1000000)")
    return replace(table, keys=tuple(keys))


def _with_computed(world: World, table: Table) -> Table:
    dice = world.dice
    if not dice.one_in(4):
        return table
    texts = [column for column in table.plain if column.kind in ("VARCHAR(40)", "VARCHAR(20) CHARACTER SET latin1")]
    stored = dice.choice(("VIRTUAL", "STORED"))
    if texts:
        made = f"VARCHAR(60) AS (UPPER({quoted(texts[0].name)})) {stored}"
    else:
        made = f"BIGINT AS (`id` % 5) {stored}" if not table.auto else f"BIGINT AS (7) {stored}"
    at = dice.randint(1, len(table.columns))
    column = Column("g", "INT", "", made)
    keys = table.keys
    if texts and dice.one_in(2):
        keys = (*keys, f"{dice.choice(('KEY', 'UNIQUE KEY'))} `by_g` (`g`)")
    return replace(table, columns=(*table.columns[:at], column, *table.columns[at:]), keys=keys)


def _with_foreign_key(world: World, table: Table) -> Table:
    dice = world.dice
    parents = [other for other in world.tables if other.id_is_key and not other.partitions and not other.versioned]
    if not parents or not dice.one_in(3):
        return table
    parent = dice.choice(parents[-4:])
    actions = "".join(
        f" ON {what} {dice.choice(('CASCADE', 'CASCADE', 'SET NULL', 'RESTRICT', 'NO ACTION'))}"
        for what in ("DELETE", "UPDATE")
        if not dice.one_in(5)
    )
    reference = f"FOREIGN KEY (`ref`) REFERENCES {parent.full} (`id`){actions}"
    if dice.one_in(3):
        reference = f"CONSTRAINT `of_{world.number()}` {reference}"
    columns = (*table.columns, Column("ref", "INT"))
    return replace(table, columns=columns, keys=(*table.keys, reference), has_foreign_keys=True)


def _with_options(world: World, table: Table) -> Table:
    dice = world.dice
    options = []
    if dice.one_in(6):
        options.append(f"DEFAULT CHARACTER SET {dice.choice(('latin1', 'utf8mb4', 'utf8mb4 COLLATE utf8mb4_bin'))}")
    if dice.one_in(10):
        options.append(f"COMMENT 'it''s {world.number()}'")
    if dice.one_in(12):
        options.append(f"ROW_FORMAT={dice.choice(('COMPACT', 'DYNAMIC', 'REDUNDANT'))}")
    partitions, versioned = "", False
    alone = table.keys and table.keys[0] == "PRIMARY KEY (`id`)" and not any("UNIQUE" in key for key in table.keys)
    if alone and not table.has_foreign_keys and not any(c.kind == "POINT" for c in table.columns) and dice.one_in(3):
        partitions = dice.choice(
            (
                "PARTITION BY HASH (`id`) PARTITIONS 3",
                "PARTITION BY KEY (`id`) PARTITIONS 2",
                "PARTITION BY RANGE (`id`) (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (20), "
                "PARTITION rest VALUES LESS THAN MAXVALUE)",
            )
        )
    elif not world.is_mysql and dice.one_in(8):
        versioned = True
        options.append("WITH SYSTEM VERSIONING")
    return replace(table, options=" ".join(options), partitions=partitions, versioned=versioned)
