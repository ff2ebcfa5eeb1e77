"""Whatever a dump's file or folder is, reading it ends soon and with little memory: in statements, or in an error that
names the file and a next step.

Attacker: whoever can write to the dump.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import pytest
import zstandard

from binlane.bootstrap.sessions import Session
from binlane.errors import BinlaneError
from binlane.model import Flavor
from binlane.restore.dump import dump_of
from binlane.restore.dump_load import DumpLoad
from tests.forked import telling
from tests.security.dump_reader import read_dump
from tests.shell_dump import DumpedDatabase, DumpedTable, ShellDump

SECONDS: Final = 120
"""Far more than any attack takes on a loaded machine, and far less than for ever."""
Attack: TypeAlias = Callable[[Path], object]
"""Of the dump's path, at which nothing is."""
_END: Final = b"\n-- Dump completed\n"
_USE: Final = b"USE `shop`;\n"
_INTO: Final = b"SET TIME_ZONE='+00:00';INSERT INTO `t` VALUES ("
_MADE: Final = b"CREATE DATABASE `shop`;\n"
_RECORDED: Final = b"SHOW MASTER STATUS:\n\tLog: b.000001\n\tPos: 4\n\nFinished dump at: x\n"
_CREATE: Final = "shop-schema-create.sql"
_LINES: Final = b"\n" * (4 << 20)


def _text(*parts: bytes) -> Attack:
    return lambda path: path.write_bytes(_USE + b"".join(parts) + _END)


def _packed(pack: Callable[[bytes], bytes], *parts: bytes) -> Attack:
    return lambda path: path.write_bytes(pack(_USE) + b"".join(map(pack, parts)) + pack(_END))


def _folder(name: str, make: Callable[[Path], object], recorded: bytes = _RECORDED) -> Attack:
    """A whole dump, of which one name is made otherwise."""

    def attack(path: Path) -> None:
        path.mkdir()
        for file, data in {"metadata": recorded, _CREATE: _MADE, name: None}.items():
            if file != name and data is not None:
                (path / file).write_bytes(data)
        make(path / name)

    return attack


_TABLE: Final = DumpedTable("t", "CREATE TABLE `t` (`a` int)", ("a",), [(b"1",)])
_SHELL: Final = DumpedDatabase("shop", "CREATE DATABASE `shop`", (_TABLE,))
_CHUNK: Final = "shop@t@@0.tsv.zst"


def _shell(name: str, make: Callable[[Path], object], size: int = 2) -> Attack:
    """A whole folder of MySQL Shell, of which one file is made otherwise, and whose rows have so many bytes."""

    def attack(path: Path) -> None:
        ShellDump(path, [_SHELL]).write()
        (path / f"{_CHUNK}.idx").unlink()
        done = json.loads((path / "@.done.json").read_text())
        done["chunkFileBytes"][_CHUNK] = done["tableDataBytes"]["shop"]["t"] = size
        (path / "@.done.json").write_text(json.dumps(done))
        (path / name).unlink(missing_ok=True)
        make(path / name)

    return attack


