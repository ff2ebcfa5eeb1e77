"""A password that nothing but a connection may have, in the spellings by which it could leave."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, quote_plus

from lab.servers import PrivateServer

PASSWORD: Final = "c4nary %+/=&'\"\\Z\u00e9-7Qx9"
"""Each of its spellings is another text."""
USER: Final = "test_canary"
_LEAST: Final = 12
"""Characters of Base64 that stand for whole bytes of it, at each of the three places at which it can begin."""


def spellings(password: str = PASSWORD) -> Mapping[str, bytes]:
    """By the way of writing it."""
    raw = password.encode()
    found = {
        "raw": raw,
        "quoted for a URL": quote(password, safe="").encode(),
        "quoted for a URL, slashes kept": quote(password).encode(),
        "quoted for a form": quote_plus(password).encode(),
        "JSON": json.dumps(password)[1:-1].encode(),
        "JSON in a string of JSON": json.dumps(json.dumps(password)[1:-1])[1:-1].encode(),
        "repr": repr(password)[1:-1].encode(),
        "SQL": password.replace("\\", "\\\\").replace("'", "\\'").encode(),
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "UTF-16": password.encode("utf-16-le"),
        "latin1": password.encode("latin-1"),
        "its beginning": password[:6].encode(),
        "its end": password[-4:].encode(),
    }
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + raw).rstrip(b"=")
        found[f"Base64 behind {shift} bytes"] = text[4 if shift else 0 : -4][: _LEAST + 8]
    return found


def leaks(texts: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The names of texts that have it, each with the spelling."""
    return [(name, how) for name, text in texts.items() for how, spelled in spellings().items() if spelled in text]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Everything in a folder, by its path there; links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(folder)), path.read_bytes()


def make_account(server: PrivateServer) -> None:
    """An account with all privileges and this password."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("CREATE USER %s@'%%' IDENTIFIED BY %s", (USER, PASSWORD))
        cursor.execute("GRANT ALL ON *.* TO %s@'%%' WITH GRANT OPTION", (USER,))


def address(server: PrivateServer, options: str = "ssl_mode=disabled&get_server_public_key=true") -> str:
    """The server's, for a connection of that account."""
    return f"mysql://{USER}:{quote(PASSWORD, safe='')}@{server.host}:{server.port}/?{options}"
