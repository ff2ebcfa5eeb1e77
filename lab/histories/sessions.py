"""Sessions of generated histories: transactions, XA, temporary tables, and session variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.model import Flavor
from lab.histories.changes import change
from lab.histories.daily_changes import daily_change
from lab.histories.daily_definitions import daily_definition
from lab.histories.definitions import definition
from lab.histories.edge_changes import edge_change
from lab.histories.history import DISCONNECT
from lab.histories.values import number
from lab.histories.world import World, quoted

_MODES: Final = (
    "''", "DEFAULT", "'STRICT_TRANS_TABLES'", "'ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES'", "'PIPES_AS_CONCAT'",
    "'NO_AUTO_VALUE_ON_ZERO'", "'PAD_CHAR_TO_FULL_LENGTH'", "'ALLOW_INVALID_DATES'",
)  # fmt: skip
_SETTINGS: Final = (
    "time_zone = '+05:30'", "time_zone = '-08:00'", "foreign_key_checks = 0", "foreign_key_checks = 1",
    "unique_checks = 0", "auto_increment_increment = 3", "auto_increment_offset = 2", "lc_time_names = 'de_DE'",
    "timestamp = 1700000000.25", "insert_id = 30", "binlog_row_image = 'MINIMAL'", "binlog_row_image = 'NOBLOB'",
    "binlog_row_image = 'FULL'", "collation_connection = 'utf8mb4_unicode_ci'", "sql_auto_is_null = 1",
    "transaction_isolation = 'READ-COMMITTED'", "collation_server = 'latin1_swedish_ci'",
    "explicit_defaults_for_timestamp = 0",
)  # fmt: skip
_OF_FAMILY: Final = {
    Flavor.MYSQL: (
        "binlog_row_value_options = 'PARTIAL_JSON'", "binlog_row_value_options = ''",
        "binlog_transaction_compression = ON", "binlog_transaction_compression = ON",
        "binlog_transaction_compression = OFF", "default_collation_for_utf8mb4 = utf8mb4_general_ci",
        "sql_generate_invisible_primary_key = ON", "binlog_rows_query_log_events = ON",
        "gtid_next = 'AUTOMATIC:tagged'", "gtid_next = 'AUTOMATIC'", "xa_detach_on_prepare = ON",
        "enable_cascade_triggers = ON", "enable_cascade_triggers = OFF",
    ),
    Flavor.MARIADB: (
        "binlog_alter_two_phase = 1", "check_constraint_checks = 0", "system_versioning_alter_history = KEEP",
        "gtid_domain_id = 3", "sql_if_exists = 1", "skip_parallel_replication = 1", "binlog_annotate_row_events = 0",
        "GLOBAL log_bin_compress = 1", "GLOBAL log_bin_compress_min_len = 10", "GLOBAL log_bin_compress = 0",
    ),
}  # fmt: skip
_NAMES: Final = ("latin1", "utf8mb4", "gbk", "utf8mb4 COLLATE utf8mb4_bin")
GLOBALS: Final = {
    Flavor.MYSQL: ("binlog_row_metadata", "binlog_checksum"),
    Flavor.MARIADB: ("binlog_row_metadata", "binlog_checksum", "log_bin_compress", "log_bin_compress_min_len"),
}
"""Global variables that histories set; they are reset on the source between histories."""


@dataclass(frozen=True, slots=True)
class Habits:
    """The frequencies of a history's kinds of statements."""

    formats: tuple[str, ...]
    definitions: int
    """One of this many units changes definitions."""
    settings: int
    xa: bool
    temporary: bool
    daily: bool = False
    """Whether it has the statements of ``daily_changes`` and ``daily_definitions``."""
    edges: bool = False
    """Whether it has the statements of ``edge_changes``."""


