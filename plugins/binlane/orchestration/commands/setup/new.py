"""``binlane new``: a channel file whose first window survives an old log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.config import load_channel, require_channel_name
from binlane.errors import ConfigError
from binlane.orchestration.commands.channel_files import make_folder, write_new
from binlane.safe_text import one_line

_TEMPLATE: Final = """\
# The channel {name}. Every key: docs/configuration.md
# Next: `binlane grants {name}`, `binlane doctor {name}`; then `binlane bootstrap {name}` for an empty target, or
# `binlane init {name} --start ...` for one that holds a backup of the source.

[source]
connection = {source}

[target]
connection = {target}

[window]
schedule = "0 * * * *"

[lanes]
count = 4

[filter]
# The servers' own tables: an old log can hold the time zones and help texts that an installation has loaded.
exclude_databases = ["mysql", "sys"]

[filter.kinds]
# An old log begins with statements of the source's installation: CREATE USER for administrators, GRANT ALL, FLUSH
# PRIVILEGES. Applied, they would change accounts of the target's own, and the target's account would need every
# privilege that they grant. Without this line accounts follow the source: `binlane grants {name}` then prints more.
accounts = "ignore"

[verify]
# After each window of the DAG the rows that it changed are compared between both servers.
after_window = "window"

[spark]
connection = {spark}
"""
_SHELL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def new(name: str, folder: Path, source: str, target: str, spark: str) -> str:
    """Write the file. Raises ConfigError for a name that is no channel's, and for a file that exists."""
    file = folder / f"{name}.toml"
    require_channel_name(name, file)
    values = {"source": source, "target": target, "spark": spark}
    text = _TEMPLATE.format(name=name, **{key: _quoted(key, value) for key, value in values.items()})
    make_folder(folder)
    try:
        write_new(file, text)
        load_channel(file)
    except FileExistsError:
        raise ConfigError(
            f"{file}: expected no such file, found one: a channel is never overwritten; edit it, or choose another name"
        ) from None
    except (ConfigError, OSError):
        # else the next try would find a file, and refuse to overwrite it
        file.unlink(missing_ok=True)
        raise
    return "\n".join((f"{file}: written", *_next_steps(name, source, target)))


def _next_steps(name: str, source: str, target: str) -> Iterator[str]:
    """Commands to be copied: what the next one needs stands before it."""
    yield "next, in this shell; or the two connections in Airflow:"
    for part, connection in (("SOURCE", source), ("TARGET", target)):
        if _SHELL_NAME.fullmatch(connection):
            yield f"  export AIRFLOW_CONN_{connection.upper()}='mysql://binlane:PASSWORD@{part}-HOST:3306/'"
        else:
            yield f"  # {one_line(connection)}: a name that no shell variable can have: a connection in Airflow"
    yield f"  binlane grants {name}   # the accounts, as statements"
    yield f"  binlane doctor {name}   # whether all is there"


def _quoted(key: str, value: str) -> str:
    """A string of TOML, whose escapes are those of JSON but for DEL."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"--{key}: expected the id of a connection in UTF-8, got {value!r}") from None
    if not value:
        raise ConfigError(f"--{key}: expected the id of a connection, got an empty one")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
