"""The form of the DAG ``restore_<channel>``: the options of ``binlane restore``, within what the channel's file names.

Who may trigger a DAG is none who may read every file of a worker, or use each of Airflow's connections: dumps, logs and
servers are those of ``[restore]``, and databases and tables those that the channel copies. Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binlane.choices import FROM_LOG
from binlane.config.declaration import key
from binlane.config.kinds import BOOLEAN, TEXT
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.orchestration.run_forms import Form

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.orchestration.commands.copies.restore_plan import RestoreRequest
    from binlane.state.records.restores import RestoreDefinition

_WILD: Final = frozenset("*?[")
_ORDERS: Final = ("databases", "extend", "drop")
_OF_NEW: Final[Mapping[str, object]] = {
    "base": FROM_LOG, "restore_as": None, "tables": None, "at": None, "replace": False,
}  # fmt: skip
"""Fields that belong to a new restore, with their values if nobody fills them in."""
_SEPARATED: Final = "separated by commas"


@dataclass(frozen=True, slots=True)
class RestoreForm(Form):
    """The form of a restore."""

    databases: str | None = key(
        TEXT,
        None,
        f"Databases by their names in the log, {_SEPARATED}; with a dump also patterns such as tenant_*. Only those "
        "that the channel copies as a whole. Either these, or Extend, or Drop.",
    )
    base: str = key(
        TEXT, FROM_LOG, 'Where it begins: a dump in one of the configured folders, or "log": at its CREATE DATABASE.'
    )
    log: str | None = key(TEXT, None, "The binary log that is read from there.")
    until: str | None = key(
        TEXT,
        None,
        "The end: a time (2026-11-20T14:05:00Z), before which it ends, a GTID or FILE:OFFSET, behind which it ends, or "
        "now. Either this or Before.",
    )
    before: str | None = key(
        TEXT, None, "The end, instead: a GTID, or a statement such as DROP DATABASE shop, before which it ends."
    )
    restore_as: str | None = key(
        TEXT, None, "The name on the target; % stands for the database's own name, as in %_back. Empty: the own name."
    )
    tables: str | None = key(
        TEXT, None, f"Of the one database only these tables and their triggers, {_SEPARATED}. Empty: all of it."
    )
    at: str | None = key(TEXT, None, "FILE:OFFSET, or GTIDs, of the dump in the log, if the dump has not recorded it.")
    onto: str | None = key(TEXT, None, "Connection of the server that gets the databases.")
    replace: bool = key(
        BOOLEAN,
        False,
        "Replace databases of that name: what is there is kept under another name, which the plan says. Only databases "
        "that the channel's filter takes.",
    )
    extend: str | None = key(
        TEXT, None, "Instead of new databases: the name of a complete restore, which goes on to the end above."
    )
    drop: str | None = key(
        TEXT,
        None,
        "Instead: the name of a restore that is removed: an unfinished one with its databases, of a complete one the "
        "record alone.",
    )

    def __post_init__(self) -> None:
        """Raises ConfigError for a form that orders nothing or several things, and for one without an end, or with
        two."""
        orders = [name for name in _ORDERS if getattr(self, name) is not None]
        if len(orders) != 1:
            raise ConfigError(
                f"{', '.join(_ORDERS)}: expected one of the three, found {' and '.join(orders) or 'none'}: databases "
                "that are restored, a complete restore that goes on to a later end, or one that is removed; trigger "
                "the run again"
            )
        [order] = orders
        if order == "drop" and (self.until, self.before) != (None, None):
            raise ConfigError("until, before: expected neither with drop; trigger the run again")
        if order != "drop" and (self.until is None) == (self.before is None):
            raise ConfigError(
                "until, before: expected one of the two: the moment up to which is restored; trigger the run again"
            )
        for name, default in _OF_NEW.items():
            if order != "databases" and getattr(self, name) != default:
                raise ConfigError(
                    f"{name}: expected it only with databases, found it with {order}, which goes by what the restore "
                    "has begun with; trigger the run again without it"
                )


def has_form(channel: ChannelConfig) -> bool:
    """Whether the channel's file lets Airflow's users restore."""
    return bool(channel.restore.bases or channel.restore.logs)


def logs_of(channel: ChannelConfig) -> tuple[str, ...]:
    """The logs that a restore may read, the usual one first."""
    return channel.restore.logs or (channel.source.connection or _with_slash(channel.source.archive or ""),)


def targets_of(channel: ChannelConfig) -> tuple[str, ...]:
    """The servers that a restore may write to, the usual one first."""
    return channel.restore.targets or (channel.target.connection,)


def restore_params(channel: ChannelConfig) -> dict[str, dict[str, Any]]:
    """The arguments of an Airflow ``Param``, by field, with the places of the channel's file."""
    params = RestoreForm.params(channel)
    for name, places in (("log", logs_of(channel)), ("onto", targets_of(channel))):
        params[name] |= {"type": "string", "enum": [*places], "default": places[0]}
    if folders := channel.restore.bases:
        params["base"]["description"] += f" Folders: {', '.join(folders)}."
    return params


