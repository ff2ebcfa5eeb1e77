"""The forms of a channel's runs: the fields of the trigger button, and the keys of ``airflow dags trigger --conf``.

A field is declared once, like a key of the channel file: Airflow's form and its check, the reading and its errors come
from the declaration. Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

from binlane.choices import Compressed, PlanEngine, VerifyScope, Word
from binlane.config.by_name import all_keys, number
from binlane.config.declaration import REQUIRED, Key, key, keys_of
from binlane.config.kinds import BOOLEAN, TEXT, Integer, choice, integer
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.config import ChannelConfig

_OVERRIDDEN: Final = {found.form: name for name, found in all_keys().items() if found.form is not None}
"""The key of the channel file that a field overrides for one run, by field."""


_OF_CONTINUOUS: Final = ("verify", "verify_only", "verify_accounts", "lanes", "block_size")
"""The fields of runs that take windows back to back."""


class Form:
    """Base of the forms: dataclasses whose fields are declared by ``key``."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The form's values; a missing field has its default. Raises ConfigError for an invalid value, and for none
        where one is required."""
        defaults = {name: None if key.default is REQUIRED else key.default for name, key in keys_of(cls).items()}
        return cls(
            **{name: _read(name, field, params.get(name, defaults[name])) for name, field in keys_of(cls).items()}
        )

    @classmethod
    def params(cls, channel: ChannelConfig) -> dict[str, dict[str, Any]]:
        """The arguments of an Airflow ``Param``, by field."""
        return {name: _param(name, field, channel) for name, field in keys_of(cls).items()}


@dataclass(frozen=True, slots=True)
class RunForm(Form):
    """The form of a run that applies a window."""

    until: str | None = key(
        TEXT,
        None,
        "The window's end: \"now\", a time (2026-01-31T12:00:00Z) or a GTID. Empty: the end of the run's interval, or "
        "now for a triggered run.",
    )
    stop_at: str | None = key(
        TEXT,
        None,
        "Stop the channel inside this run's window, until it is resumed: after a seqno, after the transaction of a "
        'GTID, before a time, or, with "highest", with all lanes at the highest seqno that any of them has. Empty: run '
        "to the window's end.",
    )
    resume: bool = key(
        BOOLEAN,
        False,
        "Cancel a stop of the channel and continue the same window. A stop that was requested after this run was "
        "triggered is kept.",
    )
    dry_run: bool = key(BOOLEAN, False, "Stop after the plan and show it in adopt_plan's log.")
    verify: VerifyScope = key(
        all_keys()["verify.after_window"].kind,
        VerifyScope.NONE,
        "Compare source and target after the window: its rows, or all tables (even if there is nothing to apply). The "
        "run fails if rows have drifted; the window stays applied.",
    )
    verify_only: bool = key(BOOLEAN, False, "Only run the verification above: read no log, apply no window.")
    verify_accounts: bool = key(
        BOOLEAN, False, "Compare accounts, roles and their privileges, too: only with verify = full or slice."
    )
    lanes: int | None = key(all_keys()["lanes.count"].kind, None, "Parallel lanes of this window.")
    block_size: int | None = key(number("blocks.transactions"), None, "Source transactions per block.")
    engine: PlanEngine = key(
        all_keys()["spark.engine"].kind,
        PlanEngine.SPARK,
        "What runs the plan job: local (processes of the worker), spark, or auto (local for a small window).",
    )

    def __post_init__(self) -> None:
        """Raises ConfigError for a form whose fields contradict each other."""
        with_accounts = (VerifyScope.FULL, VerifyScope.SLICE)
        if self.verify_accounts and self.verify not in with_accounts:
            raise ConfigError(
                f"verify_accounts: expected verify to be {' or '.join(map(repr, map(str, with_accounts)))}, got "
                f"{str(self.verify)!r}; trigger the run again"
            )


def run_params(channel: ChannelConfig) -> dict[str, dict[str, Any]]:
    """The arguments of an Airflow ``Param``, by field of a channel's runs.

    Windows back to back end at no place that a run could name, and are more than the work folder keeps: their rows
    cannot be compared.
    """
    params = RunForm.params(channel)
    if not channel.window.is_continuous:
        return params
    scopes = [word.value for word in VerifyScope if word is not VerifyScope.WINDOW]
    return {name: params[name] for name in _OF_CONTINUOUS} | {"verify": {**params["verify"], "enum": scopes}}


@dataclass(frozen=True, slots=True)
class BootstrapForm(Form):
    """The form of a channel's first copy: the options of ``binlane bootstrap``."""

    databases: str = key(
        TEXT,
        "*",
        "Names or patterns such as tenant_*, separated by commas; * means all that the channel's filter includes.",
    )
    users: bool = key(BOOLEAN, False, "Also copy accounts and roles with their privileges.")
    replace: bool = key(
        BOOLEAN,
        False,
        "DROP these databases on the target first, with everything in them. Once per run: a retried task keeps what it "
        "has copied.",
    )
    jobs: int = key(integer(1, 64), 4, "Ranges of rows that are copied in parallel.")
    chunk_rows: int = key(integer(1, 1_000_000), 20_000, "Rows per range; each range is one transaction on the target.")
    lock_seconds: int = key(integer(1), 30, "Seconds to wait for each of the two locks on the source.")
    rows_per_second: int = key(integer(0), 0, "Rows that are copied in a second, at most. 0: no limit.")
    mib_per_second: int = key(integer(0), 0, "MiB that are copied in a second, at most. 0: no limit.")
    max_threads_running: int = key(
        integer(0), 0, "The copy waits while the source's Threads_running is higher. 0: never."
    )
    max_source_lag: int = key(
        integer(0), 0, "The copy waits while the source, if it is a replica, is more seconds behind. 0: never."
    )
    compress: Compressed = key(
        choice(Compressed), Compressed.NONE, "The servers whose connections carry the rows compressed by zlib."
    )


def _read(name: str, field: Key, value: Any) -> Any:
    """A field's value. Spaces around a text are removed; an empty optional field is None."""
    given = value.strip() if isinstance(value, str) else value
    if field.default is None and given in (None, ""):
        return None
    if not field.kind.accepts(given):
        raise ConfigError(f"{name}: expected {field.kind.expected}, got {value!r}; trigger the run again")
    return field.kind.converted(given)


def _param(name: str, field: Key, channel: ChannelConfig) -> dict[str, Any]:
    default, description = field.default, field.help
    if name in _OVERRIDDEN:
        configured = attrgetter(_OVERRIDDEN[name])(channel)
        if default is None:
            description += f" Empty: the channel's number, {configured}."
        else:
            default = configured
    if isinstance(default, Word):
        default = default.value  # Airflow stores no enumeration
    title = name.replace("_", " ").capitalize()
    # Airflow triggers no run without a value for a field that has none
    given = {} if default is REQUIRED else {"default": default}
    return {**given, "title": title, "description": description, **_schema(field)}


def _schema(field: Key) -> dict[str, Any]:
    """JSON schema of the field's values."""
    kind = field.kind
    if kind.words:
        return {"type": "string", "enum": [word.value for word in kind.words]}
    if kind is BOOLEAN:
        return {"type": "boolean"}
    if isinstance(kind, Integer):
        name, limits = "integer", {"minimum": kind.low} | ({} if kind.high is None else {"maximum": kind.high})
    else:
        name, limits = "string", {} if field.default is None else {"minLength": 1}
    return {"type": ["null", name] if field.default is None else name, **limits}
