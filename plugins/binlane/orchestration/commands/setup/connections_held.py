"""Where a channel's connections are: in this shell, and in this machine's Airflow.

Commands of a shell read ``AIRFLOW_CONN_<ID>``, and ask Airflow, where one is configured, for what is not set. The DAG's
tasks take what Airflow has: a secrets backend, the environment of its services, its metadata database. So
`binlane doctor` asks Airflow first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from binlane.activity import doing
from binlane.choices import PlanEngine
from binlane.config import ChannelConfig
from binlane.connections import (
    PREFIX,
    AskStores,
    ConnectionStores,
    Endpoint,
    Resolver,
    StoredConnection,
    environment_resolver,
)
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.orchestration.announcing.asset_event import site_of
from binlane.precheck.situation.finding import Command, Finding
from binlane.readiness.checks import Answer
from binlane.schema.compare import Severity

LoadStores = Callable[[], AskStores]
"""Imports Airflow; raises its own errors."""

_URI: Final = "'mysql://user:password@host:3306/'"
_SITE: Final = "'https://user:password@host:8080/'"
_SPARK: Final = "'spark://host:7077'"
_DISTRIBUTION: Final = "apache-airflow-core"
_CONFIGURED_BY: Final = (
    *("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD"),
    *("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_SECRET", "AIRFLOW__SECRETS__BACKEND"),
)


def without_airflow(environment: Mapping[str, str]) -> str:
    """Why no Airflow can be asked here; empty: one can."""
    try:
        metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "Airflow is not installed here"
    home = Path(environment.get("AIRFLOW_HOME") or Path.home() / "airflow").expanduser()
    file = Path(environment.get("AIRFLOW_CONFIG") or home / "airflow.cfg").expanduser()
    if file.exists() or any(environment.get(name) for name in _CONFIGURED_BY):
        return ""
    return f"Airflow is not configured here: no {file}"


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of a channel, as this shell and its Airflow have them."""

    channel: ChannelConfig
    ask: AskStores | None
    """None: there is no Airflow to ask."""

    def resolve(self, connection_id: str) -> Endpoint:
        """The server of a connection. Raises ConfigError if there is none."""
        if self.ask is None:
            return environment_resolver(os.environ)(connection_id)
        for kept in self._stored(connection_id).kept:
            return kept.endpoint()
        raise ConfigError(f"connection {connection_id!r}: Airflow has none of this name")

    def answers(self) -> Iterator[Answer]:
        """Of the source's and the target's connection, and those that only Airflow or this shell uses."""
        for part, found in (("source", self.channel.source.connection), ("target", self.channel.target.connection)):
            if found is not None:
                yield self._of_shell(part, found) if self.ask is None else _of_airflow(part, found, self._stored(found))
        if self.ask is not None and self.channel.spark.engine is not PlanEngine.LOCAL:
            connection = self.channel.spark.connection
            yield _of_spark(connection, self._stored(connection))
        if (announced := self.channel.announce.airflow) is not None:
            yield _of_announcements(announced)

    def _stored(self, connection_id: str) -> ConnectionStores:
        assert self.ask is not None
        with _quietly():
            return self.ask(connection_id)

    def _of_shell(self, part: str, connection_id: str) -> Answer:
        findings = _unusable(part, connection_id, self.resolve)
        return Answer(f"{part}-airflow-connection", findings, said=f"{_variable(connection_id)} of this shell")


def connections_of(
    channel: ChannelConfig, load: LoadStores, *, asks: bool | None
) -> tuple[Connections, Iterator[Answer]]:
    """The channel's connections, and the line that says whether Airflow is asked.

    ``asks``: whether to ask Airflow; None: if there is one. ``load``: called only then.
    """
    why = "--no-airflow" if asks is False else without_airflow(os.environ)
    if not why:
        try:
            with _quietly(), doing("loading Airflow, which is asked for its connections"):
                ask = load()
            return Connections(channel, ask), iter(())
        except Exception as exc:  # of whatever Airflow and its secrets backend import
            why, asks = f"Airflow cannot be asked: {type(exc).__name__}: {exc}", True
    severity = Severity.FATAL if asks else Severity.INFO
    found = f"{why}; only this shell's connections were looked at"
    finding = Finding(severity, "airflow", "an answer", found, "run it where Airflow runs, with its environment")
    return Connections(channel, None), iter((Answer("airflow", (finding,), was_asked=False),))