def _bytes(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _link(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def _endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


_IS_FILE: Final = "{}: .*expected a file, found {}; name a"
_NAMES: Final = "expected names in UTF-8, found b'.*; dump with --default-character-set"
ATTACKS: Final[Mapping[str, tuple[Attack, str]]] = {
    "a FIFO": (os.mkfifo, _IS_FILE.format("dump.sql", "a FIFO")),
    "an endless device": (_link("/dev/zero"), _IS_FILE.format("dump.sql", "a device")),
    "a link to itself": (_link("dump.sql"), _IS_FILE.format("dump.sql", "a loop of symbolic links")),
    "a database in no character set": (_text(b"USE `\xff`;"), _NAMES),
    "a table in no character set": (_text(_INTO.replace(b"`t`", b"`\xff`"), b"1);"), _NAMES),
    "a place in no character set": (
        _text(b"-- CHANGE MASTER TO MASTER_LOG_FILE='\xff', MASTER_LOG_POS=4;"), _NAMES,
    ),
    "a place of 5,000 digits": (
        _text(b"-- CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=", b"9" * 5000, b";"),
        "^1 statements at ,",
    ),
    "a row of 2 million strings": (_text(_INTO, b"''," * (2 << 20), b"'');"), "^3 statements"),
    "a string of 4 million escapes": (_text(_INTO, b"'", b"\\'" * (4 << 20), b"');"), "^3 statements"),
    "a string without an end": (_text(_INTO, b"'", b"a" * (8 << 20)), "ends inside the statement .INSERT"),
    "a comment without an end": (_text(b"/*", b"*" * (4 << 20)), "ends inside the statement"),
    "1 million dashes": (_text(b"-" * (1 << 20)), "ends inside the statement"),
    "1 million comments": (_text(b"-- \n" * (1 << 20)), "^1 statements"),
    "comments that are open": (_text(b"/*!50000 " * 100_000, b";"), "take it out of a copy"),
    "gzip: 64 MiB of blanks": (_packed(gzip.compress, b" " * (64 << 20)), "^1 statements"),
    "zstd: a statement of 64 MiB": (
        _packed(zstandard.compress, _INTO, b" " * (64 << 20)), "expected statements of at most 33,554,432 bytes",
    ),
    "mydumper: metadata that is a FIFO": (_folder("metadata", os.mkfifo), "expected a file, found a FIFO"),
    "mydumper: metadata without an end": (_folder("metadata", _endless), "more than 268,435,456 bytes"),
    "mydumper: metadata that is a device": (_folder("metadata", _link("/dev/zero")), "found a device"),
    "mydumper: a definition that is a FIFO": (_folder(_CREATE, os.mkfifo), _IS_FILE.format(_CREATE, "a FIFO")),
    "mydumper: rows that are a FIFO": (_folder("shop.t.sql", os.mkfifo), _IS_FILE.format("shop.t.sql", "a FIFO")),
    "mydumper: rows that are a device": (_folder("shop.t.sql", _link("/dev/zero")), "found a device"),
    "mydumper: a link to nothing": (_folder("other", _link("nothing")), "other: cannot be read: .*; put the file"),
    "mydumper: a database in no character set": (_folder(_CREATE, _bytes(b"CREATE DATABASE `\xff`;\n")), _NAMES),
    "mydumper: a section of 200,000 names": (
        _folder("metadata", _bytes(_RECORDED + b"[`shop`.`" * 200_000 + b"\n")), r"^\d+ statements",
    ),
    "mydumper: 5,000 digits of rows": (
        _folder("metadata", _bytes(_RECORDED + b"[`shop`.`t`]\nrows = " + b"9" * 5000 + b"\n")), r"^\d+ statements",
    ),
    "mydumper: a section of 4 million lines": (
        _folder("metadata", _bytes(_RECORDED + b"[source]\n" + _LINES + b"[`shop`.`t`]" + _LINES)),
        r"^\d+ statements",
    ),
    "mydumper: GTIDs of 2 million lines": (
        _folder("metadata", _bytes(_RECORDED.replace(b"\n\nFin", b"\n\tGTID:" + b"a\n" * (2 << 20) + b"\nFin"))),
        r"^\d+ statements",
    ),
    "MySQL Shell: @.json that is a FIFO": (_shell("@.json", os.mkfifo), "expected a file, found a FIFO; take a whole"),
    "MySQL Shell: @.json that is a device": (_shell("@.json", _link("/dev/zero")), "found a device; take a whole dump"),
    "MySQL Shell: @.done.json without an end": (_shell("@.done.json", _endless), "at most 67,108,864 bytes, found"),
    "MySQL Shell: a definition that is a FIFO": (_shell("shop@t.sql", os.mkfifo), _IS_FILE.format("t.sql", "a FIFO")),
    "MySQL Shell: rows that are a FIFO": (_shell(_CHUNK, os.mkfifo), _IS_FILE.format(_CHUNK, "a FIFO")),
    "MySQL Shell: rows of a device": (_shell(_CHUNK, _link("/dev/zero")), _IS_FILE.format(_CHUNK, "a device")),
    "MySQL Shell: an index that is a FIFO": (_shell(f"{_CHUNK}.idx", os.mkfifo), "expected a file, found a FIFO; take"),
    "MySQL Shell: a link to nothing": (_shell("other", _link("nothing")), "other: cannot be read: .*; put the file"),
    "MySQL Shell: more rows than it says": (
        _shell(_CHUNK, _bytes(zstandard.compress(b"1\n" * (32 << 20)))), "expected 2 bytes of rows, .* more than 2",
    ),
    "MySQL Shell: a row of 64 MiB": (
        _shell(_CHUNK, _bytes(zstandard.compress(b"1" * (64 << 20))), 64 << 20), "rows of at most 33,554,432 bytes",
    ),
    "MySQL Shell: 16 million lines without a value": (
        _shell(_CHUNK, _bytes(zstandard.compress(b"\n" * (16 << 20))), 16 << 20), r"^\d+ statements",
    ),
    "1,000 delimiters": (
        _text(*(b"DELIMITER %d;\nDO 1 %d;\n" % (number, number) for number in range(1000))),
        "expected at most 8 different delimiters .*take a dump of one of",
    ),
    "a delimiter of 1,000 bytes": (
        _text(b"DELIMITER ", b"x" * 1000, b"\n"), "expected at most 8 different delimiters of at most 16 bytes",
    ),
    "a delimiter of 4 MiB": (_text(b"DELIMITER ", b"x" * (4 << 20), b"\n"), "ends inside the statement"),
    "mydumper: a name that moves the cursor": (
        _folder("shop.\x1b[H\n.sql", _bytes(b"bad;\n")), "expected a statement that a dump program writes",
    ),
}  # fmt: skip
"""What is made, and what is said of it. A line more is an attack more."""
_CANARY: Final = "s3cr3t-canary"
_SECRETS: Final = {
    "a password in a line": f"{_CANARY}\n",
    "a password of many characters": f"{_CANARY};'#\n",
    "variables": f"AIRFLOW__CORE__FERNET_KEY={_CANARY}\0PATH=/bin",
    "an option file": f"[client]\npassword={_CANARY}\n",
    "accounts": f"CREATE USER u IDENTIFIED BY '{_CANARY}';\n",
    "a word of SQL": f"SET-{_CANARY}\n",
}
"""What a worker has in files that its account may read."""
_PLACES: Final[Mapping[str, Callable[[Callable[[Path], object]], Attack]]] = {
    "a dump": lambda make: make,
    "a database that nobody restores": lambda make: _folder("x-schema-create.sql", make),
    "a definition": lambda make: _folder("shop.t-schema.sql", make),
    "rows": lambda make: _folder("shop.t.sql", make),
    "metadata": lambda make: _folder("metadata", make),
    "MySQL Shell: what the dump is": lambda make: _shell("@.json", make),
    "MySQL Shell: a table's metadata": lambda make: _shell("shop@t.json", make),
    "MySQL Shell: a definition": lambda make: _shell("shop@t.sql", make),
    "MySQL Shell: rows": lambda make: _shell(_CHUNK, make),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_dump_of_an_attacker_ends_in_statements_or_an_error_that_names_the_file(tmp_path: Path, attack: str) -> None:
    make, expected = ATTACKS[attack]
    suffix = {"gzip": ".gz", "zstd": ".zst"}.get(attack.partition(":")[0], "")
    path = tmp_path / f"dump.sql{suffix}"
    make(path)
    with telling(read_dump, str(path)) as (_, answer):
        assert answer.poll(SECONDS), "it waits, or reads on and on"
        said = answer.recv()
    assert re.search(expected, said, re.DOTALL), said


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("secret", _SECRETS)
def test_no_error_shows_a_file_of_the_worker_behind_a_link(tmp_path: Path, place: str, secret: str) -> None:
    """A drill's error is in the task's log, the run's note and the table binlane.drills."""
    (tmp_path / "secret").write_text(_SECRETS[secret])
    path = tmp_path / "dump.sql"
    _PLACES[place](_link(str(tmp_path / "secret")))(path)
    assert _CANARY not in _said(_read_place, path) + _said(_read_statements, path)


def _said(read: Callable[[Path], None], path: Path) -> str:
    try:
        read(path)
    except BinlaneError as exc:
        return str(exc)
    return ""


def _read_place(path: Path) -> None:
    dump_of(path, {"shop"}).place()


def _read_statements(path: Path) -> None:
    session = Session(None, Flavor.MARIADB, None)
    load = DumpLoad(session, (10, 11, 6), str(path), {"shop": "back"}, frozenset())
    for statement in dump_of(path, {"shop"}).statements(""):
        load.statement(statement)