@dataclass(slots=True)
class Session:
    """One session: its next statements and its settings."""

    name: str
    world: World
    habits: Habits
    format: str = "ROW"
    database: str | None = None
    queue: list[str] = field(default_factory=list)

    def next(self) -> str:
        """The session's next statement."""
        if not self.queue:
            self.queue = self._unit()
        return self.queue.pop(0)

    @property
    def is_statement(self) -> bool:
        """Whether the session's changes are logged as statements."""
        return self.format == "STATEMENT"

    def _unit(self) -> list[str]:
        dice, habits = self.world.dice, self.habits
        if dice.one_in(habits.definitions):
            return self._definition()
        if habits.daily and dice.one_in(5):
            return daily_change(self.world)
        if habits.edges and dice.one_in(4):
            return edge_change(self.world, self.is_statement)
        if dice.one_in(habits.settings):
            return self._setting()
        if habits.xa and dice.one_in(8):
            return self._xa()
        if self.world.prepared and dice.one_in(3):
            gone = self.world.prepared.pop(0)
            return [f"XA {dice.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {gone}"]
        if habits.temporary and dice.one_in(12):
            return self._temporary()
        if dice.one_in(30):
            return ["FLUSH BINARY LOGS"]
        if dice.one_in(40):
            self.format, self.database = "ROW", None
            return [DISCONNECT]
        if dice.one_in(3):
            return [self._change()]
        return self._transaction()

    def _definition(self) -> list[str]:
        if self.habits.daily and self.world.dice.one_in(2):
            return daily_definition(self.world)
        return definition(self.world)

    def _change(self) -> str:
        return change(self.world, self.is_statement, self.database)

    def _changes(self, most: int) -> list[str]:
        return [self._change() for _ in range(self.world.dice.randint(1, most))]

    def _transaction(self) -> list[str]:
        dice = self.world.dice
        inside = self._changes(5)
        if dice.one_in(4):
            at = dice.randrange(len(inside))
            inside[at:at] = ["SAVEPOINT `s p`"]
            if dice.one_in(2):
                inside.append("ROLLBACK TO SAVEPOINT `s p`")
                if dice.one_in(2):
                    inside += self._changes(2)
        end = dice.choice(("COMMIT",) * 6 + ("ROLLBACK",))
        if dice.one_in(12):
            # the next DDL commits it
            return ["BEGIN", *inside, *self._definition()]
        if dice.one_in(10):
            return ["SET SESSION autocommit = 0", *inside, end, *self._changes(2), end, "SET SESSION autocommit = 1"]
        return [dice.choice(("BEGIN", "START TRANSACTION")), *inside, end]

    def _setting(self) -> list[str]:
        dice = self.world.dice
        match dice.randrange(6):
            case 0 | 1:
                self.format = dice.choice(self.habits.formats)
                return [f"SET SESSION binlog_format = '{self.format}'"]
            case 2:
                self.database = self.world.database()
                return [f"USE {quoted(self.database)}"]
            case 3:
                return [f"SET SESSION sql_mode = {dice.choice(_MODES)}"]
            case 4 if dice.one_in(2):
                return [f"SET NAMES {dice.choice(_NAMES)}"]
            case _:
                setting = dice.choice((*_SETTINGS, *_OF_FAMILY[self.world.flavor]))
                return [f"SET {setting}" if setting.startswith("GLOBAL") else f"SET SESSION {setting}"]

    def _xa(self) -> list[str]:
        dice = self.world.dice
        count = self.world.number()
        xid = dice.choice((f"'x{count}'", f"'x{count}','b',7", f"X'00ff{count:04x}'"))
        script = [f"XA START {xid}", *self._changes(3), f"XA END {xid}"]
        match dice.randrange(6):
            case 0:
                return [*script, f"XA COMMIT {xid} ONE PHASE"]
            case 1:
                return [*script, f"XA ROLLBACK {xid}"]
            case 2 | 3:
                self.world.prepared.append(xid)
                self.format, self.database = "ROW", None
                return [*script, f"XA PREPARE {xid}", DISCONNECT]
            case _:
                return [*script, f"XA PREPARE {xid}", f"XA {dice.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {xid}"]

    def _temporary(self) -> list[str]:
        dice, table = self.world.dice, self.world.table()
        if self.database is None:
            self.database = self.world.database()
        name = f"{quoted(self.database)}.`tmp{dice.randint(1, 3)}`"
        made: Sequence[str] = (
            f"CREATE TEMPORARY TABLE {name} (`id` INT PRIMARY KEY AUTO_INCREMENT, `n` INT)",
            f"CREATE TEMPORARY TABLE {name} LIKE {table.full}",
            f"CREATE TEMPORARY TABLE {name} SELECT `id` FROM {table.full}",
        )
        inside = [
            f"INSERT INTO {name} (`id`) VALUES ({number(dice)})",
            f"INSERT IGNORE INTO {table.full} (`id`) SELECT `id` + 7 FROM {name} ORDER BY `id`",
            f"UPDATE {name} SET `id` = `id` + 3 ORDER BY `id` DESC",
            f"DELETE FROM {name} WHERE `id` = {number(dice)}",
            self._change(),
        ]
        dice.shuffle(inside)
        if dice.one_in(3):
            inside = ["BEGIN", *inside, dice.choice(("COMMIT", "ROLLBACK"))]
        if dice.one_in(5):
            self.format, self.database = "ROW", None
            return [dice.choice(made), *inside, DISCONNECT]
        script = [dice.choice(made), *inside]
        if dice.one_in(4):
            moved = f"{quoted(self.database)}.`moved{dice.randint(1, 2)}`"
            # MariaDB logs the second form without the mark of its connection
            forms = (f"ALTER TABLE {name} RENAME TO {moved}", f"RENAME TABLE {name} TO {moved}")
            script.append(forms[0] if self.world.flavor is Flavor.MYSQL else dice.choice(forms))
            script.append(f"INSERT IGNORE INTO {table.full} (`id`) SELECT `id` + 11 FROM {moved} ORDER BY `id`")
            name = moved
        script.append(f"DROP TEMPORARY TABLE {name}")
        if self.habits.xa and dice.one_in(4):
            xid = f"'t{self.world.number()}'"
            end = f"XA {dice.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {xid}"
            return [f"XA START {xid}", *script, f"XA END {xid}", f"XA PREPARE {xid}", end]
        return script