def held_by_airflow(connection_id: str, load: LoadStores) -> Endpoint | None:
    """What a shell's environment lacks, from this machine's Airflow; None where there is no Airflow. Raises ConfigError
    if it cannot be asked, or has no such connection either."""
    if without_airflow(os.environ):
        return None
    expected = f"connection {connection_id!r}: expected {_variable(connection_id)} in this shell, or it in Airflow"
    todo = f"set it to {_URI}, or `airflow connections add {shlex.quote(connection_id)} --conn-uri {_URI}`"
    try:
        with _quietly(), doing("asking Airflow for the connection, for which this shell has no variable"):
            stored = load()(connection_id)
    except Exception as exc:  # of whatever Airflow and its secrets backend import
        raise ConfigError(
            f"{expected}, found no variable, and Airflow cannot be asked: {type(exc).__name__}: {exc}; {todo}"
        ) from exc
    for kept in stored.kept:
        return kept.endpoint()
    raise ConfigError(f"{expected}, found neither{''.join(f'; {each}' for each in stored.silent)}; {todo}")


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the lines that Airflow and its providers log, and warn of, where they are imported and asked."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _of_airflow(part: str, connection_id: str, stored: ConnectionStores) -> Answer:
    name = f"{part}-airflow-connection"
    if not stored.kept:
        found = "; ".join(("none in Airflow", *stored.silent))
        added = Command(f"airflow connections add {shlex.quote(connection_id)} --conn-uri {_URI}")
        missing = Finding(Severity.FATAL, part, f"a connection {connection_id!r}", found, "add it", mend=(added,))
        return Answer(name, (missing,))
    first = stored.kept[0]
    unusable = _unusable(part, connection_id, lambda _: first.endpoint())
    if unusable:
        return Answer(name, unusable)
    notes = (
        *_other_servers(part, stored.kept),
        *(Finding(Severity.INFO, part, "an answer of every store", each, _SILENT) for each in stored.silent),
    )
    return Answer(name, notes, said=_said(stored.kept))


def _said(kept: tuple[StoredConnection, ...]) -> str:
    places = " and ".join(each.place for each in kept)
    if all(each.in_shell for each in kept):
        return f"{places}; Airflow's services need this variable, too"
    return places


def _other_servers(part: str, kept: tuple[StoredConnection, ...]) -> Iterator[Finding]:
    """Stores with the same connection and other values: which one is taken depends on the process that asks."""
    first = kept[0].endpoint()
    for each in kept[1:]:
        try:
            other = each.endpoint()
        except ConfigError as exc:
            found = str(exc)
        else:
            if other == first:
                continue
            found = str(other) if str(other) != str(first) else "another password or other options"
        expected = f"what {kept[0].place} has: {first}"
        todo = f"a service that lacks {kept[0].place} takes the other: keep one of them"
        yield Finding(Severity.INFO, f"{part}: {each.place}", expected, found, todo)


def _of_spark(connection_id: str, stored: ConnectionStores) -> Answer:
    """The DAG's connection to Spark: without it the provider takes YARN (advice)."""
    if stored.kept:
        return Answer("spark-airflow-connection", (), said=stored.kept[0].place)
    added = Command(f"airflow connections add {shlex.quote(connection_id)} --conn-uri {_SPARK}")
    found = "; ".join(("none in Airflow: the DAG's plan job goes to YARN", *stored.silent))
    note = Finding(Severity.INFO, "spark", f"a connection {connection_id!r}", found, "add it", mend=(added,))
    return Answer("spark-airflow-connection", (note,))


def _of_announcements(connection_id: str) -> Answer:
    """The connection by which a run of this shell tells Airflow; the DAG's runs need none."""
    findings: tuple[Finding, ...] = ()
    try:
        site_of(connection_id)
    except ConfigError as exc:
        export = Command(f"export {shlex.quote(_variable(connection_id))}={_SITE}")
        findings = (Finding(Severity.FATAL, "announce", "a connection", str(exc), "set it here", mend=(export,)),)
    return Answer("announce-airflow-connection", findings, said=f"{_variable(connection_id)} of this shell")


def _unusable(part: str, connection_id: str, resolve: Resolver) -> tuple[Finding, ...]:
    """The finding, if there is no such connection or it is none to a server."""
    try:
        resolve(connection_id)
    except ConfigError as exc:
        here, there = shlex.quote(_variable(connection_id)), shlex.quote(connection_id)
        mend = (Command(f"export {here}={_URI}"), Command(f"airflow connections add {there} --conn-uri {_URI}"))
        todo = "set it here, and in Airflow"
        return (Finding(Severity.FATAL, part, "a connection", str(exc), todo, mend=mend),)
    return ()


def _variable(connection_id: str) -> str:
    return f"{PREFIX}{connection_id.upper()}"


_SILENT: Final = "a task that asks this one first takes another"