def request_of(form: RestoreForm, channel: ChannelConfig) -> RestoreRequest:
    """What the form asks for. Raises ConfigError for a dump, a log, a server, a database or a table that the channel's
    file does not name."""
    from binlane.orchestration.commands.copies.bootstrap import patterns_of
    from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest

    databases, tables = patterns_of(form.databases or ""), patterns_of(form.tables or "")
    # the names that a pattern stands for are in the dump, and are looked at behind its plan
    require_copied(channel, [name for name in databases if not _WILD & {*name}], tables)
    return RestoreRequest(
        name=None,
        base=_base_of(form.base, channel),
        log=log_of(form, channel),
        databases=databases,
        tables=tables,
        final=form.restore_as,
        ends=EndRequest(form.until, form.before),
        at=form.at,
        onto=_one_of("onto", form.onto, targets_of(channel), "restore.targets", channel),
        replaces=form.replace,
        # a retry may run on another worker
        work=channel.work.uri,
        max_threads_running=channel.apply.max_threads_running,
    )


def require_copied(channel: ChannelConfig, databases: Iterable[str], tables: Collection[str]) -> None:
    """Raises ConfigError for a database, or ``tables`` of it, that the channel's filter leaves out, wholly or in
    part."""
    from binlane.health.restores import left_out

    if (found := left_out(channel, databases, tables)) is not None:
        name, rule = found
        which = "tables that" if tables else "a database that"
        raise ConfigError(
            f"databases: expected {which} the channel {channel.name} copies as a whole, found {name} ({rule}): "
            f"whoever may restore by the channel's form gets what the channel has; use `binlane restore` on a "
            f"machine that has the servers' connections, or change [filter] of {channel.file}"
        )


def log_of(form: RestoreForm, channel: ChannelConfig) -> str:
    """The log that the form asks for. Raises ConfigError for one that the channel's file does not name."""
    return _one_of("log", form.log, logs_of(channel), "restore.logs", channel)


def require_allowed(channel: ChannelConfig, definition: RestoreDefinition) -> None:
    """The same of the databases and tables that a plan has found, and of databases that it replaces, also behind its
    approval: the channel's file may have changed meanwhile."""
    require_copied(channel, [old for old, _ in definition.databases], definition.tables)
    require_copied(channel, [final for final, _ in definition.replaced], ())


def require_own(name: str, channel: ChannelConfig, folder: Path) -> None:
    """Raises ConfigError for a restore that the channel's form could not have begun: onto another server, or of
    databases that the channel does not copy. ``folder``: of the files of restores."""
    from binlane.config import load_channel, require_channel_name

    file = folder / f"{name}.toml"
    require_channel_name(name, file)
    if not file.exists():
        raise ConfigError(
            f"{name}: expected the name of a restore, found no file of it in {folder}; `binlane restore --list` shows "
            "those of this machine; trigger the run again"
        )
    own = load_channel(file)
    if (onto := own.target.connection) not in targets_of(channel):
        raise ConfigError(
            f"{name}: expected a restore onto one of {', '.join(targets_of(channel))}, found one onto {onto}; trigger "
            f"the run again, or add it to restore.targets of {channel.file}"
        )
    # the rows of single tables are those of a part of the database: the plan looks at them
    if not own.filter.include_tables:
        require_copied(channel, dict(own.rename), ())


def _base_of(given: str, channel: ChannelConfig) -> str:
    if given == FROM_LOG:
        return given
    path, folders = Path(given), [Path(each) for each in channel.restore.bases]
    inside = [folder / path for folder in folders if (folder / path).is_relative_to(folder)]
    if not inside or ".." in path.parts or not given.isprintable():
        where = ", ".join(map(str, folders)) or "none, since restore.bases names no folder"
        raise ConfigError(
            f'base: expected "log", or a dump in one of the folders {where}, got {given!r}; trigger the run again, or '
            f"add the dump's folder to restore.bases of {channel.file}"
        )
    return str(next((each for each in inside if each.exists()), inside[0]))


def _one_of(name: str, given: str | None, places: Collection[str], setting: str, channel: ChannelConfig) -> str:
    if given is None:
        return next(iter(places))
    if given not in places:
        raise ConfigError(
            f"{name}: expected one of {', '.join(places)}, got {given!r}; trigger the run again, or add it to "
            f"{setting} of {channel.file}"
        )
    return given


def _with_slash(archive: str) -> str:
    """An archive as ``--log`` takes it: a folder has a slash."""
    return archive if "/" in archive else f"./{archive}"


def shown_facts(facts: Mapping[str, str]) -> str:
    """The databases and the end of a plan, in one line."""
    return f"{facts['databases']}, up to {facts['end']}, onto {facts['target']}"
